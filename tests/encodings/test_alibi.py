"""ALiBi: the slopes of any number of heads, and the dtype of its bias."""

import pytest
import torch

from sepnb.encodings import ALiBi, Heads, alibi_bias, alibi_slopes

from .drawn import F64
from .references import slopes


def test_slopes_of_every_number_of_heads_up_to_128_are_those_of_the_equation():
    for n_heads in range(1, 129):
        found = alibi_slopes(n_heads, dtype=F64)
        assert found.shape == (n_heads,) and found.dtype == F64 and (found > 0).all()
        assert found.tolist() == pytest.approx(slopes(n_heads), rel=1e-12), n_heads


def test_eight_heads_have_the_printed_slopes_and_six_are_not_in_order():
    assert alibi_slopes(8).tolist() == [2.0**-h for h in range(1, 9)]
    assert alibi_slopes(6).tolist() == [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8, 2.0**-1, 2.0**-3]


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
