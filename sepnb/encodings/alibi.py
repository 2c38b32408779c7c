"""Attention with linear biases (ALiBi; Press et al. 2022): scores fall in proportion to the distance."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..validation import WIDEST, floating, floating_dtype, movable, shaped, whole
from .base import Encoding, Heads, ScoreModule, Site
from .relative import check_pairs, relative_positions


def alibi_slopes(n_heads: int, *, dtype: torch.dtype = torch.float32) -> Float[Tensor, " H"]:
    """The slopes of Press et al., `[H]`: 2^(-8h/H), h = 1..H, when H is a power of two.

    For any other H up to `WIDEST`: the slopes of the largest power of two P below it, then every second slope
    of the list for 2P, from its first, until H are had; the order of the heads is then not monotone. They are
    computed in float64 and given in `dtype`, which is that of `alibi_bias` too.
    """
    whole("n_heads", n_heads, 1, WIDEST, needs="ALiBi needs at least 1 head")
    floating_dtype("dtype", dtype)
    power = 2 ** (n_heads.bit_length() - 1)

    def slopes(count: int) -> Tensor:
        return 2.0 ** (-8.0 * torch.arange(1, count + 1, dtype=torch.float64) / count)

    return torch.cat([slopes(power), slopes(2 * power)[0::2][: n_heads - power]]).to(dtype)


def alibi_bias(
    slopes: Float[Tensor, " H"], query_positions: Tensor, key_positions: Tensor
) -> Float[Tensor, "*B H N M"]:
    """`-slope * |i - j|`: positions `[N]` and `[M]` to `[H, N, M]` (`[B, N]` and `[B, M]` to `[B, H, N, M]`).

    The symmetric form: it equals the causal one wherever a causal query may look, and is the one that also
    makes sense without a mask. It is added after scaling. The distance is taken in the integers, and the bias
    has the dtype of the slopes.
    """
    shaped({}, "slopes", floating("slopes", slopes), "H")
    check_pairs(query_positions, key_positions)
    movable("slopes", slopes, key_positions.device)
    return _bias(slopes, query_positions, key_positions)


def _bias(slopes: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
    distance = relative_positions(query_positions, key_positions).abs()
    return -slopes.to(distance.device)[:, None, None] * distance[..., None, :, :]


class AlibiScore(ScoreModule):
    """`alibi_bias` with fixed slopes, in float32, and in float64 where the model is in that; attention rounds
    the sum with the mask to its own dtype, and bfloat16 keeps distances apart up to 256 only."""

    toeplitz = True

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        # A plain attribute, not a buffer: model.to(bfloat16) must not round the slopes.
        self.slopes = alibi_slopes(n_heads, dtype=torch.float64)
        # Holds nothing, and has the dtype of the model: there is no parameter that would tell it.
        self.register_buffer("cast", torch.empty(0), persistent=False)

    def forward(self, query_positions: Tensor, key_positions: Tensor, consecutive: bool = False) -> Tensor:
        wide = torch.promote_types(self.cast.dtype, torch.float32)
        return _bias(self.slopes.to(wide), query_positions, key_positions)


@dataclass(frozen=True)
class ALiBi(Encoding):
    """Fixed linear penalties on the scores, one slope per head."""

    name = "alibi"
    order = 5
    sites = frozenset({Site.SCORE})

    def at_score(self, heads: Heads) -> ScoreModule:
        return AlibiScore(heads.count)
