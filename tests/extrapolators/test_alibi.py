"""Equation (6): the last row, which fades with the distance from it."""

import math

import pytest
import torch

from sepnb.extrapolators import extrapolate


@pytest.mark.parametrize(
    ("form", "tau"), [("literal", 1.0), *(("corrected", tau) for tau in (1.0, 0.5, 12.0, 300))]
)
@pytest.mark.parametrize("length", [2, 7, 12])
def test_both_forms_are_the_printed_formula_and_tau_is_the_unit_of_the_distance(table, form, tau, length):
    rows = table(length)
    continued = extrapolate(rows, torch.arange(50), "alibi", form=form, tau=tau)
    expected = [
        rows[min(i, length - 1)] / (1 + math.log(1 + max(0, i - length + 1) / tau)) for i in range(50)
    ]
    torch.testing.assert_close(continued, torch.stack(expected), rtol=1e-14, atol=1e-15)
