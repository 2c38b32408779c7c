"""A training kept after some step: its weights, the averages of its optimiser and its losses. Under another
schedule a checkpoint starts a fine-tuning.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .. import validation
from ..records import sealed
from ..records.store import canonical
from .device import optimiser
from .loop import TrainingConfig

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
    """

    weights: dict[str, Tensor]
    averages: dict[str, Any]
    steps: int
    losses: list[float]
    about: dict[str, Any]
    cpu_s: float = 0.0


def take(
    model: nn.Module,
    adamw: torch.optim.AdamW,
    losses: list[float],
    about: dict[str, Any],
    cpu_s: float = 0.0,
) -> Checkpoint:
    """The training of `model` by `adamw` after one step for each of the losses."""
    weights, averages = _copied(dict(model.state_dict())), _copied(adamw.state_dict())
    return Checkpoint(weights, averages, len(losses), list(losses), _plain(about), cpu_s)


def _plain(about: dict[str, Any]) -> dict[str, Any]:
    """The same in JSON's types, as a file gives it back."""
    return json.loads(canonical(about))


def _copied(state: Any) -> Any:
    """The same containers with copies of their tensors."""
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


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint whole or not at all, under a seal: two runs that make the same one do not disturb
    each other, and what a disk has changed is noticed."""
    averages = checkpoint.averages["state"]
    tensors = {f"weights.{name}": tensor for name, tensor in checkpoint.weights.items()}
    tensors |= {f"averages.{of}.{name}": x for of, state in averages.items() for name, x in state.items()}
    header = {name: getattr(checkpoint, name) for name in _TOLD}
    sealed.write(path, tensors, header | {"groups": checkpoint.averages["param_groups"]})


_TOLD = ("steps", "losses", "about", "cpu_s")


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
    return checkpoint if checkpoint.about == _plain(about) else None


def _read(tensors: dict[str, Tensor], header: dict[str, Any]) -> Checkpoint:
    """What `save` wrote, and could have: counts and finite numbers."""
    parts: dict[str, dict[str, Any]] = {"weights": {}, "averages": {}}
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
    return Checkpoint(parts["weights"], averages, **{name: header[name] for name in _TOLD})
