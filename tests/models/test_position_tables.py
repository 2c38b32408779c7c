"""Position tables: they give the logits of a pass without them, to every text at these positions; nothing is
remembered, and other positions, models and rules are refused."""

import io

import pytest
import torch

from sepnb.encodings import DynamicNTK, RoPE
from sepnb.models import LanguageModel, frozen_attention
from sepnb.streams import Streams
from sepnb.training import next_token_losses

from ..shared import refused

STREAMS = Streams(pos=8, sem=24)
ISOLATED = [
    {"mode": "strict"},
    {"query_key": "untied"},
    {"mode": "strict", "pos_stream": "reinjected"},
    {"pos_stream": "constant"},
    {"mode": "strict", "n_kv_heads": 2, "streams": Streams(pos=16, sem=16)},
    {"mode": "strict", "encoding": ("learned", "phase")},
    {"mode": "strict", "window": 3},
]


@pytest.fixture
def strict(built) -> LanguageModel:
    return built(STREAMS, mode="strict", encoding="learned", readout="both").eval()


@pytest.fixture
def of_kind(built):
    """`of_kind(fields)`: a model that is read from every stream."""

    def build(fields: dict) -> LanguageModel:
        fields = {"streams": STREAMS, "readout": "both", "encoding": "sinusoidal", **fields}
        return built(fields.pop("streams"), **fields).eval()

    return build


@pytest.fixture
def runs(monkeypatch) -> list[int]:
    """The lengths of the position branches that were computed, by any model."""
    from sepnb.models import transformer

    found, compute = [], transformer.position_branch

    def counted(model, embeddings, context, cache=None):
        found.append(context.n_queries)
        return compute(model, embeddings, context, cache)

    monkeypatch.setattr(transformer, "position_branch", counted)
    return found


@pytest.mark.parametrize("fields", ISOLATED, ids=str)
def test_tables_give_the_logits_of_a_pass_without_them_to_every_text_and_the_branch_is_run_once(
    of_kind, text, runs, fields
):
    model = of_kind(fields)
    with torch.no_grad():
        expected = {(b, n): model(text(b, n)) for b, n in ((2, 9), (1, 6), (3, 1))}
        runs.clear()
        tables = model.position_tables(9)
        for (b, n), logits in expected.items():
            found = model(text(b, n), tables=tables)
            torch.testing.assert_close(found, logits, rtol=0, atol=1e-12)
            at = torch.arange(n)
            assert torch.equal(model(text(b, n), at, tables=tables), found)
        assert torch.equal(
            model(text(2, 9), tables=tables), expected[2, 9]
        )  # of this length: to the last bit
    assert runs == [9]


@pytest.mark.parametrize("fields", ISOLATED, ids=str)
def test_tables_are_of_the_positions_that_are_asked_for(of_kind, text, fields):
    model, tokens, at = of_kind(fields), text(2, 7), torch.tensor([3, 4, 9, 20, 21, 30, 50])
    tables = model.position_tables(at.to(torch.int16))
    with torch.no_grad():
        full = model(tokens, at)
        torch.testing.assert_close(model(tokens, at, tables=tables), full, rtol=0, atol=1e-12)
        torch.testing.assert_close(model(tokens[:, :4], at[:4], tables=tables), full[:, :4])
        cache = model.make_cache(2)
        pieces = [
            model(tokens[:, a:b], at[a:b], cache=cache, tables=tables) for a, b in ((0, 3), (3, 4), (4, 7))
        ]
        torch.testing.assert_close(torch.cat(pieces, 1), full, rtol=0, atol=1e-10)


def test_a_cache_may_begin_without_tables_and_go_on_with_them_and_not_the_other_way(strict, text):
    tokens = text(2, 8)
    with torch.no_grad():
        tables, full, cache = strict.position_tables(8), strict(tokens), strict.make_cache(2)
        first = strict(tokens[:, :4], cache=cache)
        then = strict(tokens[:, 4:6], cache=cache, tables=tables)
        torch.testing.assert_close(torch.cat([first, then], 1), full[:, :6], rtol=0, atol=1e-10)
        held = cache.numel()
        refused("holds nothing of the position heads; go on with tables=", strict, tokens[:, 6:], cache=cache)
        assert len(cache) == 6 and cache.numel() == held
        last = strict(tokens[:, 6:], cache=cache, tables=tables)
        torch.testing.assert_close(last, full[:, 6:], rtol=0, atol=1e-10)


def test_frequencies_that_follow_the_length_have_tables_of_that_length(built, text):
    encoding = ("learned", RoPE(streams=("pos",)))
    model = built(STREAMS, mode="strict", readout="both", encoding=encoding, max_length=16).eval()
    model, tokens = model.extended(extension=DynamicNTK(4, 3)), text(2, 6)
    with torch.no_grad():
        tables, full = model.position_tables(6), model(tokens)
        torch.testing.assert_close(model(tokens, tables=tables), full, rtol=0, atol=1e-12)
        with pytest.raises(ValueError, match="follow: 6, this call needs 4; make them with this model"):
            model(tokens[:, :4], tables=tables)
        cache = model.make_cache(2, length=6)
        pieces = [model(piece, cache=cache, tables=tables) for piece in tokens.split([3, 1, 2], dim=1)]
        torch.testing.assert_close(torch.cat(pieces, 1), full, rtol=0, atol=1e-10)
        longer, cache = model.position_tables(4, length=9), model.make_cache(2, length=9)
        expected = model(tokens[:, :4], cache=model.make_cache(2, length=9))
        torch.testing.assert_close(model(tokens[:, :4], cache=cache, tables=longer), expected)


