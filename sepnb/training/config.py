"""How a model is trained: everything that a record tells of it, checked once."""

from dataclasses import dataclass
from math import cos, inf, pi
from typing import Any

from ..data.draws import at_least
from ..records.settings import without_defaults
from .losses import AuxiliaryLoss, BoundLoss
from .positions import PositionSampler
from .segments import Segments
from .shifts import GridShiftSteps

PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class TrainingConfig:
    """How a model is trained: AdamW, linear warm-up, cosine to a tenth.

    Args:
        steps: optimiser steps of the whole schedule.
        batch_size: sequences per step.
        length: tokens predicted per sequence, the trained length L.
        learning_rate: its highest value, after the warm-up.
        warmup: share of the steps in which the learning rate rises.
        weight_decay: acts on the weights of linear maps; not on tables, gains and biases. A tied embedding is
            the weight of the output map, and decays.
        betas, clip: AdamW's averages; the largest norm of the gradient.
        precision: "float32", or "bfloat16" for the forward pass under autocast.
        compiler: a backend of torch.compile, or None for eager; see `loop.forward_of`.
        positions: what yields the batches, if tokens are not read at the positions from 0 on; of `Labelled`
            inputs, what yields the places of each step.
        auxiliary: what is minimised beside the loss of the tokens, if anything.
        memory: tokens whose states the next segment sees, see `sepnb.training.memory`; 0 is none. It takes
            `Segments` as positions.

    Raises:
        TypeError: steps, a size or a memory that is no int.
        ValueError: a value outside its range, with the range; a memory without segments, or compiled.
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
    memory: int = 0

    def __post_init__(self) -> None:
        at_least(1, steps=self.steps, batch_size=self.batch_size, length=self.length)
        for field in ("learning_rate", "clip"):
            if not 0 < getattr(self, field) < inf:
                raise ValueError(f"{field} is {getattr(self, field)}; it must be finite and above 0")
        if not 0 <= self.warmup <= 1:
            raise ValueError(f"warmup is {self.warmup}; it is a share of the steps, from 0 to 1")
        if not 0 <= self.weight_decay < inf:
            raise ValueError(f"weight_decay is {self.weight_decay}; it must be at least 0")
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas are {self.betas}; give two, both at least 0 and below 1")
        if self.precision not in PRECISIONS:
            raise ValueError(f"unknown precision {self.precision!r}; use one of {', '.join(PRECISIONS)}")
        if self.auxiliary is not None:
            self.auxiliary.check(self.positions, self.length)
        if isinstance(self.memory, bool) or not isinstance(self.memory, int):
            raise TypeError(f"memory must be an int, got {self.memory!r}")
        if self.memory < 0:
            raise ValueError(f"memory is {self.memory}; it is a number of tokens, 0 for none")
        if self.memory and not isinstance(self.positions, Segments):
            raise ValueError(
                f"memory is {self.memory}, and what a step reads does not continue the step before; give "
                f"positions=Segments(count)"
            )
        if self.memory and self.compiler is not None:
            raise ValueError(
                f"memory is {self.memory} and compiler {self.compiler!r}: a compiled step hands no states to "
                f"the next; set compiler=None"
            )

    def resolved(self) -> dict[str, Any]:
        """Every field in plain JSON types, for a record.

        `positions`, `auxiliary` and `memory` are left out where there are none.
        """
        given = without_defaults(vars(self), positions=None, auxiliary=None, memory=0)
        parts = {name: given[name].resolved() for name in ("positions", "auxiliary") if name in given}
        return {**given, "betas": list(self.betas), **parts}

    def bound_auxiliary(self, seed: int, start: int = 0) -> BoundLoss | None:
        """The auxiliary loss of a run of this seed after `start` steps, as `train` takes it; None where there
        is none."""
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
