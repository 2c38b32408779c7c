"""Chapter 10: bits per byte inside the trained length, dense and separated, at equal width and parameters."""

from collections.abc import Sequence
from typing import ClassVar

from . import language_modelling as lm
from .base import check_profile

SEEDS = {"smoke": (1,), "laptop": (1, 2, 3, 4, 5, 6), "gpu": (1, 2, 3, 4, 5, 6)}
"""Seed 0 chose the learning rates; what is published uses fresh ones, six because fewer allow no verdict."""

METHODS = (
    "none",
    "sinusoidal",
    "learned",
    "rope",
    "alibi",
    "separated-sinusoidal",
    "separated-learned",
    "separated-sinusoidal-wide",
    "separated-learned-wide",
)

LEARNING_RATES = {
    "laptop": {
        "none": 2e-3,
        "sinusoidal": 8e-3,
        "learned": 4e-3,
        "rope": 4e-3,
        "alibi": 4e-3,
        "separated-sinusoidal": 4e-3,
        "separated-learned": 4e-3,
        "separated-sinusoidal-wide": 4e-3,
        "separated-learned-wide": 2e-3,
        "strict-sinusoidal": 4e-3,
        "strict-learned": 4e-3,
    }
}
"""The rate of each method: the best of `lr_screen` on the validation text of the profile. A profile without
an entry takes the laptop's; a test asks for an entry as soon as the profile's screening is published, and
holds the table against its records."""


def learning_rate(profile: str, method: str) -> float:
    """The rate of a method in the runs of a profile.

    Raises:
        ValueError: a method without a screened rate.
    """
    rates = LEARNING_RATES.get(profile, LEARNING_RATES["laptop"])
    if method not in rates:
        raise ValueError(f"no learning rate for the method {method!r}; there is one for {', '.join(rates)}")
    return rates[method]


class InWindow(lm.TextExperiment):
    """What does each encoding, and each constraint of the separation, cost where nothing is extrapolated?"""

    name: ClassVar[str] = "in_window"
    title: ClassVar[str] = "Inside the trained length"
    question: ClassVar[str] = (
        "How many bits per byte do dense and separated models pay inside the trained length, at equal width "
        "and at equal parameters?"
    )
    order: ClassVar[int] = 1

    def grid(self, profile: str, seeds: Sequence[int] | None = None) -> list[lm.LanguageModelRun]:
        chosen = SEEDS[check_profile(profile)] if seeds is None else seeds
        return [
            lm.LanguageModelRun.of(self.name, profile, method, seed, learning_rate(profile, method))
            for seed in chosen
            for method in METHODS
        ]

    def seconds(self, profile: str) -> float:
        return {"smoke": 2.0, "laptop": 140.0, "gpu": 60.0}[check_profile(profile)]
