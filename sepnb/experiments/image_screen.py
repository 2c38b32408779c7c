"""The learning rate of every method and task of `images`: the best of the same three, with one seed, and of
more where that stands at an end."""

from collections.abc import Sequence
from typing import ClassVar

from . import images
from .base import check_profile
from .images import METHODS, SIZES, SMOKE, TASKS, ImageRun
from .screening import rates_of

RATES = (1e-3, 2e-3, 4e-3)
BEYOND: dict[str, tuple[float, ...]] = {
    **{f"{name}/direction": (5e-4,) for name in ("separated-sinusoidal", "sinusoidal-shifts")},
    **{f"{name}/direction": (8e-3,) for name in ("none", "axial-rope", "axial-rope-shifts")},
    "seqpe/direction": (2.5e-4, 5e-4),
    "separated-sinusoidal/class": (8e-3,),
    "seqpe-multiply/class": (5e-4,),
}
"""By method and task; see `screening`."""

GUESSES = ("none/direction",)
"""Without places a direction can only be guessed: at every rate the loss is that of a guess, the best of them
is chance, and no further one is tried."""


class ImageScreen(images.Images):
    """Which learning rate suits each method? The test images are not read.

    The whole schedule is run: the direction is found after a plateau, before which a shorter one would rank
    nothing.
    """

    name: ClassVar[str] = "image_screen"
    title: ClassVar[str] = "Learning rates of the image classifiers"
    question: ClassVar[str] = (
        "Which learning rate suits each way to tell places on the validation images, of the same three, and "
        "of those beyond them where the best of three stands at an end?"
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
            for rate in rates_of(f"{name}/{task}", RATES, {} if profile == "smoke" else BEYOND)
        ]

    def seconds(self, profile: str) -> float:
        return {"smoke": 2.0, "laptop": 100.0, "gpu": 80.0}[check_profile(profile)]
