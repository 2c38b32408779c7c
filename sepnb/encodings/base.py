"""What an encoding is: a frozen description that says at which sites it acts, and builds a module for each.

The description is what a record stores and what two models can share; the modules hold the parameters and
belong to one model. Positions are always arguments, never read off a shape, so that caches, offsets, gaps
and packed documents need no special case.

Shape letters: B batch, H heads, N query length, M key length, d head width. Positions are `[N]`, or `[B, N]`
when the rows of a batch differ.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from torch import Tensor, nn


class Site(StrEnum):
    """A place where position enters a transformer."""

    INPUT = "input"
    QUERY_KEY = "query/key"
    SCORE = "score"
    VALUE = "value"


class InputModule(nn.Module, ABC):
    """Positions `[N]` or `[B, N]` to vectors `[..., N, width]` for the input of the model."""

    limit: int | None = None
    """The first position it cannot encode; None if there is none."""

    @abstractmethod
    def forward(self, positions: Tensor) -> Tensor:
        """The vectors of these positions."""


class QueryKeyModule(nn.Module, ABC):
    """Changes queries and keys. `prepare` runs once per forward pass, `forward` once per layer."""

    @abstractmethod
    def prepare(self, positions: Tensor) -> Any:
        """What `forward` needs of the positions, computed once and shared by all layers."""

    @abstractmethod
    def forward(self, x: Tensor, prepared: Any) -> Tensor:
        """x `[B, H, N, d]` to the same shape."""


class ScoreModule(nn.Module, ABC):
    """A bias on the scaled scores, the same in every layer: positions to `[H, N, M]` or `[B, H, N, M]`."""

    @abstractmethod
    def forward(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """The bias of every pair."""


@dataclass(frozen=True)
class Encoding:
    """Base of all encodings. A subclass sets `name` and `sites` and overrides the builders of its sites."""

    name: ClassVar[str]
    sites: ClassVar[frozenset[Site]] = frozenset()

    def at_input(self, width: int, max_length: int) -> InputModule | None:
        """A module for vectors of this width, for positions below `max_length` if it holds a table."""
        return None

    def at_query_key(self, head_width: int) -> QueryKeyModule | None:
        """A module for heads of this width."""
        return None

    def at_score(self, n_heads: int) -> ScoreModule | None:
        """A module for this many heads."""
        return None
