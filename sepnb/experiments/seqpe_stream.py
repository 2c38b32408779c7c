"""Chapter 16: SeqPE as the position stream of a separated and of a strict model.

The two halves of the book meet here. A stream of its own is all of the indices that has to be continued past
the trained length, and SeqPE has an embedding for every position that its digits can write. Its distillation
acts on that very stream: the text knows nothing of it. The sinusoid beside it is trained at the same shift
steps.

Every chain has one change a step: digit strings in the place of the sinusoid, shift steps, the contrastive
loss, the distillation. Beside that, methods with digit strings have the learning rate of their mode, screened
with shift steps and both losses, and the sinusoid with shift steps its own, screened with these: what is
compared was tuned alike. The methods at the roots, and RoPE beside them, are trained and read on the same
bytes in `recipes`, and not again here.
Separated and dense differ in one thing besides: the distillation cuts the 128 columns of the dense model into
two heads, as the release would, and the 32 of the stream are one.

All are asked what recipes are asked. What they read of indices besides is the trained length at starts far
out: below the largest position of shift steps and losses, and past it; aligned, so that the low digits run as
in the trained window, and misaligned.

One more has both losses and no shift steps: what shift steps do beside them.

The last two methods have no stream: they are SeqPE where its text program injects it, in a term of the score,
with the same shift steps, with the contrastive loss and with both. What the paper's abstract says of language
models is asked of these; their rate is screened with both losses.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from ..records.store import Record
from ..seqpe import SeqPE
from ..seqpe.digits import misaligned, period
from . import language_modelling as lm
from .base import Progress, check_profile
from .encoding_methods import (
    DEFAULT_RATE,
    RANDOM_POSITIONS,
    seqpe_losses,
    shift_steps,
)
from .extrapolation import BEYOND
from .long_windows import BLOCKS, Beyond
from .readings import Reading
from .recipe_methods import Recipe
from .recipes import ELSEWHERE, SEEDS, RecipeExperiment, RecipeRun
from .screening import require_rate, screened_rate

FAR = 91_000
"""About where the farthest windows begin: five digits write numbers below 100,000."""

MODES = {"separated": "separated-sinusoidal", "strict": "strict-sinusoidal", "dense": "sinusoidal"}
"""The streams, by the first word of a method, and the method at the root of its chain."""

BESIDE = (*MODES.values(), "rope")
"""Methods of `recipes` that stand in the tables beside those of this experiment, seed for seed."""

LEARNING_RATES: dict[str, dict[str, float]] = {
    "laptop": {
        "separated-sinusoidal-shifts": 4e-3,
        "separated-seqpe": 2e-3,
        "strict-sinusoidal-shifts": 4e-3,
        "strict-seqpe": 2e-3,
        "dense-sinusoidal-shifts": 8e-3,
        "dense-seqpe": 1e-3,
        "dense-seqpe-score": 2e-3,
    }
}
"""Of each mode: of digit strings with shift steps and losses, and of the sinusoid with shift steps; and of
the term of the score. The best of `seqpe_stream_screen` on the validation text of the profile; a profile
without an entry takes the laptop's. Without any no run is started, and a test asks for an entry as soon as
the screening is published."""


def screened_as(method: str) -> str:
    """The method whose screened rate this one has: that of its mode, or of the term of the score."""
    if method.startswith("dense-seqpe-score"):
        return "dense-seqpe-score"
    mode = method.split("-")[0]
    return f"{mode}-seqpe" if "-seqpe" in method else f"{mode}-sinusoidal-shifts"


def rate_of(profile: str, method: str) -> float:
    """The learning rate of a method of this experiment."""
    return screened_rate(LEARNING_RATES, profile, screened_as(method), DEFAULT_RATE)


def _columns(mode: str, size: lm.Size) -> int:
    """The width of what the encoder fills."""
    return size.width if mode == "dense" else size.width // lm.POS_SHARE


def _chain(mode: str, at_root: str) -> dict[str, Recipe]:
    def losses(**weights: float):
        return {"auxiliary": lambda size: replace(seqpe_losses(size, _columns(mode, size)), **weights)}

    shifted = {"positions": shift_steps}
    return {
        at_root: Recipe(f"{mode}, sinusoid"),
        f"{mode}-sinusoidal-shifts": Recipe(
            "a tenth of the steps shifted, at a rate of its own",
            at_root,
            training=shifted | {"learning_rate": DEFAULT_RATE},
        ),
        f"{mode}-seqpe-plain": Recipe(
            "digit strings in the place of the sinusoid, at their rate",
            at_root,
            {"encoding": SeqPE(site="input")},
            {"learning_rate": DEFAULT_RATE},
        ),
        f"{mode}-seqpe-shifts": Recipe(
            "a tenth of the steps shifted", f"{mode}-seqpe-plain", training=shifted
        ),
        f"{mode}-seqpe-contrastive": Recipe(
            "contrastive loss", f"{mode}-seqpe-shifts", training=losses(distillation=0.0)
        ),
        f"{mode}-seqpe": Recipe("distillation too", f"{mode}-seqpe-contrastive", training=losses()),
    }


METHODS: dict[str, Recipe] = {
    **{name: one for mode, at_root in MODES.items() for name, one in _chain(mode, at_root).items()},
    "separated-seqpe-still": Recipe(
        "no shift steps",
        "separated-seqpe",
        training={
            "positions": None,
            "auxiliary": lambda size: replace(seqpe_losses(size, _columns("separated", size)), shifts=None),
        },
    ),
    "dense-seqpe-score-contrastive": Recipe(
        "a term of the score in the place of the code added, at its rate",
        "dense-seqpe-contrastive",
        {"encoding": SeqPE()},
        {"auxiliary": lambda size: replace(seqpe_losses(size), distillation=0.0)},
    ),
    "dense-seqpe-score": Recipe(
        "distillation too", "dense-seqpe-score-contrastive", training={"auxiliary": seqpe_losses}
    ),
}
"""In the order of tables."""

PUBLISHED = (
    "separated-sinusoidal-shifts",
    "separated-seqpe-plain",
    "separated-seqpe-shifts",
    "separated-seqpe-contrastive",
    "separated-seqpe",
    "separated-seqpe-still",
    "strict-sinusoidal-shifts",
    "strict-seqpe-plain",
    "strict-seqpe",
    "dense-sinusoidal-shifts",
    "dense-seqpe",
    "dense-seqpe-score-contrastive",
    "dense-seqpe-score",
)
"""What is run: the chain of the separated model whole but for its root, the ends of the others, and the digit
strings alone of the strict one, which say whether it hears its indices. All were named before any was run."""

SMOKE = ("separated-sinusoidal-shifts", "strict-seqpe")


def starts(length: int) -> dict[str, int]:
    """Where windows of the trained length begin, by name: two of each group.

    Of `length` L shift steps and losses have positions below 32 L. Covered windows begin about a quarter and
    three quarters of the way; those never seen at about twice it, and near the end of what five digits write.
    """
    unit, step, largest = period(length), misaligned(length), RANDOM_POSITIONS * length
    found = {}
    for group, near in (
        ("covered", (largest / 4, 3 * largest / 4)),
        ("never-seen", (2 * largest, FAR)),
    ):
        for number, about in enumerate(near, 1):
            start = round(about / unit) * unit
            found[f"{group}-aligned-{number}"] = start
            found[f"{group}-misaligned-{number}"] = start + step
    return found


class StreamRun(RecipeRun):
    """A run of one of `METHODS` and what it reads afterwards."""

    recipes: ClassVar[dict[str, Recipe]] = METHODS

    @classmethod
    def of_recipe(cls, experiment: str, profile: str, name: str, *given: Any, **options: Any) -> "StreamRun":
        run = super().of_recipe(experiment, profile, name, *given, **options)
        if name in MODES.values():
            return run  # a root, as in `recipes`
        return replace(run, training=replace(run.training, learning_rate=rate_of(profile, name)))

    @property
    def readings(self) -> tuple[Reading, ...]:
        """What the trained model is asked to read: what a recipe is, but for the start that five digits
        cannot write; and the trained length at every one of `starts`."""
        shared = tuple(reading for reading in super().readings if reading.start != ELSEWHERE)
        far = [Reading(f"native-at-{name}", start=at) for name, at in starts(self.beyond.length).items()]
        return (*shared, *far)


class SeqPEStream(RecipeExperiment):
    """What does SeqPE make of a position stream?"""

    name: ClassVar[str] = "seqpe_stream"
    title: ClassVar[str] = "SeqPE as the position stream"
    question: ClassVar[str] = (
        "Does a position stream of SeqPE carry a separated and a strict model past their trained length and "
        "to indices that no loss ever saw, against a sinusoid trained at the same shift steps?"
    )
    order: ClassVar[int] = 8

    def run_of(
        self, profile: str, name: str, seed: int, beyond: Beyond, blocks: tuple[int, ...]
    ) -> StreamRun:
        """The run of a method and seed."""
        return StreamRun.of_recipe(self.name, profile, name, seed, beyond, blocks, reads_test=True)

    def run(self, config: StreamRun, *, device: str = "cpu", progress: Progress | None = None) -> Record:
        require_rate(LEARNING_RATES, config.profile, screened_as(config.method), "seqpe_stream_screen")
        return super().run(config, device=device, progress=progress)

    def grid(self, profile: str, seeds: Sequence[int] | None = None) -> list[StreamRun]:
        beyond = BEYOND[check_profile(profile)]
        methods = SMOKE if profile == "smoke" else PUBLISHED
        return [
            self.run_of(profile, method, seed, beyond, ((seed - 1) % BLOCKS,))
            for seed in (SEEDS[profile] if seeds is None else seeds)
            for method in methods
        ]

    def seconds(self, profile: str) -> float:
        return {"smoke": 5.0, "laptop": 200.0, "gpu": 110.0}[check_profile(profile)]
