"""Chapter 15: what does each way to tell places in an image pay, and what is left of it at larger images?

All methods are one image classifier, trained on the same pictures in the same order, and differ in how they
tell where a patch is. Each is read at the trained grid, and at larger ones in two ways that are kept apart:
*upscaled*, the same picture with more pixels, and on a larger *canvas*, the same picture somewhere on a black
square; things whose arrangement is asked for may also be *spread* over the larger grid. For each of them a
model has two rules, see `ImageClassifier.extended`: the grid *grows*, or the places are *fitted* into the
trained ones. Where the grid grows, indices, the number of patches and the distances between some of them are
all new, those of the class token among them; on a canvas the distance of the two things is not, in a spread
picture it may be. Fitted, the number of patches and the steps between them are new. To see what a new
index costs alone, the trained grid itself is read elsewhere: *moved*, aligned (by tens, so that the low
digits run as in training) and misaligned, to places that shift steps and losses cover and to others that
they do not.

Shuffled patches are the control, at the trained grid and on canvases, and so is the model without places:
what it makes of a larger picture it owes to the patches alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, ClassVar

import torch

from ..models import ImageClassifier, TransformerConfig
from ..records.store import Record, digest
from ..training.loop import Labelled, TrainingConfig
from .base import Progress, check_profile
from .classification import Classification
from .image_methods import METHODS, Size, model_config, training_config
from .image_readings import held_out, read, score, sides_unseen, splits_of
from .image_tasks import Direction, Frame, Pictures, Task, WholeImage
from .language_modelling import Metrics, Rows
from .screening import require_rate, screened_rate

FINGERPRINT_PICTURES = 64


SIZES = {
    "smoke": Size(32, 2, 2, Frame(2, 4), 16, 40, (6,), 100, "digits", Direction((0, 1), 2), 30),
    "laptop": Size(
        64, 4, 4, Frame(4, 7), 64, 800, (10, 14), 2_000, "fashion-mnist", Direction((1, 8), 3), 30
    ),
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
        45,
        "bfloat16",
    ),
}
TASKS = ("class", "direction")

SEEDS = {"smoke": (1,), "laptop": (1, 2, 3, 4, 5, 6), "gpu": (1, 2, 3, 4, 5, 6)}
SMOKE = (("axial-rope", "class"), ("learned", "direction"), ("seqpe", "direction"))

MOVED = {
    "covered-aligned": (10, 10),
    "covered-misaligned": (13, 17),
    "never-seen-aligned": (60, 60),
    "never-seen-misaligned": (63, 77),
}
"""By how much the trained grid is moved, rows and columns: to places below what shift steps and losses cover,
and to others that two digits write and no step and no loss had."""

DEFAULT_RATE = 2e-3
LEARNING_RATES: dict[str, dict[str, float]] = {
    "laptop": {
        **{f"{name}/{task}": 2e-3 for task in TASKS for name in METHODS},
        "separated-sinusoidal/class": 4e-3,
        "seqpe-multiply/class": 1e-3,
        "none/direction": 8e-3,
        "axial-rope/direction": 4e-3,
        "axial-rope-shifts/direction": 4e-3,
        "sinusoidal-shifts/direction": 1e-3,
        "separated-sinusoidal/direction": 1e-3,
        "seqpe/direction": 5e-4,
    }
}
"""The rate of each method and task, the best of `image_screen` on the validation pictures of the profile. A
profile without an entry takes the laptop's. Without any no run is started, and a test asks for an entry as
soon as the profile's screening is published."""


