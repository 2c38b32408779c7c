"""Equation (4) of the slides: the window repeated, with a linear shift.

What is printed: p_i = p_(i mod L) + floor(i/L) delta, delta the mean of p_j - p_(j-1). The sum telescopes to
delta = (p_(L-1) - p_0) / (L-1): a drift per step, added once per period. Nothing moves, and it is `wrap`.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from .base import Extrapolator, Rule, working_dtype


def drift(table: Float[Tensor, "L d_pos"]) -> Float[Tensor, " d_pos"]:
    """delta, the mean step of the table, in float64."""
    ends = table[[0, -1]].to(torch.float64)
    return (ends[1] - ends[0]) / (len(table) - 1)


@dataclass(frozen=True)
class Cyclic(Extrapolator):
    """Equation (4). Corrected: floor(i/L) L delta, the linear continuation.

    Then p_L - p_(L-1) = delta, p_(i+L) - p_i = L delta, and a linear table is continued exactly. What is
    added grows without bound, and after a norm its direction takes over.
    """

    name = "cyclic"

    def corrected(self, table: Tensor) -> Rule:
        return _repeat(table, len(table) * drift(table))

    def literal(self, table: Tensor) -> Rule:
        return _repeat(table, drift(table))


def _repeat(table: Tensor, shift: Tensor) -> Rule:
    """The window repeated, each time with `shift` `[d_pos]` more."""
    rows, shift, length = table.to(working_dtype(table)), shift.to(working_dtype(table)), len(table)

    def rule(positions: Tensor) -> Tensor:
        period = positions // length
        rest = positions - period * length
        return rows.index_select(0, rest).addcmul_(period.to(rows.dtype)[:, None], shift)

    return rule
