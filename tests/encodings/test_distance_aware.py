"""The distance-aware gate at extreme distances, and where its parameters start."""

import math

import pytest
import torch

from sepnb.encodings import DistanceAware, Heads, distance_aware_gate

from .drawn import F64


def test_a_gate_of_numbers_is_that_of_a_head():
    distance, of_head = torch.tensor([0.0, 1, 2, 30], dtype=F64), torch.tensor([[0.3], [-1.0]], dtype=F64)
    gate, one = distance_aware_gate(distance, *of_head), distance_aware_gate(distance, 0.3, -1.0)
    assert gate.shape == (1, 4) and one.shape == (4,)
    torch.testing.assert_close(one.double(), gate[0], rtol=1e-6, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, F64])
@pytest.mark.parametrize("w", [0.5, -0.5, 10.0, -10.0, 0.0])
@pytest.mark.parametrize("v", [0.0, 80.0, -100.0])
def test_value_and_gradients_are_finite_at_every_distance(dtype, w, v):
    for distance in (0.0, 1.0, 400.0, 1e6, 3e38):
        at = torch.tensor([distance], dtype=dtype)
        leaves = [torch.tensor([x], dtype=dtype, requires_grad=True) for x in (w, v)]
        gate = distance_aware_gate(at, *leaves)
        gate.sum().backward()
        assert gate.isfinite().all() and gate.dtype == dtype
        assert all(leaf.grad.isfinite().all() for leaf in leaves), (distance, w, v)


def test_a_large_v_is_finite_where_its_own_exponential_is_not():
    """(1 + e^v) sigmoid(w R - v) would be inf times 0."""
    leaves = [torch.tensor([x], requires_grad=True) for x in (-0.5, 100.0)]
    gate = distance_aware_gate(torch.tensor([0.0, 1.0, 400.0, 3e38]), *leaves)
    gate.sum().backward()
    torch.testing.assert_close(gate[0, :2].detach(), torch.tensor([1.0, math.exp(-0.5)]))
    assert gate.isfinite().all() and all(leaf.grad.isfinite().all() for leaf in leaves)


def test_heads_start_with_a_preference_from_near_to_far_and_none_for_size():
    module = DistanceAware(spread=0.2).at_score(Heads(5, 4, 20))
    torch.testing.assert_close(module.w.detach(), torch.tensor([-0.2, -0.1, 0.0, 0.1, 0.2]))
    assert (module.v == 0).all()
