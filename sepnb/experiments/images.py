"""Chapter 17: what does each way to tell places in an image cost, and what is left of it at larger images?

All methods are one image classifier, trained on the same pictures in the same order. Each is read at the
trained grid, as it is and with shuffled patches as a control, and at larger grids:

- *upscaled*: the same picture with more pixels;
- *canvas*: the same picture somewhere on a black square;
- *spread*, where an arrangement is asked for: the two things anywhere on the larger grid.

A model has two rules for the places of a larger picture, see `ImageClassifier.extended`: the grid *grows* and
has new indices, or places are *fitted* into the trained ones, with new steps between them. The number of
patches is new under both. A new index alone is seen where the trained grid is *moved*, see `MOVED`.

`separated-` gives an eighth of the width to the row of a patch and one to its column. It has fewer parameters
than a dense model of its width; `-wide`, a quarter wider, has about as many. `seqpe` has the released
schedule and, unlike the released image program, one map for all layers; `seqpe-multiply` multiplies queries
and keys by a map of every layer, as that program does. Shift steps without digits change even axial RoPE,
whose class token stays at the origin.

Losses and shift steps have coordinates below `Size.reach`, about twice the largest grid that is read. The
release has 100 for grids of up to 42; with as few steps as here, that would hardly ever put a patch where
larger grids have theirs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import repeat
from typing import Any, ClassVar

import torch

from ..data import images
from ..encodings import AxialRoPE, Learned, Sinusoidal
from ..models import ImageClassifier
from ..seqpe import SeqPE
from ..streams import Streams
from ..training.batch import Batch
from ..training.config import TrainingConfig
from ..training.seqpe_losses import grid_losses
from ..training.shifts import GridShiftSteps
from ..validation import named
from . import classification
from .classification import Asked, Things, View, shuffled, swept
from .image_tasks import HELD_OUT_SEED, Direction, Frame, Pictures, Task, WholeImage
from .methods import EQUAL, Method, listed
from .run import Run


@dataclass(frozen=True, kw_only=True)
class Size(classification.Size):
    """What a profile fixes for every method: the model, the schedule, the pictures."""

    data_set: str
    frame: Frame
    grids: tuple[int, ...]
    """Patches along a side of the larger pictures."""
    direction: Direction
    reach: int
    """Coordinates of shift steps and losses lie below this."""

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of the trained grid."""
        return self.frame.grid, self.frame.grid


DIGITS = {"data_set": "digits", "frame": Frame(2, 4), "direction": Direction((0, 1), 2)}
CLOTHES = {"data_set": "fashion-mnist", "frame": Frame(4, 7), "direction": Direction((1, 8), 3)}
SIZES = {
    "smoke": Size(32, 2, 2, 16, 40, 100, **DIGITS, grids=(6,), reach=30),
    "laptop": Size(64, 4, 4, 64, 800, 2_000, **CLOTHES, grids=(10, 14), reach=30),
    "gpu": Size(192, 6, 6, 256, 4_000, 5_000, "bfloat16", **CLOTHES, grids=(10, 14, 21), reach=45),
}
EMBEDDING = SeqPE(digits=2, dims=2, class_token=True)


def _streams(width: int) -> Streams:
    part = width // 8
    return Streams(row=part, col=part, sem=width - 2 * part)


SHIFTED = {"positions": lambda s: GridShiftSteps(s.grid, 2 * (s.reach,))}
TAUGHT = {"auxiliary": lambda s: grid_losses(s.grid, 2 * (s.reach,), columns=EMBEDDING.width)}

