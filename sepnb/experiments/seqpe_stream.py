"""Chapter 18: SeqPE as the position stream of a separated and of a strict model.

Every series has one change a step: digit strings in the place of the sinusoid, shift steps, the contrastive
loss, the distillation. What is compared was tuned alike: methods with digit strings have the learning rate of
their mode, swept with shift steps and both losses, and the sinusoid with shift steps its own, swept with
these. The bases, and RoPE beside them, are trained and read on the same bytes in `recipes`, and not again
here. Separated and dense differ in one thing besides: the distillation cuts the 128 columns of the dense
model into two heads, as the release would, and the 32 of the stream are one.

Three more methods: `separated-seqpe-still` has both losses and no shift steps; the last two have no stream
but SeqPE in a term of the score, where its text program injects it, with the same shift steps and with one
loss or both. What the paper's abstract says of language models is asked of these.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from ..evaluation.long_windows import Beyond
from ..evaluation.protocols import Protocol
from ..seqpe import SeqPE
from ..seqpe.digits import misaligned, period
from ..training.seqpe_losses import SeqPELosses
from . import language_modelling as lm
from . import methods, variants
from .encoding_methods import RANDOM_POSITIONS, SHIFTED, seqpe_losses
from .methods import POS_SHARE, SPINE, Method, listed, model_config
from .sweep import Sweep
from .texts import TextExperiment

FAR = 91_000
"""About where the farthest windows begin: five digits write numbers below 100,000."""

MODES = {"separated": "separated-sinusoidal", "strict": "strict-sinusoidal", "dense": "sinusoidal"}
"""The first word of a method, and the base of its series."""

BESIDE = (*MODES.values(), "rope")
"""Methods of `recipes` that stand in the tables beside those of this experiment, seed for seed."""


def _losses(mode: str, **changes: Any) -> dict[str, Callable[[lm.ModelSize], SeqPELosses]]:
    """Both losses of what the encoder fills in a mode, with some changes."""
    share = 1 if mode == "dense" else POS_SHARE
    return {"auxiliary": lambda size: replace(seqpe_losses(size, size.width // share), **changes)}


def _series(mode: str, base: str) -> dict[str, Method]:
    seqpe = f"{mode}-seqpe"
    sinusoid = "a tenth of the steps shifted, at a rate of its own"
    digits = "digit strings in the place of the sinusoid, at their rate"
    return {base: SPINE[base]} | listed(
        Method(f"{mode}-sinusoidal-shifts", sinusoid, base, training=SHIFTED),
        Method(f"{seqpe}-plain", digits, base, {"encoding": SeqPE(site="input")}),
        Method(f"{seqpe}-shifts", "a tenth of the steps shifted", f"{seqpe}-plain", training=SHIFTED),
        Method(
            f"{seqpe}-contrastive",
            "contrastive loss",
            f"{seqpe}-shifts",
            training=_losses(mode, distillation=0.0),
        ),
        Method(seqpe, "distillation too", f"{seqpe}-contrastive", training=_losses(mode)),
    )


SERIES = {mode: _series(mode, base) for mode, base in MODES.items()}
SCORE = "dense-seqpe-score"
METHODS: dict[str, Method] = {
    **{name: one for several in SERIES.values() for name, one in several.items()},
    **listed(
        Method(
            "separated-seqpe-still",
            "no shift steps",
            "separated-seqpe",
            training={"positions": None} | _losses("separated", shifts=None),
        ),
        Method(
            f"{SCORE}-contrastive",
            "a term of the score in the place of the embedding added, at its rate",
            "dense-seqpe-contrastive",
            {"encoding": SeqPE()},
            {"auxiliary": lambda size: replace(seqpe_losses(size), distillation=0.0)},
        ),
        Method(SCORE, "distillation too", f"{SCORE}-contrastive", training={"auxiliary": seqpe_losses}),
    ),
}
"""In the order of tables."""


SCREEN = Sweep(
    name="seqpe_stream_screen",
    title="Learning rates of SeqPE as the position stream",
    order=7,
    methods=(*(f"{mode}-{one}" for mode in MODES for one in ("sinusoidal-shifts", "seqpe")), SCORE),
    smoke=("separated-seqpe",),
    config_of=methods.run_of,
    costs={"smoke": 3.0, "laptop": 140.0},
)
"""Over the whole schedule: embeddings of neighbours are alike at first, and a short one would rank models
that do not know the order of the bytes yet."""


PUBLISHED = (
    *("separated-sinusoidal-shifts", "separated-seqpe-plain", "separated-seqpe-shifts"),
    *("separated-seqpe-contrastive", "separated-seqpe", "separated-seqpe-still"),
    *("strict-sinusoidal-shifts", "strict-seqpe-plain", "strict-seqpe"),
    *("dense-sinusoidal-shifts", "dense-seqpe", f"{SCORE}-contrastive", SCORE),
)
"""What is run: the series of the separated model whole but for its base, the ends of the others, and the
digit strings alone of the strict one, which say whether it depends on its indices. All were named before any
was run."""


def starts(length: int) -> dict[str, int]:
    """Where windows of the trained length begin, by name: two of each group.

    Of `length` L shift steps and losses have positions below 32 L. Covered windows begin about a quarter and
    three quarters of the way; those never seen at about twice it, and near the end of what five digits write.
    """
    unit, step, largest = period(length), misaligned(length), RANDOM_POSITIONS * length
    begun = {}
    for group, near in (
        ("covered", (largest / 4, 3 * largest / 4)),
        ("never-seen", (2 * largest, FAR)),
    ):
        for number, about in enumerate(near, 1):
            start = round(about / unit) * unit
            begun[f"{group}-aligned-{number}"] = start
            begun[f"{group}-misaligned-{number}"] = start + step
    return begun


OF = {
    name: f"{mode}-seqpe" if model_config(name).encodings[0].name == "seqpe" else f"{mode}-sinusoidal-shifts"
    for mode, several in SERIES.items()
    for name in several
} | {"separated-seqpe-still": "separated-seqpe", f"{SCORE}-contrastive": SCORE, SCORE: SCORE}
"""Whose rate a method takes: that with both losses of its mode, or the sinusoid with shift steps."""


def readings(beyond: Beyond) -> tuple[Protocol, ...]:
    """The evaluation protocols of `recipes`, but for the start that five digits cannot write; and the trained
    length at every one of `starts`."""
    shared = tuple(reading for reading in variants.readings(beyond) if reading.start != variants.ELSEWHERE)
    far = [Protocol(f"native-at-{name}", start=at) for name, at in starts(beyond.length).items()]
    return (*shared, *far)


EXPERIMENT = TextExperiment(
    name="seqpe_stream",
    title="SeqPE as the position stream",
    question="""Does a position stream of SeqPE carry a separated and a strict model past their trained
        length and to indices that no loss ever saw, against a sinusoid trained at the same shift steps?""",
    order=8,
    sizes=variants.SIZES,
    sweeps=(SCREEN,),
    of=OF,
    methods=PUBLISHED,
    smoke=("separated-sinusoidal-shifts", "strict-seqpe"),
    costs={"smoke": 5.0, "laptop": 200.0},
    measures=partial(variants.measures, asked=readings),
)
