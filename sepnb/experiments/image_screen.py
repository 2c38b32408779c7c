"""The learning rate of every method and task of `images`: the best of the same three, with one seed."""

from collections.abc import Sequence
from typing import ClassVar

from . import images
from .base import check_profile
from .images import METHODS, SIZES, SMOKE, TASKS, ImageRun

RATES = (1e-3, 2e-3, 4e-3)


class ImageScreen(images.Images):
    """Which of three learning rates suits each method? The test images are not read.

    The whole schedule is run: the direction is found after a plateau, before which a shorter one would rank
    nothing.
    """

    name: ClassVar[str] = "image_screen"
    title: ClassVar[str] = "Learning rates of the image classifiers"
    question: ClassVar[str] = (
        "Which of the same three learning rates suits each way to tell places on the validation images?"
    )
    order: ClassVar[int] = 7
    reads_test: ClassVar[bool] = False

    def grid(self, profile: str, seeds: Sequence[int] | None = None) -> list[ImageRun]:
        every = [(name, task) for task in TASKS for name in METHODS]
        chosen = SMOKE[:1] if check_profile(profile) == "smoke" else every
        return [
            ImageRun.of(self.name, profile, name, task, seed, rate, SIZES[profile].steps)
            for seed in ((0,) if seeds is None else seeds)
            for name, task in chosen
            for rate in RATES
        ]

    def seconds(self, profile: str) -> float:
        return {"smoke": 2.0, "laptop": 100.0, "gpu": 80.0}[check_profile(profile)]
