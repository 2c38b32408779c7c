"""Rotary position embedding (RoPE; Su et al. 2021): queries and keys are rotated by their position.

Pair m of a head turns by the angle p w_m, w_m = base^(-2m/d), so the score of a query at i and a key at j
depends on i - j only. Values are not rotated. Which two columns make a pair is a convention on which public
code disagrees: "half" pairs (m, m + d/2) as in Llama, "interleaved" pairs (2m, 2m+1) as in the paper.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from .. import validation
from .base import Encoding, Extendable, Heads, Place, QueryKeyModule, Site, check_base
from .context import LONGEST, ContextExtension, Extension, check_extension

LAYOUTS = ("half", "interleaved")


def rope_frequencies(
    dim: int,
    *,
    base: int | float = 10_000.0,
    extension: ContextExtension | None = None,
    length: int | None = None,
    p: int | float | None = None,
) -> tuple[Float[Tensor, " half"], float]:
    """Angular frequencies `[dim/2]` in float64, highest first, and the attention factor.

    Args:
        dim: width of a head, even, from 2 to `WIDEST`.
        base: above 1; the frequencies run from 1 down to base^(-(dim-2)/dim).
        extension: changes the frequencies for a longer context; None leaves them.
        length: current length, for an extension that depends on it.
        p: share of the pairs, those that turn fastest, that keep their frequency; that of the others is 0
            (p-RoPE; Barbero et al. 2025), whole pairs of them. None keeps all.
    """
    got = validation.shown(dim)
    needs = f"RoPE rotates pairs of columns: the head width must be even and at least 2, got {got}"
    if validation.whole("dim", dim, 2, validation.WIDEST, needs=needs) % 2:
        raise ValueError(f"dim is {dim}; {needs}")
    check_base(base)
    check_extension(extension)
    if length is not None:
        validation.whole("length", length, 1, LONGEST, needs="a text has at least 1 token")
    inv_freq = base ** -(torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    if p is not None:
        inv_freq[rotary_width(dim, "p", p) // 2 :] = 0
    return (inv_freq, 1.0) if extension is None else extension(inv_freq, dim=dim, base=base, length=length)


def rotary_width(dim: int, option: str, share: int | float) -> int:
    """How many columns `share` of a head of `dim` is. Errors name the option: a share that is not above 0 and
    at most 1, or does not give whole pairs."""
    check_share(option, share)
    nearest = max(2, 2 * round(share * dim / 2))
    if abs(share * dim - nearest) > 1e-6:
        raise ValueError(
            f"{option}={share} of a head of {dim} columns are {share * dim:g}; pairs need an even number of "
            f"them: give {nearest / dim:g}, which are {nearest}"
        )
    return nearest


def check_share(option: str, share: int | float) -> None:
    """Raise unless the share of a head is above 0 and at most 1; `option` names it."""
    needs = "it must be above 0 and at most 1; without RoPE nothing turns"
    if validation.number(option, share, above=0, needs=needs) > 1:
        raise ValueError(f"{option} is {validation.shown(share)}; {needs}")


def angles_of(positions: Tensor, inv_freq: Tensor) -> Float[Tensor, "... half"]:
    """By how much every pair turns, `[..., N, dim/2]`. Frequencies are `[dim/2]`, or `[B, 1, dim/2]` where
    every sequence has its own.

    In float64 whatever the dtype of the model: in bfloat16 integers above 256 are not exact, and a rotation
    by a rounded position is another position.
    """
    return positions.to(torch.float64)[..., None] * inv_freq.to(positions.device, torch.float64)


def rotate(
    x: Float[Tensor, "... N dim"], cos: Tensor, sin: Tensor, layout: str
) -> Float[Tensor, "... N dim"]:
    """Rotate the pairs of `x` by the angles whose cos and sin are given, broadcast over the rest. Where there
    are fewer angles than pairs, only the first columns turn, as a head of their own."""
    turning = 2 * cos.shape[-1]
    if turning < x.shape[-1]:
        return torch.cat([rotate(x[..., :turning], cos, sin, layout), x[..., turning:]], dim=-1)
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

    Positions are `[N]`, or one for every vector of `x`, `[..., N]`; integers or floats of either sign. Their
    angles are right to about p times 1e-16, 1e-4 at 2^40: positions beyond that are refused.

    Raises:
        TypeError, ValueError: tensors that are not floating (positions: real), an unknown layout, frequencies
            or positions that do not fit the shape of `x` or its device, or a factor that is not above 0.
    """
    validation.one_of("layout", layout, LAYOUTS)
    validation.above_zero("attention_factor", attention_factor)
    validation.floating("x", x)
    validation.floating("inv_freq", inv_freq)
    validation.angular("positions", positions)
    if x.dim() < 2 or inv_freq.dim() != 1:
        raise ValueError(
            f"x has shape {list(x.shape)} and inv_freq {list(inv_freq.shape)}; give [..., N, dim] and [dim/2]"
        )
    if x.shape[-1] != 2 * inv_freq.shape[-1] or not x.shape[-1]:
        raise ValueError(
            f"x has width {x.shape[-1]}, {inv_freq.shape[-1]} frequencies need {2 * inv_freq.shape[-1]}; "
            f"give one for each pair of columns, and at least one"
        )
    if positions.shape not in (x.shape[-2:-1], x.shape[:-1]):
        raise ValueError(
            f"positions of shape {list(positions.shape)} do not fit x of shape {list(x.shape)}; "
            f"give [{x.shape[-2]}], or one position for every vector"
        )
    validation.together(x=x, positions=positions)
    validation.movable("inv_freq", inv_freq, x.device)
    angles = angles_of(positions, inv_freq)
    cos, sin = angles.cos() * attention_factor, angles.sin() * attention_factor
    return rotate(x, cos.to(x.dtype), sin.to(x.dtype), layout)


