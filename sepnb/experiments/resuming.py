"""A long training in pieces: one that is killed goes on where its last piece ended, and not from zero.

After every piece the training is kept in `build/checkpoints`. Resumed, it is the uninterrupted one bit for
bit on one thread of one machine (see `sepnb.training.checkpoints`). Whether the code still computes the same
is asked as of a published record: the first losses are replayed, and where they differ the checkpoint counts
for nothing. A tree with uncommitted changes keeps none and takes none.
"""

from collections.abc import Callable, Iterator, Sequence
from math import nan
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .. import paths
from ..records.provenance import Clock, code_state
from ..records.store import digest
from ..training import checkpoints
from ..training.device import optimiser
from ..training.loop import Diverged, train
from .base import TrainedRun


def place(config: TrainedRun, data: str, device: str) -> tuple[Path, dict[str, Any]]:
    """Where the checkpoint of a run lies, and what it is about: all that decides what the run computes, but
    for the code."""
    about = {"device": device, "torch": str(torch.__version__), "data": data, "config": config.resolved()}
    return paths.build() / "checkpoints" / f"{digest(about)[:24]}{checkpoints.SUFFIX}", about


def trained_in_pieces(
    config: TrainedRun,
    model: nn.Module,
    batches: Callable[[], Iterator[Any]],
    *,
    every: int,
    data: str,
    device: str,
    replayed: Callable[[], Sequence[float]],
    on_step: Callable[[int], None] | None = None,
) -> tuple[list[float], float, int]:
    """Train a model in place, in pieces of `every` steps.

    Args:
        config, model, device, on_step: as of every training.
        batches: all batches of the run, from its first step on.
        every: steps of a piece.
        data: the hash of what is read.
        replayed: the first losses of the run by the code as it is.

    Returns:
        The losses of all steps in nats, the CPU seconds that earlier processes spent on it, and the step from
        which this one went on, 0 if it began.

    Raises:
        Diverged: a loss is not finite; with the losses of all pieces before.
    """
    training, keeps = config.training, code_state()[1] is False
    path, about = place(config, data, device)
    kept = checkpoints.kept(path, about) if keeps else None
    if kept is not None and any(one != other for one, other in zip(kept.losses, replayed(), strict=False)):
        kept = None
    spent, begun = (0.0, 0) if kept is None else (kept.cpu_s, kept.steps)
    losses = [] if kept is None else list(kept.losses)
    clock, how = Clock(device), {"device": device, "on_step": on_step}
    if kept is not None and kept.steps == training.steps:
        checkpoints.restore(kept, model.to(device), training)
    while len(losses) < training.steps:
        stop = min(len(losses) + every, training.steps)
        try:
            if kept is None:
                adamw = optimiser(model.to(device), training)
                auxiliary = training.bound_auxiliary(config.seed)
                more = train(
                    model, batches(), training, adamw=adamw, auxiliary=auxiliary, stop_after=stop, **how
                )
            else:
                more, adamw = checkpoints.resumed(
                    kept, model, training, lambda _: batches(), stop_after=stop, **how
                )
        except Diverged as error:
            raise Diverged([*losses, *error.losses, nan], training.learning_rate) from None
        losses += more
        kept = checkpoints.take(model, adamw, losses, about, spent + clock.cpu_s, seed=config.seed)
        if keeps:
            checkpoints.save(path, kept)
    return losses, spent, begun


def forget(config: TrainedRun, data: str, device: str) -> None:
    """Take away what was kept of a run, once it is done."""
    place(config, data, device)[0].unlink(missing_ok=True)
