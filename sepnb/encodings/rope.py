"""Rotary position embedding (RoPE; Su et al. 2021): queries and keys are rotated by their position.

Pair m of a head turns by the angle p w_m, w_m = base^(-2m/d), so the score of a query at i and a key at j
depends on i - j only. Values are not rotated. Which two columns make a pair is a convention on which public
code disagrees: "half" pairs (m, m + d/2) as in Llama, "interleaved" pairs (2m, 2m+1) as in the paper.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from .base import Encoding, QueryKeyModule, Site

LAYOUTS = ("half", "interleaved")


@runtime_checkable
class ContextExtension(Protocol):
    """A change of RoPE's frequencies for longer contexts, e.g. position interpolation."""

    def __call__(
        self, inv_freq: Tensor, *, dim: int, base: float, length: int | None
    ) -> tuple[Tensor, float]:
        """Plain frequencies `[dim/2]` in; changed ones and the attention factor out."""


def rope_frequencies(
    dim: int, *, base: float = 10_000.0, extension: ContextExtension | None = None, length: int | None = None
) -> tuple[Float[Tensor, " half"], float]:
    """Angular frequencies `[dim/2]` in float64, highest first, and the attention factor.

    Args:
        dim: width of a head, even.
        base: the frequencies run from 1 down to base^(-(dim-2)/dim).
        extension: changes the frequencies for a longer context; None leaves them.
        length: current length, for an extension that depends on it.

    Raises:
        ValueError: `dim` odd or below 2, or a base that is not above 1.
    """
    if dim < 2 or dim % 2:
        raise ValueError(
            f"RoPE rotates pairs of columns: the head width must be even and at least 2, got {dim}"
        )
    if base <= 1:
        raise ValueError(f"base is {base}; it must be above 1, or no pair turns slower than the first")
    inv_freq = base ** -(torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    return (inv_freq, 1.0) if extension is None else extension(inv_freq, dim=dim, base=base, length=length)


def rotation_table(
    positions: Tensor, inv_freq: Tensor, attention_factor: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """cos and sin of every angle, `[..., N, dim/2]`, times the attention factor.

    Angles are computed in float64 whatever the dtype of the model: in bfloat16 integers above 256 are not
    exact, and a rotation by a rounded position is another position.
    """
    angles = positions.to(torch.float64)[..., None] * inv_freq.to(positions.device, torch.float64)
    return (angles.cos() * attention_factor).to(dtype), (angles.sin() * attention_factor).to(dtype)


def rotate(
    x: Float[Tensor, "... N dim"], cos: Tensor, sin: Tensor, layout: str
) -> Float[Tensor, "... N dim"]:
    """Rotate the pairs of `x` by the angles whose cos and sin are given, broadcast over the rest."""
    if layout == "half":
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


def apply_rope(
    x: Float[Tensor, "... N dim"],
    positions: Tensor,
    inv_freq: Float[Tensor, " half"],
    *,
    layout: str = "half",
    attention_factor: float = 1.0,
) -> Float[Tensor, "... N dim"]:
    """Rotate `x` `[..., N, dim]` by `positions`: R_p acts on pair m as a rotation by p w_m.

    Positions are `[N]`, or one for every vector of `x`, `[..., N]`.

    Raises:
        ValueError: an unknown layout, or frequencies or positions that do not fit the shape of `x`.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"unknown layout {layout!r}; use one of {', '.join(LAYOUTS)}")
    if x.shape[-1] != 2 * inv_freq.shape[-1]:
        raise ValueError(
            f"x has width {x.shape[-1]}, {inv_freq.shape[-1]} frequencies need {2 * inv_freq.shape[-1]}"
        )
    if positions.shape not in (x.shape[-2:-1], x.shape[:-1]):
        raise ValueError(
            f"positions of shape {list(positions.shape)} do not fit x of shape {list(x.shape)}; "
            f"give [{x.shape[-2]}], or one position for every vector"
        )
    cos, sin = rotation_table(positions, inv_freq, attention_factor, x.dtype)
    return rotate(x, cos, sin, layout)


class RotaryQueryKey(QueryKeyModule):
    """`apply_rope` split in two: the table once per forward pass, the rotation once per layer."""

    def __init__(
        self, head_width: int, base: float, layout: str, streams: tuple[str, ...] | None = None
    ) -> None:
        super().__init__()
        self.streams = streams
        if layout not in LAYOUTS:
            raise ValueError(f"unknown layout {layout!r}; use one of {', '.join(LAYOUTS)}")
        self.layout, self.head_width, self.base = layout, head_width, base
        # A plain attribute, not a buffer: model.to(bfloat16) must not round the frequencies.
        self.inv_freq, self.attention_factor = rope_frequencies(head_width, base=base)

    def extend(self, extension: ContextExtension) -> None:
        """Take the frequencies of a context extension from now on."""
        self.inv_freq, self.attention_factor = rope_frequencies(
            self.head_width, base=self.base, extension=extension
        )

    @property
    def settings(self) -> tuple:
        """The frequencies, which a context extension sets anew."""
        return tuple(self.inv_freq.tolist()), self.attention_factor

    def prepare(
        self, query_positions: Tensor, key_positions: Tensor, length: int | None = None
    ) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        return self._table(query_positions), self._table(key_positions)

    def _table(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = rotation_table(positions, self.inv_freq, self.attention_factor, torch.float64)
        if positions.dim() == 2:  # one row of positions per sequence: make room for the heads
            cos, sin = cos[:, None], sin[:, None]
        return cos, sin

    def forward(self, x: Tensor, prepared: tuple[Tensor, Tensor]) -> Tensor:
        cos, sin = prepared
        return rotate(x, cos.to(x.dtype), sin.to(x.dtype), self.layout)


@dataclass(frozen=True)
class RoPE(Encoding):
    """Rotates queries and keys by their position.

    Args:
        base: the frequencies run from 1 down to about 1/base.
        layout: which two columns make a pair, "half" or "interleaved".
        streams: rotate only queries and keys that are made from these streams alone, such as ("pos",): the
            position heads of a strict model, and in an untied one also the position part of the sem heads.
            ("sem",) rotates the content part of an untied model. None rotates all.
    """

    name: ClassVar[str] = "rope"
    sites: ClassVar[frozenset[Site]] = frozenset({Site.QUERY_KEY})

    base: float = 10_000.0
    layout: str = "half"
    streams: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.streams, str):
            raise TypeError(f"streams={self.streams!r} is one name; give a tuple, ({self.streams!r},)")

    def at_query_key(self, head_width: int) -> QueryKeyModule:
        return RotaryQueryKey(head_width, self.base, self.layout, self.streams)
