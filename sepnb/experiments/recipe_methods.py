"""The recipes: changes of the training or of the score that may carry a model past its trained length.

Each is another method with one field of the model or of the training replaced, or a few that only make sense
together, so that a difference from its base is what it does. At the root of every chain stands a method of
the spine, whose swept learning rate all take: no recipe has a rate of its own, which tilts comparisons with
the root against the recipe, and those between recipes of different roots either way.
"""

from collections.abc import Callable, Mapping

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
    Method(
        "separated-offsets",
        "random offset in every sequence",
        "separated-sinusoidal",
        training=_offsets("sequence"),
    ),
    Method(
        "separated-offsets-step",
        "one random offset a step",
        "separated-sinusoidal",
        training=_offsets("step"),
    ),
    Method("strict-offsets", "one random offset a step", "strict-sinusoidal", training=_offsets("step")),
    Method(
        "sinusoidal-offsets", "random offset in every sequence", "sinusoidal", training=_offsets("sequence")
    ),
    Method(
        "separated-torus",
        "longest wave twice the trained length",
        "separated-sinusoidal",
        {"encoding": _torus},
    ),
    Method(
        "separated-torus-offsets",
        "random offset below 100,000",
        "separated-torus",
        training=_offsets("sequence", far=True),
    ),
    Method(
        "strict-torus", "longest wave twice the trained length", "strict-sinusoidal", {"encoding": _torus}
    ),
    Method(
        "strict-torus-offsets",
        "one random offset a step, below 100,000",
        "strict-torus",
        training=_offsets("step", far=True),
    ),
)


_SCORES = listed(
    Method(
        "separated-phase",
        "phase read up to the trained length",
        "separated-sinusoidal",
        {"encoding": _with_phase(1)},
    ),
    Method(
        "separated-phase-long",
        "phase read up to 8 trained lengths",
        "separated-sinusoidal",
        {"encoding": _with_phase(TIMES)},
    ),
    Method(
        "separated-phase-offsets",
        "random offset in every sequence",
        "separated-phase-long",
        training=_offsets("sequence"),
    ),
    Method(
        "dense-phase",
        "phase read in the place of RoPE",
        "rope",
        {"encoding": lambda size: Phase(size.length)},
    ),
    Method(
        "dense-phase-long",
        "phase read up to 8 trained lengths in the place of RoPE",
        "rope",
        {"encoding": lambda size: Phase(TIMES * size.length)},
    ),
    Method(
        "strict-phase",
        "phase read up to the trained length",
        "strict-sinusoidal",
        {"encoding": _with_phase(1)},
    ),
    Method(
        "strict-phase-narrow",
        "fewer parameters than without the phase read",
        "strict-phase",
        {"streams": _narrow},
    ),
    Method("untied", "no cross terms", "strict-sinusoidal", {"query_key": "untied"}),
    Method(
        "untied-rope", "RoPE in the sem heads", "untied", {"encoding": ("sinusoidal", RoPE(streams=("sem",)))}
    ),
    Method("untied-offsets", "one random offset a step", "untied", training=_offsets("step")),
    Method("untied-clamp", "Toeplitz clamp, weight 0.1", "untied", training=_clamp(0.1)),
    Method("untied-constant", "pos stream constant over layers", "untied", {"pos_stream": "constant"}),
    Method("untied-constant-clamp", "Toeplitz clamp, weight 0.1", "untied-constant", training=_clamp(0.1)),
    Method(
        "untied-constant-clamp-strong", "Toeplitz clamp, weight 1", "untied-constant", training=_clamp(1.0)
    ),
    Method(
        "strict-rotated",
        "RoPE in the position heads",
        "strict-sinusoidal",
        {"encoding": ("sinusoidal", RoPE(streams=("pos",)))},
    ),
    Method(
        "untied-constant-clamp-gaps",
        "two chunks at their distance",
        "untied-constant-clamp",
        training=_gaps(),
    ),
    Method(
        "separated-rope", "RoPE in all heads", "separated-sinusoidal", {"encoding": ("sinusoidal", "rope")}
    ),
    Method(
        "separated-rope-offsets",
        "random offset in every sequence",
        "separated-rope",
        training=_offsets("sequence"),
    ),
)


