"""Transformer-XL's score against a double loop, its shift, and the two ways in which it is computed."""

import pytest
import torch
from torch import Tensor

from sepnb.encodings import Heads, TransformerXL, sinusoidal, transformer_xl_scores
from sepnb.encodings.relative import are_consecutive
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams

from .drawn import F64, POSITIONS, agree, drawn, random

SIZES = [(1, 1), (1, 6), (4, 4), (3, 6), (6, 7)]


def causal(n: int, m: int) -> Tensor:
    return torch.ones(n, m, dtype=torch.bool).tril(m - n)


def looped(q: Tensor, k: Tensor, r: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """`[B, H, N, M]`, 0 where the key comes after the query."""
    (n, d), m = q.shape[-2:], k.shape[-2]
    rows = []
    for row in range(n):
        i = m - n + row
        entries = []
        for j in range(m):
            if j > i:
                entries.append(torch.zeros(q.shape[:2], dtype=F64))
                continue
            content = ((q[:, :, row] + u) * k[:, :, j]).sum(-1)
            entries.append((content + ((q[:, :, row] + v) * r[:, i - j]).sum(-1)) / d**0.5)
        rows.append(torch.stack(entries, dim=-1))
    return torch.stack(rows, dim=-2)


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_scores_are_the_double_loop_in_value_and_every_gradient_where_a_query_looks(n, m):
    leaves = [random(2, 3, n, 4), random(2, 3, m, 4, seed=1), random(3, m, 4, seed=2)]
    leaves += [random(3, 4, seed=3), random(3, 4, seed=4)]
    agree(lambda: transformer_xl_scores(*leaves), lambda: looped(*leaves), leaves, causal(n, m))


def test_without_distances_and_biases_it_is_the_plain_scaled_score():
    q, k, nothing = random(1, 2, 3, 4), random(1, 2, 5, 4), torch.zeros(2, 4, dtype=F64)
    scores = transformer_xl_scores(q, k, torch.zeros(2, 5, 4, dtype=F64), nothing, nothing)
    torch.testing.assert_close(scores, q @ k.transpose(-1, -2) / 2)


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_every_visible_pair_has_the_row_of_its_own_distance(n, m):
    """Row t of r says t, and nothing else is there: what starts at m, or forgets the pad, is off by one."""
    q, k = torch.ones(1, 1, n, 1, dtype=F64), torch.zeros(1, 1, m, 1, dtype=F64)
    r = torch.arange(m, dtype=F64)[None, :, None]
    nothing = torch.zeros(1, 1, dtype=F64)
    scores = transformer_xl_scores(q, k, r, nothing, nothing)[0, 0]
    keys = torch.arange(m)
    distance = (keys[m - n :, None] - keys).to(F64)
    assert torch.equal(scores.masked_fill(~causal(n, m), 0), distance.masked_fill(~causal(n, m), 0))


def projected(module, m: int, width: int, heads: slice = slice(None)) -> Tensor:
    """r `[H, M, d]`: row t is W_r R_t with sines first, then cosines."""
    waves = sinusoidal(torch.arange(m), width, layout="halves", dtype=F64)
    return (waves @ module.distances.weight.T).unflatten(-1, (3, -1)).transpose(0, 1)[heads]


@pytest.mark.parametrize("width", [12, 11, 1])
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_shifted_rows_are_the_reference_in_value_and_every_gradient(n, m, width):
    module = drawn(TransformerXL().at_score(Heads(3, 4, width)))
    q, k, heads = random(2, 2, n, 4), random(2, 2, m, 4, seed=1), slice(1, 3)
    keys = torch.arange(m) + 40  # relative: where it starts does not matter
    prepared = module.prepare(keys[m - n :], keys, True)
    assert prepared.distances is not None
    agree(
        lambda: module(q, k, prepared, heads),
        lambda: transformer_xl_scores(q, k, projected(module, m, width, heads), module.u[1:], module.v[1:]),
        [q, k, *module.parameters()],
        causal(n, m),
    )


@pytest.mark.parametrize("width", [12, 11, 1])
@pytest.mark.parametrize("keys", POSITIONS.values(), ids=POSITIONS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_angles_give_the_same_at_any_positions_and_also_for_later_keys(keys, width, bidirectional):
    """Against R_{i-j} made for every pair, with the sines of negative distances where the key is later."""
    module = drawn(TransformerXL().at_score(Heads(3, 4, width, causal=not bidirectional)), std=0.3)
    q, k = random(2, 3, 7, 4), random(2, 3, 7, 4, seed=1)
    rows = keys if keys.dim() == 2 else keys.expand(2, -1)
    known = are_consecutive(keys, keys)
    seen = torch.ones(7, 7, dtype=torch.bool)
    seen = seen if bidirectional else seen.tril()

    def by_pairs() -> Tensor:
        distance = rows[:, :, None] - rows[:, None, :]  # i - j
        waves = sinusoidal(distance.to(F64), width, layout="halves")  # [B, N, M, D]
        r = (waves @ module.distances.weight.T).unflatten(-1, (3, 4)).permute(0, 3, 1, 2, 4)
        content = (q + module.u[:, None]) @ k.transpose(-1, -2)
        return (content + ((q + module.v[:, None])[:, :, :, None] * r).sum(-1)) / 2

    leaves = [q, k, *module.parameters()]
    everything = slice(0, 3)
    agree(lambda: module(q, k, module.prepare(keys, keys, known), everything), by_pairs, leaves, seen)


def test_what_stands_above_the_diagonal_reaches_nothing():
    """It is not 0 there, and after the mask it does not matter."""
    module = drawn(TransformerXL().at_score(Heads(2, 4, 8)))
    q, k, at = random(1, 2, 5, 4), random(1, 2, 5, 4, seed=1), torch.arange(5)
    scores = module(q, k, module.prepare(at, at, True), slice(0, 2))
    assert (scores[..., ~causal(5, 5)] != 0).all()
    masked = scores.masked_fill(~causal(5, 5), -torch.inf).softmax(-1)
    by_angles = module(q, k, module.prepare(at, at), slice(0, 2))
    expected = by_angles.masked_fill(~causal(5, 5), -torch.inf).softmax(-1)
    torch.testing.assert_close(masked, expected, rtol=0, atol=1e-12)


def test_keys_held_before_the_queries_are_a_longer_sequence():
    """Positions are relative: the last rows of the longer one, with no row of distances moved."""
    q, k, r = random(1, 2, 6, 4), random(1, 2, 6, 4, seed=1), random(2, 6, 4, seed=2)
    u, v = random(2, 4, seed=3), random(2, 4, seed=4)
    longer = transformer_xl_scores(q, k, r, u, v)
    torch.testing.assert_close(transformer_xl_scores(q[:, :, 4:], k, r, u, v), longer[:, :, 4:])


def test_columns_beside_those_of_the_head_add_their_product_alone():
    module = drawn(TransformerXL().at_score(Heads(2, 4, 8)))
    q, k, at = random(1, 2, 5, 7), random(1, 2, 5, 7, seed=1), torch.arange(5)
    for known in (True, False):
        prepared = module.prepare(at, at, known)
        own = module(q[..., :4], k[..., :4], prepared, slice(0, 2))
        more = q[..., 4:] @ k[..., 4:].transpose(-1, -2) / 2
        torch.testing.assert_close(module(q, k, prepared, slice(0, 2)), own + more)


def test_casting_the_module_leaves_its_waves_bitwise():
    module, at = TransformerXL().at_score(Heads(2, 4, 8, causal=False)), torch.tensor([2**24 + 1])
    before = module.prepare(at, at).keys
    module.to(torch.bfloat16)
    for one, other in zip(module.prepare(at, at).keys, before, strict=True):
        assert one.dtype == F64 and torch.equal(one, other)


def test_biases_start_small_and_the_map_has_none_of_its_own():
    torch.manual_seed(0)
    module = TransformerXL().at_score(Heads(50, 40, 8))
    for bias in (module.u, module.v):
        assert bias.std().item() == pytest.approx(0.02, rel=0.1)
    assert module.distances.bias is None


def test_what_cannot_be_is_refused(unhooked):
    q = random(1, 1, 3, 2)
    with pytest.raises(ValueError, match="3 queries cannot be the last of 2 keys"):
        transformer_xl_scores(q, q[:, :, :2], random(1, 2, 2), random(1, 2), random(1, 2))
    with pytest.raises(ValueError, match=r"base is 1\.0; it must be above 1"):
        TransformerXL(base=1.0)


# --- u and v of all layers


def tied(tie: bool, streams: Streams | None = None, **fields) -> LanguageModel:
    torch.manual_seed(0)
    streams, encoding = streams or Streams.dense(8), TransformerXL(tie=tie)
    encoding = encoding if len(streams.names) == 1 else ("sinusoidal", encoding)
    return LanguageModel(TransformerConfig(streams, 3, 2, encoding, max_length=8, **fields), 7).double()


def scores_of(model: LanguageModel) -> list[torch.nn.Module]:
    return [block.attention.averaging.pairs for block in model.transformer.blocks]


def test_tied_layers_share_u_and_v_and_have_maps_of_their_own():
    tie, own = tied(True), tied(False)
    first, *others = scores_of(tie)
    for other in others:
        assert other.u is first.u and other.v is first.v
        assert other.distances.weight is not first.distances.weight
    counts = [model.parameter_counts()["total"] for model in (own, tie)]
    assert counts[0] - counts[1] == 2 * (first.u.numel() + first.v.numel())
    assert len({id(pairs.u) for pairs in scores_of(own)}) == 3


def test_the_gradient_of_what_is_tied_is_the_sum_over_the_layers():
    tie, own, tokens = tied(True), tied(False), torch.arange(8)[None] % 7
    with torch.no_grad():
        for pairs in scores_of(own):
            pairs.u.copy_(scores_of(tie)[0].u)
            pairs.v.copy_(scores_of(tie)[0].v)
    outputs = [model(tokens) for model in (tie, own)]
    assert torch.equal(*outputs)
    for out in outputs:
        out.square().sum().backward()
    for name in ("u", "v"):
        expected = sum(getattr(pairs, name).grad for pairs in scores_of(own))
        torch.testing.assert_close(getattr(scores_of(tie)[0], name).grad, expected, rtol=0, atol=1e-10)


def test_a_record_made_before_tying_keeps_its_key_and_layers_of_other_heads_are_refused():
    assert "tie" not in TransformerXL().resolved() and TransformerXL(tie=True).resolved()["tie"] is True
    strict = {"streams": Streams(pos=4, sem=4), "mode": "strict"}
    with pytest.raises(ValueError, match=r"one has 2 heads, another 1; give readout='both'"):
        tied(True, **strict)
    assert len(scores_of(tied(True, **strict, readout="both"))) == 3
