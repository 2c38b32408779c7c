"""Axial rotary embedding: RoPE for the patches of an image, whose position is a row and a column.

Half of the pairs of a head turn by the row and half by the column, both with the frequencies of a head of
half the width, so the score of two patches depends on how far apart their rows are and how far apart their
columns. A token without a place, such as a class token, stands at (0, 0): it is not rotated, but its scores
with patches depend on where these are. Points of n coordinates are handled alike, with 1/n of the pairs for
each of them; with one coordinate this is RoPE.

Public code disagrees about which of the two comes first and where they begin. Here the row is first, both
count patches, from 0 (in `ImageClassifier` from 1, where (0, 0) is the place of the class token), and the
layout of the pairs is as in `apply_rope`, over the whole head.
"""

from dataclasses import dataclass
from math import prod

import torch
from jaxtyping import Float
from torch import Tensor

from ..validation import WIDEST, angular, floating, instance, movable, one_of, option, together, whole
from .base import Encoding, Extendable, Heads, QueryKeyModule, Site, check_base
from .context import ContextExtension, stretched
from .coordinates import check_dims
from .rope import LAYOUTS, Rotation, angles_of, rope_frequencies, rotate

MOST_CELLS = 2**24
"""No grid has more cells: what asks for more is a slip."""


def axial_rope_frequencies(
    dim: int, *, base: int | float = 10_000.0, dims: int = 2
) -> Float[Tensor, " frequencies"]:
    """Angular frequencies `[dim / (2 dims)]` in float64, highest first, used for each of `dims` coordinates:
    for two, `[dim/4]` for the rows and for the columns. `dim` is a multiple of 2 dims."""
    check_dims(dims)
    option("dim", dim, int)
    unit = 2 * dims
    if dim < unit or dim % unit:
        raise ValueError(
            f"axial RoPE rotates pairs of columns by {dims} coordinates: the head width must be a multiple "
            f"of {unit}, got {dim}; {max(unit, unit * round(dim / unit))} would do"
        )
    return rope_frequencies(dim // dims, base=base)[0]


def grid_positions(*sides: int, fit: tuple[int, ...] | None = None) -> Float[Tensor, "N n"]:
    """The place of every cell of a grid, row by row: of an image (row, column), `[rows * columns, 2]`, in
    float64, stretched or squeezed so that its corners are those of a grid with the sides `fit`. A side below
    1, no side, or `fit` for other axes is a ValueError."""
    ends = sides if fit is None else instance("fit", fit, tuple, "(4, 4)")
    if not sides or len(ends) != len(sides):
        raise ValueError(f"a grid of sides {sides} with fit={fit}; give both as many sides, at least 1")
    for side in (*sides, *ends):
        whole("a side", side, 1, WIDEST, needs="every side has at least 1 patch")
    if prod(sides) > MOST_CELLS:
        raise ValueError(f"a grid of sides {sides} has {prod(sides)} cells; give at most {MOST_CELLS}")
    axes = [
        torch.linspace(0, end - 1, count, dtype=torch.float64) for count, end in zip(sides, ends, strict=True)
    ]
    return torch.cartesian_prod(*axes).reshape(-1, len(sides))


def apply_axial_rope(
    x: Float[Tensor, "... N dim"],
    positions: Tensor,
    inv_freq: Float[Tensor, " frequencies"],
    *,
    layout: str = "half",
    dims: int = 2,
) -> Float[Tensor, "... N dim"]:
    """Rotate `x` `[..., N, dim]` by (row, column): pairs 0 to dim/4 - 1 by row w_m, the others by column w_m;
    with `dims` coordinates each turns its share of the pairs. Positions are `[N, dims]`, or one for every
    vector of `x`, `[..., N, dims]`; integers or, for coordinates between patches, floats. Frequencies or
    positions that do not fit the shape of `x` are a ValueError."""
    one_of("layout", layout, LAYOUTS)
    check_dims(dims)
    if floating("x", x).dim() < 2 or floating("inv_freq", inv_freq).dim() != 1:
        raise ValueError(
            f"x has shape {list(x.shape)} and inv_freq {list(inv_freq.shape)}; give [..., N, dim] and one "
            f"dimension of frequencies"
        )
    angular("positions", positions)
    together(x=x, positions=positions)
    movable("inv_freq", inv_freq, x.device)
    if x.shape[-1] != (needed := 2 * dims * inv_freq.shape[-1]):
        raise ValueError(f"x has width {x.shape[-1]}, {inv_freq.shape[-1]} frequencies need {needed}")
    if positions.shape not in ((*x.shape[-2:-1], dims), (*x.shape[:-1], dims)):
        raise ValueError(
            f"positions of shape {list(positions.shape)} do not fit x of shape {list(x.shape)}; give "
            f"[{x.shape[-2]}, {dims}], or the coordinates of every vector"
        )
    angles = angles_of(positions, inv_freq).flatten(-2)
    return rotate(x, angles.cos().to(x.dtype), angles.sin().to(x.dtype), layout)


class AxialQueryKey(Rotation, Extendable):
    """`apply_axial_rope` at every layer."""

    def __init__(self, head_width: int, encoding: "AxialRoPE") -> None:
        super().__init__()
        self.layout, self.dims, self.base = encoding.layout, encoding.dims, encoding.base
        self.head_width = head_width
        self.extend(None)

    def extend(self, extension: ContextExtension | None) -> None:
        self.extension = extension
        plain = axial_rope_frequencies(self.head_width, base=self.base, dims=self.dims)
        own = {"dim": self.head_width // self.dims, "base": self.base, "extension": extension}
        # A plain attribute, not a buffer: model.to(bfloat16) must not round the frequencies.
        self.inv_freq, self.attention_factor = stretched(plain, **own)

    def prepare(
        self, query_positions: Tensor, key_positions: Tensor, length: int | None = None
    ) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        def of(positions: Tensor) -> tuple[Tensor, Tensor]:
            points = positions if self.dims > 1 else positions[..., None]
            return self.table(angles_of(points, self.inv_freq).flatten(-2), self.attention_factor)

        queries = of(query_positions)
        return queries, queries if key_positions is query_positions else of(key_positions)


@dataclass(frozen=True)
class AxialRoPE(Encoding):
    """Rotates queries and keys by each coordinate of their position, in its share of the pairs.

    Args:
        base, layout: as in `RoPE`; the frequencies of a coordinate are those of a head of dim / dims columns.
        dims: coordinates of a position. The head width must be a multiple of 2 dims.
    """

    name = "axial-rope"
    order = 7
    sites = frozenset({Site.QUERY_KEY})
    real_positions = True
    left_out = "for the patches of images, which have a row and a column"

    base: float = 10_000.0
    layout: str = "half"
    dims: int = 2

    def __post_init__(self) -> None:
        check_dims(self.dims)
        check_base(self.base)
        one_of("layout", self.layout, LAYOUTS)

    @property
    def axes(self) -> tuple[int, ...]:
        return (self.dims,)

    def at_query_key(self, heads: Heads) -> QueryKeyModule:
        return AxialQueryKey(heads.width, self)
