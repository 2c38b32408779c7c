"""How a model is trained: everything that a record tells of it, checked once."""

from dataclasses import dataclass
from math import cos, pi
from typing import Any

from .. import validation
from ..records.settings import without_defaults
from .batch import Batch
from .losses import AuxiliaryLoss, BoundLoss
from .positions import PositionSampler
from .shifts import GridShiftSteps

PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class TrainingConfig:
    """How a model is trained: AdamW, linear warm-up, cosine to a tenth.

    Args:
        steps, batch_size: optimiser steps of the whole schedule, and sequences in each.
        length: tokens predicted per sequence, the trained length L.
        learning_rate, warmup: its highest value, and the share of the steps in which it rises.
        weight_decay: acts on the weights of linear maps, a tied embedding among them; not on tables, gains
            and biases.
        betas, clip: AdamW's averages; the largest norm of the gradient.
        precision: "float32", or "bfloat16" for the forward pass under autocast.
        compiler: a backend of torch.compile, or None for eager; see `CompiledSteps.forward`.
        positions: what yields the batches, if tokens are not read at the positions from 0 on; of other
            inputs, what yields the places of each step.
        auxiliary: what is minimised beside the loss of the tokens, if anything.

    Raises:
        TypeError, ValueError: a value of another type or outside its range.
    """

    steps: int
    batch_size: int
    length: int
    learning_rate: float
    warmup: float = 0.1
    weight_decay: float = 0.1
    betas: tuple[float, float] = (0.9, 0.95)
    clip: float = 1.0
    precision: str = "float32"
    compiler: str | None = None
    positions: PositionSampler | GridShiftSteps | None = None
    auxiliary: AuxiliaryLoss | None = None

    def __post_init__(self) -> None:
        validation.at_least(1, steps=self.steps, batch_size=self.batch_size, length=self.length)
        for field in ("learning_rate", "clip"):
            validation.number(field, getattr(self, field), above=0)
        validation.number("warmup", self.warmup, 0, 1)
        validation.number("weight_decay", self.weight_decay, 0)
        for beta in validation.instance("betas", self.betas, tuple, "(0.9, 0.95)"):
            validation.number("a beta", beta)
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas are {self.betas}; give two, both at least 0 and below 1")
        validation.one_of("precision", self.precision, PRECISIONS)
        validation.option("compiler", self.compiler, str | None)
        validation.option("positions", self.positions, PositionSampler | GridShiftSteps | None)
        validation.option("auxiliary", self.auxiliary, AuxiliaryLoss | None)
        if self.auxiliary is not None:
            self.auxiliary.check(self.positions, self.length)

    def resolved(self) -> dict[str, Any]:
        """Every field in plain JSON types, for a record; the last two where there is something."""
        given = without_defaults(vars(self), positions=None, auxiliary=None)
        parts = {name: given[name].resolved() for name in ("positions", "auxiliary") if name in given}
        return {**given, "betas": list(self.betas), **parts}

    def check(self, batch: Batch) -> None:
        """Refuse a batch that a record of this config would not tell: another number of tokens, or positions
        that it does not draw. Texts with weights may be shorter than `length` if there are as many more of
        them, and inputs that are no tokens may bring places of their own."""
        rows, of_texts = self.batch_size, batch.of_texts
        shape = (rows, self.length) if of_texts else (rows,)
        if of_texts and batch.weights is not None:
            length = max(1, min(self.length, batch.targets.shape[1]))
            shape = (rows * self.length // length, length)
        if batch.targets.shape != shape:
            raise ValueError(
                f"targets have the shape {batch.targets.shape}, and the config says {shape}; set batch_size "
                f"and length to what is read, since a record tells the config"
            )
        if batch.positions is None and self.positions is not None:
            raise ValueError(
                f"a batch has no positions, and the config draws them by {self.positions!r}; give each step "
                f"those of its positions(), or leave TrainingConfig.positions out"
            )
        if of_texts and batch.positions is not None and self.positions is None:
            raise ValueError(
                "a batch has positions and the config draws none, so that no record would name them; set "
                "TrainingConfig.positions, or leave the positions out"
            )

    def bound_auxiliary(self, seed: int, start: int = 0) -> BoundLoss | None:
        """The auxiliary loss, if any, of a run of this seed after `start` steps, as `train` takes it."""
        return None if self.auxiliary is None else self.auxiliary.bind(seed, start)

    @property
    def targets(self) -> int:
        """Tokens predicted in all steps together."""
        return self.steps * self.batch_size * self.length

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        warm = self.warmup * self.steps
        if step < warm:
            return self.learning_rate * (step + 1) / (warm + 1)
        done = (step - warm) / max(1, self.steps - warm)
        return self.learning_rate * (0.55 + 0.45 * cos(pi * done))
