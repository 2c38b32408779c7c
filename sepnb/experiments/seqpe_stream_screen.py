"""The learning rates of every mode of `seqpe_stream`: of digit strings with shift steps and both losses, and
of the sinusoid with shift steps; and of the term of the score. The best of the same three, with one seed, and
of more where that stands at an end."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from . import language_modelling as lm
from .base import check_profile
from .lr_screen import RATES
from .recipe_methods import run_of
from .screening import rates_of
from .seqpe_stream import METHODS, MODES

SCREENED = (
    *(f"{mode}-{code}" for mode in MODES for code in ("sinusoidal-shifts", "seqpe")),
    "dense-seqpe-score",
)
BEYOND: dict[str, tuple[float, ...]] = {
    "separated-seqpe": (1e-3,),
    "strict-seqpe": (1e-3,),
    "dense-sinusoidal-shifts": (1.6e-2,),
    "dense-seqpe": (5e-4, 1e-3),
    "dense-seqpe-score": (1e-3,),
}
"""By method; see `screening`."""
SMOKE = ("separated-seqpe",)


class SeqPEStreamScreen(lm.TextExperiment):
    """Which learning rate suits digit strings in each mode? The test text is not read.

    The whole schedule is run: embeddings of neighbours are alike at first, and a short one would rank models
    that do not know the order of the bytes yet.
    """

    name: ClassVar[str] = "seqpe_stream_screen"
    title: ClassVar[str] = "Learning rates of SeqPE as the position stream"
    question: ClassVar[str] = (
        "Which learning rate suits SeqPE, and the sinusoid at the same shift steps, in a separated, a strict "
        "and a dense model on the validation text: which of the same three, or beyond them where the best of "
        "three stands at an end?"
    )
    order: ClassVar[int] = 7
    reads_test: ClassVar[bool] = False

    def grid(self, profile: str, seeds: Sequence[int] | None = None) -> list[lm.LanguageModelRun]:
        names = SMOKE if check_profile(profile) == "smoke" else SCREENED
        runs = [
            run_of(self.name, profile, name, seed, METHODS)
            for seed in ((0,) if seeds is None else seeds)
            for name in names
        ]
        return [
            replace(run, training=replace(run.training, learning_rate=rate))
            for run in runs
            for rate in rates_of(run.method, RATES, {} if profile == "smoke" else BEYOND)
        ]

    def seconds(self, profile: str) -> float:
        return {"smoke": 3.0, "laptop": 140.0, "gpu": 80.0}[check_profile(profile)]
