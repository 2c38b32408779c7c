"""One training loop, for every model, profile and device."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..models import validation as door
from ..models.fast import kernels
from ..validation import device as on_a_device
from ..validation import instance, one_of, option, shown, vouched, whole, within
from .config import PRECISIONS, TrainingConfig
from .device import Lookout, optimiser, sent
from .losses import BoundLoss
from .memory import SegmentMemory
from .positions import Batch
from .together import Together


class Labelled(NamedTuple):
    """One step of inputs that are no tokens, such as images, an int64 target for each, `[B]`, and where the
    config draws them, or inputs have places of their own, int64 positions, as the model takes them."""

    inputs: np.ndarray
    targets: np.ndarray
    positions: np.ndarray | None = None


class Weighted(NamedTuple):
    """One step of texts whose tokens count differently: int64 inputs and targets `[B, N]`, float32 weights of
    the targets `[B, N]`, and int64 positions `[N]` or `[B, N]` where the config draws them. N is at most the
    trained length, and B times N what the config's sizes give: a step of shorter texts reads more of them.
    The loss of the step is the mean under these weights."""

    inputs: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    positions: np.ndarray | None = None


class Diverged(ValueError):
    """A loss that is not finite: its step, and the losses before it.

    `curve` is the loss of the tokens in every step, `objective` what each step minimised, where that is more.
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
    one_of("precision", precision, PRECISIONS)
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
    within("targets", targets, 0, logits.shape[-1] - 1, "the answers that the model knows", wait=False)
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32)).flatten(0, -2)
    return F.cross_entropy(wide, targets.flatten(), reduction="none").unflatten(0, targets.shape)


def train(
    model: nn.Module,
    batches: Iterator[np.ndarray | Batch | Labelled | Weighted],
    config: TrainingConfig,
    *,
    device: str = "cpu",
    auxiliary: BoundLoss | None = None,
    adamw: torch.optim.AdamW | None = None,
    start: int = 0,
    seed: int | None = None,
    stop_after: int | None = None,
    on_step: Callable[[int], None] | None = None,
    together: Together | None = None,
) -> list[float]:
    """Train `model` in place; returns the mean loss of every step taken, in nats per token.

    Args:
        model: takes tokens `[B, L]`, returns logits `[B, L, V]`.
        batches: yields one item per step: a `Batch` where the config has `positions`, an integer array
            `[B, L+1]`, read at the positions from 0 on, where it has none; `Weighted` texts; or `Labelled`
            inputs, which a model answers with logits `[B, V]`.
        config, device: the schedule; where the model is moved and trained.
        auxiliary: the config's auxiliary loss, bound with the same `start` and `seed`; added to the loss of
            the tokens before the gradient is taken. What is returned is the loss of the tokens alone.
        adamw: of `optimiser` for this model, continued with the averages that it holds; by default a new one.
        start: steps of the schedule that were taken before. `batches` then begins with the batch of this
            step. `sepnb.training.checkpoints.resumed` sees to all that a resumed training needs.
        seed: of the run that is resumed; asked for where it has an auxiliary loss.
        stop_after: leave the schedule after this many steps in all, more than `start` (for a fingerprint).
        on_step: called after each step with its number, counted from 0.
        together: the processes that share every batch; all of them call this with the same arguments.

    Raises:
        Diverged: a loss is not finite, that of the tokens or the sum with the auxiliary one; told soon after
            its step, on a GPU some steps late.
        ValueError: batches that end before the steps do or have another form than the config says; another
            auxiliary loss than the config's; no step left; a memory, and a start in the middle of a text.
    """
    steps = instance("config", config, TrainingConfig).steps
    end = steps if stop_after is None else min(whole("stop_after", stop_after), steps)
    option("start", start, int)
    if not 0 <= start < end:
        raise ValueError(f"start is {start}; of {end} steps give 0 to {end - 1}, those taken before")
    _check_auxiliary(config, auxiliary, start, seed)
    instance("batches", batches, Iterator, "iter(batches)")
    _on(instance("model", model, nn.Module), device).train()
    adamw = optimiser(model, config) if adamw is None else _of_this(model, adamw)
    forward = forward_of(model, config, device)
    losses: list[Tensor] = []
    objectives: list[Tensor] = []
    memory, lookout = None, Lookout()
    if together is not None:
        together.begin(model)
    for step in range(start, end):
        if (drawn := next(batches, None)) is None:
            raise ValueError(f"the batches ended at step {step} of {config.steps}; give one batch per step")
        tokens, targets, positions = _parts(drawn, config, device)
        if config.positions is not None and (config.compiler is not None or tokens.device.type != "cpu"):
            door.check_drawn(model, torch.from_numpy(drawn.positions))
        weights = sent(torch.from_numpy(drawn.weights), device) if isinstance(drawn, Weighted) else None
        if together is not None:
            tokens, targets, positions, weights = together.rows(tokens, targets, positions, weights)
        if auxiliary is not None:
            auxiliary.refuse(step, None if isinstance(drawn, np.ndarray) else drawn.positions)
        if config.memory:
            memory = _memory(memory, model, drawn, len(tokens), config)
        for group in adamw.param_groups:
            group["lr"] = config.rate(step)
        known = config.positions is not None or step > start  # a model's own are the same in every step
        with autocast(device, config.precision), vouched(known):
            each = target_losses(forward, tokens, targets, positions, memory)
            loss = each.mean() if weights is None else (each * weights).sum() / weights.sum(dtype=each.dtype)
            objective = loss if auxiliary is None else loss + auxiliary(model)
        adamw.zero_grad(set_to_none=True)
        objective.backward()
        if together is not None:
            loss, objective = together.join(model, loss, objective)
        nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        adamw.step()
        losses.append(loss.detach())  # read at the end: a read in every step would stall a GPU
        objectives.append(objective.detach())
        if on_step is not None:
            on_step(step)
        if lookout.lost(objectives[-1]):
            break
    if forward is model and config.compiler is not None:
        kernels.compile_formulas(model, None)  # what comes next has not asked for them
    curve, minimised = torch.stack(losses).tolist(), torch.stack(objectives).tolist()
    if not (np.isfinite(curve).all() and np.isfinite(minimised).all()):
        raise Diverged(curve, config.learning_rate, minimised)
    return curve


