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

from dataclasses import replace
from typing import ClassVar

from ..evaluation.protocols import Reading
from ..seqpe import SeqPE
from ..seqpe.digits import misaligned, period
from . import language_modelling as lm
from . import methods
from .encoding_methods import RANDOM_POSITIONS, SHIFTED, seqpe_losses
from .in_window import LR_SCREEN
from .methods import POS_SHARE, SPINE, Method, listed
from .recipes import ELSEWHERE, RecipeRun, Recipes
from .sweep import Sweep

FAR = 91_000
"""About where the farthest windows begin: five digits write numbers below 100,000."""

MODES = {"separated": "separated-sinusoidal", "strict": "strict-sinusoidal", "dense": "sinusoidal"}
"""The streams, by the first word of a method, and the method at the root of its chain."""

BESIDE = (*MODES.values(), "rope")
"""Methods of `recipes` that stand in the tables beside those of this experiment, seed for seed."""


def swept_as(method: str) -> str:
    """The method whose swept rate this one has: of digit strings in a mode the one with shift steps and both
    losses, of the sinusoid the one with shift steps, and of the term of the score the one with both losses; a
    root has its own."""
    if method in SPINE:
        return method
    if method.startswith("dense-seqpe-score"):
        return "dense-seqpe-score"
    mode = method.split("-")[0]
    return f"{mode}-seqpe" if "-seqpe" in method else f"{mode}-sinusoidal-shifts"


def _columns(mode: str, size: lm.Size) -> int:
    """The width of what the encoder fills."""
    return size.width if mode == "dense" else size.width // POS_SHARE


def _chain(mode: str, at_root: str) -> dict[str, Method]:
    def losses(**weights: float):
        return {"auxiliary": lambda size: replace(seqpe_losses(size, _columns(mode, size)), **weights)}

    return {at_root: SPINE[at_root]} | listed(
        Method(
            f"{mode}-sinusoidal-shifts",
            "a tenth of the steps shifted, at a rate of its own",
            at_root,
            training=SHIFTED,
        ),
        Method(
            f"{mode}-seqpe-plain",
            "digit strings in the place of the sinusoid, at their rate",
            at_root,
            {"encoding": SeqPE(site="input")},
        ),
        Method(
            f"{mode}-seqpe-shifts", "a tenth of the steps shifted", f"{mode}-seqpe-plain", training=SHIFTED
        ),
        Method(
            f"{mode}-seqpe-contrastive",
            "contrastive loss",
            f"{mode}-seqpe-shifts",
            training=losses(distillation=0.0),
        ),
        Method(f"{mode}-seqpe", "distillation too", f"{mode}-seqpe-contrastive", training=losses()),
    )


METHODS: dict[str, Method] = {
    **{name: one for mode, at_root in MODES.items() for name, one in _chain(mode, at_root).items()},
    **listed(
        Method(
            "separated-seqpe-still",
            "no shift steps",
            "separated-seqpe",
            training={
                "positions": None,
                "auxiliary": lambda size: replace(
                    seqpe_losses(size, _columns("separated", size)), shifts=None
                ),
            },
        ),
        Method(
            "dense-seqpe-score-contrastive",
            "a term of the score in the place of the code added, at its rate",
            "dense-seqpe-contrastive",
            {"encoding": SeqPE()},
            {"auxiliary": lambda size: replace(seqpe_losses(size), distillation=0.0)},
        ),
        Method(
            "dense-seqpe-score",
            "distillation too",
            "dense-seqpe-score-contrastive",
            training={"auxiliary": seqpe_losses},
        ),
    ),
}
"""In the order of tables."""

SCREEN = Sweep(
    "seqpe_stream_screen",
    title="Learning rates of SeqPE as the position stream",
    whose="SeqPE, and the sinusoid at the same shift steps, in a separated, a strict and a dense model",
    order=7,
    methods=(
        *(f"{mode}-{code}" for mode in MODES for code in ("sinusoidal-shifts", "seqpe")),
        "dense-seqpe-score",
    ),
    smoke=("separated-seqpe",),
    config_of=methods.run_of,
    beyond={
        "separated-seqpe": (1e-3,),
        "strict-seqpe": (1e-3,),
        "dense-sinusoidal-shifts": (1.6e-2,),
        "dense-seqpe": (5e-4, 1e-3),
        "dense-seqpe-score": (1e-3,),
    },
    costs={"smoke": 3.0, "laptop": 140.0, "gpu": 80.0},
)
"""Over the whole schedule: embeddings of neighbours are alike at first, and a short one would rank models
that do not know the order of the bytes yet."""


def run_of(experiment: str, profile: str, name: str, seed: int) -> lm.LanguageModelRun:
    """The run of one of `METHODS`, at its rate.

    Raises:
        ValueError: an unknown method.
    """
    sweep = LR_SCREEN if name in SPINE else SCREEN
    return methods.run_of(experiment, profile, name, seed, sweep.rate(profile, swept_as(name)))


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

    @property
    def readings(self) -> tuple[Reading, ...]:
        """What the trained model is asked to read: what a recipe is, but for the start that five digits
        cannot write; and the trained length at every one of `starts`."""
        shared = tuple(reading for reading in super().readings if reading.start != ELSEWHERE)
        far = [Reading(f"native-at-{name}", start=at) for name, at in starts(self.beyond.length).items()]
        return (*shared, *far)


class SeqPEStream(Recipes):
    """What does SeqPE make of a position stream?"""

    name: ClassVar[str] = "seqpe_stream"
    title: ClassVar[str] = "SeqPE as the position stream"
    question: ClassVar[str] = (
        "Does a position stream of SeqPE carry a separated and a strict model past their trained length and "
        "to indices that no loss ever saw, against a sinusoid trained at the same shift steps?"
    )
    order: ClassVar[int] = 8
    methods: ClassVar = PUBLISHED
    smoke: ClassVar = ("separated-sinusoidal-shifts", "strict-seqpe")
    costs: ClassVar = {"smoke": 5.0, "laptop": 200.0, "gpu": 110.0}
    runs = StreamRun

    def swept(self, method: str) -> tuple[Sweep, str]:
        return SCREEN, swept_as(method)
