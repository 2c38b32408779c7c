"""Sinusoidal positions (Vaswani et al. 2017, section 3.5): fixed sines and cosines, at the input.

A position of several coordinates, such as the row and the column of a patch, has the codes of its coordinates
side by side, each in its share of the columns.
"""

from dataclasses import dataclass
from math import pi
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..settings import without_defaults
from .base import Encoding, InputModule, Site
from .coordinates import check_dims

LAYOUTS = ("interleaved", "halves", "halves-endpoint")


def base_of_longest_wave(dim: int, length: int | float) -> float:
    """The base with which the slowest pair of a code of `dim` columns has a wavelength of `length` positions.

    The slowest angular frequency is base^-e, e = (dim - 2)/dim (odd `dim`: (dim - 1)/dim), hence
    base = (length / 2 pi)^(1/e). A longest wave of twice the trained length L, base = (L/pi)^(dim/(dim-2)),
    makes a text of L positions show every wave for at least half a turn: the code then moves on a torus whose
    every axis random offsets can cover. Not for the layout "halves-endpoint", of which e is 1.

    Raises:
        ValueError: fewer than 3 columns, which have the fastest wave only, or a wave not longer than that.
    """
    slowest = ((dim + 1) // 2 - 1) * 2 / dim if dim > 0 else 0.0
    if slowest == 0:
        raise ValueError(f"dim is {dim}; below 3 columns there is one wave, of 2 pi positions, at any base")
    if not length > 2 * pi:
        raise ValueError(f"length is {length}; the longest wave must be longer than the shortest, 2 pi")
    return (length / (2 * pi)) ** (1 / slowest)


def sinusoidal(
    positions: Tensor,
    dim: int,
    *,
    base: float = 10_000.0,
    layout: str = "interleaved",
    dtype: torch.dtype | None = None,
) -> Float[Tensor, "... dim"]:
    """The sinusoidal code of `positions`: `[N] -> [N, dim]`.

    Pair m has the angular frequency w_m = base^(-2m/dim). In the layout "interleaved" column 2m is
    sin(p w_m) and column 2m+1 is cos(p w_m), as printed by Vaswani et al.; in "halves" the sines come
    first, then the cosines. The two differ by a permutation of the columns. An odd `dim` drops the last
    cosine. "halves-endpoint" is another function: as "halves", but the frequencies run down to 1/base itself,
    w_m = base^(-m/(dim/2 - 1)), as in fairseq and tensor2tensor; for checkpoints of that family.

    Angles are computed in float64 and cast last: in float32 the cosine is already wrong by 1e-3 at position
    1e5, and not every integer above 2^24 has a float32.

    Args:
        positions: any shape, integers or floats.
        dim: columns, at least 1.
        base: the longest wavelength is about 2 pi base ("halves-endpoint": exactly).
        layout: "interleaved", "halves" or "halves-endpoint".
        dtype: of the result; by default that of floating `positions`, else torch's default.

    Raises:
        ValueError: `dim` below 1, an unknown layout, a base that is not above 1, or "halves-endpoint" with a
            `dim` that is odd or below 4.
    """
    if dim < 1:
        raise ValueError(f"dim is {dim}; a sinusoidal code needs at least 1 column")
    if layout not in LAYOUTS:
        raise ValueError(f"unknown layout {layout!r}; use one of {', '.join(LAYOUTS)}")
    if base <= 1:
        raise ValueError(f"base is {base}; it must be above 1, or no wave is longer than the first")
    if dtype is None:
        dtype = positions.dtype if positions.is_floating_point() else torch.get_default_dtype()
    n_sines, step = (dim + 1) // 2, 2 / dim
    if layout == "halves-endpoint":
        if dim < 4 or dim % 2:
            raise ValueError(
                f"dim is {dim}; halves-endpoint divides by dim/2 - 1 and needs an even dim of at least 4"
            )
        step = 1 / (dim // 2 - 1)
    exponents = torch.arange(n_sines, dtype=torch.float64, device=positions.device) * step
    angles = positions.to(torch.float64)[..., None] * base**-exponents
    sines, cosines = angles.sin(), angles.cos()[..., : dim // 2]
    if layout != "interleaved":
        return torch.cat([sines, cosines], dim=-1).to(dtype)
    code = torch.empty(*positions.shape, dim, dtype=torch.float64, device=positions.device)
    code[..., 0::2], code[..., 1::2] = sines, cosines
    return code.to(dtype)


def grid_sinusoidal(
    positions: Float[Tensor, "... n"] | Int[Tensor, "... n"],
    dim: int,
    *,
    base: float = 10_000.0,
    layout: str = "interleaved",
    dtype: torch.dtype | None = None,
) -> Float[Tensor, "... dim"]:
    """The codes of n coordinates side by side: points `[N, n]` to `[N, dim]`.

    Each coordinate has the `sinusoidal` code of dim/n columns, the first coordinate the first of them; where
    n does not divide `dim`, the first coordinates have a column more. Of an image, rows have one half and
    columns the other.

    Raises:
        ValueError: fewer columns than coordinates, and whatever `sinusoidal` refuses.
    """
    n = positions.shape[-1]
    if dim < n:
        raise ValueError(f"dim is {dim}; a sinusoidal code of {n} coordinates needs a column for each")
    widths = [dim // n + (place < dim % n) for place in range(n)]
    return torch.cat(
        [
            sinusoidal(coordinate, width, base=base, layout=layout, dtype=dtype)
            for coordinate, width in zip(positions.unbind(-1), widths, strict=True)
        ],
        dim=-1,
    )


class SinusoidalInput(InputModule):
    """`sinusoidal` in float64 as an input module, of several coordinates `grid_sinusoidal`; the model rounds.
    No parameters, no largest position."""

    def __init__(self, width: int, base: float, layout: str, dims: int = 1) -> None:
        super().__init__()
        self.width, self.base, self.layout, self.dims = width, base, layout, dims
        self(torch.zeros(1) if dims == 1 else torch.zeros(1, dims))  # refuses bad arguments at once

    def forward(self, positions: Tensor) -> Tensor:
        code = sinusoidal if self.dims == 1 else grid_sinusoidal
        return code(positions, self.width, base=self.base, layout=self.layout, dtype=torch.float64)


@dataclass(frozen=True)
class Sinusoidal(Encoding):
    """Fixed sines and cosines at the input, unscaled; with `dims` coordinates, each in its share of the
    columns.

    Raises:
        TypeError, ValueError: `dims` that is no int or below 1.
    """

    name: ClassVar[str] = "sinusoidal"
    order: ClassVar[float] = 1
    sites: ClassVar[frozenset[Site]] = frozenset({Site.INPUT})
    reads_index: ClassVar[bool] = True
    real_positions: ClassVar[bool] = True

    base: float = 10_000.0
    layout: str = "interleaved"
    dims: int = 1

    def __post_init__(self) -> None:
        check_dims(self.dims)

    @property
    def axes(self) -> tuple[int, ...]:
        """As many as it was built for."""
        return (self.dims,)

    def at_input(self, width: int, max_length: int) -> InputModule:
        return SinusoidalInput(width, self.base, self.layout, self.dims)

    def resolved(self) -> dict[str, Any]:
        """As of every encoding; `dims` where there are several."""
        return without_defaults(super().resolved(), dims=1)
