"""A training that was left at some step, whole: weights, the averages of the optimiser, and how many steps.

Of a training without dropout nothing else is carried from step to step: the learning rate is a function of
the step, and batches, positions and shift steps are drawn by seed and step. So are the positions of SeqPE's
losses, bound with the step at which they go on; `train` refuses to resume with an auxiliary loss that was
not. Resumed from a checkpoint, a training therefore gives what the uninterrupted one gives, bit for bit on
one thread of one machine; tests say so. Under another schedule the same checkpoint is where a fine-tuning
starts.
"""

import json
import pickle
from dataclasses import dataclass, fields
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .results import canonical, write_atomically
from .training import TrainingConfig, optimiser


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
    """The training of `model` by `adamw` as it stands after one step for each of the losses."""
    weights = {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}
    return Checkpoint(weights, _copied(adamw.state_dict()), len(losses), list(losses), _plain(about), cpu_s)


def _plain(about: dict[str, Any]) -> dict[str, Any]:
    """The same in JSON's types: a name that is a member of an enumeration would make a file that torch, which
    runs no code of a file, refuses to read."""
    return json.loads(canonical(about))


def _copied(state: Any) -> Any:
    """The same containers with copies of their tensors."""
    if isinstance(state, Tensor):
        return state.detach().cpu().clone()
    if isinstance(state, dict):
        return {key: _copied(value) for key, value in state.items()}
    return [_copied(value) for value in state] if isinstance(state, list | tuple) else state


def restore(checkpoint: Checkpoint, model: nn.Module, config: TrainingConfig) -> torch.optim.AdamW:
    """Give `model` the weights, and return its optimiser with the averages: `train(..., adamw=...)`.

    The model is moved to its device before. Learning rate and weight decay are those of `config`.

    Raises:
        RuntimeError: the weights are those of another model (torch names what differs).
    """
    model.load_state_dict(checkpoint.weights)
    adamw = optimiser(model, config)
    own = [dict(group) for group in adamw.param_groups]
    adamw.load_state_dict(_copied(checkpoint.averages))
    for group, mine in zip(adamw.param_groups, own, strict=True):
        group |= {key: value for key, value in mine.items() if key != "params"}
    return adamw


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint whole or not at all: two runs that make the same one do not disturb each other."""
    whole = BytesIO()
    torch.save({field.name: getattr(checkpoint, field.name) for field in fields(Checkpoint)}, whole)
    write_atomically(path, whole.getvalue())


def load(path: Path, about: dict[str, Any]) -> Checkpoint | None:
    """The checkpoint at `path`; None if there is none, or one that is not `about` this.

    Raises:
        ValueError: a file that is not whole.
    """
    if not path.exists():
        return None
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
        checkpoint = Checkpoint(**found)
    except (RuntimeError, EOFError, TypeError, pickle.UnpicklingError) as error:
        raise ValueError(f"{path}: not a whole checkpoint ({error}); delete it") from None
    return checkpoint if checkpoint.about == _plain(about) else None
