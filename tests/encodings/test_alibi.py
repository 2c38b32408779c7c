"""ALiBi against the authors' recipe written anew, and against loops."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from sepnb.encodings import ALiBi, Heads, alibi_bias, alibi_slopes

F64 = torch.float64


def authors_recipe(n: int) -> list[float]:
    """As the authors' release does it: repeated multiplication, recursion for what is no power of two."""

    def power_of_two(n: int) -> list[float]:
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(n).is_integer():
        return power_of_two(n)
    closest = 2 ** math.floor(math.log2(n))
    return power_of_two(closest) + authors_recipe(2 * closest)[0::2][: n - closest]


def test_slopes_of_every_number_of_heads_up_to_128_are_the_authors():
    for n_heads in range(1, 129):
        slopes = alibi_slopes(n_heads, dtype=F64)
        assert slopes.shape == (n_heads,) and slopes.dtype == F64 and (slopes > 0).all()
        assert slopes.tolist() == pytest.approx(authors_recipe(n_heads), rel=1e-12), n_heads


def test_eight_heads_have_the_printed_slopes_and_six_are_not_in_order():
    assert alibi_slopes(8).tolist() == [2.0**-h for h in range(1, 9)]
    assert alibi_slopes(6).tolist() == [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8, 2.0**-1, 2.0**-3]


positions = st.lists(st.integers(0, 10_000), min_size=1, max_size=6)


@given(queries=positions, keys=positions, n_heads=st.integers(1, 5))
def test_the_bias_is_minus_slope_times_distance_for_any_positions(queries, keys, n_heads):
    slopes = alibi_slopes(n_heads, dtype=F64)
    bias = alibi_bias(slopes, torch.tensor(queries), torch.tensor(keys))
    assert bias.shape == (n_heads, len(queries), len(keys)) and bias.dtype == F64
    for h in range(n_heads):
        for n, i in enumerate(queries):
            for m, j in enumerate(keys):
                assert bias[h, n, m].item() == -slopes[h].item() * abs(i - j)


def test_rows_with_their_own_positions_get_their_own_bias():
    slopes, queries, keys = (
        alibi_slopes(3),
        torch.tensor([[4, 5], [9, 2]]),
        torch.tensor([[0, 4, 5], [1, 9, 2]]),
    )
    bias = alibi_bias(slopes, queries, keys)
    assert bias.shape == (2, 3, 2, 3)
    assert torch.equal(bias, torch.stack([alibi_bias(slopes, queries[b], keys[b]) for b in range(2)]))


def test_three_published_forms_agree_where_a_causal_query_looks_and_only_there():
    slopes, i = alibi_slopes(8)[:, None, None], torch.arange(12, dtype=F64)
    symmetric = alibi_bias(alibi_slopes(8), torch.arange(12), torch.arange(12))
    causal = -slopes * (i[:, None] - i)
    by_key = (slopes * i).expand(8, 12, 12)
    scores = torch.randn(8, 12, 12, dtype=F64, generator=torch.Generator().manual_seed(0))
    future = torch.ones(12, 12, dtype=torch.bool).triu(1)

    def seen(bias: torch.Tensor, mask: bool) -> torch.Tensor:
        s = scores + bias
        return (s.masked_fill(future, -torch.inf) if mask else s).softmax(-1)

    assert torch.equal(symmetric.masked_fill(future, 0), causal.masked_fill(future, 0))
    torch.testing.assert_close(seen(by_key, True), seen(symmetric, True), rtol=0, atol=1e-12)
    assert (seen(by_key, False) - seen(symmetric, False)).abs().max() > 1e-3


def test_casting_the_module_leaves_slopes_and_bias_bitwise():
    module = ALiBi().at_score(Heads(6))
    assert list(module.parameters()) == []
    queries = torch.arange(3000, 3004)
    before = module(queries, torch.arange(3004))
    module.to(torch.bfloat16).half()
    after = module(queries, torch.arange(3004))
    assert after.dtype == torch.float32 and torch.equal(after, before)


@pytest.mark.parametrize("heads", [1, 2, 4, 6, 8, 12])
def test_the_bias_of_a_float64_model_is_exact_and_that_of_any_other_in_float32(heads):
    queries, keys = torch.arange(3000, 3004), torch.arange(3004)
    exact = alibi_bias(alibi_slopes(heads, dtype=F64), queries, keys)
    of_slopes = alibi_bias(alibi_slopes(heads), queries, keys)
    module = ALiBi().at_score(Heads(heads))
    assert not module.state_dict()  # a checkpoint holds nothing of it
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        assert torch.equal(module.to(dtype)(queries, keys), of_slopes)
    assert torch.equal(module.double()(queries, keys), exact)
    assert torch.equal(of_slopes.double(), exact) == (heads < 12)  # whole powers of two


def test_the_distance_is_taken_between_integers():
    """2^24 + 1 has no float32: subtracting afterwards would lose the distance of one."""
    far = 2**24
    bias = ALiBi().at_score(Heads(1))(torch.tensor([far + 1]), torch.tensor([far, far + 1]))
    assert bias.flatten().tolist() == [-(2.0**-8), 0.0]


@pytest.mark.parametrize("dtype", [torch.float32, F64, torch.bfloat16])
def test_the_bias_is_added_to_attention_of_the_dtype_that_is_asked_for(dtype):
    at, (q, k, v) = torch.arange(5), torch.randn(3, 1, 6, 5, 4, dtype=dtype)
    bias = alibi_bias(alibi_slopes(6, dtype=dtype), at, at)
    assert F.scaled_dot_product_attention(q, k, v, attn_mask=bias).dtype == dtype
    assert torch.equal(alibi_slopes(6, dtype=dtype), alibi_slopes(6, dtype=F64).to(dtype))
    assert alibi_slopes(6).dtype == torch.float32


def test_no_heads_are_refused():
    with pytest.raises(ValueError, match="n_heads is 0; ALiBi needs at least 1 head"):
        alibi_slopes(0)


# --- in bfloat16


def attended(dtype: torch.dtype, positions: torch.Tensor | None = None) -> torch.Tensor:
    """What the last query of a text of 16,384 tokens averages, by a module that was cast to this dtype."""
    n_heads, n, width = 8, 16_384, 8
    module, at = (
        ALiBi().at_score(Heads(n_heads)).to(dtype),
        torch.arange(n) if positions is None else positions,
    )
    draws = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, n_heads, m, width, generator=draws).bfloat16().to(dtype) for m in (1, n, n))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=module(at[-1:], at).to(dtype)[None]).double()


def test_at_16384_tokens_bfloat16_moves_no_head_by_a_hundredth_of_its_spread():
    """Distances above 256 tie with their neighbours there. Positions that were rounded would tie all the
    last 32, and the steepest head has most of its weight on two."""
    exact = attended(torch.float64)

    def apart(found: torch.Tensor) -> torch.Tensor:
        return (found - exact).abs().mean(dim=(0, 2, 3)) / exact.std(dim=(0, 2, 3))

    assert apart(attended(torch.float32)).max() < 1e-5
    assert apart(attended(torch.bfloat16)).max() < 0.01
    rounded = torch.arange(16_384).bfloat16().long()
    assert apart(attended(torch.bfloat16, rounded)).max() > 0.1
