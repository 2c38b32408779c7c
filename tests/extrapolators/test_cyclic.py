"""Equation (4): a drift per step that is added once per period, or a whole period of it, as was meant."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sepnb.extrapolators import extrapolate
from sepnb.extrapolators.cyclic import drift

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
