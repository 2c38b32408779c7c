"""One training loop, for every model, profile and device."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import cos, inf, pi
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..models import kernels
from ..settings import without_defaults
from .losses import AuxiliaryLoss, BoundLoss
from .memory import SegmentMemory
from .positions import Batch, PositionSampler
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
        compiler: a backend of torch.compile, or None for eager; see `forward_of`.
        positions: what yields the batches, if tokens are not read at the positions from 0 on; of `Labelled`
            inputs, what yields the places of each step.
        auxiliary: what is minimised beside the loss of the tokens, if anything.
        memory: tokens whose states the next segment sees, see `sepnb.training.memory`; 0 is none. It takes
            `Segments` as positions.

    Raises:
        TypeError: a memory that is no int.
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
        for field in ("steps", "batch_size", "length"):
            if getattr(self, field) < 1:
                raise ValueError(f"{field} is {getattr(self, field)}; it must be at least 1")
        for field in ("learning_rate", "clip"):
            if not 0 < getattr(self, field) < inf:
                raise ValueError(f"{field} is {getattr(self, field)}; it must be finite and above 0")
        if not 0 <= self.warmup <= 1:
            raise ValueError(f"warmup is {self.warmup}; it is a share of the steps, from 0 to 1")
        if not 0 <= self.weight_decay < inf:
            raise ValueError(f"weight_decay is {self.weight_decay}; it must be at least 0")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas are {self.betas}; both must be at least 0 and below 1")
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


class Labelled(NamedTuple):
    """One step of inputs that are no tokens, such as images, and an int64 target for each, `[B]`; where the
    config draws them, or where inputs have places of their own, int64 positions, as the model takes them."""

    inputs: np.ndarray
    targets: np.ndarray
    positions: np.ndarray | None = None


class Diverged(ValueError):
    """A loss that is not finite: its step, and the losses before it.

    Args:
        curve: the loss of the tokens in every step.
        learning_rate: of the run.
        objective: what each step minimised, where that is more than the loss of the tokens.
    """

    def __init__(
        self, curve: list[float], learning_rate: float, objective: list[float] | None = None
    ) -> None:
        minimised = curve if objective is None else objective
        self.step = int(np.argmin(np.isfinite(curve) & np.isfinite(minimised)))
        self.losses = curve[: self.step]
        what, value = "the loss", curve[self.step]
        if np.isfinite(value):
            what, value = "the loss with its auxiliary part", minimised[self.step]
        super().__init__(f"{what} of step {self.step} is {value}; lower learning_rate={learning_rate}")


def autocast(device: str, precision: str) -> AbstractContextManager:
    """Forward passes in `precision` on `device`; parameters stay as they are, losses are float32 or wider."""
    if precision == "float32":
        return nullcontext()
    return torch.autocast(torch.device(device).type, dtype=getattr(torch, precision))


def next_token_losses(model: Callable, batch: Tensor, positions: Tensor | None = None) -> Tensor:
    """Nats per predicted token, `[B, L]`, for tokens `[B, L+1]` at int positions `[L]` (0 to L-1)."""
    return target_losses(model, batch[:, :-1], batch[:, 1:], positions)


def target_losses(
    model: Callable,
    tokens: Tensor,
    targets: Tensor,
    positions: Tensor | None = None,
    memory: SegmentMemory | None = None,
) -> Tensor:
    """Nats per target, `[B, L]`, for tokens and targets `[B, L]` at int positions `[L]` or `[B, L]`, read on
    after what a memory holds; `[B]` of a model that gives each input one answer, with targets `[B]`. In
    float32 or wider: bfloat16 would round differences away, and float32 what a float64 model computes."""
    if memory is not None:
        logits = memory(tokens, positions)
    else:
        logits = model(tokens) if positions is None else model(tokens, positions)
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32)).flatten(0, -2)
    return F.cross_entropy(wide, targets.flatten(), reduction="none").unflatten(0, targets.shape)


def optimiser(model: nn.Module, config: TrainingConfig) -> torch.optim.AdamW:
    """AdamW with weight decay on the weights of linear maps only, a tied embedding among them."""
    maps = {module.weight for module in model.modules() if isinstance(module, nn.Linear)}
    groups = [
        {"params": [p for p in model.parameters() if p in maps], "weight_decay": config.weight_decay},
        {"params": [p for p in model.parameters() if p not in maps], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=config.betas)


def train(
    model: nn.Module,
    batches: Iterator[np.ndarray | Batch | Labelled],
    config: TrainingConfig,
    *,
    device: str = "cpu",
    auxiliary: BoundLoss | None = None,
    adamw: torch.optim.AdamW | None = None,
    start: int = 0,
    seed: int | None = None,
    stop_after: int | None = None,
    on_step: Callable[[int], None] | None = None,
) -> list[float]:
    """Train `model` in place; returns the mean loss of every step taken, in nats per token.

    Args:
        model: takes tokens `[B, L]`, returns logits `[B, L, V]`.
        batches: yields one item per step: a `Batch` where the config has `positions`, an integer array
            `[B, L+1]`, read at the positions from 0 on, where it has none; or `Labelled` inputs, which a
            model answers with logits `[B, V]`.
        config: the schedule.
        device: where the model is moved and trained.
        auxiliary: the config's auxiliary loss, bound; added to the loss of the tokens before the gradient is
            taken. What is returned is the loss of the tokens alone. It is bound with the same `start` and
            `seed`.
        adamw: of `optimiser` for this model, continued with the averages that it holds; by default a new one.
        start: steps of the schedule that were taken before. `batches` then begins with the batch of this
            step. `sepnb.training.checkpoints.resumed` sees to all that a resumed training needs.
        seed: of the run that is resumed; asked for where it has an auxiliary loss.
        stop_after: leave the schedule after this many steps in all, more than `start` (for a fingerprint).
        on_step: called after each step with its number, counted from 0.

    Raises:
        Diverged: a loss is not finite, that of the tokens or the sum with the auxiliary one.
        ValueError: the batches end before the steps do; positions or an auxiliary loss that the config has
            and the call lacks, or the other way round; an auxiliary loss bound to another start or seed, or
            one that expects a step at other positions; no step left between `start` and the end; a memory,
            and a start in the middle of a text.
    """
    end = config.steps if stop_after is None else min(stop_after, config.steps)
    if stop_after is not None and stop_after < 1:
        raise ValueError(f"stop_after is {stop_after}; it must be at least 1")
    if not 0 <= start < end:
        raise ValueError(f"start is {start}; of {end} steps give 0 to {end - 1}, those taken before")
    if auxiliary is not None and auxiliary.start != start:
        raise ValueError(
            f"start is {start}, and an auxiliary loss draws from step {auxiliary.start} on, so that what was "
            f"left is not resumed; bind it with start={start}"
        )
    if auxiliary is not None and start and auxiliary.seed != seed:
        raise ValueError(
            f"seed is {seed}, and an auxiliary loss draws by seed {auxiliary.seed}; give both that of the "
            f"run which is resumed"
        )
    if config.auxiliary is not None and auxiliary is None:
        raise ValueError(f"give auxiliary=, the bound loss of the config's {config.auxiliary!r}")
    if config.auxiliary is None and auxiliary is not None:
        raise ValueError(
            f"auxiliary={auxiliary!r} is given and the config names none, so that no record would; set "
            f"TrainingConfig.auxiliary, or leave it out"
        )
    model.to(device).train()
    forward = forward_of(model, config, device)
    adamw = optimiser(model, config) if adamw is None else adamw
    losses: list[Tensor] = []
    objectives: list[Tensor] = []
    memory: SegmentMemory | None = None
    for step in range(start, end):
        if (drawn := next(batches, None)) is None:
            raise ValueError(f"the batches ended at step {step} of {config.steps}; give one batch per step")
        tokens, targets, positions = _parts(drawn, config, device)
        if auxiliary is not None:
            auxiliary.check(step, None if isinstance(drawn, np.ndarray) else drawn.positions)
        if config.memory:
            memory = _memory(memory, model, drawn, config)
        for group in adamw.param_groups:
            group["lr"] = config.rate(step)
        with autocast(device, config.precision):
            loss = target_losses(forward, tokens, targets, positions, memory).mean()
            objective = loss if auxiliary is None else loss + auxiliary(model)
        adamw.zero_grad(set_to_none=True)
        objective.backward()
        nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        adamw.step()
        losses.append(loss.detach())  # read at the end: a read in every step would stall a GPU
        objectives.append(objective.detach())
        if on_step is not None:
            on_step(step)
    if forward is model and config.compiler is not None:
        kernels.compile_formulas(model, None)  # what comes next has not asked for them
    curve, minimised = torch.stack(losses).tolist(), torch.stack(objectives).tolist()
    if not (np.isfinite(curve).all() and np.isfinite(minimised).all()):
        raise Diverged(curve, config.learning_rate, minimised)
    return curve


def forward_of(model: nn.Module, config: TrainingConfig, device: str) -> Callable:
    """What computes the logits of a step: the model, compiled as a whole where the config has a compiler.

    On CUDA a model whose biases FlexAttention takes has its formulas compiled one by one instead: inside of
    a compiled model the choice between kernels is made by the compiler, which knows no such kernel.
    """
    if config.compiler is None:
        return model
    if torch.device(device).type == "cuda" and kernels.flexible(model):
        kernels.compile_formulas(model, config.compiler)
        return model
    return torch.compile(model, backend=config.compiler)


def _memory(
    held: SegmentMemory | None, model: nn.Module, drawn: Batch, config: TrainingConfig
) -> SegmentMemory:
    """What this step reads on after: an empty memory where its texts begin, at position 0."""
    if (first := int(drawn.positions[0])) == 0:
        return SegmentMemory(model, len(drawn.inputs), config.memory)
    if held is None:
        raise ValueError(
            f"the first step reads on at position {first}, and no checkpoint keeps a memory; start where "
            f"texts begin, at a multiple of {config.positions.count} steps"
        )
    return held


def _parts(
    drawn: np.ndarray | Batch | Labelled, config: TrainingConfig, device: str
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Tokens, targets and positions of a batch on the device; no positions where it has none."""
    if isinstance(drawn, Labelled):
        if config.positions is not None and drawn.positions is None:
            raise ValueError(
                f"labelled inputs have no positions, and the config draws them by {config.positions!r}; "
                f"give each step those of its positions(), or leave TrainingConfig.positions out"
            )
        return tuple(None if array is None else torch.from_numpy(array.copy()).to(device) for array in drawn)
    if isinstance(drawn, Batch):
        if config.positions is None:
            raise ValueError(
                "the batches have positions and the config draws none, so that no record would name them; "
                "set TrainingConfig.positions, or give integer arrays [B, L+1]"
            )
        return tuple(torch.from_numpy(array.astype(np.int64)).to(device) for array in drawn)
    if config.positions is not None:
        raise ValueError(
            f"the batches have no positions, the config draws them by {config.positions!r}; give what its "
            f"batches() yields"
        )
    batch = torch.from_numpy(drawn.astype(np.int64)).to(device)  # a copy: the array may be read-only
    return batch[:, :-1], batch[:, 1:], None
