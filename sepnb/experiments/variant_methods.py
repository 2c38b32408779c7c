"""Variants for far distances: changes of the training or of the score that may carry a model past its trained
length.

Each is another method with one field of the model or of the training replaced, or a few that only make sense
together, so that a difference from its base is what it does. Every series of bases ends at a method of the
spine, whose swept learning rate it takes, unless `recipe_sweep` tried one of the series itself. A rate of the
spine tilts comparisons with that method against the variant, and those between variants of different methods
either way.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ..encodings import Phase, RoPE, Sinusoidal, base_of_longest_wave
from ..training.positions import RandomOffset, TrueGap
from . import language_modelling as lm
from .extrapolation import TIMES
from .methods import EQUAL, POS_SHARE, SPINE, Method, listed, part_for_position, series

FAR = 100_000
"""The short-period sinusoid is trained at indices below this; other offsets and gaps cover, and long waves
reach, as many trained lengths as are read."""


def _moved(name: str, base: str, per: str, *, far: bool = False) -> Method:
    def offsets(size: lm.ModelSize) -> RandomOffset:
        return RandomOffset(FAR if far else TIMES * size.length, per)

    says = "random offset in every sequence" if per == "sequence" else "one random offset a step"
    return Method(name, says + (", below 100,000" if far else ""), base, training={"positions": offsets})


def _gapped(name: str, base: str, says: str = "two chunks at their distance", **fields: str) -> Method:
    gaps = {"positions": lambda size: TrueGap(TIMES * size.length, **fields)}
    return Method(name, says, base, training=gaps)


def _foreign(name: str, base: str) -> Method:
    return _gapped(name, base, "the second chunk is of another novel", second="other")


def _encoded(name: str, says: str, base: str, encoding: Any) -> Method:
    return Method(name, says, base, {"encoding": encoding})


Encodings = Callable[[lm.ModelSize], tuple]


def _with_phase(times: int) -> Encodings:
    return lambda size: ("sinusoidal", Phase(times * size.length))


def _torus(size: lm.ModelSize, share: int = POS_SHARE) -> Sinusoidal:
    """A sinusoid over the position stream, or over all of a dense model (`share` 1), whose longest wave is
    twice the trained length."""
    return Sinusoidal(base=base_of_longest_wave(size.width // share, 2 * size.length))


def torus_with_phase(times: int, share: int = POS_SHARE) -> Encodings:
    return lambda size: (_torus(size, share), Phase(times * size.length))


MATCHED_STREAMS: Mapping[str, Any] = {
    "streams": part_for_position(POS_SHARE, lambda size: size.width * 19 // 16)
}
"""With these widths and a content-to-position term a separated model has about as many block parameters as
the dense one (within 1 %)."""

NARROW_STREAMS: Mapping[str, Any] = {
    "streams": part_for_position(POS_SHARE, lambda size: size.width * 15 // 16)
}
"""The widest streams of whole heads of even width with which a strict model with a content-to-position term
has fewer block parameters than the strict model without it."""

MATCHED = "separated-sinusoidal-38-114"
"""Named after its columns on a laptop. The model called `-wide` is another: it has dense's parameters without
the content-to-position term, this one with it."""

BASES = ("separated-sinusoidal", "strict-sinusoidal", "sinusoidal", "rope", "alibi")
"""The methods of the spine that are changed here."""

SHORT = "content-to-position term up to the trained length"
LONG = "content-to-position term up to 8 trained lengths"
TORUS = "longest wave twice the trained length"

VARIANTS: dict[str, Method] = listed(
    *(SPINE[name] for name in BASES),
    Method(MATCHED, "as wide as the one with dense's parameters", "separated-sinusoidal", MATCHED_STREAMS),
    # For the index: random offsets, and waves that are short enough to be seen whole.
    _moved("separated-offsets", "separated-sinusoidal", "sequence"),
    _moved("separated-offsets-step", "separated-sinusoidal", "step"),
    _moved("strict-offsets", "strict-sinusoidal", "step"),
    _moved("sinusoidal-offsets", "sinusoidal", "sequence"),
    _encoded("separated-torus", TORUS, "separated-sinusoidal", _torus),
    _moved("separated-torus-offsets", "separated-torus", "sequence", far=True),
    _encoded("strict-torus", TORUS, "strict-sinusoidal", _torus),
    _moved("strict-torus-offsets", "strict-torus", "step", far=True),
    # For quality: other scores.
    _encoded("separated-phase", SHORT, "separated-sinusoidal", _with_phase(1)),
    _encoded("separated-phase-long", LONG, "separated-sinusoidal", _with_phase(TIMES)),
    _moved("separated-phase-offsets", "separated-phase-long", "sequence"),
    _encoded("dense-phase", f"{SHORT}, no RoPE", "rope", lambda size: Phase(size.length)),
    _encoded("dense-phase-long", f"{LONG}, no RoPE", "rope", lambda size: Phase(TIMES * size.length)),
    _encoded("strict-phase", SHORT, "strict-sinusoidal", _with_phase(1)),
    Method("strict-phase-narrow", "fewer parameters than without that term", "strict-phase", NARROW_STREAMS),
    Method("untied", "no cross terms, TUPE-style", "strict-sinusoidal", {"query_key": "untied"}),
    _encoded("untied-rope", "RoPE in the sem heads", "untied", ("sinusoidal", RoPE(streams=("sem",)))),
    _moved("untied-offsets", "untied", "step"),
    Method("untied-constant", "pos stream constant over layers", "untied", {"pos_stream": "constant"}),
    _encoded(
        "strict-rotated",
        "RoPE in the position heads",
        "strict-sinusoidal",
        ("sinusoidal", RoPE(streams=("pos",))),
    ),
    _encoded("separated-rope", "RoPE in all heads", "separated-sinusoidal", ("sinusoidal", "rope")),
    _moved("separated-rope-offsets", "separated-rope", "sequence"),
    # For the distance of keys: position gaps.
    _gapped("separated-gaps", "separated-sinusoidal"),
    _gapped("separated-gaps-hidden", "separated-gaps", "the distance is hidden", indices="contiguous"),
    _foreign("separated-gaps-other", "separated-gaps"),
    _gapped("separated-phase-gaps", "separated-phase-long"),
    _foreign("separated-phase-gaps-other", "separated-phase-gaps"),
    _gapped("dense-phase-gaps", "dense-phase-long"),
    _foreign("dense-phase-gaps-other", "dense-phase-gaps"),
    _gapped("rope-gaps", "rope"),
    # Remedies put together, one for each thing that is new past the trained length.
    _encoded("separated-torus-phase", SHORT, "separated-torus", torus_with_phase(1)),
    _moved("separated-torus-phase-offsets", "separated-torus-phase", "sequence", far=True),
    _gapped("separated-torus-phase-gaps", "separated-torus-phase"),
    Method("separated-torus-phase-gaps-wide", EQUAL, "separated-torus-phase-gaps", MATCHED_STREAMS),
    _encoded("separated-torus-phase-long", LONG, "separated-torus", torus_with_phase(TIMES)),
    _gapped("separated-torus-phase-long-gaps", "separated-torus-phase-long"),
    Method("separated-torus-phase-long-gaps-wide", EQUAL, "separated-torus-phase-long-gaps", MATCHED_STREAMS),
    _encoded("sinusoidal-torus", TORUS, "sinusoidal", lambda size: _torus(size, 1)),
    _moved("sinusoidal-torus-offsets", "sinusoidal-torus", "sequence", far=True),
    _encoded(
        "sinusoidal-torus-phase-long",
        LONG,
        "sinusoidal-torus",
        torus_with_phase(TIMES, 1),
    ),
    _gapped("sinusoidal-torus-phase-long-gaps", "sinusoidal-torus-phase-long"),
    _encoded("untied-torus", TORUS, "untied", _torus),
    _moved("untied-torus-offsets", "untied-torus", "step", far=True),
    _encoded("untied-torus-phase-offsets", SHORT, "untied-torus-offsets", torus_with_phase(1)),
    _encoded(
        "untied-torus-phase-alibi-offsets",
        "ALiBi in all heads",
        "untied-torus-phase-offsets",
        lambda size: (_torus(size), Phase(size.length), "alibi"),
    ),
    _encoded("untied-torus-phase-long", LONG, "untied-torus", torus_with_phase(TIMES)),
    _gapped("untied-torus-phase-long-gaps", "untied-torus-phase-long"),
    _encoded(
        "dense-phase-alibi", "ALiBi in all heads", "dense-phase", lambda size: (Phase(size.length), "alibi")
    ),
)


def root(name: str) -> str:
    """The method of the spine in which the bases of a variant end."""
    return next(method.name for method in series(name) if method.name in SPINE)


def reference(name: str) -> str:
    """What the price of a variant is counted from: its method of the spine, as wide as the variant is where
    such a model is among the variants."""
    method = root(name)
    streams = next((one.model["streams"] for one in series(name) if "streams" in one.model), None)
    wide = (n for n, one in VARIANTS.items() if one.base == method and one.model == {"streams": streams})
    return next(wide, method)
