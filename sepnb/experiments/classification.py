"""What a trained image classifier is asked: held-out pictures as trained, and in every view of its task."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..data.draws import generator_of, uniform
from ..training.device import autocast
from .image_tasks import HELD_OUT_SEED
from .run import HERE, At, Found, Measure, Run

READ_AT_ONCE = 250


class Asked(NamedTuple):
    """Inputs `[n, ...]`, the right answers, int64 `[n]`, and places where they are not the model's own."""

    inputs: Tensor
    answers: Tensor
    places: Tensor | None = None


class View(NamedTuple):
    """One way to read test inputs: `reader` reads `asked`, for the metric `column`; `about` holds the other
    fields of its row (None: no row)."""

    column: str
    about: dict[str, Any] | None
    asked: Asked
    reader: nn.Module


def shuffled(n: int, places: int) -> Tensor:
    """A random order of the places for each of `n` inputs, int64 `[n, places]`."""
    drawn = uniform(generator_of(HELD_OUT_SEED, "patches"), n * places).reshape(n, places)
    return torch.from_numpy(drawn.argsort(axis=1, kind="stable"))


def score(config: Run, model: nn.Module, asked: Asked, device: str) -> dict[str, float]:
    right, nats = 0, 0.0
    model.eval()
    with torch.no_grad():
        for start in range(0, len(asked.inputs), READ_AT_ONCE):
            inputs, answers, places = (
                None if part is None else part[start : start + READ_AT_ONCE] for part in asked
            )
            with autocast(device, config.training.precision):
                at = None if places is None else places.to(device)
                logits = model(inputs.to(device), at).float().cpu()
            right += int((logits.argmax(-1) == answers).sum())
            nats += float(F.cross_entropy(logits, answers, reduction="sum"))
    return {"accuracy": right / len(asked.inputs), "nats": nats / len(asked.inputs)}


@dataclass(frozen=True)
class Views(Measure):
    def __call__(self, config: Run, model: nn.Module, at: At = HERE) -> Found:
        metrics, rows = score(config, model, config.data.held_out("test"), at.device), []
        for view in config.data.views(config, model):
            scores = score(config, view.reader, view.asked, at.device)
            metrics[view.column] = scores["accuracy"]
            if view.about is not None:
                rows.append({**view.about, **scores})
        return metrics, rows
