"""SeqPE inside a model: what each site leaves alone, and what is encoded how often.

What each site computes, `test_every_encoding` says."""

from contextlib import nullcontext

import pytest
import torch
from torch import Tensor

from sepnb.encodings import Heads, held
from sepnb.encodings.held import held_embeddings
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.seqpe import SeqPE, SequentialPositionEncoder
from sepnb.seqpe.injection import Embeddings
from sepnb.seqpe.sampling import CandidateSampler
from sepnb.streams import Streams
from sepnb.training.seqpe_losses import SeqPELosses, encoder_of

F64 = torch.float64
WIDTH, HEADS, N, VOCABULARY = 16, 2, 6, 11
D = WIDTH // HEADS
SITES = ("score", "add", "multiply", "input")
GAPS = torch.tensor([0, 3, 4, 40, 41, 700])
ROWS = torch.stack([torch.arange(N) + 5, GAPS])
SMALL = {"width": 8, "digits": 3}


def model(site: str, streams: Streams | None = None, encoding=None, fields=(), **options) -> LanguageModel:
    """Two layers in float64, every parameter large enough to matter."""
    streams = Streams.dense(WIDTH) if streams is None else streams
    own = SeqPE(site=site, **SMALL, **options)
    with_input = own if len(streams.names) == 1 or site == "input" else ("sinusoidal", own)
    config = TransformerConfig(streams, 2, HEADS, encoding or with_input, max_length=16, **dict(fields))
    torch.manual_seed(0)
    made = LanguageModel(config, VOCABULARY).to(F64)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return made


def tokens(batch: int = 2, n: int = N) -> Tensor:
    return torch.randint(VOCABULARY, (batch, n), generator=torch.Generator().manual_seed(1))


def loaded(made: LanguageModel, other: LanguageModel) -> LanguageModel:
    """`made` with the parameters of `other` that it has."""
    own = made.state_dict()
    made.load_state_dict({key: value for key, value in other.state_dict().items() if key in own})
    return made


