"""Chapter 15: what does each way to tell places in an image pay, and what is left of it at larger images?

All methods are one image classifier, trained on the same pictures in the same order, and differ in how they
tell where a patch is. Each is read at the trained grid, and at larger ones in two ways that are kept apart:
*upscaled*, the same picture with more pixels, and on a larger *canvas*, the same picture somewhere on a black
square; things whose arrangement is asked for may also be *spread* over the larger grid. For each of them a
model has two rules, see `ImageClassifier.extended`: the grid *grows*, or the places are *fitted* into the
trained ones. Where the grid grows, indices, the number of patches and the distances between some of them are
all new, those of the class token among them; on a canvas the distance of the two things is not, in a spread
picture it may be. Fitted, the number of patches and the steps between them are new.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from ..encodings import AxialRoPE, Encoding, Learned, Sinusoidal
from ..models import ImageClassifier, TransformerConfig
from ..provenance import Clock
from ..results import Record, digest
from ..streams import Streams
from ..training import Diverged, Labelled, TrainingConfig, train
from .base import Experiment, Progress, check_profile
from .image_readings import held_out, read, score, splits_of
from .image_tasks import Direction, Frame, Pictures, Task, WholeImage
from .language_modelling import FINGERPRINT_STEPS

FINGERPRINT_PICTURES = 64


@dataclass(frozen=True)
class Size:
    """What a profile fixes for every method: the model, the schedule, the pictures."""

    width: int
    n_layers: int
    n_heads: int
    frame: Frame
    batch_size: int
    steps: int
    grids: tuple[int, ...]
    """Patches along a side of the larger pictures."""
    held_out: int
    """Pictures of each held-out split that are read."""
    data_set: str
    direction: Direction
    precision: str = "float32"


SIZES = {
    "smoke": Size(32, 2, 2, Frame(2, 4), 16, 40, (6,), 100, "digits", Direction((0, 1), 2)),
    "laptop": Size(64, 4, 4, Frame(4, 7), 64, 800, (10, 14), 2_000, "fashion-mnist", Direction((1, 8), 3)),
    "gpu": Size(
        192,
        6,
        6,
        Frame(4, 7),
        256,
        4_000,
        (10, 14, 21),
        5_000,
        "fashion-mnist",
        Direction((1, 8), 3),
        "bfloat16",
    ),
}
TASKS = ("class", "direction")

METHODS = ("none", "learned", "sinusoidal", "axial-rope", "separated-sinusoidal")
"""How a patch tells where it is. `separated-` gives an eighth of the width to its row and one to its column,
in streams of their own; the others are dense."""

SEEDS = {"smoke": (1,), "laptop": (1, 2, 3, 4, 5, 6), "gpu": (1, 2, 3, 4, 5, 6)}
SMOKE = (("axial-rope", "class"), ("learned", "direction"))

DEFAULT_RATE = 2e-3
LEARNING_RATES: dict[str, dict[str, float]] = {}
"""The rate of each method and task, the best of `image_screen` on the validation pictures of the profile. A
profile without an entry takes the laptop's, and without that the middle one; a test asks for an entry as soon
as the profile's screening is published."""


def learning_rate(profile: str, method: str) -> float:
    """The rate of a method and task in the runs of a profile."""
    rates = LEARNING_RATES.get(profile) or LEARNING_RATES.get("laptop") or {}
    return rates.get(method, DEFAULT_RATE)


def model_config(name: str, size: Size) -> TransformerConfig:
    """The model of a method; two methods differ in streams and encoding only.

    Raises:
        ValueError: an unknown method.
    """
    if name not in METHODS:
        raise ValueError(f"unknown method {name!r}; use one of {', '.join(METHODS)}")
    side, eighth = size.frame.grid, size.width // 8
    encodings: dict[str, str | Encoding] = {
        "none": "none",
        "learned": Learned(grid=(side, side)),
        "sinusoidal": Sinusoidal(dims=2),
        "axial-rope": AxialRoPE(),
        "separated-sinusoidal": "sinusoidal",
    }
    streams = Streams.dense(size.width)
    if name.startswith("separated-"):
        streams = Streams(row=eighth, col=eighth, sem=size.width - 2 * eighth)
    return TransformerConfig(
        streams,
        size.n_layers,
        size.n_heads,
        encodings[name],
        max_length=side * side + 1,
        causal=False,
        axes=2,
    )


