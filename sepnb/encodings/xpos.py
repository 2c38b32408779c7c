"""Extrapolatable position embedding (xPos; Sun et al. 2023): RoPE whose scores decay with the distance.

Beside its rotation pair m of a query at i is multiplied by zeta_m^(i/512) and that of a key at j by
zeta_m^(-j/512), zeta_m = (2m/d + 0.4) / 1.4 < 1. Their product gains zeta_m^((i-j)/512): less for far keys,
and the less the faster the pair turns. For keys *after* the query the factor grows without bound, so the
encoding is for causal models. Positions may be counted from any place, the centre, which cancels in every
score; at the middle of the keys no single factor is larger than it must be.
"""

from dataclasses import dataclass
from math import inf, log, log1p

import torch
from jaxtyping import Float
from torch import Tensor

from ..validation import WIDEST, floating, number, one_of, reals, whole, within
from .base import Encoding, Heads, QueryKeyModule, Site, check_base
from .context import ContextExtension
from .rope import LAYOUTS, RoPE, RotaryQueryKey, apply_rope, rope_frequencies


def xpos_scales(
    positions: Tensor,
    dim: int,
    *,
    scale_base: int | float = 512.0,
    gamma: int | float = 0.4,
    centre: int | float | Tensor = 0,
) -> Float[Tensor, "... half"]:
    """zeta_m^((p - centre) / scale_base) of every position, `[..., dim/2]` in float64: a query's factors; a
    key's are their inverses. A scale base or a gamma that is not above 0 is refused."""
    if not isinstance(scale_base, float):  # inf is allowed: nothing decays
        number("scale_base", scale_base)
    number("gamma", gamma)
    if not scale_base > 0:
        raise ValueError(f"scale_base is {scale_base}; it must be above 0, or far keys would weigh more")
    if not gamma > 0:
        raise ValueError(f"gamma is {gamma}; it must be above 0, or the fastest pair has the factor 0")
    whole("dim", dim, 1, WIDEST)
    reals("positions", positions)
    if not isinstance(centre, Tensor):
        number("centre", centre)
    elif any(
        1 not in (a, b) and a != b
        for a, b in zip(reversed(reals("centre", centre).shape), reversed(positions.shape), strict=False)
    ):
        raise ValueError(
            f"centre has shape {list(centre.shape)} and positions {list(positions.shape)}; give one for all, "
            f"or one for each text"
        )
    pairs = torch.arange(0, dim, 2, dtype=torch.float64, device=positions.device) / dim
    zeta = (pairs + gamma) / (1 + gamma)
    return zeta ** ((positions.to(torch.float64) - centre)[..., None] / scale_base)


def apply_xpos(
    q: Float[Tensor, "... N dim"],
    k: Float[Tensor, "... M dim"],
    query_positions: Tensor,
    key_positions: Tensor,
    *,
    base: int | float = 10_000.0,
    layout: str = "half",
    scale_base: int | float = 512.0,
    gamma: int | float = 0.4,
    centre: int | float = 0,
) -> tuple[Float[Tensor, "... N dim"], Float[Tensor, "... M dim"]]:
    """Queries and keys, `[..., N, dim]` and `[..., M, dim]`, rotated and scaled by positions `[N]` and `[M]`.
    Only their products with j <= i have a meaning. Queries far before the centre and keys far after it, whose
    factors leave the dtype, are refused."""
    one_of("layout", layout, LAYOUTS)
    for name, x in (("q", q), ("k", k)):
        if not floating(name, x).dim():
            raise ValueError(f"{name} is a single number; give [..., N, dim]")
    inv_freq, _ = rope_frequencies(q.shape[-1], base=base)
    remedy = "beyond which factors leave their dtype: give the middle of the keys as centre, or a wider dtype"

    def turned(x: Tensor, positions: Tensor, sign: int) -> Tensor:
        scales = xpos_scales(positions, x.shape[-1], scale_base=scale_base, gamma=gamma, centre=centre)
        reach = _reach(scale_base, gamma, x.dtype)
        name, low, high = ("query", centre - reach, inf) if sign > 0 else ("key", -inf, centre + reach)
        within(f"{name}_positions", positions, low, high, remedy)
        both = torch.cat([scales] * 2, -1) if layout == "half" else scales.repeat_interleave(2, -1)
        return (apply_rope(x, positions, inv_freq, layout=layout).to(both.dtype) * both**sign).to(x.dtype)

    return turned(q, query_positions, 1), turned(k, key_positions, -1)


