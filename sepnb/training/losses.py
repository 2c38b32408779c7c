"""What a step may minimise beside the loss of the tokens: the description that a config holds."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn

from .positions import PositionSampler
from .shifts import GridShiftSteps


@dataclass(frozen=True)
class BoundLoss:
    """An auxiliary loss of one run, which draws what it needs in the order of the steps.

    Args:
        value: the weighted loss as a function of the model, called once in every step.
        seed, start: the seed and the step from which it draws; `train` holds them against its own.
        refuse: called before every step with its number and its positions; raises ValueError for positions
            that the loss does not expect. None refuses nothing.
    """

    value: Callable[[nn.Module], Tensor]
    seed: int
    start: int = 0
    refuse: Callable[[int, np.ndarray | None], None] | None = None

    def __call__(self, model: nn.Module) -> Tensor:
        return self.value(model)

    def check(self, step: int, positions: np.ndarray | None) -> None:
        """Refuse a step at positions that the loss does not expect.

        Raises:
            ValueError: the batches draw other positions than the loss; the message says by which seed.
        """
        if self.refuse is not None:
            self.refuse(step, positions)


@dataclass(frozen=True)
class AuxiliaryLoss(ABC):
    """A frozen description of what a step minimises beside the loss of the tokens."""

    name: ClassVar[str]

    @abstractmethod
    def bind(self, seed: int, start: int = 0) -> BoundLoss:
        """The loss itself, weighted, a function of the model; called once in every step.

        Args:
            seed: of what it draws.
            start: steps that were taken before: what they drew is drawn again and dropped, so that a training
                which is resumed goes on as one that was not interrupted.
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
