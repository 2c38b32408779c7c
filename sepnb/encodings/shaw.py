"""Relative position representations (Shaw et al. 2018): vectors of clipped distances, at keys and values.

    S_ij = q_i . (k_j + aK[c(j - i)]) / sqrt(d)        z_i = sum_j p_ij (v_j + aV[c(j - i)])

with c(r) = clip(r, -k, k) + k: row 0 is of every key at least k back, row k of the query itself. The tables
have one row per clipped distance, so q aK^T has 2k + 1 columns, which are spread over the pairs, and the
weights are summed into 2k + 1 bins before they meet aV. A tensor `[N, M, d]` is never made.

Shape letters: B batch, H heads, N query length, M key length, d head width, e columns of queries and keys.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..validation import WIDEST, floats, number, whole
from .base import Encoding, Heads, PairModule, Site, ValueModule
from .relative import check_last, clipped_relative, from_distances


def shaw_scores(
    q: Float[Tensor, "B H N d"],
    k: Float[Tensor, "B H M d"],
    key_table: Float[Tensor, "rows d"],
    *,
    clip: int,
) -> Float[Tensor, "B H N M"]:
    """Scaled scores; the queries are the last N of the M positions, row `clip(j - i) + clip` of the
    2 clip + 1 in the table is of key j."""
    floats(q=(q, "B H N d+"), k=(k, "B H M d+"), key_table=(key_table, "rows d+"))
    index = _index_of_last(q.shape[-2], k.shape[-2], key_table, clip)
    products = q @ key_table.T  # [B, H, N, 2 clip + 1]
    return (q @ k.transpose(-1, -2) + _spread(products, index)) * q.shape[-1] ** -0.5


def shaw_output(
    weights: Float[Tensor, "B H N M"],
    v: Float[Tensor, "B H M d"],
    value_table: Float[Tensor, "rows d"],
    *,
    clip: int,
) -> Float[Tensor, "B H N d"]:
    """The averages of values and rows of the table; positions and rows as in `shaw_scores`."""
    floats(weights=(weights, "B H N M"), v=(v, "B H M d"), value_table=(value_table, "rows d"))
    index = _index_of_last(weights.shape[-2], v.shape[-2], value_table, clip)
    return weights @ v + _binned(weights, index, 2 * clip + 1) @ value_table


def _index_of_last(n: int, m: int, table: Tensor, clip: int) -> Tensor:
    if len(table) != 2 * whole("clip", clip, 0, WIDEST) + 1:
        raise ValueError(f"clip is {clip} and the table has {len(table)} rows; it needs 2 clip + 1")
    check_last(n, m)
    keys = torch.arange(m, device=table.device)
    return clipped_relative(keys[m - n :], keys, clip)


def _spread(products: Tensor, index: Tensor) -> Tensor:
    """`[B, H, N, 2k + 1]` to `[B, H, N, M]`: for each pair the column of its clipped distance."""
    index = index if index.dim() == 2 else index[:, None]
    return products.gather(-1, index.expand(*products.shape[:-1], -1))


def _binned(weights: Tensor, index: Tensor, rows: int) -> Tensor:
    """`[B, H, N, M]` to `[B, H, N, 2k + 1]`: the sum of the weights of each clipped distance, in float32 or
    wider: in bfloat16 a sum of many small weights stops growing."""
    wide = weights.to(torch.promote_types(weights.dtype, torch.float32))
    index = index if index.dim() == 2 else index[:, None]
    bins = wide.new_zeros(*weights.shape[:-1], rows)
    return bins.scatter_add(-1, index.expand_as(weights), wide).to(weights.dtype)


class ShawScore(PairModule):
    """`shaw_scores` of one layer at any positions. The table is shared by the heads, or each has its own."""

    def __init__(self, heads: Heads, encoding: "Shaw") -> None:
        super().__init__()
        self.head_width, self.clip, self.causal = heads.width, encoding.clip, heads.causal
        self.table = encoding.table(heads)

    def prepare(
        self, query_positions: Tensor, key_positions: Tensor, consecutive: bool = False
    ) -> Tensor | None:
        """The row of the table of each pair, `[N, M]` or `[B, N, M]`; None: no position needs to be read."""
        if consecutive and self.causal:
            return None
        return clipped_relative(query_positions, key_positions, self.clip)

    def forward(self, q: Tensor, k: Tensor, prepared: Tensor | None, heads: slice) -> Tensor:
        table = self.table[heads] if len(self.table) > 1 else self.table
        q = q * self.head_width**-0.5
        own, m = q[..., : self.head_width], k.shape[-2]
        if prepared is not None:
            more = _spread(own @ table.transpose(-1, -2), prepared)
        else:  # columns for distances M - 1 to 0; those past the clip all have row 0 of the table
            products = own @ table[:, : self.clip + 1].transpose(-1, -2)
            missing = m - products.shape[-1]
            if missing > 0:
                products = torch.cat([products[..., :1].expand(*own.shape[:-1], missing), products], dim=-1)
            more = from_distances(products[..., -m:])
        return q @ k.transpose(-1, -2) + more


class ShawValue(ValueModule):
    """What `shaw_output` adds to the averaged values, in one layer and at any positions."""

    def __init__(self, heads: Heads, encoding: "Shaw") -> None:
        super().__init__()
        self.clip, self.table = encoding.clip, encoding.table(heads)

    def prepare(self, query_positions: Tensor, key_positions: Tensor, consecutive: bool = False) -> Tensor:
        return clipped_relative(query_positions, key_positions, self.clip)

    def forward(self, weights: Tensor, prepared: Tensor, heads: slice) -> Tensor:
        table = self.table[heads] if len(self.table) > 1 else self.table
        return _binned(weights, prepared, 2 * self.clip + 1) @ table


@dataclass(frozen=True)
class Shaw(Encoding):
    """Learned vectors of clipped distances, added to keys and to values in every layer.

    In a model of several streams those of the values are added to the position streams only. In a causal
    model the rows of later keys are never used: they are no capacity.

    Args:
        clip: k, at least 0; farther keys share the vectors of those k away.
        values: add vectors to the values too.
        per_head: tables of each head, as in the paper's base model; else, as in its big one, the heads of a
            layer share them.
        std: of the tables when they are drawn (our choice: the paper was not read on it).
    """

    name = "shaw"
    order = 12
    per_layer = True

    clip: int = 16
    values: bool = True
    per_head: bool = False
    std: float = 0.02

    def __post_init__(self) -> None:
        whole("clip", self.clip, 0, WIDEST, needs="give 0 or more")
        number("std", self.std, least=0)

    @property
    def sites(self) -> frozenset[Site]:
        return frozenset({Site.SCORE, Site.VALUE} if self.values else {Site.SCORE})

    @property
    def saturates_at(self) -> int | float:
        return self.clip

    def table(self, heads: Heads) -> nn.Parameter:
        """A vector for each clipped distance, `[1 or H, 2 clip + 1, d]`."""
        tables = heads.count if self.per_head else 1
        return nn.Parameter(self.std * torch.randn(tables, 2 * self.clip + 1, heads.width))

    def at_score(self, heads: Heads) -> PairModule:
        return ShawScore(heads, self)

    def at_value(self, heads: Heads) -> ValueModule | None:
        return ShawValue(heads, self) if self.values else None

    def code(self, width: int, length: int) -> tuple[str, Callable[[Tensor], Tensor]]:
        (rows,), here = self.table(Heads(width=width)), torch.zeros(1, dtype=torch.int64)
        says = "distance: the vector for keys, clipped"
        return says, lambda at: rows[clipped_relative(at, here, self.clip)[:, 0]]
