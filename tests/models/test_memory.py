"""The position pass is computed once for all texts at inference, and never for weights that are gone."""

import copy
import io

import pytest
import torch

from sepnb.encodings import DynamicNTK, RoPE
from sepnb.models import LanguageModel, frozen_attention
from sepnb.models.tower import AHEAD
from sepnb.streams import Streams
from sepnb.training import next_token_losses

STREAMS = Streams(pos=8, sem=24)
ISOLATED = [
    {"mode": "strict"},
    {"query_key": "untied"},
    {"mode": "strict", "pos_stream": "reinjected"},
    {"pos_stream": "constant"},
    {"mode": "strict", "n_kv_heads": 2, "streams": Streams(pos=16, sem=16)},
]


@pytest.fixture
def strict(built) -> LanguageModel:
    return built(STREAMS, mode="strict", encoding="learned", readout="both").eval()


@pytest.fixture
def runs(monkeypatch) -> list[int]:
    """The lengths of the position passes that were computed, by any model."""
    from sepnb.models.transformer import Transformer

    found, compute = [], Transformer.position_pass

    def counted(self, codes, context, cache=None):
        found.append(next(iter(codes.values())).shape[-2])
        return compute(self, codes, context, cache)

    monkeypatch.setattr(Transformer, "position_pass", counted)
    return found


def afresh(model: LanguageModel, tokens: torch.Tensor) -> torch.Tensor:
    """The logits of a copy, which remembers nothing."""
    with torch.no_grad():
        return copy.deepcopy(model)(tokens)


@pytest.mark.parametrize("fields", ISOLATED, ids=str)
def test_one_pass_of_the_longest_text_and_the_same_logits(built, text, runs, fields):
    fields = {"streams": STREAMS, **fields}
    model = built(fields.pop("streams"), **fields).eval()
    with torch.no_grad():
        for b, n in ((2, 6), (1, 9), (2, 6), (3, 4), (2, 9)):
            logits = model(text(b, n))
            torch.testing.assert_close(logits, afresh(model, text(b, n)), rtol=0, atol=1e-12)
            given = model(text(b, n), torch.arange(n))  # positions that are given are not looked up
            torch.testing.assert_close(logits, given, rtol=0, atol=1e-12)
    ours = [n for n in runs if n in (6, 9)]
    assert runs[0] == 6 and runs[1:3] == [6, 6]  # the model, its copy, the given positions
    assert ours.count(6) == 1 + 2 * 2 and ours.count(9) == 1 + 2 * 2


def test_a_longer_text_replaces_the_pass_of_a_shorter_one_bit_for_bit(strict, text, runs):
    with torch.no_grad():
        first = {n: strict(text(2, n)) for n in (1, 2, 5)}
        assert runs == [1, 2, 5]
        for n in (4, 5, 1, 2, 5):
            strict(text(2, n))
        assert runs == [1, 2, 5]
        for n, logits in first.items():
            assert torch.equal(logits, afresh(strict, text(2, n)))


UNSTABLE = {
    "no mask": ({"causal": False}, None),
    "frequencies by length": ({"encoding": ("sinusoidal", RoPE(streams=("pos",)))}, DynamicNTK(4, 3)),
}


