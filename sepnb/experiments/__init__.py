"""Experiments: one file per question, which declares an `Experiment`. To add one, name it in `_REGISTRY`;
from outside of the package, `register` it."""

from ..validation import instance, named
from . import (
    ablation,
    adapted,
    budget,
    context_extension,
    each_pair,
    encoding_methods,
    encoding_speed,
    extrapolation,
    fitted_rows,
    images,
    in_window,
    inside,
    key_bytes,
    ladder,
    long_texts,
    matched_loss,
    opened,
    reading_cost,
    removed,
    score_terms,
    second_text,
    seqpe_cost,
    seqpe_geometry,
    seqpe_stream,
    shaw_clip,
    speed,
    stretched,
    task_grid,
    trained_directions,
    variants,
)
from .base import PROFILES, Experiment

_REGISTRY: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in sorted(
        (
            in_window.LR_SCREEN,
            in_window.TABLE_SWEEP,
            in_window.EXPERIMENT,
            extrapolation.EXPERIMENT,
            second_text.EXPERIMENT,
            fitted_rows.PLAIN_SWEEP,
            fitted_rows.FIT_SWEEP,
            fitted_rows.EXPERIMENT,
            ablation.SWEEP,
            ablation.EXPERIMENT,
            shaw_clip.EXPERIMENT,
            budget.SHORT,
            budget.LONG,
            budget.EXPERIMENT,
            inside.EXPERIMENT,
            variants.SWEEP,
            variants.SCREEN,
            variants.EXPERIMENT,
            encoding_methods.SCREEN,
            encoding_methods.EXPERIMENT,
            matched_loss.SWEEP,
            key_bytes.EXPERIMENT,
            matched_loss.EXPERIMENT,
            seqpe_geometry.GEOMETRY,
            seqpe_geometry.DISTANCES,
            seqpe_stream.SCREEN,
            seqpe_stream.EXPERIMENT,
            images.SCREEN,
            images.EXPERIMENT,
            context_extension.EXPERIMENT,
            *(one for grid in (*task_grid.GRIDS, *stretched.EXPERIMENTS) for one in (grid.sweep, grid)),
            *adapted.EXPERIMENTS,
            score_terms.EXPERIMENT,
            *stretched.EVERY,
            *each_pair.EXPERIMENTS,
            long_texts.SWEEP,
            long_texts.STRETCHED,
            long_texts.LONGER_SWEEP,
            long_texts.STRETCHED_LONGER,
            long_texts.ADAPTED,
            trained_directions.EXPERIMENT,
            ladder.SWEEP,
            ladder.EXPERIMENT,
            ladder.ADAPTED,
            removed.EXPERIMENT,
            opened.EXPERIMENT,
            speed.EXPERIMENT,
            encoding_speed.EXPERIMENT,
            seqpe_cost.EXPERIMENT,
            reading_cost.EXPERIMENT,
        ),
        key=lambda experiment: experiment.order,
    )
}

__all__ = ["PROFILES", "Experiment", "get", "names", "register"]


def register(experiment: Experiment) -> None:
    """Have `get` and `names` know an experiment of somebody else, from now on and in this process. It is run
    by `sepnb.companion.run.runs`, whose workers import its module.

    Raises:
        TypeError, ValueError: no experiment, or one whose name is taken.
    """
    name = instance("experiment", experiment, Experiment).name
    if name in _REGISTRY:
        raise ValueError(f"there is an experiment {name!r} already; give yours another name")
    _REGISTRY[name] = experiment


def names() -> list[str]:
    """The names that `get` knows, in the order in which they should run."""
    return list(_REGISTRY)


def get(name: str) -> Experiment:
    """The experiment of this name.

    Raises:
        ValueError: an unknown name, answered with near matches.
    """
    return named("experiment", name, _REGISTRY)
