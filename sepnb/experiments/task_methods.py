"""The methods that are asked for what stands in their text, and the rules under which each reads longer ones.

Every change that is said to help past the trained length stands beside its dense twin: random positions,
random offsets, position gaps, and gaps together with a content-to-position term.
"""

from collections.abc import Iterator
from dataclasses import replace

from torch import nn

from ..evaluation.losses import as_trained
from ..evaluation.protocols import SINKS
from ..extrapolators import METHODS as EXTRAPOLATORS
from ..models import LanguageModel
from ..training.positions import PositionGap, PositionSampler
from . import context_extension
from .ablation import COMPARED
from .encoding_methods import DRAWN, RANDOM_POSITIONS
from .encoding_methods import METHODS as ENCODINGS
from .extrapolation import TIMES
from .methods import EQUAL, POS_SHARE, SPINE, WIDE, Method, facets, listed
from .variant_methods import VARIANTS, torus_with_phase

GAPPED = {"positions": lambda size: PositionGap(TIMES * size.length)}
GAPS = "position gaps (PoSE)"
"""The text is as it was. In `variant_methods` two chunks stand as far apart as in their document."""
SHORT_PERIOD = "content-to-position term, short-period sinusoid"

NEW = listed(
    Method("rope-gap", GAPS, "rope", training=GAPPED),
    Method("sinusoidal-gap", GAPS, "sinusoidal", training=GAPPED),
    Method("separated-gap", GAPS, "separated-sinusoidal", training=GAPPED),
    Method("strict-gap", GAPS, "strict-sinusoidal", training=GAPPED),
    *(
        Method(f"{base}-randomised", "sinusoid at random positions", f"{base}-sinusoidal", training=DRAWN)
        for base in ("separated", "strict")
    ),
    *(
        Method(f"{base}-content-gap", f"{SHORT_PERIOD}, gaps", f"{base}-torus-phase-long", training=GAPPED)
        for base in ("separated", "sinusoidal")
    ),
    Method("separated-content-gap-wide", EQUAL, "separated-content-gap", {"streams": WIDE}),
    Method(
        "strict-content-gap",
        f"{SHORT_PERIOD}, gaps",
        "strict-torus",
        {"encoding": torus_with_phase(TIMES)},
        GAPPED,
    ),
    *(
        Method(
            f"{base}-content-randomised",
            f"{SHORT_PERIOD}, random positions",
            f"{base}-torus",
            {"encoding": torus_with_phase(RANDOM_POSITIONS, share)},
            DRAWN,
        )
        for base, share in (("separated", POS_SHARE), ("sinusoidal", 1))
    ),
)

DENSE = (
    *("none", "sinusoidal", "learned", "rope", "alibi", "t5", "kerple-log", "fire"),
    *("transformer-xl", "shaw", "distance-aware", "cope"),
)
TWINS = ("rope-randomised", "rope-gap", "sinusoidal-randomised", "sinusoidal-offsets", "sinusoidal-gap")
STREAMS = tuple(
    f"{mode}-{what}"
    for what in ("sinusoidal", "randomised", "offsets", "gap", "content-gap", "learned")
    for mode in ("separated", "strict")
)
BOTH = ("sinusoidal-content-randomised", "separated-content-randomised")
"""Can one model tell what and where: with the term that finds content, at the positions that teach order?"""

METHODS: dict[str, Method] = {
    name: {**SPINE, **ENCODINGS, **VARIANTS, **NEW}[name]
    for name in (*DENSE, *TWINS, "sinusoidal-content-gap", *STREAMS, *BOTH)
}
"""In the order of tables: dense encodings, dense twins of what is changed, separated and strict models."""

WITH_EQUALS = {**METHODS, "separated-content-gap-wide": NEW["separated-content-gap-wide"]}
"""And the separated model that has as many block parameters as its dense twin (within 3 %)."""

FEW = (
    *("none", "rope", "alibi", "sinusoidal-randomised", "rope-randomised"),
    *("separated-randomised", "strict-randomised", "separated-content-gap"),
)
"""Of the tasks that are asked of some methods only."""

PLACES = (
    *FEW,
    *("sinusoidal", "separated-sinusoidal", "separated-sinusoidal-wide"),
    *(COMPARED[name].name for name in ("separated-sinusoidal-joint-mlp", "concatenated-sinusoidal")),
)
"""Of the task that adds a shift to a place. Random positions leave no distance to add, so that models at the
positions of the text are asked too: also a separated one as large as the dense; one whose MLP alone reads and
writes both streams; and one with as few columns for position in which nothing is split."""

OF_ROPE = {
    name: context_extension.EXTENSIONS[known]
    for name, known in (
        ("interpolation", "position-interpolation"),
        ("ntk", "ntk-aware"),
        *((same, same) for same in ("ntk-by-parts", "yarn", "llama3")),
    )
}
"""Of a trained RoPE, for texts of `factor` times `length`, with the options of their sources."""


def readers(
    name: str, model: LanguageModel, positions: PositionSampler | None, times: int
) -> Iterator[tuple[str, nn.Module]]:
    """The readings, by name, of a trained model of this method in a text of `times` its trained length L.

    At L or less there is only "native", as trained. Past L there is also "window", the same behind a mask of
    L keys, and for some methods more: the context extensions and attention sinks of RoPE; logits scaled with
    log n for RoPE, ALiBi and no encoding; random positions of the "lower" three quarters alone, without those
    at which only the questions of training stood. A learned table has no native reading past L, but the five
    extrapolators and their controls.
    """
    length = model.config.max_length
    if times <= 1:
        yield "native", as_trained(model, positions)
        return
    if facets(name).encoding == ("learned",):
        for method in EXTRAPOLATORS:
            options = {"length": times * length} if method == "interpolate" else {}
            yield method, model.extended(method, **options)
        yield "window", model.extended("clamp", window=length)
        return
    yield "native", as_trained(model, positions)
    yield "window", as_trained(model.extended(window=length), positions)
    if positions is not None and positions.at_evaluation:
        yield "lower", as_trained(model, replace(positions, maximum=positions.maximum * 3 // 4))
    if name in ("none", "rope", "alibi"):
        yield "log-scale", model.extended(log_scale=True)
    if name == "rope":
        yield "window-sinks", model.extended(window=length - SINKS, sinks=SINKS)
        for method, extension in OF_ROPE.items():
            yield method, model.extended(extension=extension(times, length))