METHODS = listed(
    Method("none", "no places"),
    Method("learned", "a table of the trained grid", "none", {"encoding": lambda s: Learned(grid=s.grid)}),
    Method("sinusoidal", "sinusoids of row and column added", "none", {"encoding": Sinusoidal(dims=2)}),
    Method("sinusoidal-shifts", "shift steps", "sinusoidal", training=SHIFTED),
    Method("axial-rope", "rotated by row and column", "none", {"encoding": AxialRoPE()}),
    Method("axial-rope-shifts", "shift steps", "axial-rope", training=SHIFTED),
    Method(
        "separated-sinusoidal",
        "streams of row and column",
        "none",
        {"streams": lambda s: _streams(s.width), "encoding": "sinusoidal"},
    ),
    Method(
        "separated-sinusoidal-wide",
        EQUAL,
        "separated-sinusoidal",
        {"streams": lambda s: _streams(s.width + s.width // 4)},
    ),
    Method("seqpe-plain", "digit strings in a term of the score", "none", {"encoding": EMBEDDING}),
    Method("seqpe", "shift steps and both losses", "seqpe-plain", training=SHIFTED | TAUGHT),
    Method(
        "seqpe-multiply",
        "queries and keys multiplied, as released",
        "seqpe",
        {"encoding": replace(EMBEDDING, site="multiply", per_layer=True)},
    ),
    axes=2,
)
"""How a patch tells where it is, in the order of tables."""

TASKS = ("class", "direction")

MOVED = {
    "covered-aligned": (10, 10),
    "covered-misaligned": (13, 17),
    "never-seen-aligned": (60, 60),
    "never-seen-misaligned": (63, 77),
}
"""By how many rows and columns the trained grid is moved: to places that shift steps and losses reach, and to
others that two digits write and no step and no loss had."""


splits_of = lru_cache(maxsize=1)(images.load)


@dataclass(frozen=True)
class ImageTask(Things):
    """What is asked of the images of a size: "class" or "direction". Rows of a table are compared within a
    task."""

    size: Size
    task: str

    axes: ClassVar = 2
    first: ClassVar = 64

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
        """The larger pictures: how, and patches along a side."""
        changes = ("upscaled", "canvas") + ("spread",) * self.asked.spreads
        return tuple((change, grid) for change in changes for grid in self.size.grids)

    def unseen_at(self, config: Run, grid: int, rule: str = "grow", move: tuple[int, ...] = (0, 0)) -> str:
        """The sides of a view of a grid, moved or under a rule, that training never showed."""
        furthest, larger = max(move) + grid, grid > self.side
        return self.unseen(config, furthest=furthest, larger=larger, between=rule == "fit")

    def model(self, config: Run) -> ImageClassifier:
        return ImageClassifier(config.model, self.asked.n_classes(self.splits), self.size.frame.patch)

    def batches(self, config: Run) -> Iterator[Batch]:
        """The same pictures in the same order for every method of a seed, in shift steps all moved alike."""
        splits, training = self.splits, config.training
        run = {"seed": config.seed, "steps": training.steps}
        drawn = self.asked.batches(splits, self.size.frame, batch_size=training.batch_size, **run)
        places = repeat(None) if training.positions is None else training.positions.positions(**run)
        for one, at in zip(drawn, places, strict=False):
            yield Batch(splits.standardised(one.images).numpy(), one.labels, at)

    def pictures(self, split: str, change: str | None = None, grid: int = 0) -> Pictures:
        """The pictures of a held-out split, as they are or made larger."""
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
        """Patches shuffled, the trained grid moved, larger pictures; shuffled on canvases, too, under the
        rule that suits them."""

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
            for rule in rules_for(config, change):
                reader = model.extended(fit=(self.side, self.side)) if rule == "fit" else model
                about = {
                    "change": change,
                    "grid": grid,
                    "rule": rule,
                    "unseen": self.unseen_at(config, grid, rule),
                }
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


def rules_for(config: Run, change: str) -> tuple[str, ...]:
    """Those by which a larger picture is read. Canvases and spread pictures are read where the grid grows, if
    it can: fitted, their things would be nearer to each other than ever."""
    return rules_of(config) if change == "upscaled" else (suited(config, change),)


def suited(config: Run, change: str) -> str:
    """The rule that suits a larger picture: fitted where it is upscaled or there is no other."""
    rules = rules_of(config)
    return "fit" if "fit" in rules and (change == "upscaled" or "grow" not in rules) else "grow"


def moves_of(config: Run) -> dict[str, tuple[int, int]]:
    """Where else the trained grid is read; a table has no row there, and without places nothing moves."""
    return {} if config.model.encodings[0].name in ("none", "learned") else MOVED


CELLS = {f"{name}/{task}": (name, task) for task in TASKS for name in METHODS}
"""The method and the task of a run, by what it is called."""


def run_of(experiment: str, profile: str, cell: str, seed: int, rate: float) -> Run:
    """The run of a method and task, such as "learned/direction", at the size of its profile."""
    method, task = named("method", cell, CELLS)
    data = ImageTask(SIZES[profile], task)
    return classification.run_of(data, experiment, profile, method, cell, seed, rate)


GUESSES = ("none/direction",)
"""Without places a direction can only be guessed: every rate ends at chance, and no further one is tried."""

SCREEN = swept(
    name="image_screen",
    title="Learning rates of the image classifiers",
    methods=tuple(CELLS),
    smoke=("axial-rope/class",),
    config_of=run_of,
    stops=GUESSES,
    costs={"smoke": 2.0, "laptop": 100.0},
)

EXPERIMENT = classification.classification(
    SCREEN,
    name="images",
    title="Images at grids never trained",
    question="""What does each way to tell the place of a patch reach at the trained grid, on upscaled
        images and on larger canvases?""",
    smoke=("axial-rope/class", "learned/direction", "seqpe/direction"),
    costs={"smoke": 3.0, "laptop": 150.0},
)