class Rotation(QueryKeyModule):
    """A rotation split in two: `table` once per forward pass, `rotate` once per layer."""

    layout: str

    def table(self, angles: Tensor, factor: float = 1.0) -> tuple[Tensor, Tensor]:
        """cos and sin of angles `[*B, N, dim/2]` in float64, times a factor."""
        if angles.dim() == 3:  # one row of angles per sequence: make room for the heads
            angles = angles[:, None]
        return angles.cos() * factor, angles.sin() * factor

    def forward(self, x: Tensor, prepared: tuple[Tensor, Tensor], place: Place | None = None) -> Tensor:
        cos, sin = prepared
        return rotate(x, cos.to(x.dtype), sin.to(x.dtype), self.layout)


class RotaryQueryKey(Rotation, Extendable):
    """`apply_rope` at every layer."""

    def __init__(self, head_width: int, encoding: "RoPE") -> None:
        super().__init__()
        self.streams, self.layout = encoding.streams, encoding.layout
        self.base, self.p, partial = encoding.base, encoding.p, encoding.partial
        self.width = head_width if partial is None else rotary_width(head_width, "partial", partial)
        self.extend(encoding.extension)

    def extend(self, extension: ContextExtension | None) -> None:
        self.extension, self.by_length = extension, getattr(extension, "by_length", False)
        # A plain attribute, not a buffer: model.to(bfloat16) must not round the frequencies.
        self.inv_freq, self.attention_factor = self._frequencies(1 if self.by_length else None)

    def _frequencies(self, length: int | None) -> tuple[Tensor, float]:
        return rope_frequencies(self.width, base=self.base, extension=self.extension, length=length, p=self.p)

    @property
    def settings(self) -> Hashable:
        return self.base, self.p, self.width, self.extension

    def prepare(
        self, query_positions: Tensor, key_positions: Tensor, length: int | None = None
    ) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        inv_freq = self.inv_freq
        if self.by_length and key_positions.numel():
            # Without a length the text ends with its largest position, each sequence with its own.
            ends = key_positions.amax(dim=-1) + 1 if length is None else torch.tensor(length)
            rows = [self._frequencies(n)[0] for n in ends.flatten().tolist()]
            inv_freq = torch.stack(rows)[:, None] if ends.dim() else rows[0]
        queries = self.table(angles_of(query_positions, inv_freq), self.attention_factor)
        if key_positions is query_positions:
            return queries, queries
        return queries, self.table(angles_of(key_positions, inv_freq), self.attention_factor)


@dataclass(frozen=True)
class RoPE(Encoding):
    """Rotates queries and keys by their position.

    Args:
        base: above 1; the frequencies run from 1 down to about 1/base.
        layout: which two columns make a pair, "half" or "interleaved".
        streams: rotate only queries and keys that are made from these streams alone, such as ("pos",): the
            position heads of a strict model, and of an untied one also the position part of the sem heads.
            None rotates all.
        partial: share of the columns of a head, its first ones, that turn; the frequencies are those of a
            head of so many columns, so the slowest stays (partial rotary, as in GPT-NeoX). None turns all.
        p: in its place, share of the pairs that turn, the fastest, with the frequencies of the whole head
            (p-RoPE; Barbero et al. 2025). None turns all.
        extension: train with the frequencies of a context extension. `LanguageModel.extended` changes those
            of a trained model.
        shared: with `partial`, all heads that read the same streams share the rotated columns of a key, as in
            the decoupled key of multi-head latent attention (DeepSeek-V2, 2024): W_K makes these once. The
            low-rank compression of the other columns is not implemented, and a cache holds the shared columns
            once for each head.
    """

    name = "rope"
    order = 3
    later = ("shared",)
    sites = frozenset({Site.QUERY_KEY})

    base: float = 10_000.0
    layout: str = "half"
    streams: tuple[str, ...] | None = None
    partial: int | float | None = None
    p: int | float | None = None
    extension: Extension | None = None
    shared: bool = False

    def __post_init__(self) -> None:
        check_base(self.base)
        validation.one_of("layout", self.layout, LAYOUTS)
        if isinstance(self.streams, str):
            raise TypeError(f"streams={self.streams!r} is one name; give a tuple, ({self.streams!r},)")
        if self.partial is not None and self.p is not None:
            raise ValueError(
                f"partial={self.partial} and p={self.p} are two ways to turn a part of a head; give one"
            )
        for option in ("partial", "p"):
            if (share := getattr(self, option)) is not None:
                check_share(option, share)
        if validation.flag("shared", self.shared) and (self.partial is None or self.partial == 1):
            raise ValueError(
                f"shared=True with partial={self.partial} leaves the key of a head no column of its own; "
                f"give partial below 1, such as 0.25, or n_kv_heads=1, which shares whole keys and values"
            )
        if self.shared and self.streams is not None:
            raise ValueError(
                f"shared=True with streams={self.streams}: where nothing turns nothing can be shared; leave "
                f"streams out"
            )
        if self.extension is not None and not isinstance(self.extension, Extension):
            raise TypeError(
                f"extension must be one that a record can name, such as PositionInterpolation(4.0), got "
                f"{self.extension!r}"
            )

    def at_query_key(self, heads: Heads) -> QueryKeyModule:
        return RotaryQueryKey(heads.width, self)

    def common_key(self, head_width: int) -> int:
        return rotary_width(head_width, "partial", self.partial) if self.shared else 0

    def resolved(self) -> dict[str, Any]:
        resolved = super().resolved()
        return resolved if self.extension is None else resolved | {"extension": self.extension.resolved()}
