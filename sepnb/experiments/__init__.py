"""Experiments: one file per question. To add one, write its class and name it in `_REGISTRY`; from outside of
the package, `register` it."""

from ..validation import instance, named
from . import (
    ablation,
    adapted,
    budget,
    encoding_methods,
    fitted_rows,
    images,
    in_window,
    long_budget,
    long_texts,
    matched_loss,
    score_terms,
    seqpe_stream,
    stretched,
    table_sweep,
    task_grid,
    variants,
    volumes,
)
from .base import PROFILES, Experiment, RunConfig
from .context_extension import ContextExtension
from .encoding_speed import EncodingSpeed
from .encodings import Encodings
from .extrapolation import Extrapolation
from .inside import Inside
from .reading_cost import ReadingCost
from .second_text import SecondText
from .seqpe_cost import SeqPECost
from .seqpe_geometry import SeqPEDistances, SeqPEGeometry
from .seqpe_stream_geometry import SeqPEStreamGeometry
from .shaw_clip import ShawClip
from .speed import Speed

_REGISTRY: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in sorted(
        (
            in_window.LR_SCREEN,
            table_sweep.SWEEP,
            in_window.InWindow(),
            Extrapolation(),
            SecondText(),
            fitted_rows.PLAIN_SWEEP,
            fitted_rows.FIT_SWEEP,
            fitted_rows.EXPERIMENT,
            ablation.SWEEP,
            ablation.Ablation(),
            ShawClip(),
            budget.SHORT,
            budget.LONG,
            budget.Budget(),
            Inside(),
            variants.SWEEP,
            variants.VariantScreen(),
            variants.Variants(),
            encoding_methods.SCREEN,
            Encodings(),
            matched_loss.SWEEP,
            matched_loss.KEY_BYTES,
            matched_loss.MatchedLoss(),
            long_budget.SWEEP,
            long_budget.KEY_BYTES,
            long_budget.LongBudget(),
            SeqPEGeometry(),
            SeqPEDistances(),
            seqpe_stream.SCREEN,
            seqpe_stream.SeqPEStream(),
            SeqPEStreamGeometry(),
            images.SCREEN,
            images.Images(),
            volumes.SCREEN,
            volumes.Volumes(),
            ContextExtension(),
            *(one for grid in (*task_grid.GRIDS, *stretched.EXPERIMENTS) for one in (grid.sweep, grid)),
            *adapted.EXPERIMENTS,
            score_terms.ScoreTerms(),
            long_texts.SWEEP,
            long_texts.StretchedText(),
            long_texts.AdaptedText(),
            Speed(),
            EncodingSpeed(),
            SeqPECost(),
            ReadingCost(),
        ),
        key=lambda experiment: experiment.order,
    )
}

__all__ = ["PROFILES", "Experiment", "RunConfig", "get", "names", "register"]


def register(experiment: Experiment) -> None:
    """Have `get` and `names` know an experiment of somebody else, from now on and in this process. It is run
    by `sepnb.companion.runs`, whose workers import its module.

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
