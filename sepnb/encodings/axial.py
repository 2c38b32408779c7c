"""Axial rotary embedding: RoPE for the patches of an image, whose position is a row and a column.

Half of the pairs of a head turn by the row and half by the column, both with the frequencies of a head of
half the width, so the score of two patches depends on how far apart their rows are and how far apart their
columns. A token without a place, such as a class token, stands at (0, 0): it is not rotated, but its scores
with patches depend on where these are.

Public code disagrees about which of the two comes first and where they begin. Here the row is first, both
begin at 0 and count patches; the layout of the pairs is as in `apply_rope`, over the whole head. A larger
image then has larger positions. With `fit` the same grid of positions is stretched or squeezed to another
size: that interpolates.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from .rope import LAYOUTS, rope_frequencies, rotate


def axial_rope_frequencies(dim: int, *, base: int | float = 10_000.0) -> Float[Tensor, " quarter"]:
    """Angular frequencies `[dim/4]` in float64, highest first, used for the rows and for the columns.

    Raises:
        ValueError: `dim` is no multiple of 4, or a base that is not above 1.
    """
    if dim < 4 or dim % 4:
        raise ValueError(
            f"axial RoPE rotates pairs of columns by two coordinates: the head width must be a multiple of "
            f"4, got {dim}; {max(4, 4 * round(dim / 4))} would do"
        )
    return rope_frequencies(dim // 2, base=base)[0]


def grid_positions(rows: int, columns: int, *, fit: tuple[int, int] | None = None) -> Float[Tensor, "N 2"]:
    """(row, column) of every patch of an image, row by row, `[rows * columns, 2]` in float64.

    Args:
        rows, columns: of patches.
        fit: rows and columns of another grid, whose corners the corners of this one then have.

    Raises:
        ValueError: a side below 1.
    """
    ends = (rows, columns) if fit is None else fit
    for side in (rows, columns, *ends):
        if side < 1:
            raise ValueError(f"a grid of {side} patches; every side has at least 1")
    axes = [
        torch.linspace(0, end - 1, count, dtype=torch.float64)
        for count, end in zip((rows, columns), ends, strict=True)
    ]
    return torch.cartesian_prod(*axes)


def apply_axial_rope(
    x: Float[Tensor, "... N dim"],
    positions: Tensor,
    inv_freq: Float[Tensor, " quarter"],
    *,
    layout: str = "half",
) -> Float[Tensor, "... N dim"]:
    """Rotate `x` `[..., N, dim]` by (row, column): pairs 0 to dim/4 - 1 by row w_m, the others by column w_m.

    Positions are `[N, 2]`, or one for every vector of `x`, `[..., N, 2]`; integers or, for coordinates
    between patches, floats.

    Raises:
        ValueError: an unknown layout, or frequencies or positions that do not fit the shape of `x`.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"unknown layout {layout!r}; use one of {', '.join(LAYOUTS)}")
    if x.shape[-1] != 4 * inv_freq.shape[-1]:
        raise ValueError(
            f"x has width {x.shape[-1]}, {inv_freq.shape[-1]} frequencies need {4 * inv_freq.shape[-1]}"
        )
    if positions.shape not in ((*x.shape[-2:-1], 2), (*x.shape[:-1], 2)):
        raise ValueError(
            f"positions of shape {list(positions.shape)} do not fit x of shape {list(x.shape)}; give "
            f"[{x.shape[-2]}, 2], or a row and a column for every vector"
        )
    angles = positions.to(torch.float64)[..., None] * inv_freq.to(positions.device, torch.float64)
    angles = angles.flatten(-2)  # those of the row, then those of the column
    return rotate(x, angles.cos().to(x.dtype), angles.sin().to(x.dtype), layout)
