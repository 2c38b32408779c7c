"""Equation (2): its printed columns, its scale, the basis it has and the oracle that lends it the table's."""

import math

import pytest
import torch
from scipy.linalg import orthogonal_procrustes

from sepnb.encodings import sinusoidal
from sepnb.extrapolators import extrapolate
from sepnb.extrapolators.sinusoidal import waves

F64 = torch.float64


def code(positions, width):
    return sinusoidal(torch.as_tensor(positions), width, dtype=F64)


def population_std(rows: torch.Tensor) -> float:
    return math.sqrt(((rows - rows.mean()) ** 2).mean())


# --- what is printed


def printed(position: int, width: int) -> list[float]:
    """All columns of (2) for one position, k = 0..floor(d_pos/2), in Python's own floats."""
    row = []
    for k in range(width // 2 + 1):
        angle = position / 10_000 ** (2 * k / width)
        row += [math.sin(angle), math.cos(angle)]
    return row


@pytest.mark.parametrize("width", [1, 4, 5])
def test_literal_is_the_printed_formula_cut_to_the_width_and_times_sigma(table, width):
    rows, positions = table(11, width), [0, 1, 10, 11, 12, 500]
    expected = [printed(i, width)[:width] for i in positions]
    expected = population_std(rows) * torch.tensor(expected, dtype=F64)
    literal = extrapolate(rows, torch.tensor(positions), "sinusoidal", form="literal")
    torch.testing.assert_close(literal, expected, rtol=0, atol=1e-13)


# --- what is corrected


@pytest.mark.parametrize("shape", [(128, 32), (12, 5), (7, 4), (2, 1)])
def test_beyond_the_window_it_is_the_code_times_one_number_that_gives_it_the_deviation_of_the_table(
    table, shape
):
    rows = table(*shape)
    length, width = shape
    beyond = torch.cat([torch.arange(length, 3 * length), torch.tensor([10**5, 10**6])])
    scale = population_std(rows) / population_std(code(range(length), width))
    continued = extrapolate(rows, beyond, "sinusoidal")
    torch.testing.assert_close(continued, scale * code(beyond, width), rtol=0, atol=1e-10)
    assert population_std(scale * code(range(length), width)) == pytest.approx(population_std(rows), abs=1e-6)


# --- the oracle


def test_procrustes_is_orthogonal_and_the_best_of_all_such_maps(table):
    rows = table(40, 6)
    turn, _ = orthogonal_procrustes(code(range(40), 6).numpy(), rows.numpy())
    scale = population_std(rows) / population_std(code(range(40), 6))
    continued = extrapolate(rows, torch.arange(40, 80), "sinusoidal", align="procrustes")
    expected = scale * code(range(40, 80), 6) @ torch.from_numpy(turn)
    torch.testing.assert_close(continued, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(continued.norm(dim=1), scale * code(range(40, 80), 6).norm(dim=1))


# --- the waves


@pytest.mark.parametrize("width", [1, 2, 7, 32])
def test_waves_are_the_sinusoidal_code(width):
    generator = torch.Generator().manual_seed(0)
    near = torch.cat([torch.arange(5000), torch.randint(0, 10**7, (200,), generator=generator)])
    torch.testing.assert_close(waves(near, width, F64), code(near, width), rtol=0, atol=1e-8)
    torch.testing.assert_close(waves(near[:5000], width, F64), code(near[:5000], width), rtol=0, atol=1e-11)
    far = torch.randint(10**7, 10**9, (2000,), generator=generator)
    single = waves(torch.cat([near, far]), width, torch.float32)
    assert single.dtype == torch.float32
    expected = code(torch.cat([near, far]), width)
    torch.testing.assert_close(single.to(F64), expected, rtol=0, atol=1e-6)


def test_waves_take_the_largest_positions_there_are():
    """Also where float64 no longer resolves the angle: every pair is still a point of the circle."""
    positions = torch.tensor([2**33 - 1, 2**44, 2**62, 2**63 - 1])
    rows = waves(positions, 32, F64)
    torch.testing.assert_close(rows.reshape(4, 16, 2).norm(dim=2), torch.ones(4, 16, dtype=F64))
    torch.testing.assert_close(rows[0], code(positions[:1], 32)[0], rtol=0, atol=2**33 * 4e-16)