def _on(model: nn.Module, device: str | torch.device) -> nn.Module:
    """The model on a device. A model without values may stay without them, to count what a step does."""
    without = all(parameter.is_meta for parameter in model.parameters())
    return model.to(device if without and str(device) == "meta" else on_a_device("device", device))


def _of_this(model: nn.Module, adamw: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """An optimiser whose steps change this model and nothing else."""
    own = set(model.parameters())
    groups = instance("adamw", adamw, torch.optim.Optimizer, "optimiser(model, config)").param_groups
    if any(parameter not in own for group in groups for parameter in group["params"]):
        raise ValueError("adamw is of another model, and this one would stay as it is; give its optimiser")
    return adamw


def _check_auxiliary(config: TrainingConfig, bound: BoundLoss | None, start: int, seed: int | None) -> None:
    """Refuse another auxiliary loss than the config's, or one bound to another start or seed."""
    if bound is None:
        if config.auxiliary is not None:
            raise ValueError(f"give auxiliary=, the bound loss of the config's {config.auxiliary!r}")
        return
    if config.auxiliary is None:
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


def forward_of(model: nn.Module, config: TrainingConfig, device: str) -> Callable:
    """What computes the logits of a step: the model, compiled as a whole where the config has a compiler; on
    CUDA, where FlexAttention takes its biases, formula by formula, because inside a compiled model the kernel
    is chosen by the compiler, which knows no such one. Drawn positions, which it would have to read from the
    device, are none of FlexAttention's.

    What was compiled before is forgotten: torch would leave the ninth model of a process eager."""
    if config.compiler is None:
        return model
    torch.compiler.reset()
    if torch.device(device).type == "cuda" and config.positions is None and kernels.flexible(model):
        kernels.compile_formulas(model, config.compiler)
        return model
    return torch.compile(model, backend=kernels.counted(config.compiler), dynamic=False)


def _memory(
    held: SegmentMemory | None, model: nn.Module, drawn: Batch, texts: int, config: TrainingConfig
) -> SegmentMemory:
    """What this step reads on after: an empty memory where its texts begin, at position 0."""
    if (first := int(drawn.positions[0])) == 0:
        return SegmentMemory(model, texts, config.memory)
    if held is None:
        raise ValueError(
            f"the first step reads on at position {first}, and no checkpoint keeps a memory; start where "
            f"texts begin, at a multiple of {config.positions.count} steps"
        )
    return held


def _parts(
    drawn: np.ndarray | Batch | Labelled | Weighted, config: TrainingConfig, device: str
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Tokens, targets and positions of a batch on the device; no positions where it has none."""
    sizes, given = (config.batch_size, config.length), config.positions
    if isinstance(drawn, Labelled):
        if given is not None and drawn.positions is None:
            raise ValueError(
                f"labelled inputs have no positions, and the config draws them by {given!r}; "
                f"give each step those of its positions(), or leave TrainingConfig.positions out"
            )
        _checked("targets", drawn.targets, sizes[:1], lowest=0)
        if len(drawn.inputs) != config.batch_size:
            raise ValueError(f"{len(drawn.inputs)} inputs, and batch_size is {config.batch_size}")
        if drawn.positions is not None:
            _integers("positions", drawn.positions)
        return tuple(
            None if array is None else sent(torch.from_numpy(array.copy()), device) for array in drawn
        )
    if isinstance(drawn, Weighted):
        return _weighted(drawn, config, device)
    if isinstance(drawn, Batch):
        if given is None:
            raise ValueError(
                "the batches have positions and the config draws none, so that no record would name them; "
                "set TrainingConfig.positions, or give integer arrays [B, L+1]"
            )
        _checked("inputs", drawn.inputs, sizes)
        _checked("targets", drawn.targets, sizes, lowest=0)
        _checked("positions", drawn.positions, sizes if drawn.positions.ndim == 2 else sizes[1:])
        return tuple(sent(torch.from_numpy(array.astype(np.int64)), device) for array in drawn)
    if given is not None:
        raise ValueError(
            f"the batches have no positions, the config draws them by {given!r}; give what its "
            f"batches() yields"
        )
    _checked("a batch", drawn, (config.batch_size, config.length + 1), lowest=0)
    batch = sent(torch.from_numpy(drawn.astype(np.int64)), device)  # a copy: the array may be read-only
    return batch[:, :-1], batch[:, 1:], None


def _weighted(drawn: Weighted, config: TrainingConfig, device: str) -> tuple[Tensor, Tensor, Tensor | None]:
    """`_parts` of weighted texts, which may be more and shorter ones than the config's."""
    tokens = max(1, min(config.length, *np.shape(drawn.inputs)[-1:]))
    shape = (config.batch_size * config.length // tokens, tokens)
    _checked("inputs", drawn.inputs, shape)
    _checked("targets", drawn.targets, shape, lowest=0)
    if drawn.weights.shape != shape or not _finite(drawn.weights) or not drawn.weights.any():
        raise ValueError(
            f"weights of shape {drawn.weights.shape} must have the shape {shape} of the targets, all finite, "
            f"none below 0 and one above it at least"
        )
    if (drawn.positions is None) != (config.positions is None):
        raise ValueError(
            f"the config draws positions by {config.positions!r}; give each step those of its positions(), "
            f"or none where it has none"
        )
    if drawn.positions is not None:
        _checked("positions", drawn.positions, shape if drawn.positions.ndim == 2 else shape[1:])
    arrays = (drawn.inputs, drawn.targets, drawn.positions)
    return tuple(
        None if array is None else sent(torch.from_numpy(array.astype(np.int64)), device) for array in arrays
    )


def _checked(what: str, array: np.ndarray, shape: tuple[int, ...], lowest: int | None = None) -> None:
    """Refuse what the config does not say, or would train something else in silence."""
    _integers(what, array)
    if array.shape != shape:
        raise ValueError(
            f"{what} has the shape {array.shape}, and the config says {shape}; set batch_size and length to "
            f"what is read, since a record tells the config"
        )
    if lowest is not None and array.min(initial=lowest) < lowest:
        raise ValueError(f"{what} holds {array.min()}; a target is the number of a token, at least {lowest}")


def _integers(what: str, array: np.ndarray) -> None:
    if instance(what, array, np.ndarray).dtype.kind not in "iu":
        raise TypeError(f"{what} must hold integers, got {array.dtype}")


def _finite(weights: np.ndarray) -> bool:
    return bool((np.isfinite(weights) & (weights >= 0)).all())
