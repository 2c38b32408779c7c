"""What a run of `context_extension` is: a method of chapter 6, its tunings, and what is read in which state.

The methods change the frequencies of a trained RoPE model; the last of them changes none.
"""

from dataclasses import dataclass, replace
from typing import Any

from ..encodings.context import (
    Extension,
    Llama3,
    NTKAware,
    NTKByParts,
    PositionInterpolation,
    RaisedBase,
    YaRN,
)
from ..evaluation.long_windows import Beyond, blocks_of
from ..evaluation.protocols import SINKS, Reading, oracles, unseen
from ..training.config import TrainingConfig
from . import language_modelling as lm
from .extrapolation import ExtrapolationRun
from .in_window import LR_SCREEN
from .methods import run_of

EXPERIMENT = "context_extension"

FACTOR = 4
"""Of the context: texts of the tuning are this many trained lengths long, and extensions are built for it."""

TIMES = 16
"""Texts that are read are this many trained lengths long; a frozen model is read with this factor too."""

BASE = 500_000.0
"""The raised base (Xiong et al. 2023), which follows no factor."""

SHARE = 20
"""A tuning takes one step for so many of the training."""

RATES = (0.1, 0.3, 1.0)
"""Learning rates of a tuning, in shares of the highest one of the training, which ends at the first."""

METHODS: tuple[str, ...] = (
    "position-interpolation",
    "ntk-aware",
    "ntk-by-parts",
    "yarn",
    "llama3",
    "raised-base",
    "rope",
)
"""The extensions by their names, then the plain model, whose run asks for more readings."""

BEYOND = {
    "smoke": Beyond(64, TIMES, documents=2, windows=1, part=1, tight=1, batch_bytes=2048),
    "laptop": Beyond(128, TIMES, documents=20, windows=2, part=2, tight=6, batch_bytes=2048),
    "gpu": Beyond(256, TIMES, documents=20, windows=4, part=4, tight=10, batch_bytes=131_072),
}


def extension(method: str, factor: int, length: int) -> Extension | None:
    """The extension of a method for contexts of `factor` times `length`, with the options of its source; None
    for plain RoPE. The raised base is the same for every factor.

    Raises:
        ValueError: an unknown method.
    """
    made = {
        "position-interpolation": PositionInterpolation(factor),
        "ntk-aware": NTKAware(factor),
        "ntk-by-parts": NTKByParts(factor, length),
        "yarn": YaRN(factor, length),
        "llama3": Llama3(factor, length),
        "raised-base": RaisedBase(BASE),
        "rope": None,
    }
    if method not in made:
        raise ValueError(f"unknown method {method!r}; use one of {', '.join(made)}")
    return made[method]


@dataclass(frozen=True)
class ContextExtensionRun(ExtrapolationRun):
    """A run of one extension: `training` is that of the plain model, `tunings` follow it, one a rate."""

    tunings: tuple[TrainingConfig, ...]

    @classmethod
    def of_method(cls, profile: str, method: str, seed: int) -> "ContextExtensionRun":
        """The run of a method and seed.

        Raises:
            ValueError: an unknown method.
        """
        beyond, rate = BEYOND[profile], LR_SCREEN.rate(profile, "rope")
        extension(method, FACTOR, beyond.length)
        run = run_of(EXPERIMENT, profile, "rope", seed, rate)
        tuning = replace(
            run.training,
            steps=max(1, run.training.steps // SHARE),
            length=FACTOR * beyond.length,
            batch_size=run.training.batch_size // FACTOR,
        )
        tunings = tuple(replace(tuning, learning_rate=share * rate) for share in RATES)
        parts = vars(run) | {"method": method, "tunings": tunings}
        return cls(**parts, beyond=beyond, blocks=blocks_of(seed))

    @property
    def label(self) -> str:
        return self.method

    @property
    def base(self) -> lm.LanguageModelRun:
        """The run that trains the plain model; all methods of a seed share it."""
        own = {name: getattr(self, name) for name in lm.LanguageModelRun.__dataclass_fields__}
        return lm.LanguageModelRun(**own | {"method": "rope"})

    @property
    def extension(self) -> Extension | None:
        return extension(self.method, FACTOR, self.beyond.length)

    @property
    def far_extension(self) -> Extension | None:
        """That of the longest texts, where the method follows a factor."""
        far = extension(self.method, TIMES, self.beyond.length)
        return None if far == self.extension else far

    @property
    def stages(self) -> dict[str, tuple[Reading, ...]]:
        """What is read, by the state of the model: "frozen", "frozen-16" and "tuned". Every tuned model is
        read at stride 1 through L too, so that its gain from further back is told from that of the tuning."""
        length = self.beyond.length
        tight, coarse, _ = oracles(length)
        tuned = (Reading("tuned"), replace(tight, id="tuned-oracle"))
        if self.method != "rope":
            far = {} if self.far_extension is None else {f"frozen-{TIMES}": (Reading(f"frozen-{TIMES}"),)}
            return {"frozen": (Reading("frozen"),), **far, "tuned": tuned}
        frozen = (
            tight,
            replace(coarse, scope="part"),
            Reading("frozen"),
            Reading("frozen-window", window=length),
            Reading("frozen-window-sinks", window=length - SINKS, sinks=SINKS),
        )
        return {"frozen": frozen, "tuned": (*tuned, Reading("tuned-window", window=FACTOR * length))}

    @property
    def readings(self) -> tuple[Reading, ...]:
        return tuple(reading for stage in self.stages.values() for reading in stage)

    def unseen(self, reading: Reading) -> str:
        """Frequencies that were changed afterwards leave the sides that training never showed as they are:
        what is new is the number of the keys, and a difference of positions. A tuned model has seen more."""
        seen = self.beyond.length * (FACTOR if reading.id.startswith("tuned") else 1)
        how = {"longest": self.beyond.longest, "trained": (seen, seen)}
        return unseen(reading, self.model.encodings, self.training, **how)

    def resolved(self) -> dict[str, Any]:
        """Every setting in plain JSON types; with the extensions and the tunings."""
        used = {"frozen": self.extension, f"frozen-{TIMES}": self.far_extension}
        named = {stage: one.resolved() for stage, one in used.items() if one is not None}
        return super().resolved() | {
            "extensions": named,
            "tunings": [tuning.resolved() for tuning in self.tunings],
        }
