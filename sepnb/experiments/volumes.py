"""Chapter 15: three dimensions. Which ways to tell places work in a cube, and in larger cubes?

All methods are one small model on three tokens, see `points`, and differ in how they tell where a thing is.
What the image experiment does not part is apart here: the number of tokens is never new. On the *canvas* of
a larger cube the two things stand as near to each other as in training, and only coordinates are new (to
shift steps not even these);
*spread*, their distance may be new too.

The methods are six of those of `images`: the records are older than SeqPE's other site and than axial RoPE at
shift steps. A learned table of cells is refused: it is one of rows and columns. ALiBi is refused: it is
defined by the distance of two indices, and of the forms that others gave it for points none is built here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F

from ..data.draws import generator_of
from ..encodings import AxialRoPE, Encoding, Sinusoidal
from ..models import TransformerConfig
from ..records.store import digest
from ..seqpe import SeqPE
from ..streams import Streams
from ..training.loop import Labelled, TrainingConfig, autocast
from ..training.seqpe_schedule import grid_losses, grid_shifts
from .base import check_profile
from .classification import Classification
from .image_methods import SHIFTED
from .image_readings import shuffled, sides_unseen
from .image_tasks import HELD_OUT_SEED
from .language_modelling import Metrics, Rows
from .points import PointClassifier, Points, TwoThings, things
from .screening import screened_rate

AXES = 3
CODE = SeqPE(digits=2, dims=AXES)
RANGES = (CODE.base**CODE.digits,) * AXES

METHODS: dict[str, str | Encoding] = {
    "none": "none",
    "sinusoidal": Sinusoidal(dims=AXES),
    "sinusoidal-shifts": Sinusoidal(dims=AXES),
    "axial-rope": AxialRoPE(dims=AXES),
    "seqpe-plain": CODE,
    "seqpe": CODE,
}
"""How a thing tells where it is, in the order of tables; names as in `images`."""

CHANGES = ("canvas", "spread")


@dataclass(frozen=True)
class Size:
    """What a profile fixes for every method."""

    width: int
    n_layers: int
    n_heads: int
    side: int
    """Cells along an edge of the trained cube."""
    sides: tuple[int, ...]
    """Of the larger cubes."""
    batch_size: int
    steps: int
    held_out: int
    precision: str = "float32"


SIZES = {
    "smoke": Size(24, 2, 2, 3, (5,), 32, 60, 200),
    "laptop": Size(48, 3, 4, 6, (9, 12), 128, 1_200, 2_000),
    "gpu": Size(96, 4, 4, 6, (9, 12, 24), 256, 6_000, 5_000, "bfloat16"),
}
EVERY = 4
"""The losses of SeqPE are computed in every so many steps, with so many times their weights."""

SEEDS = {"smoke": (1,), "laptop": (1, 2, 3, 4, 5, 6), "gpu": (1, 2, 3, 4, 5, 6)}
SMOKE = ("axial-rope", "seqpe")

DEFAULT_RATE = 2e-3
LEARNING_RATES: dict[str, dict[str, float]] = {
    "laptop": {
        "none": 2e-3,
        "sinusoidal": 2e-3,
        "sinusoidal-shifts": 4e-3,
        "axial-rope": 4e-3,
        "seqpe-plain": 2e-3,
        "seqpe": 1e-3,
    }
}
"""The rate of each method, the best of `volume_screen`; used and tested as that of `images`."""


def learning_rate(profile: str, method: str) -> float:
    """The rate of a method in the runs of a profile."""
    return screened_rate(LEARNING_RATES, profile, method, DEFAULT_RATE)


@dataclass(frozen=True)
class VolumeRun:
    """A model and its training."""

    experiment: str
    profile: str
    name: str
    seed: int
    model: TransformerConfig
    training: TrainingConfig

    @classmethod
    def of(cls, experiment: str, profile: str, name: str, seed: int, rate: float) -> "VolumeRun":
        """A run at the size of its profile.

        Raises:
            ValueError: an unknown method.
        """
        if name not in METHODS:
            raise ValueError(f"unknown method {name!r}; use one of {', '.join(METHODS)}")
        size = SIZES[profile]
        grid = (size.side,) * AXES
        model = TransformerConfig(
            Streams.dense(size.width),
            size.n_layers,
            size.n_heads,
            METHODS[name],
            max_length=3,
            causal=False,
            axes=AXES,
        )
        training = TrainingConfig(
            size.steps,
            size.batch_size,
            1,
            rate,
            precision=size.precision,
            positions=grid_shifts(grid, RANGES) if name in SHIFTED else None,
            auxiliary=grid_losses(grid, RANGES, columns=CODE.width, every=EVERY) if name == "seqpe" else None,
        )
        return cls(experiment, profile, name, seed, model, training)

    @property
    def size(self) -> Size:
        return SIZES[self.profile]

    @property
    def method(self) -> str:
        return self.name

    @property
    def label(self) -> str:
        return f"{self.name}, learning rate {self.training.learning_rate:g}"

    @property
    def key(self) -> str:
        rate = f"lr{self.training.learning_rate:g}"
        return f"{self.name}-{rate}-seed{self.seed}-{digest(self.resolved())[:8]}"

    def unseen(self, change: str, side: int) -> str:
        """The sides of a reading that training never showed; see `sides_unseen`."""
        how = {"furthest": side, "more": False, "apart": change == "spread"}
        return sides_unseen(self.model, self.training, self.size.side, **how)

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
            "points": {"side": size.side, "larger": list(size.sides), "held_out": size.held_out},
        }


def build(config: VolumeRun) -> PointClassifier:
    """The untrained model of a run."""
    torch.manual_seed(config.seed)
    return PointClassifier(config.model, TwoThings(AXES, config.size.side).n_answers)


def batches(config: VolumeRun) -> Iterator[Labelled]:
    """The same arrangements in the same order for every method of a seed; in shift steps all moved alike."""
    training, task = config.training, TwoThings(AXES, config.size.side)
    generator, run = generator_of(config.seed, "pictures"), {"seed": config.seed, "steps": training.steps}
    still = (np.zeros(AXES, dtype=np.int64) for _ in range(training.steps))
    for move in still if training.positions is None else training.positions.drawn(**run):
        cells, answers = task.draw(generator, training.batch_size)
        yield Labelled(things(len(cells)), answers, cells + move)


def held_out(config: VolumeRun, split: str, change: str | None = None, side: int | None = None) -> Points:
    """Arrangements that are the same for every method and seed; `side`: of a larger cube."""
    trained = config.size.side
    seed = HELD_OUT_SEED + ("validation", "test").index(split)
    task = TwoThings(AXES, trained if side is None else side)
    within = trained if change == "canvas" else None
    return task.draw(generator_of(seed, "held-out pictures"), config.size.held_out, within)


def score(
    config: VolumeRun, model: PointClassifier, points: Points, device: str, *, shuffle: bool = False
) -> dict[str, float]:
    """The share of right answers, and nats per answer; `shuffle`: each with the places of another."""
    cells, answers = (torch.from_numpy(part) for part in points)
    if shuffle:
        cells = cells[shuffled(1, len(cells))[0]]
    model.eval()
    with torch.no_grad(), autocast(device, config.training.precision):
        logits = model(torch.from_numpy(things(len(cells))).to(device), cells.to(device)).float().cpu()
    right = float((logits.argmax(-1) == answers).double().mean())
    return {"accuracy": right, "nats": float(F.cross_entropy(logits, answers))}


def read(config: VolumeRun, model: PointClassifier, device: str) -> tuple[Metrics, Rows]:
    """Metrics and rows: as trained, with places shuffled, and in larger cubes."""
    plain, rows = held_out(config, "test"), []
    metrics = score(config, model, plain, device)
    metrics["shuffled_accuracy"] = score(config, model, plain, device, shuffle=True)["accuracy"]
    for change in CHANGES:
        for side in config.size.sides:
            found = score(config, model, held_out(config, "test", change, side), device)
            about = {"change": change, "side": side, "unseen": config.unseen(change, side)}
            rows.append({"kind": "view", **about, **found})
            metrics[f"{change}-{side}"] = found["accuracy"]
    return metrics, rows


class Volumes(Classification):
    """Which ways to tell places work in a cube, and in larger cubes?"""

    name: ClassVar[str] = "volumes"
    title: ClassVar[str] = "Two things in a cube"
    question: ClassVar[str] = (
        "Trained in a small cube, does each way to tell places on three axes tell the direction of one thing "
        "from another in larger cubes?"
    )
    order: ClassVar[int] = 8

    def grid(self, profile: str, seeds: Sequence[int] | None = None) -> list[VolumeRun]:
        names = SMOKE if check_profile(profile) == "smoke" else tuple(METHODS)
        return [
            VolumeRun.of(self.name, profile, name, seed, learning_rate(profile, name))
            for seed in (SEEDS[profile] if seeds is None else seeds)
            for name in names
        ]

    def built(self, config: VolumeRun) -> PointClassifier:
        return build(config)

    def batches(self, config: VolumeRun) -> Iterator[Labelled]:
        return batches(config)

    def first(self, config: VolumeRun, model: PointClassifier, device: str) -> list[float]:
        return [self.validated(config, model, device)["nats"]]

    def validated(self, config: VolumeRun, model: PointClassifier, device: str) -> dict[str, float]:
        return score(config, model, held_out(config, "validation"), device)

    def asked(self, config: VolumeRun, model: PointClassifier, device: str) -> tuple[Metrics, Rows]:
        return read(config, model, device)

    def seconds(self, profile: str) -> float:
        return {"smoke": 2.0, "laptop": 45.0, "gpu": 120.0}[check_profile(profile)]
