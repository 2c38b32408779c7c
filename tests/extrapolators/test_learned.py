"""Equation (5): the printed blend, and two ways to fit what the slides leave open."""

import math

import pytest
import torch

from sepnb.extrapolators import build, extrapolate
from sepnb.extrapolators.learned import _fitted

F64 = torch.float64
PROTOCOLS = ["window", "masked"]


@pytest.fixture(autouse=True)
def forgotten():
    """Every test fits for itself."""
    _fitted.cache_clear()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("length", [2, 13, 16])
def test_literal_is_the_printed_blend_of_the_wrapped_table_and_the_fitted_perceptron(table, protocol, length):
    rows, options = table(length), {"protocol": protocol, "steps": 30, "hidden": 8}
    f = build("learned", **options).perceptron(rows)
    literal = extrapolate(rows, torch.arange(3 * length), "learned", form="literal", **options)
    expected = []
    for i in range(3 * length):
        share = 1 / (1 + math.exp(-5 * (i / length - 1)))
        expected.append((1 - share) * rows[i % length] + share * f(torch.tensor([i / length], dtype=F64))[0])
    torch.testing.assert_close(literal, torch.stack(expected), rtol=0, atol=1e-13)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_literal_changes_trained_rows_and_corrected_does_not_and_they_agree_beyond(wavy, protocol):
    rows, options = wavy(), {"protocol": protocol, "steps": 50}
    literal, corrected = (
        extrapolate(rows, torch.arange(200), "learned", form=form, **options)
        for form in ("literal", "corrected")
    )
    assert torch.equal(corrected[:64], rows)
    assert ((literal - rows.repeat(4, 1)[:200])[:64].norm(dim=1) > 1e-6).all()
    assert torch.equal(literal[64:], corrected[64:])


# --- the fit


def test_the_window_protocol_regresses_on_the_window(table):
    units, targets = build("learned").targets(table())
    assert units.tolist() == [i / 12 for i in range(12)] and torch.equal(targets, table())


@pytest.mark.parametrize(("length", "masked"), [(128, 16), (70, 8), (7, 1), (2, 1)])
def test_the_masked_protocol_fits_what_the_formula_would_need_beyond_an_eighth_of_the_window(
    table, length, masked
):
    rows = table(length)
    units, targets = build("learned", protocol="masked").targets(rows)
    assert units.tolist() == [i / masked for i in range(masked, length)]
    share = torch.sigmoid(5 * (units - 1))[:, None]
    wrapped = rows[torch.arange(masked, length) % masked]
    torch.testing.assert_close((1 - share) * wrapped + share * targets, rows[masked:], rtol=0, atol=1e-12)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_smooth_table_is_fitted_to_a_tenth(wavy, protocol):
    """The bound on the loss: without it, nothing that follows would speak of a trained f."""
    extrapolator = build("learned", protocol=protocol)
    units, targets = extrapolator.targets(wavy(128, 32))
    error = extrapolator.perceptron(wavy(128, 32))(units) - targets
    assert error.norm() < 0.1 * targets.norm()


def test_a_seed_gives_the_same_rows_again_and_another_seed_others(wavy):
    def ask(seed: int) -> torch.Tensor:
        _fitted.cache_clear()
        torch.rand(seed + 1)  # a step of the global generator that must not matter
        return extrapolate(wavy(), torch.arange(64, 200), "learned", seed=seed, steps=50)

    assert torch.equal(ask(3), ask(3))
    assert not torch.isclose(ask(3), ask(4)).all()


def test_a_table_of_zeros_can_be_fitted():
    continued = extrapolate(torch.zeros(8, 2), torch.arange(30), "learned", steps=20)
    torch.testing.assert_close(continued, torch.zeros(30, 2), rtol=0, atol=1e-3)
