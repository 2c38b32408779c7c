"""Equation (6) of the slides: the last row, fading with the logarithm of the distance from the window.

What is printed: p_i = p_min(i, L-1) / (1 + log(1 + max(0, i - L + 1))), the logarithm taken as the natural
one. The fading is a cliff: the first unseen row has 0.59 of the length of the last seen one. And it is not
ALiBi (Press et al. 2022), which biases the score of a pair by its distance: here all unseen positions share
one direction and differ by length alone, which a norm removes. Read through a norm, it is a clamp.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..validation import number
from .base import Extrapolator, Rule, working_dtype


def fading(positions: Tensor, length: int, tau: float | int = 1.0) -> Float[Tensor, "..."]:
    """1 / (1 + ln(1 + max(0, i - L + 1) / tau)) in float64: 1 up to i = L-1."""
    past = (positions - (length - 1)).clamp(min=0).to(torch.float64)
    return 1 / (1 + torch.log1p(past / tau))


@dataclass(frozen=True)
class Alibi(Extrapolator):
    """Equation (6). The literal form leaves the window alone already; corrected measures the distance in
    `tau` positions: 1 is the printed formula; about L removes the cliff."""

    name = "alibi"

    tau: float | int = 1.0

    def __post_init__(self) -> None:
        number("tau", self.tau, above=0, needs="it must be a number above 0")

    def corrected(self, table: Tensor) -> Rule:
        rows, length = table.to(working_dtype(table)), len(table)

        def rule(positions: Tensor) -> Tensor:
            factor = fading(positions, length, self.tau).to(rows.dtype)
            return rows.index_select(0, positions.clamp(max=length - 1)).mul_(factor[:, None])

        return rule

    def literal(self, table: Tensor) -> Rule:
        if self.tau != 1:
            raise ValueError("tau is no part of the printed (6); use form='corrected'")
        return self.corrected(table)
