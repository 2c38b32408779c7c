"""Equation (4): a drift per step that is added once per period, and the linear continuation it meant."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sepnb.extrapolators import extrapolate, seam
from sepnb.extrapolators.cyclic import drift
from sepnb.streams import StreamNorm, Streams

F64 = torch.float64


@given(length=st.integers(2, 200), width=st.integers(1, 6), seed=st.integers(0, 5))
def test_the_mean_step_telescopes_to_the_ends(length, width, seed):
    rows = torch.randn(length, width, generator=torch.Generator().manual_seed(seed), dtype=F64)
    printed = sum(rows[j] - rows[j - 1] for j in range(1, length)) / (length - 1)
    torch.testing.assert_close(drift(rows), printed, rtol=0, atol=1e-12)


@pytest.mark.parametrize("length", [2, 7, 12])
def test_literal_is_the_printed_formula_and_corrected_adds_a_whole_period_of_drift(table, length):
    rows = table(length)
    for form, per_period in (("literal", 1), ("corrected", length)):
        continued = extrapolate(rows, torch.arange(4 * length), "cyclic", form=form)
        for i in range(4 * length):
            expected = rows[i % length] + i // length * per_period * drift(rows)
            torch.testing.assert_close(continued[i], expected, rtol=0, atol=1e-14)


def test_a_linear_table_is_continued_exactly_by_corrected_and_not_by_literal():
    slope, start = torch.tensor([[0.5, -2.0, 0.0]], dtype=F64), torch.tensor([[1.0, 3.0, 7.0]], dtype=F64)
    positions = torch.arange(1000)
    line = start + slope * positions[:, None]
    assert torch.equal(extrapolate(line[:16], positions, "cyclic"), line)
    assert not torch.isclose(extrapolate(line[:16], positions, "cyclic", form="literal")[16:], line[16:])[
        :, :2
    ].any()


def test_the_seam_of_corrected_is_the_mean_step_and_that_of_literal_nearly_the_jump_of_wrap(table):
    rows = table(128, 32)
    step = (rows[1:] - rows[:-1]).norm(dim=1).quantile(0.5)
    assert seam(rows, "cyclic") == pytest.approx(float(drift(rows).norm() / step), rel=1e-9)
    assert seam(rows, "cyclic") < 0.05
    assert seam(rows, "cyclic", form="literal") == pytest.approx(seam(rows, "wrap"), rel=0.02)


def test_far_out_the_added_drift_takes_over_the_direction(table):
    """After a split norm corrected becomes one fixed direction: all rows of a period look alike."""
    rows = table(16, 8)
    norm = StreamNorm(Streams(pos=8, sem=1)).double()
    far = torch.arange(16) + 16 * 10**6
    normalised = norm(torch.cat([extrapolate(rows, far, "cyclic"), torch.zeros(16, 1, dtype=F64)], 1))[:, :8]
    direction = drift(rows) - drift(rows).mean()
    expected = direction / direction.square().mean().sqrt()
    torch.testing.assert_close(normalised, expected.expand(16, 8), rtol=0, atol=1e-4)
