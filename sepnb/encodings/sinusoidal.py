"""Sinusoidal positions (Vaswani et al. 2017, section 3.5): fixed sines and cosines, at the input.

A position of several coordinates, such as the row and the column of a patch, has the embeddings of its
coordinates side by side, each in its share of the columns.
"""

from dataclasses import dataclass
from math import pi

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..validation import FARTHEST, WIDEST, angular, floating_dtype, number, one_of, option, reals, whole
from .base import Encoding, Extendable, InputModule, Site, check_base
from .context import ContextExtension, stretched
from .coordinates import check_dims

LAYOUTS = ("interleaved", "halves", "halves-endpoint")


def base_of_longest_wave(dim: int, length: int | float) -> float:
    """The base with which the slowest pair of `dim` columns has a wavelength of `length` positions.

    The slowest angular frequency is base^-e, e = (dim - 2)/dim (odd `dim`: (dim - 1)/dim), hence
    base = (length / 2 pi)^(1/e). With a longest wave of twice the trained length a text shows every wave for
    at least half a turn. Not for the layout "halves-endpoint", of which e is 1. Fewer than 3 columns, which
    have the fastest wave only, or a wave not longer than that are a ValueError.
    """
    option("dim", dim, int)
    if dim > WIDEST:
        whole("dim", dim, most=WIDEST)
    number("length", length, most=FARTHEST, needs=f"give a finite number of at most {FARTHEST}")
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
    """The sinusoidal embedding of `positions`: `[N] -> [N, dim]`.

    Pair m has the angular frequency w_m = base^(-2m/dim). In the layout "interleaved" column 2m is
    sin(p w_m) and column 2m+1 is cos(p w_m), as printed by Vaswani et al.; in "halves" the sines come
    first, then the cosines. The two differ by a permutation of the columns. An odd `dim` drops the last
    cosine. "halves-endpoint" is another function: as "halves", but the frequencies run down to 1/base itself,
    w_m = base^(-m/(dim/2 - 1)), as in fairseq and tensor2tensor; for checkpoints of that family.

    Angles are computed in float64 and cast last: in float32 the cosine is already wrong by 1e-3 at position
    1e5, and not every integer above 2^24 has a float32. In float64 an angle is right to about p times 1e-16:
    to 1e-4 at 2^40, beyond which positions are refused.

    Args:
        positions: any shape, integers or floats, of either sign.
        dim: columns, 1 to `WIDEST`; with "halves-endpoint" even and at least 4.
        base: above 1; the longest wavelength is about 2 pi base ("halves-endpoint": exactly).
        layout: "interleaved", "halves" or "halves-endpoint".
        dtype: of the result, floating; by default that of floating `positions`, else torch's default.
    """
    _check(dim, base, layout)
    angular("positions", positions)
    if dtype is None:
        dtype = positions.dtype if positions.is_floating_point() else torch.get_default_dtype()
    return _embedding(positions, dim, _frequencies(dim, base, layout), layout, floating_dtype("dtype", dtype))


def _check(dim: int, base: float, layout: str) -> None:
    whole("dim", dim, 1, WIDEST, needs="a sinusoidal embedding needs at least 1 column")
    one_of("layout", layout, LAYOUTS)
    check_base(base)
    if layout == "halves-endpoint" and (dim < 4 or dim % 2):
        raise ValueError(
            f"dim is {dim}; halves-endpoint divides by dim/2 - 1 and needs an even dim of at least 4"
        )