def test_without_a_mask_tables_serve_all_their_positions_at_once(built, text):
    model = built(STREAMS, mode="strict", readout="both", causal=False).eval()
    with torch.no_grad():
        tables = model.position_tables(6)
        torch.testing.assert_close(model(text(2, 6), tables=tables), model(text(2, 6)), rtol=0, atol=1e-12)
        with pytest.raises(ValueError, match="serve 6 positions at once, because each row depends on all"):
            model(text(2, 4), tables=tables)


def test_points_of_several_axes_have_tables_too(built, text):
    streams = Streams(row=8, col=8, sem=16)
    model = built(streams, mode="strict", encoding="sinusoidal", axes=2, causal=False).eval()
    at = torch.tensor([[0, 0], [1, 1], [1, 2], [2, 1]])
    with torch.no_grad():
        tables = model.position_tables(at)
        torch.testing.assert_close(model(text(3, 4), at, tables=tables), model(text(3, 4), at))
        refused("other positions than those of tokens 0 to 3", model, text(3, 4), at.flip(0), tables=tables)
        refused("on 2 axes no position comes after another", model.position_tables, 4)


# --- gradients


def test_gradients_go_through_tables_that_carry_them_and_not_through_others(strict, text):
    tokens, outcomes = text(2, 5), []
    for tables in (None, strict.position_tables(4)):
        strict.zero_grad()
        reading = strict if tables is None else lambda x, tables=tables: strict(x, tables=tables)
        next_token_losses(reading, tokens).mean().backward()
        outcomes.append([parameter.grad.clone() for parameter in strict.parameters()])
    for one, other in zip(*outcomes, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
    with torch.no_grad():
        tables = strict.position_tables(4)
    strict.zero_grad()
    next_token_losses(lambda x: strict(x, tables=tables), tokens).mean().backward()
    assert strict.transformer.input_encodings[0].table.grad is None
    assert strict.embedding.weight.grad is not None


def test_in_training_tables_hold_one_draw_of_the_dropout(built, text):
    model = built(STREAMS, mode="strict", readout="both", dropout=0.4).train()
    one, other = (model.position_tables(5).streams["pos"] for _ in range(2))
    assert not torch.equal(one, other)
    tables, content = model.position_tables(5), model.embedding(text(2, 5))
    ends = [model.transformer(content, tables=tables)["pos"] for _ in range(2)]
    assert torch.equal(*ends) and torch.equal(ends[0], tables.streams["pos"].expand(2, -1, -1))


# --- nothing is remembered


def test_a_model_remembers_nothing_between_calls(strict, text, runs):
    tokens = text(2, 5)

    def size() -> int:
        torch.save(strict, file := io.BytesIO())
        return len(file.getvalue())

    before = size()
    with torch.no_grad():
        first = strict(tokens)
        strict.transformer.blocks[0].mlp.up.blocks["pos"].weight.data.mul_(1.5)  # torch counts no such write
        assert not torch.equal(strict(tokens), first)
    assert runs == [5, 5] and size() == before


def test_a_hook_of_attention_is_asked_for_the_position_heads_where_they_are_computed(strict, text):
    tables = strict.position_tables(5)
    with torch.no_grad(), frozen_attention(strict) as patterns:
        strict(text(2, 5))
    assert all(pattern.weights.shape[1] == 4 for pattern in patterns)
    with torch.no_grad(), frozen_attention(strict) as patterns:
        strict(text(2, 5), tables=tables)
    assert all(pattern.weights.shape[1] == 3 for pattern in patterns)


# --- refusals


def test_what_tables_do_not_serve_is_refused_with_the_remedy(strict, built, text, unhooked):
    tables, tokens = strict.position_tables(6), text(2, 4)
    shifted = strict.position_tables(torch.arange(6) + 1)
    other = built(STREAMS, query_key="content", pos_stream="constant").eval()
    cache = strict.make_cache(2)
    strict(tokens, torch.arange(4) + 30, cache=cache)
    rows, documents = torch.zeros(2, 4).long(), torch.zeros(2, 4).long()
    for model, given, message in (
        (strict, (text(2, 7), None, None, None, tables), r"6 positions; make position_tables\(7\)"),
        (strict, (tokens, None, None, None, shifted), "other positions than those of tokens 0 to 3"),
        (strict, (tokens, rows, None, None, tables), r"differ by sequence.* give \[N\]"),
        (strict, (tokens[:, :2], torch.tensor([4, 5]), cache, None, tables), "of tokens 0 to 3"),
        (strict, (tokens, None, None, documents, tables), "position tables cannot be had with documents"),
        (strict.extended(window=2), (tokens, None, None, None, tables), "rules of evaluation .* needs .2,"),
        (other, (tokens, None, None, None, tables), "columns by layer .*, this call needs"),
        (built(Streams.dense(32)), (tokens, None, None, None, tables), "it has one stream; give Streams"),
    ):
        refused(message, model, *given)
    refused(r"must be of model\.position_tables\(\), got list", strict, tokens, error=TypeError, tables=[1])
    assert len(cache) == 4
