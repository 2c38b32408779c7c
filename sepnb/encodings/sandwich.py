"""Sandwich (Chi et al. 2023): the inner product of two sinusoidal position embeddings, compressed by heads.

    bias_h(i, j) = (sum_m cos(|i - j| w_m) - D'/2) H / (8 h),    w_m = 10000^(-2m/D'), m = 1..D'/2, h = 1..H

The constant changes no softmax. Published code differs in the index set, m from 0 or from 1.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..validation import WIDEST, whole
from .base import Encoding, Extendable, Heads, ScoreModule, Site, check_base
from .context import ContextExtension, stretched
from .relative import DistanceBias, check_pairs, relative_positions


def sandwich_bias(
    n_heads: int,
    query_positions: Int[Tensor, "*queries N"],
    key_positions: Int[Tensor, "*keys M"],
    *,
    width: int = 128,
    base: float = 10_000.0,
) -> Float[Tensor, "*pairs H N M"]:
    """The bias of every pair and head, float64. It falls with the distance on average, and oscillates.

    Positions are `[N]` and `[M]`, or `[B, N]` and `[B, M]`; `width` is D', even, and not that of a head; the
    base is above 1.
    """
    whole("n_heads", n_heads, 1, WIDEST, needs="give at least 1")
    _check(width, base)
    check_pairs(query_positions, key_positions)
    distance = relative_positions(query_positions, key_positions).abs()
    waves = _sum_of_waves(distance, _frequencies(width, base).tolist())[..., None, :, :]
    return waves * _compression(n_heads).to(distance.device)[:, None, None]


def _frequencies(width: int, base: float) -> Float[Tensor, " half"]:
    """w_1 to w_{D'/2} in float64, on the CPU: their values are read, of a model without values too."""
    waves = [base ** (-2 * m / width) for m in range(1, width // 2 + 1)]
    return torch.tensor(waves, dtype=torch.float64, device="cpu")


def _sum_of_waves(distance: Tensor, frequencies: list[float]) -> Tensor:
    """sum_m (cos(distance w_m) - 1) in float64, wave by wave: the largest tensor is the result."""
    distance = distance.to(torch.float64)
    total = torch.full_like(distance, -float(len(frequencies)))
    for frequency in frequencies:
        total += torch.cos(distance * frequency)
    return total


def _compression(n_heads: int) -> Tensor:
    return n_heads / (8 * torch.arange(1, n_heads + 1, dtype=torch.float64))


def _check(width: int, base: float) -> None:
    needs = "the embedding has pairs of columns, so give an even number"
    if whole("width", width, 2, WIDEST, needs=needs) % 2:
        raise ValueError(f"width is {width}; {needs}")
    check_base(base)


class SandwichScore(DistanceBias, Extendable):
    """`sandwich_bias`, rounded to float32, and in a float64 model not at all. No parameters."""

    def __init__(self, n_heads: int, width: int, base: float) -> None:
        super().__init__()
        # Plain attributes, not buffers: model.to(bfloat16) must not round them.
        self.width, self.base, self.compression = width, base, _compression(n_heads)
        self.extend(None)
        # Holds nothing, and has the dtype of the model: there is no parameter that would tell it.
        self.register_buffer("cast", torch.empty(0), persistent=False)

    def extend(self, extension: ContextExtension | None) -> None:
        self.extension = extension
        own = {"dim": self.width, "base": self.base, "extension": extension}
        self.frequencies, self.attention_factor = stretched(_frequencies(self.width, self.base), **own)
        self.waves = self.frequencies.tolist()  # numbers, which a compiler takes for constants

    def of_distance(self, relative: Tensor) -> Tensor:
        waves = _sum_of_waves(relative.abs(), self.waves)
        wide = torch.promote_types(self.cast.dtype, torch.float32)
        return (self.compression.to(relative.device)[:, None] * waves).to(wide)


@dataclass(frozen=True)
class Sandwich(Encoding):
    """Fixed sums of cosines of the distance, one compression per head.

    Args:
        width: D', even, of the embedding whose inner product it is; not the width of a head.
        base: of its frequencies, above 1.
    """

    name = "sandwich"
    order = 10
    sites = frozenset({Site.SCORE})

    width: int = 128
    base: float = 10_000.0

    def __post_init__(self) -> None:
        _check(self.width, self.base)

    def at_score(self, heads: Heads) -> ScoreModule:
        return SandwichScore(heads.count, self.width, self.base)
