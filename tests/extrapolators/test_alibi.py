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


@pytest.mark.parametrize("form", ["corrected", "literal"])
@pytest.mark.parametrize("length", [2, 7, 12])
def test_both_forms_are_the_printed_formula(table, form, length):
    rows = table(length)
    continued = extrapolate(rows, torch.arange(50), "alibi", form=form)
    for i in range(50):
        expected = rows[min(i, length - 1)] / (1 + math.log(1 + max(0, i - length + 1)))
        torch.testing.assert_close(continued[i], expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("tau", [0.5, 12.0, 300])
def test_tau_measures_the_distance_in_its_own_unit(table, tau):
    rows = table()
    continued = extrapolate(rows, torch.arange(50), "alibi", tau=tau)
    for i in range(50):
        expected = rows[min(i, 11)] / (1 + math.log(1 + max(0, i - 11) / tau))
        torch.testing.assert_close(continued[i], expected, rtol=1e-14, atol=0)


def test_a_tau_of_the_trained_length_removes_the_cliff():
    assert fading(torch.tensor(128), 128, tau=128.0) > 0.99
    assert fading(torch.tensor(128), 128) < 0.6


def test_literal_has_no_tau(table):
    with pytest.raises(ValueError, match=r"tau is no part of the printed \(6\)"):
        extrapolate(table(), torch.arange(3), "alibi", form="literal", tau=2.0)


def test_all_unseen_positions_share_the_direction_of_the_last_row(table):
    rows = table()
    continued = extrapolate(rows, torch.cat([torch.arange(11, 200), torch.tensor([10**9])]), "alibi")
    cosine = torch.nn.functional.cosine_similarity(continued, rows[-1:], eps=0)
    torch.testing.assert_close(cosine, torch.ones_like(cosine), rtol=0, atol=1e-12)
    assert (continued.norm(dim=1).diff() < 0).all()


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


def test_without_a_norm_the_fading_is_not_a_clamp(table):
    faded, clamped = (extrapolate(table(), torch.arange(12, 40), method) for method in ("alibi", "clamp"))
    assert (faded - clamped).norm() > 0.4 * clamped.norm()
