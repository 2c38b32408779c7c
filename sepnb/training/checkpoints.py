"""A training that stopped at some step, complete: weights, averages of the optimiser, number of steps, and
what the remaining draws depend on.

The learning rate is a function of the step; batches, positions, shift steps and the positions of auxiliary
losses are drawn by seed and step. `resumed` repeats the draws of earlier steps, drops them and goes on, so a
checkpoint with its seed holds the state of all samplers; it also holds the states of torch's generators, from
which dropout draws. A resumed training therefore gives what the uninterrupted one gives, bit for bit on one
thread of one machine. Under another schedule a checkpoint, with or without a seed, starts a fine-tuning.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .. import validation
from ..records import sealed
from ..records.store import as_stored
from .device import optimiser
from .loop import TrainingConfig, train

SUFFIX = ".safetensors"


@dataclass(frozen=True)
class Checkpoint:
    """Copies on the CPU, which no later step changes.

    Attributes:
        weights: the model's parameters by name.
        averages: the state of `sepnb.training.optimiser`: its averages and its count of steps.
        steps: steps of the schedule that were taken.
        losses: of each of them, in nats per token.
        about: where it comes from, in plain types; two trainings alike in this give the same checkpoint.
        cpu_s: what it cost.
        seed: of all that the training draws; None in one that is not to be resumed.
        noise: with a seed, the states of torch's generators, by the device whose they are.
    """

    weights: dict[str, Tensor]
    averages: dict[str, Any]
    steps: int
    losses: list[float]
    about: dict[str, Any]
    cpu_s: float = 0.0
    seed: int | None = None
    noise: dict[str, Tensor] | None = None


def take(
    model: nn.Module,
    adamw: torch.optim.AdamW,
    losses: list[float],
    about: dict[str, Any],
    cpu_s: float = 0.0,
    *,
    seed: int | None = None,
) -> Checkpoint:
    """A checkpoint of `model`, trained by `adamw` for one step per loss. If it is to be resumed, give the
    seed of its batches and losses, before anything else draws from torch."""
    weights, averages = _copied(model.state_dict()), _copied(adamw.state_dict())
    noise, device = None, next(model.parameters()).device
    if seed is not None:
        noise = {"cpu": torch.get_rng_state()}
        noise |= {"cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else {}
    return Checkpoint(weights, averages, len(losses), list(losses), as_stored(about), cpu_s, seed, noise)


def _copied(state: Any) -> Any:
    if isinstance(state, Tensor):
        return state.detach().cpu().clone()
    if isinstance(state, dict):
        return {key: _copied(value) for key, value in state.items()}
    return [_copied(value) for value in state] if isinstance(state, list | tuple) else state


def restore(checkpoint: Checkpoint, model: nn.Module, config: TrainingConfig) -> torch.optim.AdamW:
    """Give `model`, on its device already, the weights, and return its optimiser with the averages, for
    `train(..., adamw=...)`. Learning rate and weight decay are those of `config`. ValueError: the weights are
    those of another model."""
    try:
        model.load_state_dict(checkpoint.weights)
    except RuntimeError as error:
        raise ValueError(
            f"the checkpoint is of another model; build the one that was kept: {error}"
        ) from None
    adamw = optimiser(model, config)
    own = [dict(group) for group in adamw.param_groups]
    adamw.load_state_dict(_copied(checkpoint.averages))
    for group, mine in zip(adamw.param_groups, own, strict=True):
        group |= {key: value for key, value in mine.items() if key != "params"}
    return adamw


def resumed(
    checkpoint: Checkpoint,
    model: nn.Module,
    config: TrainingConfig,
    batches: Callable[[int], Iterator],
    *,
    device: str = "cpu",
    **how: Any,
) -> tuple[list[float], torch.optim.AdamW]:
    """Continue the schedule of a checkpoint. Returns the losses of the remaining steps and the optimiser, so
    that the training can stop again: `take` needs the losses of all its steps.

    Args:
        checkpoint, config: taken with its seed, or it is a ValueError; the schedule that was left.
        model: like the one that was trained, with any weights.
        batches: of a seed, all batches of a run from its first step on; those that were read are dropped.
        device, how: as in `train`, with `stop_after` and `on_step`.
    """
    if (seed := checkpoint.seed) is None:
        raise ValueError("the checkpoint has no seed, so that what it read is not known; take it with seed=")
    adamw = restore(checkpoint, model.to(device), config)
    auxiliary = config.bound_auxiliary(seed, checkpoint.steps)
    left = islice(batches(seed), checkpoint.steps, None)
    torch.set_rng_state(checkpoint.noise["cpu"])
    if "cuda" in checkpoint.noise and torch.device(device).type == "cuda":
        torch.cuda.set_rng_state(checkpoint.noise["cuda"], device)
    how |= {"device": device, "adamw": adamw, "auxiliary": auxiliary}
    return train(model, left, config, start=checkpoint.steps, seed=seed, **how), adamw


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint whole or not at all, under a seal: two runs that make the same one do not disturb
    each other, and what a disk has changed is noticed."""
    averages = checkpoint.averages["state"]
    tensors = {f"weights.{name}": tensor for name, tensor in checkpoint.weights.items()}
    tensors |= {f"averages.{of}.{name}": x for of, state in averages.items() for name, x in state.items()}
    tensors |= {f"noise.{device}": states for device, states in (checkpoint.noise or {}).items()}
    header = {name: getattr(checkpoint, name) for name in _TOLD}
    sealed.write(path, tensors, header | {"groups": checkpoint.averages["param_groups"]})


_TOLD = ("steps", "losses", "about", "cpu_s", "seed")


def kept(path: Path, about: dict[str, Any]) -> Checkpoint | None:
    """The checkpoint at `path`; None where there is none, or one of another training than `about` says.

    Raises:
        ValueError: a file that is damaged, or holds what no training gives.
    """
    if not path.exists():
        return None
    tensors, header = sealed.read(path)
    try:
        checkpoint = _read(tensors, header)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is no checkpoint of a training ({error}); delete it") from None
    return checkpoint if checkpoint.about == as_stored(about) else None


def _read(tensors: dict[str, Tensor], header: dict[str, Any]) -> Checkpoint:
    """The checkpoint that `save` wrote; raises unless counts agree and numbers are finite."""
    parts: dict[str, dict[str, Any]] = {"weights": {}, "averages": {}, "noise": {}}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        parts[part][rest] = tensor
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise ValueError(f"{name} holds numbers that are not finite")
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in parts["averages"].items():
        of, _, which = name.partition(".")
        state.setdefault(int(of), {})[which] = tensor
    for loss in header["losses"]:
        validation.number("a loss", loss)
    taken = len(header["losses"])
    validation.whole("steps", header["steps"], taken, taken, needs=f"it has the losses of {taken}")
    validation.number("cpu_s", header["cpu_s"], 0)
    averages = {"state": state, "param_groups": header["groups"]}
    noise = None if header["seed"] is None else parts["noise"]
    return Checkpoint(parts["weights"], averages, noise=noise, **{name: header[name] for name in _TOLD})