@pytest.mark.parametrize("name", UNSTABLE)
def test_where_a_later_position_is_heard_every_length_has_a_pass_of_its_own(built, text, runs, name):
    fields, extension = UNSTABLE[name]
    model = built(STREAMS, mode="strict", readout="both", max_length=16, **fields).eval()
    model = model if extension is None else model.extended(extension=extension)
    with torch.no_grad():
        for length in (1, 2, 3, 4, 5, 2, 5, 1):  # the latest four are held
            model(text(2, length))
        assert runs == [1, 2, 3, 4, 5, 1]
        for length in (9, 6):
            assert torch.equal(model(text(2, length)), afresh(model, text(2, length)))
        if extension is not None:  # a cache gets the frequencies of its own length
            cache = model.make_cache(2, length=6)
            pieces = [model(text(2, 6)[:, at], cache=cache) for at in (slice(0, 4), slice(4, 5), slice(5, 6))]
            torch.testing.assert_close(torch.cat(pieces, 1), model(text(2, 6)), rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", UNSTABLE)
def test_a_prefix_of_such_a_pass_would_be_wrong(built, text, monkeypatch, name):
    from sepnb.models.transformer import Transformer

    fields, extension = UNSTABLE[name]
    model = built(STREAMS, mode="strict", readout="both", max_length=16, **fields).eval()
    model = model if extension is None else model.extended(extension=extension)
    monkeypatch.setattr(Transformer, "_prefix_stable", True)
    with torch.no_grad():
        model(text(2, 9))
        assert not torch.allclose(model(text(2, 6)), afresh(model, text(2, 6)), atol=1e-4)


# --- generation


def generated(model: LanguageModel, tokens: torch.Tensor, prefill: int) -> torch.Tensor:
    """The logits of a prefill and of the tokens after it, one by one, by a new cache."""
    cache = model.make_cache(len(tokens))
    pieces = [model(tokens[:, :prefill], cache=cache)]
    pieces += [model(tokens[:, n : n + 1], cache=cache) for n in range(prefill, tokens.shape[1])]
    return torch.cat(pieces, dim=1)


@pytest.mark.parametrize("fields", ISOLATED, ids=str)
def test_generation_runs_the_tower_once_for_all_texts(built, text, runs, fields):
    fields = {"streams": STREAMS, **fields}
    model = built(fields.pop("streams"), encoding="sinusoidal", readout="both", **fields).eval()
    with torch.no_grad():
        first = generated(model, text(2, 9), 5)
        assert runs == [5, AHEAD - 5]
        again, other, third = (
            generated(model, tokens, prefill)
            for tokens, prefill in ((text(2, 9), 5), (text(3, 12), 1), (text(1, 7), 7))
        )
        assert torch.equal(first, again)
        full = model(text(3, 12))
        assert runs == [5, AHEAD - 5]
        longer = generated(model, text(1, AHEAD + 3), AHEAD - 2)
        assert runs == [5, AHEAD - 5, AHEAD]
    for logits in (first, again, other, third, longer):
        batch, length = logits.shape[:2]
        expected = afresh(model, text(batch, length))
        torch.testing.assert_close(logits, expected, rtol=0, atol=1e-10)
    torch.testing.assert_close(full, other, rtol=0, atol=1e-10)


def test_a_cache_is_as_large_as_when_the_tower_fills_it(strict, text):
    sizes = []
    for training in (True, False):
        strict.train(training)
        cache = strict.make_cache(3)
        with torch.no_grad():
            strict(text(3, 5), cache=cache), strict(text(3, 1), cache=cache)
        sizes.append(cache.numel())
    assert sizes[0] == sizes[1]


def test_positions_that_are_given_after_some_by_default_go_through_the_tower(strict, text, runs):
    tokens, given = text(2, 8), torch.tensor([20, 21])
    whole = torch.cat([torch.arange(5), given, torch.tensor([22])])
    with torch.no_grad():
        cache = strict.make_cache(2)
        pieces = [strict(tokens[:, :5], cache=cache), strict(tokens[:, 5:7], given, cache)]
        assert runs == [5, 2]
        pieces.append(strict(tokens[:, 7:], cache=cache))  # goes on after 21
        assert runs == [5, 2, 1]
        torch.testing.assert_close(torch.cat(pieces, 1), strict(tokens, whole), rtol=0, atol=1e-10)


def test_ahead_ends_with_the_table_and_a_position_past_it_leaves_all_as_it_was(built, text, runs):
    model = built(STREAMS, mode="strict", encoding="learned", max_length=8).eval()
    squeezed = model.extended("interpolate", length=11)
    for one, length in ((model, 8), (squeezed, 11)):
        with torch.no_grad():
            cache = one.make_cache(2)
            one(text(2, 3), cache=cache)
            pieces = [one(text(2, length)[:, n : n + 1], cache=cache) for n in range(3, length)]
            torch.testing.assert_close(
                torch.cat(pieces, 1), one(torch.cat([text(2, 3), text(2, length)[:, 3:]], 1))[:, 3:]
            )
            held = cache.numel()
            with pytest.raises(ValueError, match=str(length)):
                one(text(2, 1), cache=cache)
            assert len(cache) == length and cache.numel() == held
    assert runs == [3, 5, 3, 8]


def test_what_broke_off_is_begun_anew(strict, text, monkeypatch):
    tokens = text(2, 9)
    with torch.no_grad():
        whole, cache = afresh(strict, tokens), strict.make_cache(2)
        strict(tokens[:, :4], cache=cache)
        last = type(strict.transformer.blocks[-1])
        compute = last.forward

        def broken(self, *given, **more):
            if self is strict.transformer.blocks[1]:
                raise KeyboardInterrupt
            return compute(self, *given, **more)

        monkeypatch.setattr(last, "forward", broken)
        with pytest.raises(KeyboardInterrupt):
            strict(tokens[:, 4:5], cache=cache)
        monkeypatch.undo()
        torch.testing.assert_close(generated(strict, tokens, 4), whole, rtol=0, atol=1e-10)


def test_nothing_is_remembered_in_training_with_gradients_or_while_attention_is_frozen(strict, text, runs):
    tokens = text(2, 5)
    with torch.no_grad():
        strict.train()
        for _ in range(2):
            strict(tokens), strict(tokens, cache=strict.make_cache(2))
        assert len(runs) == 4
    strict.eval()
    strict(tokens), strict(tokens, cache=strict.make_cache(2))
    assert len(runs) == 6
    with torch.no_grad():
        strict(tokens)  # remembered from here on
        with frozen_attention(strict) as tapes:
            strict(tokens)
        assert len(runs) == 8
        assert all(tape.weights.shape[1] == 4 for tape in tapes)  # the position heads are on the tape too


def test_a_pass_with_gradients_never_reads_what_was_remembered(strict, text):
    tokens = text(2, 5)
    with torch.no_grad():
        strict(tokens)
    next_token_losses(strict, tokens).mean().backward()
    assert all(parameter.grad is not None for parameter in strict.parameters())


def step(model: LanguageModel, tokens: torch.Tensor, **options) -> None:
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.1, **options)
    next_token_losses(model, tokens).mean().backward()
    optimiser.step()


