"""A run that trains a classifier of things at places: build, train, and ask in every view. `images` and
`volumes` say what is classified, and what the views are."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..data.draws import generator_of, uniform
from ..evaluation.protocols import unseen_sides
from ..models import TransformerConfig
from ..records.provenance import Clock
from ..records.store import Record, digest
from ..training.config import TrainingConfig
from ..training.loop import Diverged, Labelled, autocast, train
from ..training.shifts import GridShiftSteps
from .base import Experiment, Progress
from .image_tasks import HELD_OUT_SEED
from .language_modelling import FINGERPRINT_STEPS, Metrics, Rows
from .sweep import Sweep

READ_AT_ONCE = 250


class Asked(NamedTuple):
    """Inputs `[n, ...]`, the right answers, int64 `[n]`, and places where they are not the model's own."""

    inputs: Tensor
    answers: Tensor
    places: Tensor | None = None


class View(NamedTuple):
    """One way in which test inputs are read: by this model; the column of its accuracy, and what its row says
    of it (None: it has no row)."""

    column: str
    about: dict[str, Any] | None
    asked: Asked
    reader: nn.Module


@dataclass(frozen=True)
class ClassifierRun(ABC):
    """A model, its training and what it is asked. A subclass says what is classified."""

    experiment: str
    profile: str
    name: str
    seed: int
    model: TransformerConfig
    training: TrainingConfig

    first: ClassVar[int | None] = None
    """Validation inputs that a fingerprint reads; all of them where there is no number."""

    @property
    def words(self) -> tuple[str, ...]:
        """What the run is called by."""
        return (self.name,)

    @property
    def method(self) -> str:
        return "/".join(self.words)

    @property
    def label(self) -> str:
        return ", ".join((*self.words, f"learning rate {self.training.learning_rate:g}"))

    @property
    def key(self) -> str:
        parts = (*self.words, f"lr{self.training.learning_rate:g}", f"seed{self.seed}")
        return "-".join((*parts, digest(self.resolved())[:8]))

    @property
    @abstractmethod
    def side(self) -> int:
        """Cells along a side of the trained grid."""

    @abstractmethod
    def built(self) -> nn.Module:
        """The model, with weights from the generator of the process."""

    @abstractmethod
    def batches(self) -> Iterator[Labelled]:
        """The same inputs in the same order for every method of a seed, in shift steps all moved alike."""

    @abstractmethod
    def held_out(self, split: str) -> Asked:
        """Inputs of "validation" or "test" as trained: the same for every method and seed."""

    @abstractmethod
    def views(self, model: nn.Module) -> Iterator[View]:
        """How test inputs are read besides."""

    @abstractmethod
    def inputs(self) -> dict[str, Any]:
        """What is read, in plain JSON types, under a name for it."""

    def sources(self) -> dict[str, Any]:
        """Hashes of the data, and how many bytes are read in training: of a run that draws all it reads,
        none."""
        return {"data": {}, "bytes_seen": 0}

    def unseen(self, *, furthest: int, more: bool, apart: bool, between: bool = False) -> str:
        """The sides of a view that training never showed, as `unseen_sides` names them.

        An index is new that no step and no loss had, or one between two cells; a distance, where the
        coordinates of two cells differ as they never did. What is read of the class token, which is at the
        origin, is not counted.

        Args:
            furthest: the largest coordinate; cells are counted from 1.
            more, apart: whether there are more tokens, or differences that are larger.
            between: whether places lie between cells.
        """
        covered, training = self.side + 1, self.training
        if isinstance(training.positions, GridShiftSteps):
            covered = max(covered, training.positions.trained_indices())
        if training.auxiliary is not None:
            covered = max(covered, training.auxiliary.trained_indices(1))
        return unseen_sides(
            self.model.encodings,
            index=between or furthest >= covered,
            length=more,
            distance=between or apart,
            reach=self.side + 1,
        )

    def resolved(self) -> dict[str, Any]:
        """Every setting in plain JSON types."""
        return {
            "experiment": self.experiment,
            "profile": self.profile,
            "method": self.method,
            "seed": self.seed,
            "model": self.model.resolved(),
            "training": self.training.resolved(),
            **self.inputs(),
        }


