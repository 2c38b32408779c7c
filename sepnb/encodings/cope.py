"""Contextual position encoding (CoPE; Golovneva et al. 2024): positions are counted by what the keys say.

    g_ij = sigmoid(q_i . k_j)
    p_ij = sum of g_it over the keys t = j .. i, at most P - 1
    S_ij = q_i . k_j / sqrt(d) + q_i . e[p_ij]

with e[p] interpolated linearly between the rows of a table `[P, d]`. The sum includes the gates of key j and
of token i itself. CoPE counts tokens and ignores their positions, so it would not notice gaps: a model
refuses them and takes consecutive positions from any start. Each query needs its whole row of gates, and
counting makes sense towards the past only: causal models.

Shape letters: B batch, H heads, N query length, M key length, d head width, P rows of the table.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..validation import WIDEST, floats, one_of, whole
from .base import Encoding, Heads, PairModule, Site
from .relative import check_last

GATES = ("raw", "scaled")


def cope_positions(logits: Float[Tensor, "B H N M"], n_positions: int) -> Float[Tensor, "B H N M"]:
    """p_ij of the logits of the gates, in float32 or wider; the queries are the last N of the M keys. Gates
    of keys after the query are shut before anything is summed: there p is 0 and means nothing."""
    sizes = floats(logits=(logits, "B H N M"))
    _check(n_positions, "raw")
    check_last(sizes["N"], sizes["M"])
    return _positions(logits, n_positions)


def _positions(logits: Tensor, n_positions: int) -> Tensor:
    n, m = logits.shape[-2:]
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    gates = torch.sigmoid(wide).tril(m - n)
    return gates.flip(-1).cumsum(dim=-1).flip(-1).clamp(max=n_positions - 1)


def cope_scores(
    q: Float[Tensor, "B H N d"],
    k: Float[Tensor, "B H M d"],
    table: Float[Tensor, "P d"],
    *,
    gate: str = "raw",
) -> Float[Tensor, "B H N M"]:
    """Scaled scores and the bias of the counted positions, of queries that are the last N of the M keys.

    The table is e, of at least 2 rows; its products with queries are not scaled. `gate`: "raw" by q . k,
    "scaled" by q . k / sqrt(d).
    """
    sizes = floats(q=(q, "B H N d+"), k=(k, "B H M d"), table=(table, "P d"))
    _check(sizes["P"], gate)
    check_last(sizes["N"], sizes["M"])
    return _scores(q, k, table, gate)


def _scores(q: Tensor, k: Tensor, table: Tensor, gate: str) -> Tensor:
    """The same of queries and keys that may have columns beside those of the head."""
    products, width = q @ k.transpose(-1, -2), table.shape[-1]
    scaled, rows = products * width**-0.5, q[..., :width] @ table.T
    positions = _positions(products if gate == "raw" else scaled, rows.shape[-1])
    below = positions.detach().floor()
    share = (positions - below).to(rows.dtype)
    low = below.long().clamp(0, rows.shape[-1] - 1)  # also of NaN, which stays in the share
    high = (low + 1).clamp(max=rows.shape[-1] - 1)
    return scaled + torch.lerp(rows.gather(-1, low), rows.gather(-1, high), share)


def _check(n_positions: int, gate: str) -> None:
    whole("n_positions", n_positions, 2, WIDEST, needs="counting needs at least 2, a nearest and a next")
    one_of("gate", gate, GATES)


class CopeScore(PairModule):
    """`cope_scores` of one layer. One table for all heads, 0 at the start (our choice: the paper was not read
    on it)."""

    def __init__(self, head_width: int, encoding: "Cope") -> None:
        super().__init__()
        self.gate = encoding.gate
        self.table = nn.Parameter(torch.zeros(encoding.n_positions, head_width))

    def prepare(self, query_positions: Tensor, key_positions: Tensor, consecutive: bool = False) -> None:
        return None

    def forward(self, q: Tensor, k: Tensor, prepared: None, heads: slice) -> Tensor:
        return _scores(q, k, self.table, self.gate)


@dataclass(frozen=True)
class Cope(Encoding):
    """Positions counted by gates on the products of queries and keys.

    With a window a query counts the tokens that it does not see too: distances keep their meaning.

    Args:
        n_positions: P, at least 2; whatever is counted beyond P - 1 shares the last row.
        gate: as in `cope_scores`.
    """

    name = "cope"
    order = 15
    sites = frozenset({Site.SCORE})
    causal_only = True
    counts_tokens = True
    per_layer = True

    n_positions: int = 64
    gate: str = "raw"

    def __post_init__(self) -> None:
        _check(self.n_positions, self.gate)

    @property
    def saturates_at(self) -> int | float:
        """The distance if every gate is open; shut gates lower the counts, which then saturate later."""
        return self.n_positions - 2

    def at_score(self, heads: Heads) -> PairModule:
        return CopeScore(heads.width, self)
