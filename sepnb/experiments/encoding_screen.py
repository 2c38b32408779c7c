"""The learning rate of every method of `encodings` that `lr_screen` has not screened: the best of the same
three, with one seed."""

from collections.abc import Sequence
from typing import ClassVar

from . import language_modelling as lm
from .base import check_profile
from .encoding_methods import METHODS, SPINE, run_of
from .lr_screen import RATES, STEPS

SCREENED = tuple(name for name in METHODS if name not in SPINE)

ON_A_PLATEAU = (
    "learned-per-layer",
    "learned-query-key",
    "cope",
    "seqpe",
    "seqpe-input",
    "sinusoidal-randomised",
    "rope-randomised",
)
"""Screened over the whole schedule, as `learned` is in `lr_screen`. These begin without knowing the order of
the bytes, their tables being small or zero or the embeddings of neighbours alike, or meet new positions in
every step. Named before any was run."""

SMOKE = ("t5", "rope-randomised")


class EncodingScreen(lm.TextExperiment):
    """Which of three learning rates suits each encoding? The test text is not read."""

    name: ClassVar[str] = "encoding_screen"
    title: ClassVar[str] = "Learning rates of the encodings"
    question: ClassVar[str] = (
        "Which of the same three learning rates suits each encoding on the validation text?"
    )
    order: ClassVar[int] = 6
    reads_test: ClassVar[bool] = False

    def grid(self, profile: str, seeds: Sequence[int] | None = None) -> list[lm.LanguageModelRun]:
        names = SMOKE if check_profile(profile) == "smoke" else SCREENED
        return [
            run_of(self.name, profile, name, seed, rate, None if name in ON_A_PLATEAU else STEPS[profile])
            for seed in ((0,) if seeds is None else seeds)
            for name in names
            for rate in RATES
        ]

    def seconds(self, profile: str) -> float:
        return {"smoke": 1.5, "laptop": 80.0, "gpu": 60.0}[check_profile(profile)]
