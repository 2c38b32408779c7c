"""One training loop, for every model, profile and device."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor, nn

from ..models import door
from ..validation import instance, option, vouched, whole
from .batch import Batch
from .compiled import CompiledSteps
from .config import TrainingConfig
from .device import Lookout, autocast, optimiser, placed, sent
from .losses import BoundLoss, check_bound, mean, target_losses
from .together import Together


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


def train(
    model: nn.Module,
    batches: Iterator[np.ndarray | Batch],
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
    runs: CompiledSteps | None = None,
) -> list[float]:
    """Train `model` in place; returns the mean loss of every step taken, in nats per token.

    Args:
        model: takes tokens `[B, L]`, returns logits `[B, L, V]`; of inputs with one target each, `[B, V]`.
        batches: yields one item per step: a `Batch`, with positions where the config draws them, or an
            integer array `[B, L+1]`, in which each token is asked for the next.
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
        runs: compiles the forward passes if the config says so; give one to read its counts afterwards.

    Raises:
        Diverged: a loss is not finite, that of the tokens or the sum with the auxiliary one; raised soon
            after its step, on a GPU some steps late.
        ValueError: batches that end before the steps do or have another form than the config says; another
            auxiliary loss than the config's; no step left.
    """
    steps = instance("config", config, TrainingConfig).steps
    end = steps if stop_after is None else min(whole("stop_after", stop_after), steps)
    option("start", start, int)
    if not 0 <= start < end:
        raise ValueError(f"start is {start}; of {end} steps give 0 to {end - 1}, those taken before")
    check_bound(config.auxiliary, auxiliary, start, seed)
    instance("batches", batches, Iterator, "iter(batches)")
    placed(instance("model", model, nn.Module), device).train()
    adamw, runs = optimiser(model, config, adamw), CompiledSteps() if runs is None else runs
    losses: list[Tensor] = []
    objectives: list[Tensor] = []
    lookout, drawing = Lookout(), config.positions is not None
    unread = drawing and (config.compiler is not None or torch.device(device).type != "cpu")
    if together is not None:
        together.begin(model)
    with runs.forward(model, config, device) as forward:
        for step in range(start, end):
            if (batch := next(batches, None)) is None:
                raise ValueError(f"the batches ended at step {step} of {steps}; give one batch per step")
            config.check(batch := Batch.of(batch))
            if unread:
                door.check_drawn(model, torch.from_numpy(batch.positions))
            if auxiliary is not None:
                auxiliary.refuse(step, batch.positions)
            tokens, targets, positions, weights = (sent(tensor, device) for tensor in batch.tensors())
            if together is not None:
                tokens, targets, positions, weights = together.rows(tokens, targets, positions, weights)
            for group in adamw.param_groups:
                group["lr"] = config.rate(step)
            with autocast(device, config.precision), vouched(model, drawing or step > start):  # its own recur
                each = target_losses(forward, tokens, targets, positions)
                loss = mean(each, weights)
                objective = loss if auxiliary is None else loss + auxiliary(model)
            adamw.zero_grad(set_to_none=True)
            objective.backward()
            if together is not None:
                loss, objective = together.join(model, loss, objective)
            nn.utils.clip_grad_norm_(model.parameters(), config.clip)
            adamw.step()
            losses.append(loss.detach())  # read at the end: a read in every step would stall a GPU
            objectives.append(objective.detach())
            runs.end_step()
            if on_step is not None:
                on_step(step)
            if lookout.lost(objectives[-1]):
                break
    curve, minimised = torch.stack(losses).tolist(), torch.stack(objectives).tolist()
    if not (np.isfinite(curve).all() and np.isfinite(minimised).all()):
        raise Diverged(curve, config.learning_rate, minimised)
    return curve
