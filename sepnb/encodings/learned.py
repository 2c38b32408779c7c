"""Learned absolute positions: one trained row per position, at the input.

Gehring et al. 2017; Devlin et al. 2019.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from .base import Encoding, InputModule, Site


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
    """A trained table at the input, rows drawn from N(0, std^2)."""

    name: ClassVar[str] = "learned"
    sites: ClassVar[frozenset[Site]] = frozenset({Site.INPUT})

    std: float = 0.02

    def at_input(self, width: int, max_length: int) -> InputModule:
        return LearnedInput(width, max_length, self.std)
