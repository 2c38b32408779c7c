"""The recipes: changes of the training or of the score that may carry a model past its trained length.

Each is another method with one field of the model or of the training replaced, or a few that only make sense
together, so that a difference from its base is what it does. At the root of every chain stands a method of
the spine, whose swept learning rate all take: no recipe has a rate of its own, which tilts comparisons with
the root against the recipe, and those between recipes of different roots either way.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ..encodings import Phase, RoPE, Sinusoidal, base_of_longest_wave
from ..streams import Streams
from ..training.positions import RandomOffset, TrueGap
from ..training.toeplitz import ToeplitzClamp
from . import language_modelling as lm
from . import methods
from .in_window import LR_SCREEN
from .methods import POS_SHARE, SPINE, Method, chain, listed

TIMES = 8
"""Offsets and gaps cover, and long waves reach, this many trained lengths: as far as is read."""

FAR = 100_000
"""The torus is trained at indices below this."""


def _offsets(per: str, *, far: bool = False) -> Mapping[str, Callable[[lm.Size], RandomOffset]]:
    return {"positions": lambda size: RandomOffset(FAR if far else TIMES * size.length, per)}


def _gaps(**fields: str) -> Mapping[str, Callable[[lm.Size], TrueGap]]:
    return {"positions": lambda size: TrueGap(TIMES * size.length, **fields)}


def _clamp(weight: float) -> Mapping[str, Callable[[lm.Size], ToeplitzClamp]]:
    return {"auxiliary": lambda size: ToeplitzClamp(weight, TIMES * size.length)}


def _torus(size: lm.Size) -> Sinusoidal:
    """A sinusoid over the position stream whose longest wave is twice the trained length."""
    return Sinusoidal(base=base_of_longest_wave(size.width // POS_SHARE, 2 * size.length))


def _added_torus(size: lm.Size) -> Sinusoidal:
    """The same over the whole width of a dense model."""
    return Sinusoidal(base=base_of_longest_wave(size.width, 2 * size.length))


def _matched(size: lm.Size) -> Streams:
    """The streams with which a separated model with the phase read has about as many block parameters as the
    dense one of the size (within 1 %)."""
    width = size.width * 19 // 16
    return Streams(pos=width // POS_SHARE, sem=width - width // POS_SHARE)


def _narrow(size: lm.Size) -> Streams:
    """The streams of the widest strict model with the phase read, whole heads in each and an even width of
    them, that has fewer block parameters than the strict one of the size without it."""
    width = size.width * 15 // 16
    return Streams(pos=width // POS_SHARE, sem=width - width // POS_SHARE)


def _with_phase(times: int) -> Callable[[lm.Size], tuple]:
    return lambda size: ("sinusoidal", Phase(times * size.length))


def _moved(name: str, base: str, per: str, *, far: bool = False) -> Method:
    says = "random offset in every sequence" if per == "sequence" else "one random offset a step"
    return Method(name, says + (", below 100,000" if far else ""), base, training=_offsets(per, far=far))


def _gapped(name: str, base: str) -> Method:
    return Method(name, "two chunks at their distance", base, training=_gaps())


def _foreign(name: str, base: str) -> Method:
    return Method(name, "the second chunk is of another novel", base, training=_gaps(second="other"))


def _encoded(name: str, says: str, base: str, encoding: Any) -> Method:
    return Method(name, says, base, {"encoding": encoding})


SHORT, LONG = "phase read up to the trained length", "phase read up to 8 trained lengths"
TORUS = "longest wave twice the trained length"

MATCHED = "separated-sinusoidal-38-114"
"""Named after its columns on a laptop. The model called `-wide` is another: it has dense's parameters without
the phase read, this one with it."""

_REFERENCES = listed(
    Method(
        MATCHED,
        "as wide as the combination that has dense's parameters",
        "separated-sinusoidal",
        {"streams": _matched},
    ),
)
BASES = ("separated-sinusoidal", "strict-sinusoidal", "sinusoidal", "rope", "alibi")
"""The methods of the spine that are changed here."""


_OFFSETS = listed(
    _moved("separated-offsets", "separated-sinusoidal", "sequence"),
    _moved("separated-offsets-step", "separated-sinusoidal", "step"),
    _moved("strict-offsets", "strict-sinusoidal", "step"),
    _moved("sinusoidal-offsets", "sinusoidal", "sequence"),
    _encoded("separated-torus", TORUS, "separated-sinusoidal", _torus),
    _moved("separated-torus-offsets", "separated-torus", "sequence", far=True),
    _encoded("strict-torus", TORUS, "strict-sinusoidal", _torus),
    _moved("strict-torus-offsets", "strict-torus", "step", far=True),
)


_SCORES = listed(
    _encoded("separated-phase", SHORT, "separated-sinusoidal", _with_phase(1)),
    _encoded("separated-phase-long", LONG, "separated-sinusoidal", _with_phase(TIMES)),
    _moved("separated-phase-offsets", "separated-phase-long", "sequence"),
    _encoded("dense-phase", "phase read in the place of RoPE", "rope", lambda size: Phase(size.length)),
    _encoded(
        "dense-phase-long",
        "phase read up to 8 trained lengths in the place of RoPE",
        "rope",
        lambda size: Phase(TIMES * size.length),
    ),
    _encoded("strict-phase", SHORT, "strict-sinusoidal", _with_phase(1)),
    Method(
        "strict-phase-narrow",
        "fewer parameters than without the phase read",
        "strict-phase",
        {"streams": _narrow},
    ),
    Method("untied", "no cross terms", "strict-sinusoidal", {"query_key": "untied"}),
    _encoded("untied-rope", "RoPE in the sem heads", "untied", ("sinusoidal", RoPE(streams=("sem",)))),
    _moved("untied-offsets", "untied", "step"),
    Method("untied-clamp", "Toeplitz clamp, weight 0.1", "untied", training=_clamp(0.1)),
    Method("untied-constant", "pos stream constant over layers", "untied", {"pos_stream": "constant"}),
    Method("untied-constant-clamp", "Toeplitz clamp, weight 0.1", "untied-constant", training=_clamp(0.1)),
    Method(
        "untied-constant-clamp-strong", "Toeplitz clamp, weight 1", "untied-constant", training=_clamp(1.0)
    ),
    _encoded(
        "strict-rotated",
        "RoPE in the position heads",
        "strict-sinusoidal",
        ("sinusoidal", RoPE(streams=("pos",))),
    ),
    _gapped("untied-constant-clamp-gaps", "untied-constant-clamp"),
    _encoded("separated-rope", "RoPE in all heads", "separated-sinusoidal", ("sinusoidal", "rope")),
    _moved("separated-rope-offsets", "separated-rope", "sequence"),
)


_GAPS = listed(
    _gapped("separated-gaps", "separated-sinusoidal"),
    Method(
        "separated-gaps-hidden",
        "the distance is hidden",
        "separated-gaps",
        training=_gaps(indices="contiguous"),
    ),
    _foreign("separated-gaps-other", "separated-gaps"),
    _gapped("separated-phase-gaps", "separated-phase-long"),
    _foreign("separated-phase-gaps-other", "separated-phase-gaps"),
    _gapped("dense-phase-gaps", "dense-phase-long"),
    _foreign("dense-phase-gaps-other", "dense-phase-gaps"),
    _gapped("rope-gaps", "rope"),
)


def _torus_with_phase(times: int) -> Callable[[lm.Size], tuple]:
    return lambda size: (_torus(size), Phase(times * size.length))


_COMBINED = listed(
    _encoded("separated-torus-phase", SHORT, "separated-torus", _torus_with_phase(1)),
    _moved("separated-torus-phase-offsets", "separated-torus-phase", "sequence", far=True),
    _gapped("separated-torus-phase-gaps", "separated-torus-phase"),
    Method(
        "separated-torus-phase-gaps-wide",
        "as many parameters as dense",
        "separated-torus-phase-gaps",
        {"streams": _matched},
    ),
    _encoded("separated-torus-phase-long", LONG, "separated-torus", _torus_with_phase(TIMES)),
    _gapped("separated-torus-phase-long-gaps", "separated-torus-phase-long"),
    Method(
        "separated-torus-phase-long-gaps-wide",
        "as many parameters as dense",
        "separated-torus-phase-long-gaps",
        {"streams": _matched},
    ),
    _encoded("sinusoidal-torus", TORUS, "sinusoidal", _added_torus),
    _moved("sinusoidal-torus-offsets", "sinusoidal-torus", "sequence", far=True),
    _encoded(
        "sinusoidal-torus-phase-long",
        LONG,
        "sinusoidal-torus",
        lambda size: (_added_torus(size), Phase(TIMES * size.length)),
    ),
    _gapped("sinusoidal-torus-phase-long-gaps", "sinusoidal-torus-phase-long"),
    _encoded("untied-torus", TORUS, "untied", _torus),
    _moved("untied-torus-offsets", "untied-torus", "step", far=True),
    _encoded("untied-torus-phase-offsets", SHORT, "untied-torus-offsets", _torus_with_phase(1)),
    _encoded(
        "untied-torus-phase-alibi-offsets",
        "ALiBi in all heads",
        "untied-torus-phase-offsets",
        lambda size: (_torus(size), Phase(size.length), "alibi"),
    ),
    _encoded("untied-torus-phase-long", LONG, "untied-torus", _torus_with_phase(TIMES)),
    _gapped("untied-torus-phase-long-gaps", "untied-torus-phase-long"),
    _encoded(
        "dense-phase-alibi", "ALiBi in all heads", "dense-phase", lambda size: (Phase(size.length), "alibi")
    ),
)
"""Remedies put together, one for each thing that is new past the trained length: the torus and random offsets
for the index, gaps or ALiBi for the distance of keys, the phase read for quality."""

RECIPES: dict[str, Method] = {
    **{name: SPINE[name] for name in BASES},
    **_REFERENCES,
    **_OFFSETS,
    **_SCORES,
    **_GAPS,
    **_COMBINED,
}


def root(name: str) -> str:
    """The method at the beginning of a recipe's chain, whose swept rate it takes.

    Raises:
        ValueError: an unknown method.
    """
    return next(method.name for method in chain(name) if method.name in SPINE)


def reference(name: str) -> str:
    """What the price of a recipe is counted from: the method at its root, as wide as the recipe is where such
    a model is among the recipes.

    Raises:
        ValueError: an unknown method.
    """
    method = root(name)
    streams = next((one.model["streams"] for one in chain(name) if "streams" in one.model), None)
    wide = (n for n, one in RECIPES.items() if one.base == method and one.model == {"streams": streams})
    return next(wide, method)


def run_of(experiment: str, profile: str, name: str, seed: int) -> lm.LanguageModelRun:
    """The run of a recipe, at the rate of its root.

    Raises:
        ValueError: an unknown method.
    """
    rate = LR_SCREEN.rate(profile, root(name))
    return methods.run_of(experiment, profile, name, seed, rate)