_GAPS = listed(
    Method("separated-gaps", "two chunks at their distance", "separated-sinusoidal", training=_gaps()),
    Method(
        "separated-gaps-hidden",
        "the distance is hidden",
        "separated-gaps",
        training=_gaps(indices="contiguous"),
    ),
    Method(
        "separated-gaps-other",
        "the second chunk is of another novel",
        "separated-gaps",
        training=_gaps(second="other"),
    ),
    Method("separated-phase-gaps", "two chunks at their distance", "separated-phase-long", training=_gaps()),
    Method(
        "separated-phase-gaps-other",
        "the second chunk is of another novel",
        "separated-phase-gaps",
        training=_gaps(second="other"),
    ),
    Method("dense-phase-gaps", "two chunks at their distance", "dense-phase-long", training=_gaps()),
    Method(
        "dense-phase-gaps-other",
        "the second chunk is of another novel",
        "dense-phase-gaps",
        training=_gaps(second="other"),
    ),
    Method("rope-gaps", "two chunks at their distance", "rope", training=_gaps()),
)


def _torus_with_phase(times: int) -> Callable[[lm.Size], tuple]:
    return lambda size: (_torus(size), Phase(times * size.length))


SHORT, LONG = "phase read up to the trained length", "phase read up to 8 trained lengths"

_COMBINED = listed(
    Method("separated-torus-phase", SHORT, "separated-torus", {"encoding": _torus_with_phase(1)}),
    Method(
        "separated-torus-phase-offsets",
        "random offset below 100,000",
        "separated-torus-phase",
        training=_offsets("sequence", far=True),
    ),
    Method(
        "separated-torus-phase-gaps",
        "two chunks at their distance",
        "separated-torus-phase",
        training=_gaps(),
    ),
    Method(
        "separated-torus-phase-gaps-wide",
        "as many parameters as dense",
        "separated-torus-phase-gaps",
        {"streams": _matched},
    ),
    Method("separated-torus-phase-long", LONG, "separated-torus", {"encoding": _torus_with_phase(TIMES)}),
    Method(
        "separated-torus-phase-long-gaps",
        "two chunks at their distance",
        "separated-torus-phase-long",
        training=_gaps(),
    ),
    Method(
        "separated-torus-phase-long-gaps-wide",
        "as many parameters as dense",
        "separated-torus-phase-long-gaps",
        {"streams": _matched},
    ),
    Method(
        "sinusoidal-torus", "longest wave twice the trained length", "sinusoidal", {"encoding": _added_torus}
    ),
    Method(
        "sinusoidal-torus-offsets",
        "random offset below 100,000",
        "sinusoidal-torus",
        training=_offsets("sequence", far=True),
    ),
    Method(
        "sinusoidal-torus-phase-long",
        LONG,
        "sinusoidal-torus",
        {"encoding": lambda size: (_added_torus(size), Phase(TIMES * size.length))},
    ),
    Method(
        "sinusoidal-torus-phase-long-gaps",
        "two chunks at their distance",
        "sinusoidal-torus-phase-long",
        training=_gaps(),
    ),
    Method("untied-torus", "longest wave twice the trained length", "untied", {"encoding": _torus}),
    Method(
        "untied-torus-offsets",
        "one random offset a step, below 100,000",
        "untied-torus",
        training=_offsets("step", far=True),
    ),
    Method("untied-torus-phase-offsets", SHORT, "untied-torus-offsets", {"encoding": _torus_with_phase(1)}),
    Method(
        "untied-torus-phase-alibi-offsets",
        "ALiBi in all heads",
        "untied-torus-phase-offsets",
        {"encoding": lambda size: (_torus(size), Phase(size.length), "alibi")},
    ),
    Method("untied-torus-phase-long", LONG, "untied-torus", {"encoding": _torus_with_phase(TIMES)}),
    Method(
        "untied-torus-phase-long-gaps",
        "two chunks at their distance",
        "untied-torus-phase-long",
        training=_gaps(),
    ),
    Method(
        "dense-phase-alibi",
        "ALiBi in all heads",
        "dense-phase",
        {"encoding": lambda size: (Phase(size.length), "alibi")},
    ),
)


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
