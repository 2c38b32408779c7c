"""The recipes: changes of the training or of the score that may carry a model past its trained length.

Each recipe is another model or training with one field replaced, or a few that only make sense together, so
that a difference from its base is what the recipe does. At the root of every chain stands a method of
`language_modelling`, whose screened learning rate all of its recipes take: no recipe has a rate of its own,
which tilts comparisons with the root against the recipe, and those between recipes of different roots either
way.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..encodings import Phase, RoPE, Sinusoidal, base_of_longest_wave
from ..streams import Streams
from ..training.positions import RandomOffset, TrueGap
from ..training.toeplitz import ToeplitzClamp
from . import language_modelling as lm
from .in_window import learning_rate

TIMES = 8
"""Offsets and gaps cover, and long waves reach, this many trained lengths: as far as is read."""

FAR = 100_000
"""The torus is trained at indices below this."""


@dataclass(frozen=True)
class Recipe:
    """One change of a method or of another recipe.

    Args:
        change: what is changed, in a few words.
        base: what is changed; None for a method that stands as it is.
        model, training: the fields of `TransformerConfig` and of `TrainingConfig` that are replaced, each by
            a value or, where it depends on the size, by a function of it.
    """

    change: str
    base: str | None = None
    model: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)


def _offsets(per: str, *, far: bool = False) -> Mapping[str, Callable[[lm.Size], RandomOffset]]:
    return {"positions": lambda size: RandomOffset(FAR if far else TIMES * size.length, per)}


def _gaps(**fields: str) -> Mapping[str, Callable[[lm.Size], TrueGap]]:
    return {"positions": lambda size: TrueGap(TIMES * size.length, **fields)}


def _clamp(weight: float) -> Mapping[str, Callable[[lm.Size], ToeplitzClamp]]:
    return {"auxiliary": lambda size: ToeplitzClamp(weight, TIMES * size.length)}


def _torus(size: lm.Size) -> Sinusoidal:
    """A sinusoid over the position stream whose longest wave is twice the trained length."""
    return Sinusoidal(base=base_of_longest_wave(size.width // lm.POS_SHARE, 2 * size.length))


def _added_torus(size: lm.Size) -> Sinusoidal:
    """The same over the whole width of a dense model."""
    return Sinusoidal(base=base_of_longest_wave(size.width, 2 * size.length))


def _matched(size: lm.Size) -> Streams:
    """The streams with which a separated model with the phase read has about as many block parameters as the
    dense one of the size (within 1 %)."""
    width = size.width * 19 // 16
    return Streams(pos=width // lm.POS_SHARE, sem=width - width // lm.POS_SHARE)


def _narrow(size: lm.Size) -> Streams:
    """The streams of the widest strict model with the phase read, whole heads in each and an even width of
    them, that has fewer block parameters than the strict one of the size without it."""
    width = size.width * 15 // 16
    return Streams(pos=width // lm.POS_SHARE, sem=width - width // lm.POS_SHARE)


def _with_phase(times: int) -> Callable[[lm.Size], tuple]:
    return lambda size: ("sinusoidal", Phase(times * size.length))


def _references() -> dict[str, Recipe]:
    return {
        "separated-sinusoidal": Recipe("separated, sinusoid"),
        "strict-sinusoidal": Recipe("strict, sinusoid"),
        "sinusoidal": Recipe("dense, sinusoid added"),
        "rope": Recipe("dense, RoPE"),
        "alibi": Recipe("dense, ALiBi"),
        "separated-sinusoidal-wide": Recipe(
            "as wide as the combination that has dense's parameters",
            "separated-sinusoidal",
            {"streams": _matched},
        ),
    }


def _offset_recipes() -> dict[str, Recipe]:
    return {
        "separated-offsets": Recipe(
            "random offset in every sequence", "separated-sinusoidal", training=_offsets("sequence")
        ),
        "separated-offsets-step": Recipe(
            "one random offset a step", "separated-sinusoidal", training=_offsets("step")
        ),
        "strict-offsets": Recipe("one random offset a step", "strict-sinusoidal", training=_offsets("step")),
        "sinusoidal-offsets": Recipe(
            "random offset in every sequence", "sinusoidal", training=_offsets("sequence")
        ),
        "separated-torus": Recipe(
            "longest wave twice the trained length", "separated-sinusoidal", {"encoding": _torus}
        ),
        "separated-torus-offsets": Recipe(
            "random offset below 100,000", "separated-torus", training=_offsets("sequence", far=True)
        ),
        "strict-torus": Recipe(
            "longest wave twice the trained length", "strict-sinusoidal", {"encoding": _torus}
        ),
        "strict-torus-offsets": Recipe(
            "one random offset a step, below 100,000", "strict-torus", training=_offsets("step", far=True)
        ),
    }


def _score_recipes() -> dict[str, Recipe]:
    return {
        "separated-phase": Recipe(
            "phase read up to the trained length", "separated-sinusoidal", {"encoding": _with_phase(1)}
        ),
        "separated-phase-long": Recipe(
            "phase read up to 8 trained lengths", "separated-sinusoidal", {"encoding": _with_phase(TIMES)}
        ),
        "separated-phase-offsets": Recipe(
            "random offset in every sequence", "separated-phase-long", training=_offsets("sequence")
        ),
        "dense-phase": Recipe(
            "phase read in the place of RoPE", "rope", {"encoding": lambda size: Phase(size.length)}
        ),
        "dense-phase-long": Recipe(
            "phase read up to 8 trained lengths in the place of RoPE",
            "rope",
            {"encoding": lambda size: Phase(TIMES * size.length)},
        ),
        "strict-phase": Recipe(
            "phase read up to the trained length", "strict-sinusoidal", {"encoding": _with_phase(1)}
        ),
        "strict-phase-narrow": Recipe(
            "fewer parameters than without the phase read", "strict-phase", {"streams": _narrow}
        ),
        "untied": Recipe("no cross terms", "strict-sinusoidal", {"query_key": "untied"}),
        "untied-rope": Recipe(
            "RoPE in the sem heads", "untied", {"encoding": ("sinusoidal", RoPE(streams=("sem",)))}
        ),
        "untied-offsets": Recipe("one random offset a step", "untied", training=_offsets("step")),
        "untied-clamp": Recipe("Toeplitz clamp, weight 0.1", "untied", training=_clamp(0.1)),
        "untied-constant": Recipe("pos stream constant over layers", "untied", {"pos_stream": "constant"}),
        "untied-constant-clamp": Recipe(
            "Toeplitz clamp, weight 0.1", "untied-constant", training=_clamp(0.1)
        ),
        "untied-constant-clamp-strong": Recipe(
            "Toeplitz clamp, weight 1", "untied-constant", training=_clamp(1.0)
        ),
        "strict-rotated": Recipe(
            "RoPE in the position heads",
            "strict-sinusoidal",
            {"encoding": ("sinusoidal", RoPE(streams=("pos",)))},
        ),
        "untied-constant-clamp-gaps": Recipe(
            "two chunks at their distance", "untied-constant-clamp", training=_gaps()
        ),
        "separated-rope": Recipe(
            "RoPE in all heads", "separated-sinusoidal", {"encoding": ("sinusoidal", "rope")}
        ),
        "separated-rope-offsets": Recipe(
            "random offset in every sequence", "separated-rope", training=_offsets("sequence")
        ),
    }


def _gap_recipes() -> dict[str, Recipe]:
    return {
        "separated-gaps": Recipe("two chunks at their distance", "separated-sinusoidal", training=_gaps()),
        "separated-gaps-hidden": Recipe(
            "the distance is hidden", "separated-gaps", training=_gaps(indices="contiguous")
        ),
        "separated-gaps-other": Recipe(
            "the second chunk is of another novel", "separated-gaps", training=_gaps(second="other")
        ),
        "separated-phase-gaps": Recipe(
            "two chunks at their distance", "separated-phase-long", training=_gaps()
        ),
        "separated-phase-gaps-other": Recipe(
            "the second chunk is of another novel", "separated-phase-gaps", training=_gaps(second="other")
        ),
        "dense-phase-gaps": Recipe("two chunks at their distance", "dense-phase-long", training=_gaps()),
        "dense-phase-gaps-other": Recipe(
            "the second chunk is of another novel", "dense-phase-gaps", training=_gaps(second="other")
        ),
        "rope-gaps": Recipe("two chunks at their distance", "rope", training=_gaps()),
    }


def _combinations() -> dict[str, Recipe]:
    """Remedies put together, one for each thing that is new past the trained length: the torus and random
    offsets for the index, gaps or ALiBi for the distance of keys, the phase read for quality."""

    def torus_with_phase(times: int) -> Callable[[lm.Size], tuple]:
        return lambda size: (_torus(size), Phase(times * size.length))

    short, long = "phase read up to the trained length", "phase read up to 8 trained lengths"
    return {
        "separated-torus-phase": Recipe(short, "separated-torus", {"encoding": torus_with_phase(1)}),
        "separated-torus-phase-offsets": Recipe(
            "random offset below 100,000",
            "separated-torus-phase",
            training=_offsets("sequence", far=True),
        ),
        "separated-torus-phase-gaps": Recipe(
            "two chunks at their distance", "separated-torus-phase", training=_gaps()
        ),
        "separated-torus-phase-gaps-wide": Recipe(
            "as many parameters as dense", "separated-torus-phase-gaps", {"streams": _matched}
        ),
        "separated-torus-phase-long": Recipe(long, "separated-torus", {"encoding": torus_with_phase(TIMES)}),
        "separated-torus-phase-long-gaps": Recipe(
            "two chunks at their distance", "separated-torus-phase-long", training=_gaps()
        ),
        "separated-torus-phase-long-gaps-wide": Recipe(
            "as many parameters as dense", "separated-torus-phase-long-gaps", {"streams": _matched}
        ),
        "sinusoidal-torus": Recipe(
            "longest wave twice the trained length", "sinusoidal", {"encoding": _added_torus}
        ),
        "sinusoidal-torus-offsets": Recipe(
            "random offset below 100,000", "sinusoidal-torus", training=_offsets("sequence", far=True)
        ),
        "sinusoidal-torus-phase-long": Recipe(
            long,
            "sinusoidal-torus",
            {"encoding": lambda size: (_added_torus(size), Phase(TIMES * size.length))},
        ),
        "sinusoidal-torus-phase-long-gaps": Recipe(
            "two chunks at their distance", "sinusoidal-torus-phase-long", training=_gaps()
        ),
        "untied-torus": Recipe("longest wave twice the trained length", "untied", {"encoding": _torus}),
        "untied-torus-offsets": Recipe(
            "one random offset a step, below 100,000", "untied-torus", training=_offsets("step", far=True)
        ),
        "untied-torus-phase-offsets": Recipe(
            short, "untied-torus-offsets", {"encoding": torus_with_phase(1)}
        ),
        "untied-torus-phase-alibi-offsets": Recipe(
            "ALiBi in all heads",
            "untied-torus-phase-offsets",
            {"encoding": lambda size: (_torus(size), Phase(size.length), "alibi")},
        ),
        "untied-torus-phase-long": Recipe(long, "untied-torus", {"encoding": torus_with_phase(TIMES)}),
        "untied-torus-phase-long-gaps": Recipe(
            "two chunks at their distance", "untied-torus-phase-long", training=_gaps()
        ),
        "dense-phase-alibi": Recipe(
            "ALiBi in all heads", "dense-phase", {"encoding": lambda size: (Phase(size.length), "alibi")}
        ),
    }


RECIPES: dict[str, Recipe] = {
    **_references(),
    **_offset_recipes(),
    **_score_recipes(),
    **_gap_recipes(),
    **_combinations(),
}


def root(name: str, recipes: Mapping[str, Recipe] = RECIPES) -> str:
    """The method at the beginning of a recipe's chain, without any recipe.

    Raises:
        ValueError: an unknown recipe.
    """
    if name not in recipes:
        raise ValueError(f"unknown recipe {name!r}; use one of {', '.join(recipes)}")
    base = recipes[name].base
    return name if base is None else root(base, recipes)


def reference(name: str, recipes: Mapping[str, Recipe] = RECIPES) -> str:
    """What the price of a recipe is counted from: the method at its root, as wide as the recipe is where such
    a model is among the recipes.

    Raises:
        ValueError: an unknown recipe.
    """
    method, at = root(name, recipes), name
    while recipes[at].base is not None and "streams" not in recipes[at].model:
        at = recipes[at].base
    streams = recipes[at].model.get("streams")
    wide = (n for n, one in recipes.items() if one.base == method and one.model == {"streams": streams})
    return next(wide, method)


def run_of(
    experiment: str, profile: str, name: str, seed: int, recipes: Mapping[str, Recipe] = RECIPES
) -> lm.LanguageModelRun:
    """The run of one of some recipes: that of its base with the declared fields replaced.

    Raises:
        ValueError: an unknown recipe.
    """
    method = root(name, recipes)
    recipe, size = recipes[name], lm.SIZES[profile]
    if recipe.base is None:
        return lm.LanguageModelRun.of(experiment, profile, name, seed, learning_rate(profile, method))
    run = run_of(experiment, profile, recipe.base, seed, recipes)

    def at_size(fields: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value(size) if callable(value) else value for key, value in fields.items()}

    return replace(
        run,
        method=name,
        model=replace(run.model, **at_size(recipe.model)),
        training=replace(run.training, **at_size(recipe.training)),
    )
