"""The bias of T5 (Raffel et al. 2020, section 2.1): one learned number per head and bucket of distances.

T5 itself leaves out the factor d^-1/2 of the products; here it stays unless `scale=1` is asked for, so that
the bias is the one difference to a model without it.
"""

from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..validation import FARTHEST, flag, floats, integers, movable, number, whole
from .base import Encoding, Heads, Place, QueryKeyModule, ScoreModule, Site
from .relative import DistanceBias, check_pairs, relative_positions

MOST_BUCKETS = 2**10


@cache
def _edges(n_buckets: int, max_distance: int) -> tuple[int, ...]:
    """The smallest distance of every bucket but the first, of one direction.

    Bucket `exact + s` begins where n / exact >= (max_distance / exact)^(s / K), K buckets being logarithmic.
    Compared as integers, n^K >= exact^(K - s) max_distance^s: no logarithm is rounded.
    """
    exact = n_buckets // 2
    logarithmic = n_buckets - exact
    edges = list(range(1, exact + 1))
    for step in range(1, logarithmic):
        bound = exact ** (logarithmic - step) * max_distance**step
        n = int(exact * (max_distance / exact) ** (step / logarithmic))  # the loops below correct rounding
        while n**logarithmic < bound:
            n += 1
        while (n - 1) ** logarithmic >= bound:
            n -= 1
        edges.append(n)
    return tuple(edges)


def t5_buckets(
    relative: Int[Tensor, "*shape"],
    *,
    n_buckets: int = 32,
    max_distance: int = 128,
    bidirectional: bool = False,
) -> Int[Tensor, "*shape"]:
    """The bucket of every relative position, key minus query.

    With n the distance into the past, buckets 0 to n_buckets/2 - 1 hold one distance each; from there on
    n is in bucket exact + floor(ln(n/exact) / ln(max_distance/exact) * (n_buckets - exact)), or the last.

    Args:
        relative: integers of any shape.
        n_buckets: 2 to 1,024; bidirectional an even number of at least 4.
        max_distance: from here on all is one bucket; above n_buckets/2, bidirectional above n_buckets/4, and
            at most 2^40.
        bidirectional: the second half of the buckets is for keys after the query; otherwise these share
            bucket 0 with the query itself.
    """
    integers("relative", relative)
    flag("bidirectional", bidirectional)
    least, needs = (4, "give an even number of at least 4") if bidirectional else (2, "give at least 2")
    whole("n_buckets", n_buckets, least, MOST_BUCKETS, needs=needs)
    if bidirectional and n_buckets % 2:
        raise ValueError(f"n_buckets is {n_buckets}; {needs}")
    half = n_buckets // 2 if bidirectional else n_buckets
    needs = f"the first {half // 2} distances have a bucket each, so give at least {half // 2 + 1}"
    whole("max_distance", max_distance, half // 2 + 1, FARTHEST, needs=needs)
    # As int64 and no farther than the last bucket: what is subtracted or negated then never overflows.
    near = relative.long().clamp(-max_distance, max_distance)
    return _between(_edges(half, max_distance), near, bidirectional)


def _between(
    edges: tuple[int, ...], relative: Int[Tensor, "*shape"], bidirectional: bool
) -> Int[Tensor, "*shape"]:
    distance = relative.abs() if bidirectional else (-relative).clamp(min=0)
    bucket = torch.bucketize(distance, torch.tensor(edges, device=relative.device), right=True)
    return bucket + (len(edges) + 1) * (relative > 0) if bidirectional else bucket


def t5_bias(
    table: Float[Tensor, "buckets H"],
    query_positions: Int[Tensor, "*queries N"],
    key_positions: Int[Tensor, "*keys M"],
    *,
    max_distance: int = 128,
    bidirectional: bool = False,
) -> Float[Tensor, "*pairs H N M"]:
    """`table[bucket(j - i), h]` of every pair and head."""
    floats(table=(table, "buckets H"))
    check_pairs(query_positions, key_positions)
    movable("table", table, key_positions.device)
    relative = relative_positions(query_positions, key_positions)
    settings = {"max_distance": max_distance, "bidirectional": bidirectional}
    return table[t5_buckets(relative, n_buckets=len(table), **settings)].movedim(-1, -3)


class T5Score(DistanceBias):
    """`t5_bias` with its table `[n_buckets, H]`, drawn from N(0, std^2)."""

    def __init__(self, n_heads: int, encoding: "T5") -> None:
        super().__init__()
        self.bidirectional, self.edges = encoding.bidirectional, encoding.edges
        self.table = nn.Parameter(encoding.std * torch.randn(encoding.n_buckets, n_heads))

    def of_distance(self, relative: Tensor) -> Tensor:
        return self.table.T[:, _between(self.edges, relative, self.bidirectional)]


class ScaledQueries(QueryKeyModule):
    """Queries times a fixed number, keys as they are: another factor of their products than d^-1/2."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def prepare(
        self, query_positions: Tensor, key_positions: Tensor, length: int | None = None
    ) -> tuple[float | None, float | None]:
        return self.factor, None

    def forward(self, x: Tensor, prepared: float | None, place: Place | None = None) -> Tensor:
        return x if prepared is None else x * prepared


@dataclass(frozen=True)
class T5(Encoding):
    """A learned bias for every bucket of distances.

    Args:
        n_buckets, max_distance, bidirectional: as in `t5_buckets`. With one direction all later keys are
            alike to a model without a mask.
        std: of the table when it is drawn (our choice: the paper does not say).
        per_layer: a table of its own for every layer; T5 has one for all.
        scale: of the products q k^T, to which the bias is added; None is d^-1/2, and T5 itself has 1. The
            weights of queries must then be drawn smaller, as T5 does, for logits of the same size.
    """

    name = "t5"
    order = 8
    sites = frozenset({Site.SCORE})

    n_buckets: int = 32
    max_distance: int = 128
    bidirectional: bool = False
    std: float = 0.02
    per_layer: bool = False
    scale: float | None = None

    def __post_init__(self) -> None:
        settings = {"max_distance": self.max_distance, "bidirectional": self.bidirectional}
        t5_buckets(torch.zeros(1, dtype=torch.int64), n_buckets=self.n_buckets, **settings)
        number("std", self.std, least=0)
        if self.scale is not None:
            needs = "give a number above 0 (T5 has 1), or None for d^-1/2"
            number("scale", self.scale, above=0, needs=needs)

    @property
    def edges(self) -> tuple[int, ...]:
        return _edges(self.n_buckets // 2 if self.bidirectional else self.n_buckets, self.max_distance)

    @property
    def saturates_at(self) -> int | float:
        """Where the last bucket of the past begins."""
        return self.edges[-1]

    def at_query_key(self, heads: Heads) -> QueryKeyModule | None:
        return None if self.scale is None else ScaledQueries(self.scale * heads.width**0.5)

    def at_score(self, heads: Heads) -> ScoreModule:
        return T5Score(heads.count, self)