@torch.no_grad()
def scale(model: LanguageModel) -> None:
    for parameter in model.parameters():
        parameter.mul_(1.5)


def replace(model: LanguageModel) -> None:
    norm = model.transformer.blocks[0].attention_norm
    norm.gain["pos"] = torch.nn.Parameter(2 * norm.gain["pos"].detach())


def load(model: LanguageModel, **options) -> None:
    state = {name: 1.5 * value for name, value in model.state_dict().items()}
    model.load_state_dict(state, **options)


def write_behind(model: LanguageModel) -> None:
    """As swaps of averaged weights do: torch does not count these writes."""
    for parameter in model.parameters():
        parameter.data.mul_(1.5)


def write_in_numpy(model: LanguageModel) -> None:
    for parameter in model.parameters():
        parameter.detach().numpy()[...] *= 1.5


WRITES = {
    "an optimiser": step,
    "a foreach optimiser": lambda model, tokens: step(model, tokens, foreach=True),
    "a fused optimiser": lambda model, tokens: step(model, tokens, fused=True),
    "in place": lambda model, _: scale(model),
    "a parameter": lambda model, _: replace(model),
    "a state": lambda model, _: load(model),
    "a state, assigned": lambda model, _: load(model, assign=True),
    "another dtype": lambda model, _: model.float(),
    "another dtype and back": lambda model, _: model.bfloat16().double(),
    "one vector": lambda model, _: torch.nn.utils.vector_to_parameters(
        torch.ones(sum(p.numel() for p in model.parameters()), dtype=torch.float64), model.parameters()
    ),
    "behind torch's back": lambda model, _: write_behind(model),
    "by numpy": lambda model, _: write_in_numpy(model),
}


@pytest.mark.parametrize("name", WRITES)
def test_what_is_remembered_is_dropped_when_the_weights_are_written(strict, text, name):
    tokens = text(2, 5)
    with torch.no_grad():
        before = strict(tokens)
    WRITES[name](strict, tokens)
    with torch.no_grad():
        after = strict(tokens)
    assert torch.equal(after, afresh(strict, tokens))
    assert not torch.equal(after.to(before.dtype), before)


@pytest.mark.parametrize("fields", ISOLATED, ids=str)
def test_one_parameter_that_is_written_behind_is_seen_whichever_it_is(built, text, fields):
    fields = {"streams": STREAMS, "encoding": "learned", "readout": "both", "bias": True, **fields}
    model = built(fields.pop("streams"), **fields).eval()
    tokens = text(2, 5)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            before = model(tokens)
            parameter.data.mul_(-3)
            assert torch.equal(model(tokens), afresh(model, tokens)), name
            assert not torch.equal(model(tokens), before) or not parameter.any() or "query_key" in name, name


def test_what_only_the_content_goes_through_leaves_the_pass_as_it_is(strict, text, runs):
    tokens = text(2, 5)
    with torch.no_grad():
        strict(tokens)
        for name, parameter in strict.named_parameters():
            if "sem" in name.split(".") or not name.startswith("transformer."):
                parameter.mul_(1.5)
        strict(tokens)
        assert runs == [5]
        strict.transformer.blocks[0].mlp.up.blocks["pos"].weight.mul_(1.5)
        strict(tokens)
        assert runs == [5, 5]


