"""Trainings that outlive their process: a long one in pieces, and one that several runs share.

What is kept lies in `build/checkpoints`. A long training that is killed goes on where its last piece ended,
and not from zero; resumed, it is the uninterrupted one bit for bit on one thread of one machine (see
`sepnb.training.checkpoints`). Whether the code still computes the same is asked as of a published record: the
first losses are replayed, and where they differ the checkpoint counts for nothing. A shared training is that
of one commit. A tree with uncommitted changes keeps none and takes none.
"""

from collections.abc import Callable, Sequence
from math import nan
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .. import paths
from ..records.provenance import Clock, code_state
from ..records.store import digest
from ..training import checkpoints
from ..training.checkpoints import Checkpoint
from ..training.compiled import CompiledSteps
from ..training.device import optimiser
from ..training.loop import Diverged, train


def _hashes(config: Any) -> dict[str, str]:
    return config.data.sources(config, ()).get("data", {})


def _place(about: dict[str, Any], config: Any, device: str) -> tuple[Path, dict[str, Any]]:
    """Where a checkpoint lies, and what it is about."""
    about |= {"device": device, "torch": str(torch.__version__), "config": config.resolved()}
    return paths.build() / "checkpoints" / f"{digest(about)[:24]}{checkpoints.SUFFIX}", about


def place(config: Any, device: str) -> tuple[Path, dict[str, Any]]:
    """Where the checkpoint of a long run on one text lies, and what it is about: all that decides what the
    run computes, but for the code."""
    (data,) = _hashes(config).values()
    return _place({"data": data}, config, device)


def trained_in_pieces(
    config: Any,
    model: nn.Module,
    *,
    every: int,
    device: str,
    replayed: Callable[[], Sequence[float]],
    on_step: Callable[[int], None] | None = None,
    runs: CompiledSteps | None = None,
) -> tuple[list[float], float, int]:
    """Train a model in place, in pieces of `every` steps.

    Args:
        config: a `Run`.
        model, device, on_step, runs: as of every training.
        every: steps of a piece.
        replayed: the first losses of the run by the code as it is.

    Returns:
        The losses of all steps in nats, the CPU seconds that earlier processes spent on it, and the step from
        which this one went on, 0 if it began.

    Raises:
        Diverged: a loss is not finite; with the losses of all pieces before.
    """
    training, keeps = config.training, code_state()[1] is False
    path, about = place(config, device)
    kept = checkpoints.kept(path, about) if keeps else None
    if kept is not None and any(one != other for one, other in zip(kept.losses, replayed(), strict=False)):
        kept = None
    spent, begun = (0.0, 0) if kept is None else (kept.cpu_s, kept.steps)
    losses = [] if kept is None else list(kept.losses)
    clock, how = Clock(device), {"device": device, "on_step": on_step, "runs": runs}
    if kept is not None and kept.steps == training.steps:
        checkpoints.restore(kept, model.to(device), training)
    while len(losses) < training.steps:
        stop = min(len(losses) + every, training.steps)
        try:
            if kept is None:
                adamw = optimiser(model.to(device), training)
                how_first = how | {"auxiliary": training.bound_auxiliary(config.seed)}
                more = train(model, config.batches(), training, adamw=adamw, stop_after=stop, **how_first)
            else:
                more, adamw = checkpoints.resumed(
                    kept, model, training, lambda _: config.batches(), stop_after=stop, **how
                )
        except Diverged as error:
            raise Diverged([*losses, *error.losses, nan], training.learning_rate) from None
        losses += more
        kept = checkpoints.take(model, adamw, losses, about, spent + clock.cpu_s, seed=config.seed)
        if keeps:
            checkpoints.save(path, kept)
    return losses, spent, begun


def forget(config: Any, device: str) -> None:
    """Take away what was kept of a long run, once it is done."""
    place(config, device)[0].unlink(missing_ok=True)


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
    path, about = _place({"commit": commit, "data": _hashes(base)}, base, device)
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
