"""What a step minimises: the loss of its targets, and what a config may add to it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..validation import shown, within
from .positions import PositionSampler
from .shifts import GridShiftSteps


def next_token_losses(model: Callable, batch: Tensor, positions: Tensor | None = None) -> Tensor:
    """Nats per predicted token, `[B, L]`, for tokens `[B, L+1]` at int positions `[L]` (0 to L-1)."""
    return target_losses(model, batch[:, :-1], batch[:, 1:], positions)


def target_losses(
    model: Callable, tokens: Tensor, targets: Tensor, positions: Tensor | None = None
) -> Tensor:
    """Nats per target, `[B, L]`, for tokens and targets `[B, L]` at int positions `[L]` or `[B, L]`; `[B]` of
    a model that gives each input one answer, with targets `[B]`. In float32 or wider: bfloat16 would round
    differences away, and float32 what a float64 model computes."""
    logits = model(tokens) if positions is None else model(tokens, positions)
    within("targets", targets, 0, logits.shape[-1] - 1, "the answers that the model knows", wait=False)
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32)).flatten(0, -2)
    return F.cross_entropy(wide, targets.flatten(), reduction="none").unflatten(0, targets.shape)


def mean(each: Tensor, weights: Tensor | None) -> Tensor:
    """The loss of a step: the mean of its targets, under their weights where they have some."""
    return each.mean() if weights is None else (each * weights).sum() / weights.sum(dtype=each.dtype)


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
        """All positions in this loss are smaller than this; 0 if it draws none of its own."""
        return 0

    def resolved(self) -> dict[str, Any]:
        """Every setting in plain JSON types."""
        return {"name": self.name, **asdict(self)}


def check_bound(config: AuxiliaryLoss | None, bound: BoundLoss | None, start: int, seed: int | None) -> None:
    """Refuse another auxiliary loss than the config's, or one that is bound to another start or seed."""
    if bound is None:
        if config is not None:
            raise ValueError(f"give auxiliary=, the bound loss of the config's {config!r}")
        return
    if config is None:
        raise ValueError(
            f"auxiliary={shown(bound)} is given and the config names none, so that no record would; set "
            f"TrainingConfig.auxiliary, or leave it out"
        )
    if bound.start != start:
        raise ValueError(
            f"start is {start}, and an auxiliary loss draws from step {bound.start} on, so that what was "
            f"left is not resumed; bind it with start={start}"
        )
    if start and bound.seed != seed:
        raise ValueError(
            f"seed is {seed}, and an auxiliary loss draws by seed {bound.seed}; give both that of the run "
            f"which is resumed"
        )
