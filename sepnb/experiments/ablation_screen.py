"""The learning rate of every variant of `ablation`: the best of the same three, with one seed."""

from collections.abc import Sequence
from typing import ClassVar

from . import ablation
from . import language_modelling as lm
from .base import check_profile
from .lr_screen import RATES

STEPS = {"smoke": 20, "laptop": 500, "gpu": 1000}
"""Less than half of the published schedule, as in `lr_screen`."""

ON_A_PLATEAU = ("none", "learned", "learned-reinjected", "separated-sinusoidal-content")
"""Screened over the whole schedule: the short one leaves them where they know next to nothing of the order of
the bytes, at every rate alike, and would rank nothing."""

SMOKE = ("separated-sinusoidal",)


class AblationScreen(lm.TextExperiment):
    """Which of three learning rates suits each variant? The test text is not read."""

    name: ClassVar[str] = "ablation_screen"
    title: ClassVar[str] = "Learning rates of the ablation"
    question: ClassVar[str] = (
        "Which of the same three learning rates suits each variant of the ablation on the validation text?"
    )
    order: ClassVar[int] = 3
    reads_test: ClassVar[bool] = False

    def grid(self, profile: str, seeds: Sequence[int] | None = None) -> list[lm.LanguageModelRun]:
        names = SMOKE if check_profile(profile) == "smoke" else tuple(ablation.VARIANTS)
        return [
            ablation.run_of(
                self.name, profile, name, seed, rate, None if name in ON_A_PLATEAU else STEPS[profile]
            )
            for seed in ((0,) if seeds is None else seeds)
            for name in names
            for rate in RATES
        ]

    def seconds(self, profile: str) -> float:
        return {"smoke": 1.0, "laptop": 16.0, "gpu": 40.0}[check_profile(profile)]
