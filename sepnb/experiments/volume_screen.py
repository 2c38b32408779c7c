"""The learning rate of every method of `volumes`: the best of the same three, with one seed."""

from collections.abc import Sequence
from typing import ClassVar

from . import volumes
from .base import check_profile
from .image_screen import RATES
from .volumes import METHODS, SMOKE, VolumeRun


class VolumeScreen(volumes.Volumes):
    """Which of three learning rates suits each method, over the whole schedule? Larger cubes are not read."""

    name: ClassVar[str] = "volume_screen"
    title: ClassVar[str] = "Learning rates in the cube"
    question: ClassVar[str] = (
        "Which of the same three learning rates suits each way to tell places in the trained cube?"
    )
    order: ClassVar[int] = 7
    reads_test: ClassVar[bool] = False

    def grid(self, profile: str, seeds: Sequence[int] | None = None) -> list[VolumeRun]:
        names = SMOKE[:1] if check_profile(profile) == "smoke" else tuple(METHODS)
        return [
            VolumeRun.of(self.name, profile, name, seed, rate)
            for seed in ((0,) if seeds is None else seeds)
            for name in names
            for rate in RATES
        ]
