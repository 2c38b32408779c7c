"""The relative score of Transformer-XL (Dai et al. 2019, section 3.3).

    S_ij = [(q_i + u) . k_j + (q_i + v) . (W_r R_{i-j})] / sqrt(d)

(q_i + u) . k_j is content with content and a bias of the key's content; (q_i + v) . W_r R is content with
distance and a bias of the distance. R_t holds the sines and then the cosines of t w_m, w_m = 10000^(-2m/D),
and W_r maps it to one vector per head. The paper's memory of segments is a cache with `room`.

Shape letters: B batch, H heads, N query length, M key length, d head width, D width of R, e columns.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from ..validation import floats, number
from .base import Encoding, Extendable, Heads, PairModule, Site, check_base
from .context import ContextExtension, stretched
from .relative import check_last, from_distances
from .rope import angles_of


def transformer_xl_scores(
    q: Float[Tensor, "B H N d"],
    k: Float[Tensor, "B H M d"],
    r: Float[Tensor, "H M d"],
    u: Float[Tensor, "H d"],
    v: Float[Tensor, "H d"],
) -> Float[Tensor, "B H N M"]:
    """Scaled scores of queries that are the last N of the M positions.

    Row t of r is W_r R_t, for the distances 0 to M - 1. (The authors' release stores them descending.) Above
    the diagonal of the result, where a key comes after the query, it has no meaning: mask it.
    """
    floats(q=(q, "B H N d+"), k=(k, "B H M d+"), r=(r, "H M d+"), u=(u, "H d+"), v=(v, "H d+"))
    n, m = q.shape[-2], k.shape[-2]
    check_last(n, m)
    content = (q + u[:, None]) @ k.transpose(-1, -2)
    by_distance = (q + v[:, None]) @ r.transpose(-1, -2)  # column t is distance t
    keys = torch.arange(m, device=q.device)
    distance = (keys[m - n :, None] - keys).clamp(min=0)
    return (content + by_distance.gather(-1, distance.expand_as(by_distance))) * q.shape[-1] ** -0.5


class Waves(NamedTuple):
    """In float64, R `[M, D]` of the distances M - 1 to 0, or sines and cosines `[*B, N, D/2]` of all queries
    and keys."""

    distances: Tensor | None
    queries: tuple[Tensor, Tensor] | None
    keys: tuple[Tensor, Tensor] | None


class TransformerXLScore(PairModule, Extendable):
    """`transformer_xl_scores` of one layer at any positions.

    At consecutive ones, and where later keys are hidden, by one product with M distances, read along shifted
    rows. At others by angles: sin((i - j) w) and cos((i - j) w) are sums of products of waves of i and waves
    of j, so that A . R_{i-j}, A = (q_i + v) W_r, is a product of D columns of the query and of the key.
    """

    def __init__(self, heads: Heads, encoding: "TransformerXL") -> None:
        super().__init__()
        self.n_heads, self.head_width, self.width = heads.count, heads.width, heads.model_width
        self.causal, self.base = heads.causal, encoding.base
        self.extend(None)
        self.u = nn.Parameter(encoding.std * torch.randn(heads.count, heads.width))
        self.v = nn.Parameter(encoding.std * torch.randn(heads.count, heads.width))
        self.distances = nn.Linear(self.width, heads.count * heads.width, bias=False)

    def extend(self, extension: ContextExtension | None) -> None:
        self.extension = extension
        plain = self.base ** -(torch.arange(0, self.width, 2, dtype=torch.float64) / self.width)
        # A plain attribute, not a buffer: model.to(bfloat16) must not round the frequencies.
        self.frequencies, self.attention_factor = stretched(
            plain, dim=self.width, base=self.base, extension=extension
        )

    def prepare(self, query_positions: Tensor, key_positions: Tensor, consecutive: bool = False) -> Waves:
        if consecutive and self.causal:
            m = key_positions.shape[-1]
            return Waves(self.sinusoids(torch.arange(m - 1, -1, -1, device=key_positions.device)), None, None)
        return Waves(None, self._waves(query_positions), self._waves(key_positions))

    def sinusoids(self, distances: Tensor) -> Tensor:
        """R of distances `[T]`, `[T, D]` in float64."""
        sin, cos = self._waves(distances)
        return torch.cat([sin, cos[..., : self.width // 2]], dim=-1)

    def _waves(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        angles = angles_of(positions, self.frequencies)
        if positions.dim() == 2:  # one row of positions per sequence: make room for the heads
            angles = angles[:, None]
        return angles.sin(), angles.cos()

    def forward(self, q: Tensor, k: Tensor, prepared: Waves, heads: slice) -> Tensor:
        scale, more = self.head_width**-0.5, q.shape[-1] - self.head_width
        u, v = self.u[heads, None], self.v[heads, None]
        content = ((q + F.pad(u, (0, more))) * scale) @ k.transpose(-1, -2)
        asked = (q[..., : self.head_width] + v) * scale
        maps = self.distances.weight.unflatten(0, (self.n_heads, -1))[heads]  # [H, d, D]
        if prepared.distances is not None:
            r = prepared.distances.to(maps.dtype) @ maps.transpose(-1, -2)  # [H, M, d]
            return content + from_distances(asked @ r.transpose(-1, -2))
        return content + self._by_angles(asked @ maps, prepared)

    def _by_angles(self, coefficients: Tensor, prepared: Waves) -> Tensor:
        """Coefficients `[B, H, N, D]` of the sines and cosines of R to their sum for every pair."""
        of_sin, of_cos = coefficients.split([len(self.frequencies), self.width // 2], dim=-1)
        of_cos = F.pad(of_cos, (0, self.width % 2))  # an odd width has one sine more
        (sin_i, cos_i), (sin_j, cos_j) = (
            tuple(x.to(coefficients.dtype) for x in waves) for waves in (prepared.queries, prepared.keys)
        )
        columns = [of_sin * sin_i + of_cos * cos_i, of_cos * sin_i - of_sin * cos_i]
        return torch.cat(columns, dim=-1) @ torch.cat([cos_j, sin_j], dim=-1).transpose(-1, -2)


@dataclass(frozen=True)
class TransformerXL(Encoding):
    """Scores of content and distance through projected sinusoids, with two learned biases in every layer. (By
    default all layers of the authors' release share one u and one v.)

    Args:
        base: of the sinusoids, above 1.
        std: of u and v when they are drawn; 0.02 as in the release.
    """

    name = "transformer-xl"
    order = 13
    sites = frozenset({Site.SCORE})
    per_layer = True

    base: float = 10_000.0
    std: float = 0.02

    def __post_init__(self) -> None:
        check_base(self.base)
        number("std", self.std, least=0)

    def at_score(self, heads: Heads) -> PairModule:
        return TransformerXLScore(heads, self)

    def code(self, width: int, length: int) -> tuple[str, Callable[[Tensor], Tensor]]:
        module = self.at_score(Heads(width=width, model_width=width))
        maps = module.distances.weight.T.to(torch.float64)
        return "distance: its waves, projected for keys", lambda at: module.sinusoids(at) @ maps