def test_a_model_made_for_inference_only_answers_too(built, text):
    with torch.inference_mode():
        model = built(STREAMS, mode="strict").eval()
        first = model(text(2, 5))
        model.transformer.blocks[0].attention_norm.gain["pos"].mul_(2)  # such writes are never counted
        assert torch.equal(model(text(2, 5)), afresh(model, text(2, 5)))
        assert not torch.equal(model(text(2, 5)), first)


def test_what_was_remembered_under_inference_mode_serves_without_gradients_and_with_them(strict, text):
    tokens = text(2, 5)
    with torch.inference_mode():
        first = strict(tokens)
    with torch.no_grad():
        assert torch.equal(strict(tokens), first)
    strict(tokens).sum().backward()


def test_a_precision_of_autocast_has_a_pass_of_its_own(built, text, runs):
    model, tokens = built(STREAMS, mode="strict", dtype=torch.float32).eval(), text(2, 5)
    with torch.no_grad():
        for dtype in (None, torch.bfloat16, torch.float16):
            with torch.autocast("cpu", dtype=dtype, enabled=dtype is not None):
                assert torch.equal(model(tokens), afresh(model, tokens))
    assert len(runs) == 6  # three of the model, three of its copies


def test_a_caller_who_writes_to_his_output_does_not_write_to_the_memory(strict, text):
    content = strict.embedding(text(1, 5)).detach()
    with torch.no_grad():
        first = strict.transformer(content)
        kept = {name: part.clone() for name, part in first.items()}
        for part in first.values():
            part.zero_()
        again = strict.transformer(content)
    assert all(torch.equal(again[name], part) for name, part in kept.items())


def test_a_model_under_another_rule_has_a_memory_of_its_own(strict, text, runs):
    tokens = text(2, 9)
    with torch.no_grad():
        plain = strict(tokens)
        windowed = strict.extended(window=3)
        assert not torch.allclose(windowed(tokens), plain)
        assert torch.equal(strict(tokens), plain) and torch.equal(windowed(tokens), afresh(windowed, tokens))
    assert runs == 3 * [9]


def test_what_is_remembered_is_not_saved_with_the_model(strict, text):
    def size() -> int:
        torch.save(strict, file := io.BytesIO())
        return len(file.getvalue())

    before = size()
    with torch.no_grad():
        strict(text(2, 60))
    assert size() == before


RULES = {
    "window": {"window": 2},
    "sinks": {"window": 2, "sinks": 1},
    "log scale": {"log_scale": True},
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_that_is_set_later_is_followed_at_once(built, text, runs, rule):
    model, tokens = built(STREAMS, mode="strict", readout="both", max_length=3).eval(), text(2, 9)
    model.transformer.window = 2 if rule == "sinks" else None
    with torch.no_grad():
        before = model(tokens)
        for name, value in RULES[rule].items():
            setattr(model.transformer, name, value)
        assert torch.equal(model(tokens), afresh(model, tokens))
        assert not torch.allclose(model(tokens), before)


def test_frequencies_that_are_set_later_are_followed_at_once(built, text):
    encoding = ("sinusoidal", RoPE(streams=("pos",)))
    model, tokens = built(STREAMS, mode="strict", readout="both", encoding=encoding).eval(), text(2, 9)
    with torch.no_grad():
        before = model(tokens)
        model.transformer.query_key_encodings[0].extend(lambda inv_freq, **_: (inv_freq / 4, 1.0))
        assert torch.equal(model(tokens), afresh(model, tokens))
        assert not torch.allclose(model(tokens), before)


@pytest.mark.parametrize("register", ["register_forward_hook", "register_forward_pre_hook"])
def test_a_hook_hears_every_pass_and_what_it_changes_is_not_remembered(strict, text, runs, register):
    tokens, norm = text(2, 5), strict.transformer.blocks[0].attention.query_key[0]
    with torch.no_grad():
        before, heard = strict(tokens), []
        handle = getattr(norm, register)(lambda *given: heard.append(1) or doubled(given[-1]))
        changed = strict(tokens)
        strict(tokens)
        assert len(heard) == 2 and not torch.allclose(changed, before)
        handle.remove()
        assert torch.equal(strict(tokens), before)


def doubled(given):
    return tuple(2 * x for x in given) if isinstance(given, tuple) else 2 * given
