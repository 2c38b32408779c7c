"""One classification experiment: train a model to name things at places, then ask it in several views.

`images` says what is classified, which methods there are, and what the views are.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..data.draws import generator_of, uniform
from ..evaluation.protocols import unseen_sides
from ..models import TransformerConfig
from ..streams import Streams
from ..training.config import TrainingConfig
from ..training.device import autocast
from ..training.shifts import GridShiftSteps
from .base import Experiment
from .image_tasks import HELD_OUT_SEED
from .methods import changed
from .run import HERE, At, Data, Fingerprint, Found, Measure, Run, last
from .sweep import Sweep

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


@dataclass(frozen=True)
class Size:
    """What a profile fixes for every method: the model and the schedule."""

    width: int
    n_layers: int
    n_heads: int
    batch_size: int
    steps: int
    held_out: int
    """Inputs of each held-out split that are read."""
    precision: str = "float32"


def run_of(
    data: "Things", experiment: str, profile: str, method: str, cell: str, seed: int, rate: float
) -> Run:
    """The run of a method on some things, called `cell`; ValueError for an unknown method."""
    size = data.size
    dense, length = Streams.dense(size.width), data.tokens()
    model = TransformerConfig(
        dense, size.n_layers, size.n_heads, "none", max_length=length, causal=False, axes=data.axes
    )
    training = TrainingConfig(size.steps, size.batch_size, 1, rate, precision=size.precision)
    model = changed(model, "model", method, size, data.axes)
    training = changed(training, "training", method, size, data.axes)
    return Run(experiment, profile, cell, seed, model, training, data)


class Things(Data):
    """What classifiers are trained on, at the size of a profile. A subclass is a frozen dataclass."""

    size: Any
    axes: int
    """Coordinates of a place."""
    first: int
    """Validation inputs that a fingerprint reads."""

    @property
    @abstractmethod
    def side(self) -> int:
        """Cells along a side of the trained grid."""

    @abstractmethod
    def held_out(self, split: str) -> Asked:
        """Inputs of "validation" or "test" as trained: the same for every method and seed."""

    @abstractmethod
    def views(self, config: Run, model: nn.Module) -> Iterator[View]:
        """How test inputs are read besides."""

    def begins(self, config: Run, model: nn.Module, device: str) -> Fingerprint:
        held_out = self.held_out("validation")
        few = Asked(*(None if part is None else part[: self.first] for part in held_out))
        return {"initial_nats": [score(config, model, few, device)["nats"]]}

    def ends(
        self, config: Run, model: nn.Module | None, losses: list[float], watch: Any, device: str
    ) -> Found:
        training, metrics = config.training, {}
        if training.positions is not None:
            met = training.positions.coverage(seed=config.seed, steps=training.steps)
            metrics |= {f"covered_{what}": share for what, share in met.items()}
        if model is not None:
            metrics["train_nats"] = last(config, losses)
            scored = score(config, model, self.held_out("validation"), device)
            metrics |= {f"val_{name}": value for name, value in scored.items()}
        return metrics, []

    def unseen(self, config: Run, *, furthest: int, larger: bool, between: bool) -> str:
        """The sides of a view that training never showed, as `unseen_sides` names them; the class token,
        which stays at the origin, is not counted.

        Args:
            furthest: the largest coordinate; cells are counted from 1.
            larger: whether there are more tokens, and with them larger differences of coordinates.
            between: whether places lie between cells.
        """
        seen, training = self.side + 1, config.training
        if isinstance(training.positions, GridShiftSteps):
            seen = max(seen, training.positions.trained_indices())
        if training.auxiliary is not None:
            seen = max(seen, training.auxiliary.trained_indices(1))
        return unseen_sides(
            config.model.encodings,
            index=between or furthest >= seen,
            length=larger,
            distance=between or larger,
            reach=self.side + 1,
        )


def shuffled(n: int, places: int) -> Tensor:
    """A random order of the places for each of `n` inputs, int64 `[n, places]`."""
    drawn = uniform(generator_of(HELD_OUT_SEED, "patches"), n * places).reshape(n, places)
    return torch.from_numpy(drawn.argsort(axis=1, kind="stable"))


def score(config: Run, model: nn.Module, asked: Asked, device: str) -> dict[str, float]:
    """The share of right answers, and nats per answer."""
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
    """The test inputs: as trained, and in every view."""

    def __call__(self, config: Run, model: nn.Module, at: At = HERE) -> Found:
        metrics, rows = score(config, model, config.data.held_out("test"), at.device), []
        for view in config.data.views(config, model):
            scores = score(config, view.reader, view.asked, at.device)
            metrics[view.column] = scores["accuracy"]
            if view.about is not None:
                rows.append({**view.about, **scores})
        return metrics, rows


swept = partial(Sweep, order=7, rates=(1e-3, 2e-3, 4e-3), score="val_nats", default=2e-3)
"""A learning-rate sweep of classifiers, over the whole schedule: a direction is found after a plateau, before
which a shorter one would rank nothing."""


def classification(sweep: Sweep, **about: Any) -> Experiment:
    """An experiment whose runs are the classifiers of a sweep, at the rates that it chose."""
    parts = {"plan": partial(sweep.measured, (Views(),)), "waits": sweep.before, "methods": sweep.methods}
    return Experiment(order=8, **parts, **about)
