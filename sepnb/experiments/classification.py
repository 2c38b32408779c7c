"""One classification experiment: train a model to name things at places, then ask it in several views.

`images` and `volumes` say what is classified, which methods there are, and what the views are.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..data.draws import generator_of, uniform
from ..evaluation.protocols import unseen_sides
from ..models import TransformerConfig
from ..records.provenance import Clock
from ..records.store import Record
from ..streams import Streams
from ..training.config import TrainingConfig
from ..training.loop import Labelled, autocast
from ..training.shifts import GridShiftSteps
from .base import Progress, TrainedRun, recorded
from .image_tasks import HELD_OUT_SEED
from .language_modelling import FINGERPRINT_STEPS, FIRST_STEPS, Metrics, Rows, attempted, last, trained
from .methods import changed
from .sweep import Sweep, Swept

READ_AT_ONCE = 250


class Asked(NamedTuple):
    """Inputs `[n, ...]`, the right answers, int64 `[n]`, and places where they are not the model's own."""

    inputs: Tensor
    answers: Tensor
    places: Tensor | None = None


class View(NamedTuple):
    """One way in which test inputs are read: by this model; its metric, and what its row says of it (None: it
    has no row)."""

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

    tokens: ClassVar[int]
    """Of an input as trained, the class token among them."""


class ClassifierRun(TrainedRun):
    """A model, its training and what it is asked. Its method is a name, or name and task: "rope/class"."""

    sizes: ClassVar[Mapping[str, Size]]
    axes: ClassVar[int]
    """Coordinates of a place."""
    first: ClassVar[int | None] = None
    """Validation inputs that a fingerprint reads; None: all."""

    @classmethod
    def of(
        cls, experiment: str, profile: str, method: str, seed: int, rate: float, steps: int | None = None
    ) -> "ClassifierRun":
        """The run of a method at the size of its profile, over the whole schedule or over `steps`; ValueError
        for an unknown method."""
        size, name = cls.sizes[profile], method.split("/")[0]
        dense = Streams.dense(size.width)
        model = TransformerConfig(
            dense, size.n_layers, size.n_heads, "none", max_length=size.tokens, causal=False, axes=cls.axes
        )
        training = TrainingConfig(steps or size.steps, size.batch_size, 1, rate, precision=size.precision)
        model = changed(model, "model", name, size, cls.axes)
        training = changed(training, "training", name, size, cls.axes)
        return cls(experiment, profile, method, seed, model, training)

    @property
    def name(self) -> str:
        """The method without its task."""
        return self.method.split("/")[0]

    @property
    def size(self) -> Any:
        return self.sizes[self.profile]

    @property
    def tokens(self) -> int:
        return self.size.tokens

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

    def sources(self) -> dict[str, Any]:
        """What `recorded` is told of the data."""
        return {}

    def unseen(self, *, furthest: int, more: bool, apart: bool, between: bool = False) -> str:
        """The sides of a view that training never showed, as `unseen_sides` names them; the class token,
        which stays at the origin, is not counted.

        Args:
            furthest: the largest coordinate; cells are counted from 1.
            more, apart: whether there are more tokens, or larger differences of coordinates.
            between: whether places lie between cells.
        """
        seen, training = self.side + 1, self.training
        if isinstance(training.positions, GridShiftSteps):
            seen = max(seen, training.positions.trained_indices())
        if training.auxiliary is not None:
            seen = max(seen, training.auxiliary.trained_indices(1))
        return unseen_sides(
            self.model.encodings,
            index=between or furthest >= seen,
            length=more,
            distance=between or apart,
            reach=self.side + 1,
        )


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


def run(
    config: ClassifierRun, *, device: str = "cpu", progress: Progress | None = None, test: bool = True
) -> Record:
    """Train one classifier and ask it; without `test` of the validation inputs only, as in a sweep."""
    clock, training = Clock(device), config.training
    model = build(config).to(device)
    fingerprint = {"initial_nats": first_nats(config, model, device)}
    losses, metrics = attempted(config, model, config.batches(), device, progress)
    if training.positions is not None:
        met = training.positions.coverage(seed=config.seed, steps=training.steps)
        metrics |= {f"covered_{what}": share for what, share in met.items()}
    rows: Rows = []
    if "diverged_at_step" not in metrics:
        metrics["train_nats"] = last(config, losses)
        validation = score(config, model, config.held_out("validation"), device)
        metrics |= {f"val_{name}": value for name, value in validation.items()}
        if test:
            further, rows = read(config, model, device)
            metrics |= further
    fingerprint["first_losses"] = losses[:FINGERPRINT_STEPS]
    return recorded(config, clock, metrics, rows, fingerprint, **config.sources())


def fingerprint(config: ClassifierRun, *, device: str = "cpu") -> dict[str, list[float]]:
    """The untrained model's nats, and the first training losses of the run's schedule."""
    model = build(config).to(device)
    initial = first_nats(config, model, device)
    losses = trained(config, model, config.batches(), device=device, stop_after=FIRST_STEPS.get())
    return {"initial_nats": initial, "first_losses": losses}


swept = partial(
    Sweep,
    order=7,
    rates=(1e-3, 2e-3, 4e-3),
    score="val_nats",
    default=2e-3,
    computes=run,
    begins=fingerprint,
)
"""A learning-rate sweep of classifiers, over the whole schedule: a direction is found after a plateau, before
which a shorter one would rank nothing."""


class Classification(Swept):
    """An experiment whose runs are the classifiers of a sweep, at the rates that it chose."""

    order: ClassVar[int] = 8
    sweep: ClassVar[Sweep]

    def config(self, profile: str, cell: str, seed: int) -> ClassifierRun:
        return self.sweep.tuned(self.name, profile, cell, seed)

    def sweep_of(self, config: Any) -> tuple[Sweep, str]:
        return self.sweep, config.method

    def run(self, config: Any, *, device: str = "cpu", progress: Progress | None = None) -> Record:
        self.refuse(config)
        return run(config, device=device, progress=progress)

    def fingerprint(self, config: Any, *, device: str = "cpu") -> dict[str, list[float]]:
        return fingerprint(config, device=device)
