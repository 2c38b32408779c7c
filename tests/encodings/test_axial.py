"""Axial RoPE against RoPE of each coordinate, and the places of a grid."""

import pytest
import torch

from sepnb.encodings import apply_axial_rope, apply_rope, axial_rope_frequencies, grid_positions
from sepnb.encodings.rope import LAYOUTS

from .drawn import F64, random


def columns_of(dim: int, layout: str) -> list[tuple[int, int]]:
    """The two columns of every pair."""
    half = dim // 2
    return [(m, m + half) if layout == "half" else (2 * m, 2 * m + 1) for m in range(half)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("dims", "dim"), [(1, 12), (2, 4), (2, 8), (2, 12), (3, 12)])
def test_each_coordinate_turns_its_share_of_the_pairs_as_rope_does(dims, dim, layout):
    x, at = random(5, dim), torch.arange(5 * dims).reshape(5, dims) * 7.5
    at[0] = 0
    w = axial_rope_frequencies(dim, dims=dims)
    turned = apply_axial_rope(x, at, w, layout=layout, dims=dims)
    for coordinate in range(dims):
        pairs = columns_of(dim, layout)[coordinate * len(w) : (coordinate + 1) * len(w)]
        own = sorted(column for pair in pairs for column in pair)
        expected = apply_rope(x[:, own], at[:, coordinate], w, layout=layout)
        torch.testing.assert_close(turned[:, own], expected, rtol=0, atol=1e-12)
    assert torch.equal(turned[0], x[0])  # a class token at the origin is not rotated


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_coordinates_are_not_rounded_to_the_dtype_of_the_model(dtype):
    at, w = torch.tensor([[1001, 77_777]]), axial_rope_frequencies(8)
    ours = apply_axial_rope(torch.ones(1, 8, dtype=dtype), at, w)
    expected = apply_axial_rope(torch.ones(1, 8, dtype=F64), at, w)
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


def test_grids_of_one_and_three_sides_are_counted_alike():
    assert grid_positions(3).tolist() == [[0], [1], [2]]
    assert grid_positions(2, 1, 2).tolist() == [[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 1]]
    assert grid_positions(3, 2, 2, fit=(2, 2, 3))[-1].tolist() == [1, 1, 2]
