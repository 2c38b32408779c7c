"""Chapter 17: three dimensions. Which ways to tell places work in a cube, and in larger cubes?

All methods are one small model on three tokens, see `points`: unlike in `images`, their number is never new.
On the *canvas* of a larger cube the two things stand as near to each other as in training, and only
coordinates are new (not even these after shift steps); *spread*, their distance may be new too.

The methods are six of those of `images`. A learned table is refused because it has rows and columns only,
and ALiBi because it is defined by the distance of two indices.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from ..data.draws import generator_of
from ..encodings import AxialRoPE, Sinusoidal
from ..seqpe import SeqPE
from ..training.batch import Batch
from ..training.config import TrainingConfig
from ..training.seqpe_losses import grid_losses
from ..training.shifts import GridShiftSteps
from . import classification
from .classification import Asked, Things, View, shuffled, swept
from .image_tasks import HELD_OUT_SEED
from .methods import Method, listed
from .points import PointClassifier, TwoThings, things
from .run import Run

AXES = 3
EMBEDDING = SeqPE(digits=2, dims=AXES)
RANGES = (EMBEDDING.base**EMBEDDING.digits,) * AXES
EVERY = 4
"""The losses of SeqPE are computed in every so many steps, with so many times their weights."""

CHANGES = ("canvas", "spread")


@dataclass(frozen=True, kw_only=True)
class Size(classification.Size):
    """What a profile fixes for every method: cells along an edge of the trained cube and of larger ones."""

    side: int
    sides: tuple[int, ...]


SIZES = {
    "smoke": Size(24, 2, 2, 32, 60, 200, side=3, sides=(5,)),
    "laptop": Size(48, 3, 4, 128, 1_200, 2_000, side=6, sides=(9, 12)),
    "gpu": Size(96, 4, 4, 256, 6_000, 5_000, "bfloat16", side=6, sides=(9, 12, 24)),
}

SHIFTED = {"positions": lambda size: GridShiftSteps(AXES * (size.side,), RANGES)}
TAUGHT = {
    "auxiliary": lambda size: grid_losses(AXES * (size.side,), RANGES, columns=EMBEDDING.width, every=EVERY)
}

METHODS = listed(
    Method("none", "no places"),
    Method("sinusoidal", "sinusoids of three coordinates added", "none", {"encoding": Sinusoidal(dims=AXES)}),
    Method("sinusoidal-shifts", "shift steps", "sinusoidal", training=SHIFTED),
    Method("axial-rope", "rotated by three coordinates", "none", {"encoding": AxialRoPE(dims=AXES)}),
    Method("seqpe-plain", "digit strings in a term of the score", "none", {"encoding": EMBEDDING}),
    Method("seqpe", "shift steps and both losses", "seqpe-plain", training=SHIFTED | TAUGHT),
    axes=AXES,
)
"""How a thing tells where it is, in the order of tables; names as in `images`."""


@dataclass(frozen=True)
class Cube(Things):
    """Two things in a cube of a size."""

    size: Size

    axes: ClassVar = AXES

    @property
    def side(self) -> int:
        return self.size.side

    def tokens(self, training: TrainingConfig | None = None) -> int:
        """The class token and the two things."""
        return 3

    def model(self, config: Run) -> PointClassifier:
        return PointClassifier(config.model, TwoThings(AXES, self.side).n_answers)

    def batches(self, config: Run) -> Iterator[Batch]:
        training, task = config.training, TwoThings(AXES, self.side)
        run = {"seed": config.seed, "steps": training.steps}
        generator = generator_of(config.seed, "pictures")
        still = (np.zeros(AXES, dtype=np.int64) for _ in range(training.steps))
        for move in still if training.positions is None else training.positions.drawn(**run):
            cells, answers = task.draw(generator, training.batch_size)
            yield Batch(things(len(cells)), answers, cells + move)

    def held_out(self, split: str, change: str | None = None, side: int | None = None) -> Asked:
        """`side`: of a larger cube."""
        seed = HELD_OUT_SEED + ("validation", "test").index(split)
        task = TwoThings(AXES, self.side if side is None else side)
        within = self.side if change == "canvas" else None
        cells, answers = task.draw(generator_of(seed, "held-out pictures"), self.size.held_out, within)
        return Asked(*(torch.from_numpy(part) for part in (things(len(cells)), answers, cells)))

    def views(self, config: Run, model: PointClassifier) -> Iterator[View]:
        """Each arrangement with the places of another, and larger cubes."""
        plain = self.held_out("test")
        mixed = plain.places[shuffled(1, len(plain.places))[0]]
        yield View("shuffled_accuracy", None, plain._replace(places=mixed), model)
        for change in CHANGES:
            for side in self.size.sides:
                about = {"change": change, "side": side, "unseen": self.unseen_at(config, change, side)}
                asked = self.held_out("test", change, side)
                yield View(f"{change}-{side}", {"kind": "view", **about}, asked, model)

    def unseen_at(self, config: Run, change: str, side: int) -> str:
        return self.unseen(config, furthest=side, more=False, apart=change == "spread")

    def resolved(self) -> dict[str, Any]:
        size = self.size
        cubes = {"side": size.side, "larger": list(size.sides), "held_out": size.held_out}
        return {"points": cubes}


def run_of(experiment: str, profile: str, method: str, seed: int, rate: float) -> Run:
    """The run of a method at the size of its profile."""
    return classification.run_of(Cube(SIZES[profile]), experiment, profile, method, method, seed, rate)


SCREEN = swept(
    name="volume_screen",
    title="Learning rates in the cube",
    methods=tuple(METHODS),
    smoke=("axial-rope",),
    config_of=run_of,
    costs={"smoke": 2.0, "laptop": 45.0},
)

EXPERIMENT = classification.classification(
    SCREEN,
    name="volumes",
    title="Two things in a cube",
    question="""Trained in a small cube, does each way to tell places on three axes tell the direction of
        one thing from another in larger cubes?""",
    smoke=("axial-rope", "seqpe"),
    costs=SCREEN.costs,
)
