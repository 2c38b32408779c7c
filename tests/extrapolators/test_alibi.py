"""Equation (6): one row that fades, a cliff at the border, and nothing left of it after a norm."""

import math
from itertools import pairwise

import pytest
import torch

from sepnb.extrapolators import extrapolate
from sepnb.extrapolators.alibi import fading
from sepnb.streams import StreamNorm, Streams

F64 = torch.float64


def normalised(x: torch.Tensor, kind: str, eps: float) -> torch.Tensor:
    """The pos stream after a split norm."""
    norm = StreamNorm(Streams(pos=x.shape[1], sem=1), kind, eps=eps).double()
    return norm.parts({"pos": x, "sem": torch.zeros(len(x), 1, dtype=F64)})["pos"].detach()


def test_the_first_unseen_row_has_lost_two_fifths_of_its_length():
    factors = fading(torch.tensor([127, 128, 129, 160, 256, 1024]), 128)
    assert factors[:3].tolist() == pytest.approx([1, 0.5906, 0.4765], abs=1e-4)
    assert factors[3:].tolist() == pytest.approx([0.221, 0.170, 0.128], abs=6e-4)


@pytest.mark.parametrize(
    ("form", "tau"), [("literal", 1.0), *(("corrected", tau) for tau in (1.0, 0.5, 12.0, 300))]
)
@pytest.mark.parametrize("length", [2, 7, 12])
def test_both_forms_are_the_printed_formula_and_tau_is_the_unit_of_the_distance(table, form, tau, length):
    rows = table(length)
    continued = extrapolate(rows, torch.arange(50), "alibi", form=form, tau=tau)
    for i in range(50):
        expected = rows[min(i, length - 1)] / (1 + math.log(1 + max(0, i - length + 1) / tau))
        torch.testing.assert_close(continued[i], expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_after_a_split_norm_it_becomes_the_clamp_as_eps_vanishes(table, kind):
    rows, positions = table(128, 32), torch.arange(128, 1024)

    def difference(eps: float) -> float:
        faded, clamped = (
            normalised(extrapolate(rows, positions, method), kind, eps) for method in ("alibi", "clamp")
        )
        return float((faded - clamped).norm() / clamped.norm())

    found = [difference(10.0**-exponent) for exponent in range(3, 13)]
    assert all(later < earlier for earlier, later in pairwise(found))
    assert found[0] > 0.1 and found[-1] < 1e-6
