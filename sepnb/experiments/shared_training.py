"""A training that several runs share: made once and kept in `build/checkpoints`, for the runs of one commit.

A tree with uncommitted changes keeps none and takes none.
"""

from collections.abc import Callable
from typing import Any

import torch

from .. import paths
from ..records.provenance import Clock, code_state
from ..records.store import digest
from ..training import checkpoints
from ..training.checkpoints import Checkpoint
from ..training.device import optimiser
from ..training.loop import train


def trained_once(
    base: Any, *, device: str = "cpu", progress: Callable[[int, int], None] | None = None
) -> Checkpoint:
    """The trained model of a run that others share: kept, for the runs of one commit, or trained and kept.

    Args:
        base: the run that trains; all that share it name the same.

    Raises:
        Diverged: a loss is not finite.
    """
    commit, dirty = code_state()
    about = {"commit": commit, "data": base.data.sources(base, ()).get("data", {}), "device": device}
    about |= {"torch": str(torch.__version__), "config": base.resolved()}
    path = paths.build() / "checkpoints" / f"{digest(about)[:24]}{checkpoints.SUFFIX}"
    if dirty is False and (found := checkpoints.kept(path, about)):
        return found
    clock, training = Clock(device), base.training
    model = base.build().to(device)
    adamw = optimiser(model, training)
    on_step = None if progress is None else lambda step: progress(step + 1, training.steps)
    losses = train(model, base.batches(), training, device=device, adamw=adamw, on_step=on_step)
    checkpoint = checkpoints.take(model, adamw, losses, about, cpu_s=clock.cpu_s)
    if dirty is False:
        checkpoints.save(path, checkpoint)
    return checkpoint
