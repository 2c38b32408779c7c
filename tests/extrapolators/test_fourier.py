"""Equation (3): its printed sum, its corrected one, and the proof that both repeat the window."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sepnb.extrapolators import build, extrapolate
from sepnb.extrapolators.fourier import component_energy

F64 = torch.float64
LENGTHS = [2, 3, 12, 13, 64]


def coefficient(table: torch.Tensor, k: int) -> torch.Tensor:
    """phat_k, by the definition of the discrete transform, complex `[d_pos]`."""
    angles = -2 * math.pi * k * torch.arange(len(table), dtype=F64) / len(table)
    return (torch.polar(torch.ones_like(angles), angles)[:, None] * table).sum(0)


def wave(table: torch.Tensor, k: int, positions: torch.Tensor) -> torch.Tensor:
    """Re[phat_k exp(2 pi 1j k i / L)], `[N, d_pos]`."""
    angles = 2 * math.pi * k * positions.to(F64) / len(table)
    return (coefficient(table, k) * torch.polar(torch.ones_like(angles), angles)[:, None]).real


def error(table: torch.Tensor, **options) -> float:
    reconstruction = build("fourier", **options).reconstruction(table)
    return float((reconstruction - table).norm() / table.norm())


# --- what is printed


@pytest.mark.parametrize("length", LENGTHS)
def test_literal_is_the_printed_sum_over_the_lowest_k(table, length):
    rows, positions = table(length), torch.arange(3 * length)
    for count in {1, 2, length // 2, length - 1}:
        if not 1 <= count <= length - 1:
            continue
        expected = 2 / length * sum(wave(rows, k, positions) for k in range(1, count + 1))
        literal = extrapolate(rows, positions, "fourier", form="literal", n_components=count)
        torch.testing.assert_close(literal, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("length", [12, 13])
def test_the_dominant_terms_of_the_full_transform_are_doubled_so_that_the_error_is_the_whole_table(
    table, length
):
    """A wave k comes with its twin L-k. Kept whole, S becomes 2S, and |2S - p| = |p| whatever was kept."""
    rows = table(length)
    errors = []
    for count in range(1, length + 1):
        literal = extrapolate(
            rows, torch.arange(length), "fourier", form="literal", pick="dominant", n_components=count
        )
        errors.append(float((literal - rows).norm() / rows.norm()))
    assert max(errors) == pytest.approx(1, abs=1e-12) and errors[-1] == pytest.approx(1, abs=1e-12)
    assert min(errors) > 0.6  # with one wave of a pair missing, that wave alone is right


# --- what is corrected


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("pick", ["dominant", "lowest"])
def test_corrected_is_the_weighted_sum_over_the_kept_components(table, length, pick):
    rows, beyond = table(length), torch.arange(length, 3 * length)
    weights = {k: 1 if k == 0 or 2 * k == length else 2 for k in range(length // 2 + 1)}
    energy = {k: weight * float(coefficient(rows, k).abs().square().sum()) for k, weight in weights.items()}
    order = sorted(weights, key=energy.get, reverse=True) if pick == "dominant" else list(weights)
    for count in range(1, min(len(order), 8) + 1):
        expected = sum(weights[k] * wave(rows, k, beyond) for k in order[:count]) / length
        continued = extrapolate(rows, beyond, "fourier", n_components=count, pick=pick)
        torch.testing.assert_close(continued, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (F64, 1e-12)])
def test_all_components_reproduce_the_table_and_the_method_is_wrap(table, length, dtype, tolerance):
    rows = table(length, dtype=dtype)
    everything, positions = length // 2 + 1, torch.arange(3 * length)
    reconstruction = build("fourier", n_components=everything).reconstruction(rows)
    torch.testing.assert_close(reconstruction, rows.to(F64), rtol=0, atol=tolerance)
    continued = extrapolate(rows, positions, "fourier", n_components=everything)
    torch.testing.assert_close(continued, extrapolate(rows, positions, "wrap"), rtol=0, atol=tolerance)


@given(
    length=st.integers(2, 40),
    seed=st.integers(0, 10),
    pick=st.sampled_from(["dominant", "lowest"]),
)
def test_the_error_never_increases_with_the_number_of_components(length, seed, pick):
    rows = torch.randn(length, 3, generator=torch.Generator().manual_seed(seed), dtype=F64)
    errors = [error(rows, n_components=count, pick=pick) for count in range(1, length // 2 + 2)]
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(errors))
    assert errors[-1] < 1e-12


def test_the_energies_of_the_components_add_up_to_that_of_the_table(table):
    for length in LENGTHS:
        rows = table(length)
        torch.testing.assert_close(component_energy(rows).sum(0), rows.square().sum(0), rtol=1e-12, atol=0)


# --- K


def test_by_default_eight_components_are_kept_or_all_if_there_are_fewer(table):
    positions = torch.arange(100)
    for form in ("corrected", "literal"):
        for length, count in (
            (64, 8),
            (9, 5 if form == "corrected" else 8),
            (2, 2 if form == "corrected" else 1),
        ):
            assert torch.equal(
                extrapolate(table(length), positions, "fourier", form=form),
                extrapolate(table(length), positions, "fourier", form=form, n_components=count),
            )


@pytest.mark.parametrize(
    ("options", "most"),
    [
        ({}, 7),
        ({"pick": "lowest"}, 7),
        ({"form": "literal"}, 11),
        ({"form": "literal", "pick": "dominant"}, 12),
    ],
)
def test_more_components_than_there_are_is_refused(table, options, most):
    extrapolate(table(12), torch.arange(3), "fourier", n_components=most, **options)
    with pytest.raises(
        ValueError, match=f"n_components is {most + 1}; this table and form have {most} at most"
    ):
        extrapolate(table(12), torch.arange(3), "fourier", n_components=most + 1, **options)
