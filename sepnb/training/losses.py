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
        seed, start: the seed and the step from which it draws; `train` compares them with its own.
        refuse: called before every step with its number and its positions; raises ValueError for positions
            that the loss does not expect, because it draws by another seed.
    """

    value: Callable[[nn.Module], Tensor]
    seed: int
    start: int = 0
    refuse: Callable[[int, np.ndarray | None], None] = lambda step, positions: None

    def __call__(self, model: nn.Module) -> Tensor:
        return self.value(model)


@dataclass(frozen=True)
class AuxiliaryLoss(ABC):
    """A frozen description of what a step minimises beside the loss of the tokens."""

    name: ClassVar[str]

    @abstractmethod
    def bind(self, seed: int, start: int = 0) -> BoundLoss:
        """The loss itself, for a run of this seed. What `start` steps drew before is drawn again and dropped,
        so that a training which is resumed goes on as one that was not interrupted."""

    def check(  # noqa: B027 (most refuse nothing)
        self, positions: PositionSampler | GridShiftSteps | None, length: int
    ) -> None:
        """Refuse a training with which this loss would be wrong: none, unless a subclass does. Positions None
        are those from 0 on; the length is 1 where no sequence is read."""

    def trained_indices(self, length: int) -> int:
        """Positions that can occur in this loss lie below this; 0 where it reads none of its own."""
        return 0

    def trained_distances(self, length: int) -> int:
        """Distances that can occur in this loss lie below this; 0 where it reads none of its own."""
        return 0

    def resolved(self) -> dict[str, Any]:
        """Every setting in plain JSON types."""
        return {"name": self.name, **asdict(self)}