def _frequencies(dim: int, base: float, layout: str) -> Float[Tensor, " sines"]:
    """w_m of every sine, in float64."""
    step = 1 / (dim // 2 - 1) if layout == "halves-endpoint" else 2 / dim
    return base ** -(torch.arange((dim + 1) // 2, dtype=torch.float64) * step)


def _embedding(positions: Tensor, dim: int, frequencies: Tensor, layout: str, dtype: torch.dtype) -> Tensor:
    angles = positions.to(torch.float64)[..., None] * frequencies.to(positions.device)
    sines, cosines = angles.sin(), angles.cos()[..., : dim // 2]
    if layout != "interleaved":
        return torch.cat([sines, cosines], dim=-1).to(dtype)
    both = torch.empty(*positions.shape, dim, dtype=torch.float64, device=positions.device)
    both[..., 0::2], both[..., 1::2] = sines, cosines
    return both.to(dtype)


def grid_sinusoidal(
    positions: Float[Tensor, "... n"] | Int[Tensor, "... n"],
    dim: int,
    *,
    base: float = 10_000.0,
    layout: str = "interleaved",
    dtype: torch.dtype | None = None,
) -> Float[Tensor, "... dim"]:
    """The embeddings of n coordinates side by side: points `[N, n]` to `[N, dim]`.

    Each coordinate has the `sinusoidal` embedding of dim/n columns, the first coordinate the first of them;
    where n does not divide `dim`, which is at least n, the first coordinates have a column more. Of an image,
    rows have one half and columns the other.
    """
    how = {"base": base, "layout": layout, "dtype": dtype}
    return torch.cat([sinusoidal(one, width, **how) for one, width in _shares(positions, dim)], dim=-1)


def _shares(positions: Tensor, dim: int) -> list[tuple[Tensor, int]]:
    """Each coordinate of points `[..., n]`, and how many columns it has."""
    if not reals("positions", positions).dim() or not positions.shape[-1]:
        raise ValueError(f"positions have shape {list(positions.shape)}; give points, [N, n]")
    n = positions.shape[-1]
    whole("dim", dim, n, WIDEST, needs=f"a sinusoidal embedding of {n} coordinates needs a column for each")
    widths = [dim // n + (place < dim % n) for place in range(n)]
    return list(zip(positions.unbind(-1), widths, strict=True))


def orthonormal(columns: int, directions: int) -> Float[Tensor, "columns directions"]:
    """So many orthonormal vectors of `columns` numbers, in float64: the same at every call, and in no special
    direction."""
    whole("directions", directions, 1, columns)
    drawn = torch.randn(columns, directions, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    axes, triangle = torch.linalg.qr(drawn)
    return axes * triangle.diagonal().sign()  # the one whose triangle has a positive diagonal is unique


class SinusoidalInput(InputModule, Extendable):
    """`grid_sinusoidal` in float64, which the model rounds. No parameters, no largest position. A context
    extension changes the frequencies of every coordinate."""

    def __init__(self, width: int, encoding: "Sinusoidal") -> None:
        super().__init__()
        columns = width if encoding.columns is None else encoding.columns
        if columns * encoding.copies > width:
            several = f" in each of {encoding.copies} copies" if encoding.copies > 1 else ""
            raise ValueError(f"columns is {columns}{several}; the input has {width}, give at most as many")
        self.width, self.columns, self.encoding = width, columns, encoding
        # A plain attribute, as the frequencies are: model.to(bfloat16) must not round it.
        self.projection = None if encoding.directions is None else orthonormal(columns, encoding.directions)
        for _, share in _shares(torch.zeros(1, encoding.dims), columns):
            _check(share, encoding.base, encoding.layout)
        self.extend(None)

    def extend(self, extension: ContextExtension | None) -> None:
        self.extension = extension
        base, layout = self.encoding.base, self.encoding.layout
        # Plain attributes, not buffers: model.to(bfloat16) must not round the frequencies.
        self.frequencies = []
        for _, columns in _shares(torch.zeros(1, self.encoding.dims), self.columns):
            # With an endpoint the last of the columns / 2 frequencies is 1 / base itself.
            dim = columns - 2 if layout == "halves-endpoint" else columns
            plain = _frequencies(columns, base, layout)
            changed, self.attention_factor = stretched(plain, dim=dim, base=base, extension=extension)
            self.frequencies.append(changed)

    def forward(self, positions: Tensor) -> Tensor:
        points = positions if self.encoding.dims > 1 else positions[..., None]
        if self.encoding.period is not None:
            points = points % self.encoding.period
        shares = zip(_shares(points, self.columns), self.frequencies, strict=True)
        # The model has checked the positions: none is read here.
        how = self.encoding.layout, torch.float64
        waves = torch.cat([_embedding(one, width, waves, *how) for (one, width), waves in shares], dim=-1)
        if self.projection is not None:
            waves = waves @ self.projection.to(waves.device)
        copies = self.encoding.copies
        if copies > 1:
            waves = torch.cat(copies * [waves / copies**0.5], dim=-1)
        return nn.functional.pad(waves, (0, self.width - waves.shape[-1]))


@dataclass(frozen=True)
class Sinusoidal(Encoding):
    """Fixed sines and cosines at the input, unscaled; with `dims` coordinates, each in its share of the
    columns. The waves are in the first `columns` of the width, and the others are zero; None: in all. With
    several `copies` the next columns hold the same waves again, and all are divided by the root of their
    number, so that embeddings are as long. With a number of `directions` the waves of the columns are
    projected onto so many fixed directions (`orthonormal`); the first columns hold the coordinates, and the
    others are zero. With a `period` they repeat: a position, or each coordinate, is read
    modulo it."""

    name = "sinusoidal"
    order = 1
    sites = frozenset({Site.INPUT})
    reads_index = True
    real_positions = True
    later = ("dims", "columns", "period", "copies", "directions")

    base: float = 10_000.0
    layout: str = "interleaved"
    dims: int = 1
    columns: int | None = None
    period: int | None = None
    copies: int = 1
    directions: int | None = None

    def __post_init__(self) -> None:
        check_dims(self.dims)
        if self.columns is not None:
            whole("columns", self.columns, self.dims, WIDEST, needs="each coordinate needs a column")
        whole("copies", self.copies, 1, WIDEST)
        if self.directions is not None:
            whole("directions", self.directions, 1, WIDEST)
            if self.copies > 1:
                raise ValueError(f"copies is {self.copies}; with directions give 1")
        if self.period is not None:
            whole("period", self.period, 2, FARTHEST, needs="of one position all are alike")
        _check(4, self.base, self.layout)

    @property
    def axes(self) -> tuple[int, ...]:
        return (self.dims,)

    def at_input(self, width: int, max_length: int) -> InputModule:
        return SinusoidalInput(width, self)
