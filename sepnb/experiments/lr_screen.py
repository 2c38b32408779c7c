"""The learning rate of every method: the best of the same three on the validation text, with one seed."""

from collections.abc import Sequence
from typing import ClassVar

from . import language_modelling as lm
from .base import check_profile

RATES = (2e-3, 4e-3, 8e-3)

STEPS = {"smoke": 60, "laptop": 500, "gpu": 1000}
"""Less than half of the published schedule: enough to rank three rates that are a factor of two apart."""

ON_A_PLATEAU = ("none", "learned")
"""Methods that the short schedule leaves where the model has not yet found the order of the bytes, at every
rate alike: it ranks nothing there, so they are screened over the whole schedule."""

METHODS = {"smoke": ("rope", "separated-learned")}
"""The methods of a profile; all of them where none are named."""


def _steps(profile: str, method: str) -> int:
    return lm.SIZES[profile].steps if method in ON_A_PLATEAU else STEPS[profile]


class LearningRateScreen(lm.TextExperiment):
    """Which of three learning rates suits each method? The test text is not read."""

    name: ClassVar[str] = "lr_screen"
    title: ClassVar[str] = "Learning-rate screening"
    question: ClassVar[str] = (
        "Which of the same three learning rates suits each method on the validation text?"
    )
    reads_test: ClassVar[bool] = False

    def grid(self, profile: str, seeds: Sequence[int] | None = None) -> list[lm.LanguageModelRun]:
        methods = METHODS.get(check_profile(profile), tuple(lm.METHODS))
        return [
            lm.LanguageModelRun.of(self.name, profile, method, seed, rate, _steps(profile, method))
            for seed in ((0,) if seeds is None else seeds)
            for method in methods
            for rate in RATES
        ]

    def seconds(self, profile: str) -> float:
        return {"smoke": 1.0, "laptop": 65.0, "gpu": 40.0}[check_profile(profile)]
