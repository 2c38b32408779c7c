"""The controls against their definitions, row by row."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sepnb.extrapolators import extrapolate

from ..shared import refused


@pytest.mark.parametrize("length", [2, 3, 12])
def test_clamp_wrap_and_reflect_are_rows_of_the_table(table, length):
    rows, positions = table(length), torch.arange(10 * length)
    there_and_back = [*range(length), *range(length - 2, 0, -1)]
    indices = {
        "clamp": [min(i, length - 1) for i in range(10 * length)],
        "wrap": [i % length for i in range(10 * length)],
        "reflect": (there_and_back * 10)[: 10 * length],
    }
    for method, index in indices.items():
        assert torch.equal(extrapolate(rows, positions, method), rows[index])


def test_zero_is_zero_from_row_l_on_or_everywhere(table):
    rows, positions = table(), torch.tensor([3, 11, 12, 10**9])
    beyond = extrapolate(rows, positions, "zero")
    assert torch.equal(beyond[:2], rows[[3, 11]]) and not beyond[2:].any()
    assert not extrapolate(rows, positions, "zero", everywhere=True).any()


# --- interpolation


@pytest.mark.parametrize("length", [2, 7, 12])
@pytest.mark.parametrize("asked", [13, 40, 101, 10_000])
def test_interpolate_reads_the_table_at_evenly_spread_places(table, length, asked):
    rows = table(length)
    continued = extrapolate(rows, torch.arange(asked), "interpolate", length=asked)
    assert torch.equal(continued[0], rows[0]) and torch.equal(continued[-1], rows[-1])
    for i in range(0, asked, max(1, asked // 37)):
        place = i * (length - 1) / (asked - 1)
        low = min(int(place), length - 2)
        expected = rows[low] + (place - low) * (rows[low + 1] - rows[low])
        torch.testing.assert_close(continued[i], expected, rtol=0, atol=1e-12)


@given(length=st.integers(2, 12), factor=st.integers(1, 50))
def test_places_that_fall_on_rows_give_them_bit_for_bit(length, factor):
    rows = torch.randn(length, 3, generator=torch.Generator().manual_seed(length), dtype=torch.float32)
    spread = factor * (length - 1) + 1
    on_rows = factor * torch.arange(length)
    assert torch.equal(extrapolate(rows, on_rows, "interpolate", length=spread), rows)


@pytest.mark.parametrize("asked", [1, 5, 12])
def test_a_length_within_the_table_leaves_it_alone(table, asked):
    assert torch.equal(extrapolate(table(), torch.arange(12), "interpolate", length=asked), table())


def test_interpolate_needs_its_length_and_keeps_to_it(table):
    refused("interpolate needs length=", extrapolate, table(), torch.arange(3), "interpolate")
    for at, length, message in (
        (48, 48, "48 is outside length 48; give length=49 or more"),
        (12, 5, "12 is"),
    ):
        refused(f"position {message}", extrapolate, table(), torch.tensor([at]), "interpolate", length=length)