def captured(made: LanguageModel, at: Tensor, monkeypatch) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Queries, keys and values with which attention averages, layer by layer."""
    seen = []
    for block in made.transformer.blocks:
        averaging = block.attention.averaging
        forward = averaging.forward

        def told(span, q, k, v, context, forward=forward):
            seen.append((q, k, v))
            return forward(span, q, k, v, context)

        monkeypatch.setattr(averaging, "forward", told)
    with torch.no_grad():
        made(tokens(), at)
    return seen


def test_at_the_input_the_embeddings_are_the_position_stream_and_the_content_stays_as_it_is():
    content = torch.ones(2, N, 8, dtype=F64)
    separated = model("input", Streams(pos=8, sem=8), fields={"mode": "strict"}.items())
    state = separated.transformer.input_state(content, GAPS)
    expected = encoder_of(separated).plain(GAPS).expand(2, -1, -1)
    torch.testing.assert_close(state["pos"], expected, rtol=0, atol=1e-12)
    assert torch.equal(state["sem"], content)


# --- every shape


@pytest.mark.parametrize(
    ("streams", "fields"),
    [
        (Streams.dense(WIDTH), {"n_kv_heads": 1}),
        (Streams(pos=8, sem=8), {"query_key": "untied", "readout": "both"}),
        (Streams(pos=4, sem=12), {}),
    ],
    ids=["shared keys", "untied", "straddling"],
)
@pytest.mark.parametrize("site", SITES)
def test_token_by_token_and_tokens_permuted_with_their_positions(site, streams, fields):
    for per_layer in (False, True) if site != "input" else (False,):
        made = model(site, streams, fields=fields.items(), per_layer=per_layer).eval()
        with torch.no_grad():
            for positions in (GAPS, ROWS):
                full, cache = made(tokens(), positions), made.make_cache(2)
                pieces = [
                    made(tokens()[:, a:b], positions[..., a:b], cache) for a, b in ((0, 3), (3, 4), (4, 6))
                ]
                torch.testing.assert_close(torch.cat(pieces, dim=1), full, rtol=0, atol=1e-10)
            torch.testing.assert_close(
                made(tokens(), GAPS.expand(2, -1)), made(tokens(), GAPS), rtol=0, atol=1e-10
            )
        bag = model(site, streams, fields={**fields, "causal": False}.items(), per_layer=per_layer)
        order = torch.tensor([3, 0, 5, 1, 4, 2])
        straight = bag(tokens(), GAPS)
        torch.testing.assert_close(
            bag(tokens()[:, order], GAPS[order]), straight[:, order], rtol=0, atol=1e-10
        )
        assert (bag(tokens()[:, order], GAPS) - straight[:, order]).abs().max() > 1e-4


def test_an_untied_head_has_the_term_of_the_score_once(monkeypatch):
    made = model("score", Streams(pos=8, sem=8), fields={"query_key": "untied"}.items())
    widths = {q.shape[-1] for q, _, _ in captured(made, GAPS, monkeypatch)}
    assert widths == {2 * D, 3 * D}, "content, its positions and the term; a position head has no content"


def test_p_is_added_once_to_an_untied_head_and_scales_both_of_its_parts(monkeypatch):
    streams, fields = Streams(pos=8, sem=8), {"query_key": "untied"}.items()
    for site in ("add", "multiply"):
        made = model(site, streams, fields=fields)
        bare = loaded(model(site, streams, "sinusoidal", fields), made)
        # Of the first layer the sem head: content first, then its positions.
        (q,), (plain,) = (
            [q for q, _, _ in captured(one, GAPS, monkeypatch) if q.shape[-1] == 2 * D][:1]
            for one in (made, bare)
        )
        assert (q[..., :D] - plain[..., :D]).abs().max() > 1e-2
        assert torch.equal(q[..., D:], plain[..., D:].expand_as(q[..., D:])) == (site == "add")


@pytest.mark.parametrize("other", ["rope", SeqPE(site="multiply", **SMALL)], ids=["rope", "multiply"])
def test_the_term_stands_beside_the_columns_of_a_head_whatever_else_changes_them(other):
    own = SeqPE(**SMALL)
    one, two = (model("score", encoding=pair) for pair in ((own, other), (other, own)))
    first, second = two.transformer.query_key_encodings
    two.transformer.query_key_encodings = torch.nn.ModuleList([second, first])  # named in their order
    two.load_state_dict(one.state_dict())
    two.transformer.query_key_encodings = torch.nn.ModuleList([first, second])
    torch.testing.assert_close(one(tokens(), GAPS), two(tokens(), GAPS), rtol=0, atol=1e-12)
    assert (one(tokens(), GAPS) - model("score")(tokens(), GAPS)).abs().max() > 1e-3


@pytest.mark.parametrize("site", SITES)
def test_the_class_token_has_a_vector_of_its_own_that_goes_through_the_same_maps(site):
    """And every other place has what its digits give it, in training as when rows are held."""
    own = SeqPE(site=site, width=8, digits=2, dims=2, class_token=True)
    grid = torch.tensor([[0, 0], [1, 1], [0, 3], [4, 0]])
    for training in (True, False):
        torch.manual_seed(0)
        made = (
            (own.at_input(8, 64) if site == "input" else own.at_query_key(Heads(width=4)))
            .double()
            .train(training)
        )
        embeddings = made.embeddings
        with torch.no_grad(), held_embeddings(made):
            rows = embeddings.encoder.plain(grid)
            rows[0] = embeddings.class_token
            for _ in range(2):  # the second time they are held
                torch.testing.assert_close(embeddings(grid), rows, rtol=0, atol=1e-12)
            assert (embeddings.encoder.plain(grid[:1]) - rows[0]).abs().max() > 1e-2
            if site != "input":
                _, of_keys = made.prepare(grid, grid)
                torch.testing.assert_close(of_keys.at(None)[0], made.keys[0](rows), rtol=0, atol=1e-12)
    embeddings(grid).sum().backward()
    assert (embeddings.class_token.grad == 1).all(), "only the origin, and it alone"
    assert "class_token" not in SeqPE(dims=2).resolved()
    assert own.resolved()["class_token"] is True


# --- what is encoded how often


def counted(made: torch.nn.Module, monkeypatch) -> list[int]:
    """How many positions each call of the encoder is given."""
    calls, encoder = [], encoder_of(made)
    forward = SequentialPositionEncoder.forward
    monkeypatch.setattr(encoder, "forward", lambda at: calls.append(len(at)) or forward(encoder, at))
    return calls


@pytest.mark.parametrize("site", SITES)
def test_the_encoder_runs_once_in_a_pass_and_where_they_are_held_once_for_a_position(site, monkeypatch):
    made = model(site)
    calls = counted(made, monkeypatch)
    made(tokens(), GAPS)
    assert len(calls) == 1, "once for all layers"
    made.eval(), calls.clear()
    with torch.no_grad(), held_embeddings(made):
        first = made(tokens(), GAPS)
        assert calls == [N]
        assert torch.equal(made(tokens(), GAPS), first) and calls == [N]
        cache = made.make_cache(2)
        for n in range(N):
            made(tokens()[:, n : n + 1], GAPS[n : n + 1] + 1, cache)
        assert sum(calls) == N + 4 and max(calls[1:]) == 1, "of these positions 4 and 41 were known"
        calls.clear()
        with torch.enable_grad():
            made(tokens(), GAPS).sum().backward()
        assert calls == [N], "with gradients nothing is held"
    calls.clear()
    with torch.no_grad():
        made(tokens(), GAPS), made(tokens(), GAPS)
        assert calls == [N, N], "nor outside"
        encoder_of(made).digit.weight.mul_(2.0)
        assert not torch.allclose(made(tokens(), GAPS), first)


def test_what_is_held_is_what_is_computed_in_any_order_and_past_what_fits(monkeypatch):
    torch.manual_seed(0)
    made = Embeddings(SequentialPositionEncoder(width=8, heads=2, digits=3).double()).eval()
    monkeypatch.setattr(held, "HELD", 40 * 8)  # forty rows
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad(), held_embeddings(made):
        for size in (5, 0, 9, 1, 30, 60, 7):
            positions = torch.randint(1000, (2, size), generator=generator)
            expected = made.encoder.plain(positions.flatten()).unflatten(0, (2, size))
            torch.testing.assert_close(made(positions), expected, rtol=0, atol=1e-10)


def test_where_they_are_held_ends_also_after_an_error():
    made = model("score").eval()
    with pytest.raises(ValueError), torch.no_grad(), held_embeddings(made):
        made(tokens(), torch.full((N,), -1))
    assert all(one.held is None for one in made.modules() if isinstance(one, Embeddings))


# --- training


@pytest.mark.parametrize("site", SITES)
def test_the_losses_find_the_encoder_at_every_site_and_every_parameter_learns(site):
    made = model(site, Streams(pos=8, sem=8) if site == "input" else None)
    losses = SeqPELosses(CandidateSampler((1000,), anchors=4, candidates=5, window=(50,)))
    value = losses.bind(0)(made)
    value.backward()
    assert encoder_of(made).digit.weight.grad.abs().sum() > 0 and value > 0
    made.zero_grad()
    # As many digits as there are of them, so that every row of the embedding is read.
    made(torch.zeros(1, 20, dtype=torch.int64), torch.arange(20) * 50 + 3).square().mean().backward()
    for name, parameter in made.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize("site", SITES)
def test_the_encoder_keeps_the_first_weights_that_it_draws_and_its_maps_get_those_of_the_model(site):
    torch.manual_seed(0)
    config = TransformerConfig(Streams.dense(64), 1, 2, SeqPE(site=site, width=64))
    made = LanguageModel(config, VOCABULARY)
    encoder = encoder_of(made)
    drawn = 0.02 * (768 / 64) ** 0.5
    (down,) = encoder.transformer.blocks[0].mlp.down.blocks.values()
    for part in (encoder.digit.weight, encoder.output.weight, down.weight):
        assert part.std().item() == pytest.approx(drawn, rel=0.15)
    if site != "input":
        (module,) = made.transformer.query_key_encodings
        assert module.queries[0].weight.std().item() == pytest.approx(64**-0.5, rel=0.1)
        assert not module.queries[0].bias.any()


# --- refusals


@pytest.mark.parametrize("site", SITES)
def test_a_position_that_the_digits_cannot_write_is_refused_and_the_cache_left_as_it_was(site, unhooked):
    made = model(site).eval()
    cache = made.make_cache(1)
    with torch.no_grad():
        made(tokens(1, 2), torch.tensor([997, 998]), cache)
        with pytest.raises(ValueError, match=r"position 1000 .*not in \[0, 1000\), what 3 digits of base 10"):
            made(tokens(1, 2), torch.tensor([999, 1000]), cache)
        assert len(cache) == 2 and made(tokens(1, 1), cache=cache).isfinite().all()
        with pytest.raises(ValueError, match=r"position 1000 .*give more digits"):
            made(tokens(1, 1), cache=cache)


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize(
    ("dims", "given", "error", "message"),
    [
        (2, torch.ones(4, 3, dtype=torch.int64), ValueError, "have 3 coordinates, 2 widths were given"),
        (2, torch.ones(4, 2), TypeError, "positions must be integers, got torch.float32"),
    ],
    ids=["three-for-two", "floats"],
)
def test_what_is_no_position_is_refused_whether_embeddings_are_held_or_not(
    held, dims, given, error, message, unhooked
):
    made = Embeddings(SequentialPositionEncoder(width=8, dims=dims, digits=3))
    holding = held_embeddings(made) if held else nullcontext()
    with torch.no_grad(), holding, pytest.raises(error, match=message):
        made(given)
