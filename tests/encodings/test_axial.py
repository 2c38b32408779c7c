"""Axial RoPE against complex numbers and against RoPE in one dimension, and the places of a grid."""

import cmath

import pytest
import torch

from sepnb.encodings import (
    apply_axial_rope,
    apply_rope,
    axial_rope_frequencies,
    grid_positions,
)
from sepnb.encodings.rope import LAYOUTS

from .drawn import F64, random


def columns_of(dim: int, layout: str) -> list[tuple[int, int]]:
    """The two columns of every pair."""
    half = dim // 2
    return [(m, m + half) if layout == "half" else (2 * m, 2 * m + 1) for m in range(half)]


def complex_reference(x: torch.Tensor, positions: list, layout: str) -> torch.Tensor:
    """Vector by vector and pair by pair."""
    dim, out = x.shape[-1], torch.empty_like(x)
    for n, (row, column) in enumerate(positions):
        for m, (a, b) in enumerate(columns_of(dim, layout)):
            coordinate, index = (row, m) if m < dim // 4 else (column, m - dim // 4)
            turn = cmath.exp(1j * coordinate * 10_000.0 ** (-2 * index / (dim // 2)))
            turned = complex(x[n, a], x[n, b]) * turn
            out[n, a], out[n, b] = turned.real, turned.imag
    return out


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dim", [4, 8, 12])
def test_rotation_is_multiplication_by_a_complex_number(layout, dim):
    positions = [(0, 0), (0, 1), (3, 0), (2, 7), (100, 2.5)]
    x, at = random(5, dim), torch.tensor(positions, dtype=F64)
    ours = apply_axial_rope(x, at, axial_rope_frequencies(dim), layout=layout)
    torch.testing.assert_close(ours, complex_reference(x, positions, layout), rtol=0, atol=1e-11)
    assert torch.equal(ours[0], x[0])  # a class token at (0, 0) is not rotated


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_coordinates_are_not_rounded_to_the_dtype_of_the_model(dtype):
    at, w = torch.tensor([[1001, 77_777]]), axial_rope_frequencies(8)
    ours = apply_axial_rope(torch.ones(1, 8, dtype=dtype), at, w)
    expected = complex_reference(torch.ones(1, 8, dtype=F64), at.tolist(), "half")
    assert ours.dtype == dtype
    torch.testing.assert_close(ours.double(), expected, rtol=0, atol=3 * torch.finfo(dtype).eps)


def test_patches_are_counted_row_by_row_and_a_larger_image_has_larger_positions():
    assert grid_positions(2, 3).tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert grid_positions(4, 6).max(dim=0).values.tolist() == [3, 5]


def test_a_grid_that_is_fitted_has_the_corners_of_the_other():
    fitted = grid_positions(5, 3, fit=(3, 2))
    assert fitted[[0, -1]].tolist() == [[0, 0], [2, 1]]
    assert fitted.reshape(5, 3, 2)[:, 0, 0].tolist() == [0, 0.5, 1, 1.5, 2]
    assert fitted.reshape(5, 3, 2)[0, :, 1].tolist() == [0, 0.5, 1]
    assert torch.equal(grid_positions(5, 3, fit=(5, 3)), grid_positions(5, 3))
    assert grid_positions(1, 4, fit=(3, 4))[:, 0].tolist() == [0, 0, 0, 0]


# --- in a model


def test_of_one_coordinate_it_is_rope_and_of_three_each_has_its_pairs():
    x, at = random(5, 12), torch.tensor([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3], [1, 2, 3]])
    w = axial_rope_frequencies(12, dims=3)
    turned = apply_axial_rope(x, at, w, dims=3)
    pairs = columns_of(12, "half")
    for coordinate in range(3):
        own = [column for pair in pairs[2 * coordinate : 2 * coordinate + 2] for column in sorted(pair)]
        own = sorted(own)
        expected = apply_rope(x[:, own], at[:, coordinate], w)
        torch.testing.assert_close(turned[:, own], expected, rtol=0, atol=1e-12)
    one, plain = axial_rope_frequencies(12, dims=1), torch.arange(5)
    assert torch.equal(apply_axial_rope(x, plain[:, None], one, dims=1), apply_rope(x, plain, one))


def test_grids_of_one_and_three_sides_are_counted_alike():
    assert grid_positions(3).tolist() == [[0], [1], [2]]
    assert grid_positions(2, 1, 2).tolist() == [[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 1]]
    assert grid_positions(3, 2, 2, fit=(2, 2, 3))[-1].tolist() == [1, 1, 2]
