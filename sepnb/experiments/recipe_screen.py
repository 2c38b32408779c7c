"""Every recipe with one seed on the validation text: which of them are worth reading the test text with?"""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from .base import check_profile
from .extrapolation import BEYOND
from .long_windows import Beyond
from .recipe_methods import RECIPES
from .recipes import SMOKE, RecipeExperiment, RecipeRun

DOCUMENTS, WINDOWS, TIGHT = 10, 4, 4
"""Long windows of each validation novel, all of them read by every reading, and how many at stride 1."""


def beyond(profile: str) -> Beyond:
    """How much of the validation text a run reads past the trained length."""
    read = BEYOND[check_profile(profile)]
    if profile == "smoke":
        return read
    return replace(read, documents=DOCUMENTS, windows=WINDOWS, part=WINDOWS, tight=TIGHT)


class RecipeScreen(RecipeExperiment):
    """Every recipe, on the validation text. The test text is not read."""

    name: ClassVar[str] = "recipe_screen"
    title: ClassVar[str] = "Screening of the recipes"
    question: ClassVar[str] = (
        "Which recipes survive, use and match past the trained length, on the validation text with one seed?"
    )
    order: ClassVar[int] = 4
    reads_test: ClassVar[bool] = False

    def grid(self, profile: str, seeds: Sequence[int] | None = None) -> list[RecipeRun]:
        read = beyond(profile)
        methods = SMOKE[1:] if profile == "smoke" else tuple(RECIPES)
        return [
            self.run_of(profile, method, seed, read, (0,))
            for seed in ((0,) if seeds is None else seeds)
            for method in methods
        ]

    def seconds(self, profile: str) -> float:
        return {"smoke": 4.0, "laptop": 150.0, "gpu": 80.0}[check_profile(profile)]
