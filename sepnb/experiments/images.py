"""Chapter 17: what does each way to tell places in an image cost, and what is left of it at larger images?

All methods are one image classifier, trained on the same pictures in the same order. Each is read at the
trained grid, as it is and with shuffled patches as a control, and at larger grids:

- *upscaled*: the same picture with more pixels;
- *canvas*: the same picture somewhere on a black square;
- *spread*, where an arrangement is asked for: the two things anywhere on the larger grid.

A model has two rules for the places of a larger picture, see `ImageClassifier.extended`: the grid *grows* and
has new indices, or places are *fitted* into the trained ones, with new steps between them. The number of
patches is new under both. A new index alone is seen where the trained grid is *moved*, see `MOVED`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import repeat
from typing import Any

import torch
from torch import nn

from ..data import images
from ..evaluation.protocols import unseen_sides
from ..models import ImageClassifier, TransformerConfig
from ..streams import Streams
from ..training.batch import Batch
from ..training.config import TrainingConfig
from ..training.shifts import GridShiftSteps
from ..validation import named
from .base import Experiment
from .classification import Asked, View, Views, score, shuffled
from .image_methods import METHODS, SIZES, Size
from .image_tasks import HELD_OUT_SEED, Pictures, Task, WholeImage
from .methods import changed
from .run import Data, Fingerprint, Found, Run, last
from .sweep import Sweep

TASKS = ("class", "direction")

MOVED = {
    "covered-aligned": (10, 10),
    "covered-misaligned": (13, 17),
    "never-seen-aligned": (60, 60),
    "never-seen-misaligned": (63, 77),
}
"""By how many rows and columns the trained grid is moved: to places that shift steps and losses reach, and to
others that two digits write and no step and no loss had."""

FIRST = 64
"""Validation pictures that a fingerprint reads."""

splits_of = lru_cache(maxsize=1)(images.load)


@dataclass(frozen=True)
class ImageTask(Data):
    """What is asked of the images of a size: "class" or "direction". Rows of a table are compared within a
    task."""

    size: Size
    task: str

    @property
    def side(self) -> int:
        return self.size.frame.grid

    def tokens(self, training: TrainingConfig | None = None) -> int:
        return self.side**2 + 1

    @property
    def data_sets(self) -> tuple[str, ...]:
        return (self.size.data_set,)

    @property
    def splits(self) -> images.ImageSplits:
        return splits_of(self.size.data_set)

    @property
    def asked(self) -> Task:
        return WholeImage() if self.task == "class" else self.size.direction

    @property
    def larger(self) -> tuple[tuple[str, int], ...]:
        """How, and patches along a side."""
        changes = ("upscaled", "canvas") + ("spread",) * self.asked.spreads
        return tuple((change, grid) for change in changes for grid in self.size.grids)

    def unseen_at(self, config: Run, grid: int, rule: str = "grow", move: tuple[int, ...] = (0, 0)) -> str:
        """The sides of a view of a grid, moved or under a rule, that training never showed, as `unseen_sides`
        names them. Cells are counted from 1; the class token, which stays at the origin, is not counted."""
        seen, training, larger, between = self.side + 1, config.training, grid > self.side, rule == "fit"
        if isinstance(training.positions, GridShiftSteps):
            seen = max(seen, training.positions.trained_indices())
        if training.auxiliary is not None:
            seen = max(seen, training.auxiliary.trained_indices(1))
        return unseen_sides(
            config.model.encodings,
            index=between or max(move) + grid >= seen,
            length=larger,
            distance=between or larger,
            reach=self.side + 1,
        )

    def model(self, config: Run) -> ImageClassifier:
        return ImageClassifier(config.model, self.asked.n_classes(self.splits), self.size.frame.patch)

    def batches(self, config: Run) -> Iterator[Batch]:
        """Of a seed the same for every method, in shift steps all moved alike."""
        splits, training = self.splits, config.training
        run = {"seed": config.seed, "steps": training.steps}
        drawn = self.asked.batches(splits, self.size.frame, batch_size=training.batch_size, **run)
        places = repeat(None) if training.positions is None else training.positions.positions(**run)
        for one, at in zip(drawn, places, strict=False):
            yield Batch(splits.standardised(one.images).numpy(), one.labels, at)

    def begins(self, config: Run, model: nn.Module, device: str) -> Fingerprint:
        held_out = self.held_out("validation")
        few = Asked(*(None if part is None else part[:FIRST] for part in held_out))
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

    def pictures(self, split: str, change: str | None = None, grid: int = 0) -> Pictures:
        splits, size = self.splits, self.size
        spread, side = grid if change == "spread" else None, grid * size.frame.patch
        drawn = self.asked.held_out(splits, getattr(splits, split), size.frame, size.held_out, grid=spread)
        if change == "upscaled":
            return drawn._replace(images=images.upscaled(drawn.images, side))
        if change == "canvas":
            placed = images.on_canvas(drawn.images, side, seed=HELD_OUT_SEED, step=size.frame.patch)
            return drawn._replace(images=placed)
        return drawn

    def held_out(self, split: str, change: str | None = None, grid: int = 0) -> Asked:
        drawn = self.pictures(split, change, grid)
        return Asked(self.splits.standardised(drawn.images), torch.from_numpy(drawn.labels.copy()))

    def views(self, config: Run, model: ImageClassifier) -> Iterator[View]:
        """Patches shuffled, the trained grid moved, larger pictures; shuffled on canvases too."""

        def mixed(asked: Asked, reader: ImageClassifier = model) -> Asked:
            at = reader.positions(*reader.grid(asked.inputs))
            return asked._replace(places=at[shuffled(len(asked.inputs), len(at))])

        plain = self.held_out("test")
        yield View("shuffled_accuracy", None, mixed(plain), model)
        home = model.positions(*model.grid(plain.inputs))
        for name, move in moves_of(config).items():
            about = {"move": name, "by": list(move), "unseen": self.unseen_at(config, self.side, move=move)}
            at = (home + torch.tensor(move)).expand(len(plain.inputs), -1, -1)
            yield View(f"moved-{name}", {"kind": "moved", **about}, plain._replace(places=at), model)
        for change, grid in self.larger:
            asked = self.held_out("test", change, grid)
            # Canvases and spread pictures are read where the grid grows, if it can: fitted, their things
            # would be nearer to each other than ever.
            for rule in rules_of(config) if change == "upscaled" else (suited(config, change),):
                reader = model.extended(fit=self.size.grid) if rule == "fit" else model
                unseen = self.unseen_at(config, grid, rule)
                about = {"change": change, "grid": grid, "rule": rule, "unseen": unseen}
                yield View(f"{change}-{grid}/{rule}", {"kind": "view", **about}, asked, reader)
                if change == "canvas" and rule == suited(config, change):
                    about = {"kind": "shuffled", **about}
                    yield View(f"{change}-{grid}/shuffled", about, mixed(asked, reader), reader)

    def sources(self, config: Run, trainings: Sequence[TrainingConfig]) -> dict[str, Any]:
        of = config.training
        pixels = of.steps * of.batch_size * self.size.frame.side**2
        return {"data": {self.size.data_set: self.splits.sha256}, "bytes_seen": pixels}

    def resolved(self) -> dict[str, Any]:
        size = self.size
        pictures = {
            "name": size.data_set,
            "patch": size.frame.patch,
            "grid": size.frame.grid,
            "larger": list(size.grids),
            "held_out": size.held_out,
            "things": [*size.direction.classes, size.direction.item],
            "moved": {name: list(move) for name, move in MOVED.items()},
        }
        return {"images": pictures}


def rules_of(config: Run) -> tuple[str, ...]:
    """How a model may place the patches of a larger picture. A learned table has no row past its grid;
    without an encoding there are no places, and digits write no place between two patches."""
    encoding = config.model.encodings[0].name
    if encoding == "none" or not config.model.real_positions:
        return ("grow",)
    return ("fit",) if encoding == "learned" else ("grow", "fit")


def suited(config: Run, change: str) -> str:
    """The rule that suits a larger picture: fitted where it is upscaled or there is no other."""
    rules = rules_of(config)
    return "fit" if "fit" in rules and (change == "upscaled" or "grow" not in rules) else "grow"


def moves_of(config: Run) -> dict[str, tuple[int, int]]:
    """Where else the trained grid is read; a table has no row there, and without places nothing moves."""
    return {} if config.model.encodings[0].name in ("none", "learned") else MOVED


CELLS = {f"{name}/{task}": (name, task) for task in TASKS for name in METHODS}


def run_of(experiment: str, profile: str, cell: str, seed: int, rate: float) -> Run:
    method, task = named("method", cell, CELLS)
    size, data = SIZES[profile], ImageTask(SIZES[profile], task)
    dense, length = Streams.dense(size.width), data.tokens()
    model = TransformerConfig(
        dense, size.n_layers, size.n_heads, "none", max_length=length, causal=False, axes=2
    )
    training = TrainingConfig(size.steps, size.batch_size, 1, rate, precision=size.precision)
    model = changed(model, "model", method, size, axes=2)
    training = changed(training, "training", method, size, axes=2)
    return Run(experiment, profile, cell, seed, model, training, data)


GUESSES = ("none/direction",)
"""Without places a direction can only be guessed: every rate ends at chance, and no further one is tried."""

SCREEN = Sweep(
    name="image_screen",
    title="Learning rates of the image classifiers",
    order=7,
    methods=tuple(CELLS),
    smoke=("axial-rope/class",),
    config_of=run_of,
    rates=(1e-3, 2e-3, 4e-3),
    score="val_nats",
    default=2e-3,
    stops=GUESSES,
    costs={"smoke": 2.0, "laptop": 100.0},
)
"""Over the whole schedule: a direction is found after a plateau, before which a shorter one would rank
nothing."""

EXPERIMENT = Experiment(
    name="images",
    title="Images at grids never trained",
    question="""What does each way to tell the place of a patch reach at the trained grid, on upscaled
        images and on larger canvases?""",
    order=8,
    methods=tuple(CELLS),
    smoke=("axial-rope/class", "learned/direction", "seqpe/direction"),
    costs={"smoke": 3.0, "laptop": 150.0},
    plan=partial(SCREEN.measured, (Views(),)),
    waits=SCREEN.before,
)
