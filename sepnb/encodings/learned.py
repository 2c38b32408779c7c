"""Learned absolute positions: one trained row per position, at the input or where queries and keys are made.

Gehring et al. 2017; Devlin et al. 2019.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from .base import Encoding, InputModule, Site

SITES = ("input", "query_key")


class LearnedInput(InputModule):
    """A table `[max_length, width]`; row i is the code of position i. There is no row `max_length`."""

    def __init__(self, width: int, max_length: int, std: float) -> None:
        super().__init__()
        if max_length < 1:
            raise ValueError(f"max_length is {max_length}; a learned table needs at least 1 row")
        self.limit = max_length
        self.table = nn.Parameter(std * torch.randn(max_length, width))

    def forward(self, positions: Tensor) -> Tensor:
        return nn.functional.embedding(positions, self.table)


@dataclass(frozen=True)
class Learned(Encoding):
    """A trained table, rows drawn from N(0, std^2).

    Args:
        std: of the first rows.
        per_layer: every layer has a table of its own, added to what enters it; else there is one, at the
            input.
        site: "input"; or "query_key": one table, added to the normalised sem stream of every layer where it
            makes queries and keys, W_Q (x_i + P_i) and W_K (x_j + P_j), so that values hold no position.
    """

    name: ClassVar[str] = "learned"
    reads_index: ClassVar[bool] = True

    std: float = 0.02
    per_layer: bool = False
    site: str = "input"

    def __post_init__(self) -> None:
        if self.site not in SITES:
            raise ValueError(f"unknown site {self.site!r}; use one of {', '.join(SITES)}")
        if self.per_layer and self.site != "input":
            raise ValueError(f"per_layer is for tables at the input, and site is {self.site!r}; give one")

    @property
    def sites(self) -> frozenset[Site]:
        """Where the table acts."""
        return frozenset({Site.INPUT if self.site == "input" else Site.QUERY_KEY})

    @property
    def saturates_at(self) -> int | float:
        """0: a table holds no differences."""
        return 0

    def at_input(self, width: int, max_length: int) -> InputModule | None:
        return LearnedInput(width, max_length, self.std) if self.site == "input" else None

    def at_projection(self, width: int, max_length: int) -> InputModule | None:
        return LearnedInput(width, max_length, self.std) if self.site == "query_key" else None

    def resolved(self) -> dict[str, Any]:
        """Of the options after `std` those that are used: a record made before them keeps its key."""
        unused = {"per_layer": False, "site": "input"}
        given = super().resolved().items()
        return {key: value for key, value in given if key not in unused or value != unused[key]}
