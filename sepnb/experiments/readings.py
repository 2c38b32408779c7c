"""Ways in which a model that was trained on short texts reads longer ones at slower positions, untouched.

A reading names a context extension, for texts of k trained lengths with the factor k, and says whether logits
are scaled with log n. All methods have the same choice; validation data of eight trained lengths choose.
"""

from collections.abc import Callable, Mapping

from ..encodings import NTKAware, NTKByParts, PositionInterpolation, YaRN
from ..encodings.context import Extension
from ..models import LanguageModel

SLOWING: Mapping[str, Callable[[int, int], Extension]] = {
    "interpolation": lambda factor, length: PositionInterpolation(factor),
    "ntk": lambda factor, length: NTKAware(factor),
    "parts-1-32": NTKByParts,
    "parts-0.5-4": lambda factor, length: NTKByParts(factor, length, 0.5, 4),
    "yarn": YaRN,
}
"""For texts of `factor` times `length`. By parts with the bands of its source, 1 and 32 turns, and with
narrower and faster ones; YaRN has the same first bands and a temperature."""

WAYS = {f"{name}{log}": (make, bool(log)) for name, make in SLOWING.items() for log in ("", "-log")}
READINGS = tuple(WAYS)
LOG_ONLY = "log"
"""Logits scaled with log n and positions as trained: a control, and none of the choice."""
CHOSEN_AT = 8
"""Trained lengths of the validation texts that choose."""


SLOW = "parts-1-32-log"


def slow_of(readings: tuple[str, ...]) -> str:
    """The reading of a fingerprint: by parts and log n, or the last one of a model that cannot follow it."""
    return SLOW if SLOW in readings else readings[-1]


def read_by(model: LanguageModel, reading: str, factor: int) -> LanguageModel:
    """The same weights, reading texts of `factor` trained lengths by one of `READINGS`; up to one length a
    model reads as it was trained."""
    if factor <= 1:
        return model
    make, log = WAYS[reading]
    return model.extended(extension=make(factor, model.config.max_length), log_scale=log)
