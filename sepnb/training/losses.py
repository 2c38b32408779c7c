"""What a step may minimise beside the loss of the tokens: the description that a config holds."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn

from .positions import PositionSampler
from .shifts import GridShiftSteps


def bound(
    loss: Callable[[nn.Module], Tensor],
    seed: int,
    start: int,
    reads: Callable[[int, np.ndarray | None], None] | None = None,
) -> Callable[[nn.Module], Tensor]:
    """The loss with the seed and the step from which it draws, which `train` holds against its own, and with
    what refuses a step at positions that the loss does not expect: `train` asks it before every step."""
    loss.seed, loss.start, loss.reads = seed, start, reads
    return loss


@dataclass(frozen=True)
class AuxiliaryLoss(ABC):
    """A frozen description of what a step minimises beside the loss of the tokens."""

    name: ClassVar[str]

    @abstractmethod
    def bind(self, seed: int, start: int = 0) -> Callable[[nn.Module], Tensor]:
        """The loss itself, weighted, a function of the model; called once in every step.

        Args:
            seed: of what it draws.
            start: steps that were taken before: what they drew is drawn again and dropped, so that a training
                which is resumed goes on as one that was not interrupted. `bound` notes both.
        """

    def check(  # noqa: B027 (most refuse nothing)
        self, positions: PositionSampler | GridShiftSteps | None, length: int
    ) -> None:
        """Refuse a training with which this loss would be wrong: none, unless a subclass does.

        Args:
            positions: of the training; None reads those from 0 on.
            length: of its sequences, 1 where it reads none.

        Raises:
            ValueError: the two do not fit together.
        """

    def trained_indices(self, length: int) -> int:
        """Positions that can occur in this loss lie below this; 0 where it reads none of its own."""
        return 0

    def trained_distances(self, length: int) -> int:
        """Distances that can occur in this loss lie below this; 0 where it reads none of its own."""
        return 0

    def resolved(self) -> dict[str, Any]:
        """Every setting in plain JSON types."""
        return {"name": self.name, **asdict(self)}
