"""One training that several runs share: what they ask of the trained model differs, the training does not."""

from collections.abc import Callable, Iterator
from typing import Any

import torch

from .. import paths
from ..models import LanguageModel
from ..records.provenance import Clock, code_state
from ..records.store import digest
from ..training import checkpoints
from ..training.checkpoints import Checkpoint
from ..training.device import optimiser
from ..training.loop import train
from .base import Progress, TrainedRun


def trained_once(
    base: TrainedRun,
    build: Callable[[Any], LanguageModel],
    batches: Callable[[Any], Iterator],
    *,
    data: Any,
    device: str = "cpu",
    progress: Progress | None = None,
) -> Checkpoint:
    """The trained model of a run: from `build/checkpoints`, for the runs of one commit, or trained now and
    put there. A tree with uncommitted changes keeps no checkpoints and takes none.

    Args:
        base: the run that trains; all that share it name the same.
        build, batches: its untrained model and its batches.
        data: hashes of what it reads.

    Raises:
        Diverged: a loss is not finite.
    """
    commit, dirty = code_state()
    about = {"commit": commit, "device": device, "torch": str(torch.__version__)}
    about |= {"data": data, "config": base.resolved()}
    path = paths.build() / "checkpoints" / f"{digest(about)[:24]}{checkpoints.SUFFIX}"
    if dirty is False and (found := checkpoints.kept(path, about)):
        return found
    clock = Clock(device)
    model = build(base).to(device)
    adamw = optimiser(model, base.training)
    on_step = None if progress is None else lambda step: progress(step + 1, base.training.steps)
    losses = train(model, batches(base), base.training, device=device, adamw=adamw, on_step=on_step)
    checkpoint = checkpoints.take(model, adamw, losses, about, cpu_s=clock.cpu_s)
    if dirty is False:
        checkpoints.save(path, checkpoint)
    return checkpoint