@dataclass(frozen=True)
class ImageRun:
    """A model, its training and what it is asked."""

    experiment: str
    profile: str
    name: str
    task: str
    seed: int
    model: TransformerConfig
    training: TrainingConfig

    @classmethod
    def of(
        cls,
        experiment: str,
        profile: str,
        name: str,
        task: str,
        seed: int,
        rate: float,
        steps: int | None = None,
    ) -> "ImageRun":
        """A run at the size of its profile.

        Raises:
            ValueError: an unknown method or task.
        """
        if task not in TASKS:
            raise ValueError(f"unknown task {task!r}; use one of {', '.join(TASKS)}")
        size = SIZES[profile]
        training = TrainingConfig(steps or size.steps, size.batch_size, 1, rate, precision=size.precision)
        return cls(experiment, profile, name, task, seed, model_config(name, size), training)

    @property
    def size(self) -> Size:
        return SIZES[self.profile]

    @property
    def method(self) -> str:
        """The method and the task: rows of a table are compared within a task."""
        return f"{self.name}/{self.task}"

    @property
    def label(self) -> str:
        return f"{self.name}, {self.task}, learning rate {self.training.learning_rate:g}"

    @property
    def images(self) -> str:
        """The data set."""
        return self.size.data_set

    @property
    def asked(self) -> Task:
        return WholeImage() if self.task == "class" else self.size.direction

    @property
    def key(self) -> str:
        rate = f"lr{self.training.learning_rate:g}"
        return f"{self.name}-{self.task}-{rate}-seed{self.seed}-{digest(self.resolved())[:8]}"

    @property
    def views(self) -> tuple[tuple[str, int], ...]:
        """The larger pictures: how, and patches along a side."""
        changes = ("upscaled", "canvas") + ("spread",) * self.asked.spreads
        return tuple((change, grid) for change in changes for grid in self.size.grids)

    @property
    def rules(self) -> tuple[str, ...]:
        """How the model may place the patches of a larger picture. A table has no row past its grid, without
        an encoding there are no places, and not every encoding knows places between two patches."""
        if self.name == "none" or not self.model.real_positions:
            return ("grow",)
        return ("fit",) if self.name == "learned" else ("grow", "fit")

    def resolved(self) -> dict[str, Any]:
        """Every setting in plain JSON types."""
        size = self.size
        return {
            "experiment": self.experiment,
            "profile": self.profile,
            "method": self.method,
            "seed": self.seed,
            "model": self.model.resolved(),
            "training": self.training.resolved(),
            "images": {
                "name": size.data_set,
                "patch": size.frame.patch,
                "grid": size.frame.grid,
                "larger": list(size.grids),
                "held_out": size.held_out,
                "things": [*size.direction.classes, size.direction.item],
            },
        }


def build(config: ImageRun) -> ImageClassifier:
    """The untrained model of a run."""
    torch.manual_seed(config.seed)
    n_classes = config.asked.n_classes(splits_of(config.images))
    return ImageClassifier(config.model, n_classes, config.size.frame.patch)


def batches(config: ImageRun) -> Iterator[Labelled]:
    """The same pictures in the same order for every method of a task and seed."""
    splits, training = splits_of(config.images), config.training
    drawn = config.asked.batches(
        splits, config.size.frame, batch_size=training.batch_size, seed=config.seed, steps=training.steps
    )
    return (Labelled(splits.standardised(one.images).numpy(), one.labels) for one in drawn)


def _first(config: ImageRun, model: ImageClassifier, device: str) -> list[float]:
    """Nats of the model on the first validation pictures: part of a fingerprint."""
    pictures = held_out(config, "validation")
    few = Pictures(pictures.images[:FINGERPRINT_PICTURES], pictures.labels[:FINGERPRINT_PICTURES])
    return [score(config, model, few, device)["nats"]]


class Images(Experiment):
    """What does each way to tell places pay at the trained grid, and what is left of it at larger ones?"""

    name: ClassVar[str] = "images"
    title: ClassVar[str] = "Images at grids never trained"
    question: ClassVar[str] = (
        "What does each way to tell the place of a patch reach at the trained grid, on upscaled images and "
        "on larger canvases?"
    )
    order: ClassVar[int] = 8
    reads_test: ClassVar[bool] = True

    def grid(self, profile: str, seeds: Sequence[int] | None = None) -> list[ImageRun]:
        every = [(name, task) for task in TASKS for name in METHODS]
        return [
            ImageRun.of(self.name, profile, name, task, seed, learning_rate(profile, f"{name}/{task}"))
            for seed in (SEEDS[check_profile(profile)] if seeds is None else seeds)
            for name, task in (SMOKE if profile == "smoke" else every)
        ]

    def run(self, config: ImageRun, *, device: str = "cpu", progress: Progress | None = None) -> Record:
        clock, training = Clock(device), config.training
        splits, model = splits_of(config.images), build(config).to(device)
        fingerprint = {"initial_nats": _first(config, model, device)}
        counts = model.parameter_counts()
        metrics: dict[str, float | int] = {
            "parameters": counts["total"],
            "block_parameters": counts["blocks"],
            "learning_rate": training.learning_rate,
        }
        begun, rows = Clock(device), []
        on_step = None if progress is None else lambda step: progress(step + 1, training.steps)
        try:
            losses = train(model, batches(config), training, device=device, on_step=on_step)
            metrics["train_cpu_s"] = begun.cpu_s
            metrics["train_nats"] = float(np.mean(losses[-max(1, training.steps // 20) :]))
            validation = score(config, model, held_out(config, "validation"), device)
            metrics |= {f"val_{name}": value for name, value in validation.items()}
            if self.reads_test:
                further, rows = read(config, model, device)
                metrics |= further
        except Diverged as error:  # a result like any other: kept, and without a score
            losses = error.losses
            metrics["diverged_at_step"] = error.step
        return Record.of(
            config,
            metrics=metrics,
            rows=rows,
            fingerprint=fingerprint | {"first_losses": losses[:FINGERPRINT_STEPS]},
            provenance=clock.facts(
                seed=config.seed,
                data={config.images: splits.sha256},
                bytes_seen=training.steps * training.batch_size * config.size.frame.side**2,
            ),
        )

    def fingerprint(self, config: ImageRun, *, device: str = "cpu") -> dict[str, list[float]]:
        """The untrained model's nats, and the first training losses of the run's schedule."""
        model = build(config).to(device)
        initial = _first(config, model, device)
        losses = train(model, batches(config), config.training, device=device, stop_after=FINGERPRINT_STEPS)
        return {"initial_nats": initial, "first_losses": losses}

    def seconds(self, profile: str) -> float:
        return {"smoke": 3.0, "laptop": 150.0, "gpu": 120.0}[check_profile(profile)]

    def data_sets(self, profile: str) -> tuple[str, ...]:
        return (SIZES[check_profile(profile)].data_set,)
