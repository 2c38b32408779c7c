"""The learning rate of every method, chosen from the same three values on the validation text, with one seed."""

from collections.abc import Sequence
from typing import ClassVar

from ..results import Record
from . import language_modelling as lm
from .base import Experiment, Progress, check_profile

RATES = (2e-3, 4e-3, 8e-3)

STEPS = {"smoke": 60, "laptop": 500, "gpu": 1000}
"""Less than half of the published schedule: long enough to rank three rates that are a factor of two apart."""

ON_A_PLATEAU = ("none", "learned")
"""Methods that the short schedule leaves where the model has not yet found the order of the bytes, at every
rate alike: it ranks nothing there, so they are screened over the whole schedule."""

METHODS = {"smoke": ("rope", "separated-learned")}
"""The methods of a profile; all of them where none are named."""


def _steps(profile: str, method: str) -> int:
    return lm.SIZES[profile].steps if method in ON_A_PLATEAU else STEPS[profile]


class LearningRateScreen(Experiment):
    """Which of three learning rates suits each method? The test text is not read."""

    name: ClassVar[str] = "lr_screen"
    title: ClassVar[str] = "Learning-rate screening"
    question: ClassVar[str] = (
        "Which of the same three learning rates suits each method on the validation text?"
    )

    def grid(self, profile: str, seeds: Sequence[int] | None = None) -> list[lm.LanguageModelRun]:
        methods = METHODS.get(check_profile(profile), tuple(lm.METHODS))
        return [
            lm.LanguageModelRun.of(self.name, profile, method, seed, rate, _steps(profile, method))
            for seed in ((0,) if seeds is None else seeds)
            for method in methods
            for rate in RATES
        ]

    def run(
        self, config: lm.LanguageModelRun, *, device: str = "cpu", progress: Progress | None = None
    ) -> Record:
        return lm.run(config, device=device, progress=progress, test=False)

    def fingerprint(self, config: lm.LanguageModelRun, *, device: str = "cpu") -> dict[str, list[float]]:
        return lm.fingerprint(config, device=device)

    def seconds(self, profile: str) -> float:
        return {"smoke": 1.0, "laptop": 45.0, "gpu": 40.0}[check_profile(profile)]

    def data_sets(self, profile: str) -> tuple[str, ...]:
        return (lm.SIZES[check_profile(profile)].text.name,)