def build(config: ClassifierRun) -> nn.Module:
    """The untrained model of a run."""
    torch.manual_seed(config.seed)
    return config.built()


def shuffled(n: int, places: int) -> Tensor:
    """A random order of the places for each of `n` inputs, int64 `[n, places]`."""
    drawn = uniform(generator_of(HELD_OUT_SEED, "patches"), n * places).reshape(n, places)
    return torch.from_numpy(drawn.argsort(axis=1, kind="stable"))


def score(config: ClassifierRun, model: nn.Module, asked: Asked, device: str) -> dict[str, float]:
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


def read(config: ClassifierRun, model: nn.Module, device: str) -> tuple[Metrics, Rows]:
    """Metrics and rows of the test inputs: as trained, and in every view."""
    metrics, rows = score(config, model, config.held_out("test"), device), []
    for view in config.views(model):
        found = score(config, view.reader, view.asked, device)
        metrics[view.column] = found["accuracy"]
        if view.about is not None:
            rows.append({**view.about, **found})
    return metrics, rows


def first_nats(config: ClassifierRun, model: nn.Module, device: str) -> list[float]:
    """Nats of a model on the first validation inputs: part of a fingerprint."""
    few = Asked(*(None if part is None else part[: config.first] for part in config.held_out("validation")))
    return [score(config, model, few, device)["nats"]]


def trained(config: ClassifierRun, model: nn.Module, **how: Any) -> list[float]:
    """Train a model in place; returns its losses, in nats."""
    auxiliary = config.training.bound_auxiliary(config.seed)
    return train(model, config.batches(), config.training, auxiliary=auxiliary, **how)


def run(
    config: ClassifierRun, *, device: str = "cpu", progress: Progress | None = None, test: bool = True
) -> Record:
    """Train one classifier and ask it; without `test` of the validation inputs only, as in a sweep."""
    clock, training = Clock(device), config.training
    model = build(config).to(device)
    fingerprint = {"initial_nats": first_nats(config, model, device)}
    counts = model.parameter_counts()
    metrics: Metrics = {
        "parameters": counts["total"],
        "block_parameters": counts["blocks"],
        "learning_rate": training.learning_rate,
    }
    if training.positions is not None:
        met = training.positions.coverage(seed=config.seed, steps=training.steps)
        metrics |= {f"covered_{what}": share for what, share in met.items()}
    begun, rows = Clock(device), []
    on_step = None if progress is None else lambda step: progress(step + 1, training.steps)
    try:
        losses = trained(config, model, device=device, on_step=on_step)
    except Diverged as error:  # a result like any other: kept, and without a score
        losses = error.losses
        metrics["diverged_at_step"] = error.step
    else:
        metrics["train_cpu_s"] = begun.cpu_s
        metrics["train_nats"] = float(np.mean(losses[-max(1, training.steps // 20) :]))
        validation = score(config, model, config.held_out("validation"), device)
        metrics |= {f"val_{name}": value for name, value in validation.items()}
        if test:
            further, rows = read(config, model, device)
            metrics |= further
    return Record.of(
        config,
        metrics=metrics,
        rows=rows,
        fingerprint=fingerprint | {"first_losses": losses[:FINGERPRINT_STEPS]},
        provenance=clock.facts(seed=config.seed, **config.sources()),
    )


def fingerprint(config: ClassifierRun, *, device: str = "cpu") -> dict[str, list[float]]:
    """The untrained model's nats, and the first training losses of the run's schedule."""
    model = build(config).to(device)
    initial = first_nats(config, model, device)
    losses = trained(config, model, device=device, stop_after=FINGERPRINT_STEPS)
    return {"initial_nats": initial, "first_losses": losses}


class Classification(Experiment):
    """An experiment whose runs are classifiers; a subclass says which, at the rates of its sweep."""

    sweep: ClassVar[Sweep]

    def run(self, config: Any, *, device: str = "cpu", progress: Progress | None = None) -> Record:
        self.sweep.require(config.profile, config.method)
        return run(config, device=device, progress=progress)

    def fingerprint(self, config: Any, *, device: str = "cpu") -> dict[str, list[float]]:
        return fingerprint(config, device=device)
