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

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from typing import Any, ClassVar

import torch

from ..data import images
from ..models import ImageClassifier
from ..training.loop import Labelled
from . import classification
from .classification import Asked, Classification, ClassifierRun, View, shuffled
from .image_methods import METHODS, Size, model_config, training_config
from .image_tasks import HELD_OUT_SEED, Direction, Frame, Pictures, Task, WholeImage
from .sweep import Sweep

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

MOVED = {
    "covered-aligned": (10, 10),
    "covered-misaligned": (13, 17),
    "never-seen-aligned": (60, 60),
    "never-seen-misaligned": (63, 77),
}
"""By how much the trained grid is moved, rows and columns: to places below what shift steps and losses cover,
and to others that two digits write and no step and no loss had."""


@lru_cache(maxsize=1)
def splits_of(name: str) -> images.ImageSplits:
    return images.load(name)


@dataclass(frozen=True)
class ImageRun(ClassifierRun):
    """A classifier of images and its task."""

    task: str

    first: ClassVar = 64

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
        return cls(experiment, profile, name, seed, model_config(name, size), training, task)

    @property
    def size(self) -> Size:
        return SIZES[self.profile]

    @property
    def words(self) -> tuple[str, ...]:
        """The method and the task: rows of a table are compared within a task."""
        return self.name, self.task

    @property
    def side(self) -> int:
        return self.size.frame.grid

    @property
    def data_sets(self) -> tuple[str, ...]:
        """What must be at hand."""
        return (self.images,)

    @property
    def images(self) -> str:
        """The data set."""
        return self.size.data_set

    @property
    def asked(self) -> Task:
        return WholeImage() if self.task == "class" else self.size.direction

    @property
    def larger(self) -> tuple[tuple[str, int], ...]:
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

    def unseen_at(self, grid: int, rule: str = "grow", move: tuple[int, ...] = (0, 0)) -> str:
        """The sides of a view of a grid, moved or under a rule, that training never showed."""
        larger = grid > self.side
        return self.unseen(furthest=max(move) + grid, more=larger, apart=larger, between=rule == "fit")

    def built(self) -> ImageClassifier:
        return ImageClassifier(
            self.model, self.asked.n_classes(splits_of(self.images)), self.size.frame.patch
        )

    def batches(self) -> Iterator[Labelled]:
        splits, training = splits_of(self.images), self.training
        run = {"seed": self.seed, "steps": training.steps}
        drawn = self.asked.batches(splits, self.size.frame, batch_size=training.batch_size, **run)
        places = repeat(None) if training.positions is None else training.positions.positions(**run)
        return (
            Labelled(splits.standardised(one.images).numpy(), one.labels, at)
            for one, at in zip(drawn, places, strict=False)
        )

    def pictures(self, split: str, change: str | None = None, grid: int = 0) -> Pictures:
        """The pictures of a held-out split, as they are or made larger."""
        splits, frame = splits_of(self.images), self.size.frame
        chosen, side = getattr(splits, split), grid * frame.patch
        spread = grid if change == "spread" else None
        drawn = self.asked.held_out(splits, chosen, frame, self.size.held_out, grid=spread)
        if change == "upscaled":
            return drawn._replace(images=images.upscaled(drawn.images, side))
        if change == "canvas":
            placed = images.on_canvas(drawn.images, side, seed=HELD_OUT_SEED, step=frame.patch)
            return drawn._replace(images=placed)
        return drawn

    def held_out(self, split: str, change: str | None = None, grid: int = 0) -> Asked:
        drawn = self.pictures(split, change, grid)
        scaled = splits_of(self.images).standardised(drawn.images)
        return Asked(scaled, torch.from_numpy(drawn.labels.copy()))

    def views(self, model: ImageClassifier) -> Iterator[View]:
        """Patches shuffled, the trained grid moved, larger pictures; shuffled on canvases, too, under the
        rule that suits them."""

        def mixed(asked: Asked, reader: ImageClassifier = model) -> Asked:
            at = reader.positions(*reader.grid(asked.inputs))
            return asked._replace(places=at[shuffled(len(asked.inputs), len(at))])

        plain = self.held_out("test")
        yield View("shuffled_accuracy", None, mixed(plain), model)
        home = model.positions(*model.grid(plain.inputs))
        for name, move in self.moves.items():
            about = {"move": name, "by": list(move), "unseen": self.unseen_at(self.side, move=move)}
            at = (home + torch.tensor(move)).expand(len(plain.inputs), -1, -1)
            yield View(f"moved-{name}", {"kind": "moved", **about}, plain._replace(places=at), model)
        for change, grid in self.larger:
            asked = self.held_out("test", change, grid)
            for rule in self.rules_of(change):
                reader = model.extended(fit=(self.side, self.side)) if rule == "fit" else model
                about = {"change": change, "grid": grid, "rule": rule, "unseen": self.unseen_at(grid, rule)}
                yield View(f"{change}-{grid}/{rule}", {"kind": "view", **about}, asked, reader)
                if change == "canvas" and rule == self.suited(change):
                    about = {"kind": "shuffled", **about}
                    yield View(f"{change}-{grid}/shuffled", about, mixed(asked, reader), reader)

    def sources(self) -> dict[str, Any]:
        pixels = self.training.steps * self.training.batch_size * self.size.frame.side**2
        return {"data": {self.images: splits_of(self.images).sha256}, "bytes_seen": pixels}

    def inputs(self) -> dict[str, Any]:
        size = self.size
        return {
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


EVERY = tuple(f"{name}/{task}" for task in TASKS for name in METHODS)
SMOKE = ("axial-rope/class", "learned/direction", "seqpe/direction")


def of_method(
    experiment: str, profile: str, method: str, seed: int, rate: float, steps: int | None = None
) -> ImageRun:
    """The run of a method and task, such as "learned/direction"."""
    name, task = method.split("/")
    return ImageRun.of(experiment, profile, name, task, seed, rate, steps)


SCREEN = Sweep(
    "image_screen",
    title="Learning rates of the image classifiers",
    whose="each way to tell places, in each task,",
    order=7,
    methods=EVERY,
    smoke=SMOKE[:1],
    config_of=of_method,
    rates=(1e-3, 2e-3, 4e-3),
    beyond={
        **{f"{name}/direction": (5e-4,) for name in ("separated-sinusoidal", "sinusoidal-shifts")},
        **{f"{name}/direction": (8e-3,) for name in ("none", "axial-rope", "axial-rope-shifts")},
        "seqpe/direction": (2.5e-4, 5e-4),
        "separated-sinusoidal/class": (8e-3,),
        "seqpe-multiply/class": (5e-4,),
    },
    score="val_nats",
    default=2e-3,
    run=classification.run,
    fingerprint=classification.fingerprint,
    costs={"smoke": 2.0, "laptop": 100.0, "gpu": 80.0},
)
"""Over the whole schedule: the direction is found after a plateau, before which a shorter one would rank
nothing."""

GUESSES = ("none/direction",)
"""Without places a direction can only be guessed: at every rate the loss is that of a guess, the best of them
is chance, and no further one is tried."""


class Images(Classification):
    """What does each way to tell places pay at the trained grid, and what is left of it at larger ones?"""

    name: ClassVar[str] = "images"
    title: ClassVar[str] = "Images at grids never trained"
    question: ClassVar[str] = (
        "What does each way to tell the place of a patch reach at the trained grid, on upscaled images and "
        "on larger canvases?"
    )
    order: ClassVar[int] = 8
    sweep: ClassVar = SCREEN
    methods: ClassVar = EVERY
    smoke: ClassVar = SMOKE
    costs: ClassVar = {"smoke": 3.0, "laptop": 150.0, "gpu": 120.0}

    def config(self, profile: str, cell: str, seed: int) -> ImageRun:
        return of_method(self.name, profile, cell, seed, SCREEN.rate(profile, cell))