def learning_rate(profile: str, method: str) -> float:
    """The rate of a method and task in the runs of a profile."""
    return screened_rate(LEARNING_RATES, profile, method, DEFAULT_RATE)


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
        training = training_config(name, size, rate, steps or size.steps)
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
        an encoding there are no places, and not every encoding knows places between two patches: digits write
        whole numbers."""
        if self.name == "none" or not self.model.real_positions:
            return ("grow",)
        return ("fit",) if self.name == "learned" else ("grow", "fit")

    def rules_of(self, change: str) -> tuple[str, ...]:
        """Those by which a larger picture is read: on a canvas and in a spread picture the grid grows, where
        it can. What is fitted there would be things that are nearer than ever."""
        return self.rules if change == "upscaled" else (self.suited(change),)

    def suited(self, change: str) -> str:
        """Of its rules the one that suits a larger picture: fitted places where it is upscaled, and where it
        has no other rule."""
        fits = "fit" in self.rules and (change == "upscaled" or "grow" not in self.rules)
        return "fit" if fits else "grow"

    @property
    def moves(self) -> dict[str, tuple[int, int]]:
        """Where else the trained grid is read; a table has no row there, and without places nothing moves."""
        return {} if self.name in ("none", "learned") else MOVED

    def unseen(self, grid: int, rule: str = "grow", move: tuple[int, ...] = (0, 0)) -> str:
        """The sides of a reading that training never showed; see `sides_unseen`."""
        side, furthest = self.size.frame.grid, max(move) + grid
        larger = grid > side
        how = {"more": larger, "apart": larger, "between": rule == "fit"}
        return sides_unseen(self.model, self.training, side, furthest=furthest, **how)

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
                "moved": {name: list(move) for name, move in MOVED.items()},
            },
        }


def build(config: ImageRun) -> ImageClassifier:
    """The untrained model of a run."""
    torch.manual_seed(config.seed)
    n_classes = config.asked.n_classes(splits_of(config.images))
    return ImageClassifier(config.model, n_classes, config.size.frame.patch)


def batches(config: ImageRun) -> Iterator[Labelled]:
    """The same pictures in the same order for every method of a task and seed, at the same places for all
    that have shift steps."""
    splits, training = splits_of(config.images), config.training
    run = {"seed": config.seed, "steps": training.steps}
    drawn = config.asked.batches(splits, config.size.frame, batch_size=training.batch_size, **run)
    places = repeat(None) if training.positions is None else training.positions.positions(**run)
    return (
        Labelled(splits.standardised(one.images).numpy(), one.labels, at)
        for one, at in zip(drawn, places, strict=False)
    )


class Images(Classification):
    """What does each way to tell places pay at the trained grid, and what is left of it at larger ones?"""

    name: ClassVar[str] = "images"
    title: ClassVar[str] = "Images at grids never trained"
    question: ClassVar[str] = (
        "What does each way to tell the place of a patch reach at the trained grid, on upscaled images and "
        "on larger canvases?"
    )
    order: ClassVar[int] = 8

    def grid(self, profile: str, seeds: Sequence[int] | None = None) -> list[ImageRun]:
        every = [(name, task) for task in TASKS for name in METHODS]
        return [
            ImageRun.of(self.name, profile, name, task, seed, learning_rate(profile, f"{name}/{task}"))
            for seed in (SEEDS[check_profile(profile)] if seeds is None else seeds)
            for name, task in (SMOKE if profile == "smoke" else every)
        ]

    def run(self, config: ImageRun, *, device: str = "cpu", progress: Progress | None = None) -> Record:
        if self.reads_test:
            require_rate(LEARNING_RATES, config.profile, config.method, "image_screen")
        return super().run(config, device=device, progress=progress)

    def built(self, config: ImageRun) -> ImageClassifier:
        return build(config)

    def batches(self, config: ImageRun) -> Iterator[Labelled]:
        return batches(config)

    def first(self, config: ImageRun, model: ImageClassifier, device: str) -> list[float]:
        pictures = held_out(config, "validation")
        few = Pictures(pictures.images[:FINGERPRINT_PICTURES], pictures.labels[:FINGERPRINT_PICTURES])
        return [score(config, model, few, device)["nats"]]

    def validated(self, config: ImageRun, model: ImageClassifier, device: str) -> dict[str, float]:
        return score(config, model, held_out(config, "validation"), device)

    def asked(self, config: ImageRun, model: ImageClassifier, device: str) -> tuple[Metrics, Rows]:
        return read(config, model, device)

    def sources(self, config: ImageRun) -> dict[str, Any]:
        training, splits = config.training, splits_of(config.images)
        pixels = training.steps * training.batch_size * config.size.frame.side**2
        return {"data": {config.images: splits.sha256}, "bytes_seen": pixels}

    def seconds(self, profile: str) -> float:
        return {"smoke": 3.0, "laptop": 150.0, "gpu": 120.0}[check_profile(profile)]

    def data_sets(self, profile: str) -> tuple[str, ...]:
        return (SIZES[check_profile(profile)].data_set,)
