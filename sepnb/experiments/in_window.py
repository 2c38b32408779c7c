"""Chapter 10: bits per byte inside the trained length, dense and separated, at equal width and parameters."""

from typing import ClassVar

from . import language_modelling as lm
from .methods import run_of
from .sweep import STEPS, Sweep

LR_SCREEN = Sweep(
    "lr_screen",
    title="Learning-rate screening",
    whose="each method of chapter 10",
    order=0,
    methods=(
        "none",
        "sinusoidal",
        "learned",
        "rope",
        "alibi",
        "separated-sinusoidal",
        "separated-learned",
        "separated-sinusoidal-wide",
        "separated-learned-wide",
        "strict-sinusoidal",
        "strict-learned",
    ),
    smoke=("rope", "separated-learned"),
    config_of=run_of,
    steps=STEPS,
    whole=("none", "learned"),
    costs={"smoke": 1.0, "laptop": 65.0, "gpu": 40.0},
)


METHODS = LR_SCREEN.methods[:-2]


class InWindow(lm.TextExperiment):
    """What does each encoding, and each constraint of the separation, cost where nothing is extrapolated?"""

    name: ClassVar[str] = "in_window"
    title: ClassVar[str] = "Inside the trained length"
    question: ClassVar[str] = (
        "How many bits per byte do dense and separated models pay inside the trained length, at equal width "
        "and at equal parameters?"
    )
    order: ClassVar[int] = 1
    methods: ClassVar = METHODS
    smoke: ClassVar = METHODS
    costs: ClassVar = {"smoke": 2.0, "laptop": 140.0, "gpu": 60.0}

    def config(self, profile: str, cell: str, seed: int) -> lm.LanguageModelRun:
        return run_of(self.name, profile, cell, seed, LR_SCREEN.rate(profile, cell))