ROOM = 16
"""A query or key of this size is still a number under the largest factor that is allowed."""


def _reach(scale_base: int | float, gamma: int | float, dtype: torch.dtype) -> float:
    """How far from the centre the factor of the fastest pair leaves room in this dtype."""
    decay = log1p(1 / gamma)
    return scale_base * log(torch.finfo(dtype).max / ROOM) / decay if decay else inf


class XPosQueryKey(RotaryQueryKey):
    """`apply_xpos` at every layer; the factors stand in the table of cosines and sines. The centre is the
    middle of the keys of a call: a cache keeps keys as they were before, so that all have one centre."""

    bounds_span = True

    def __init__(self, head_width: int, encoding: "XPos") -> None:
        super().__init__(head_width, RoPE(encoding.base, encoding.layout))
        self.scale_base, self.gamma = encoding.scale_base, encoding.gamma

    def extend(self, extension: ContextExtension | None) -> None:
        if extension is not None:
            raise ValueError(
                "a context extension changes frequencies, and xPos has a decay of the distance beside them, "
                "which would stay as it was: no published extension says what becomes of it; use RoPE"
            )
        super().extend(None)

    def _scales(self, positions: Tensor, centre: int | Tensor) -> Tensor:
        return xpos_scales(positions, self.width, scale_base=self.scale_base, gamma=self.gamma, centre=centre)

    def prepare(
        self, query_positions: Tensor, key_positions: Tensor, length: int | None = None
    ) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        if not key_positions.numel():
            return super().prepare(query_positions, key_positions, length)
        first, last = key_positions.amin(dim=-1, keepdim=True), key_positions.amax(dim=-1, keepdim=True)
        centre = (first + last) / 2
        for_queries, for_keys = super().prepare(query_positions, key_positions, length)
        queries, keys = self._scales(query_positions, centre), 1 / self._scales(key_positions, centre)
        return _times(for_queries, queries), _times(for_keys, keys)

    def check_span(self, span: int, dtype: torch.dtype) -> None:
        """Refuse a span at whose ends a key times the factor of the fastest pair may be inf in this dtype."""
        if span > (limit := 2 * _reach(self.scale_base, self.gamma, dtype)):
            raise ValueError(
                f"the keys span {span} positions; from {int(limit)} on keys times their factors leave "
                f"{str(dtype).removeprefix('torch.')}: read shorter texts, compute in a wider dtype, or "
                f"build it with a larger scale_base than {self.scale_base:g}"
            )


def _times(table: tuple[Tensor, Tensor], scales: Tensor) -> tuple[Tensor, Tensor]:
    if scales.dim() == 3:  # one row of positions per sequence: make room for the heads
        scales = scales[:, None]
    return table[0] * scales, table[1] * scales


@dataclass(frozen=True)
class XPos(Encoding):
    """Rotates queries and keys by their position, and lets their product decay with the distance. Keys that
    span more than about 70 000 positions, in float16 6 800, are refused: see `check_span`.

    Args:
        base, layout: of the rotation, as in `RoPE`.
        scale_base: positions after which a pair has decayed by its zeta; above 0.
        gamma: above 0; the larger, the less the pairs differ and the slower all decay.
    """

    name = "xpos"
    order = 4
    sites = frozenset({Site.QUERY_KEY})
    causal_only = True

    base: int | float = 10_000.0
    layout: str = "half"
    scale_base: int | float = 512.0
    gamma: int | float = 0.4

    def __post_init__(self) -> None:
        check_base(self.base)
        one_of("layout", self.layout, LAYOUTS)
        xpos_scales(torch.zeros(1), 2, scale_base=self.scale_base, gamma=self.gamma)

    def at_query_key(self, heads: Heads) -> QueryKeyModule:
        return XPosQueryKey(heads.width, self)
