"""Experiments: one file per question. To add one, write its class and name it in `_REGISTRY`."""

from ..validation import named
from . import ablation, encoding_methods, images, in_window, seqpe_stream, volumes
from .base import PROFILES, Experiment, RunConfig
from .budget import Budget
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
from .variants import Variants, VariantScreen

_REGISTRY: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in sorted(
        (
            in_window.LR_SCREEN,
            in_window.InWindow(),
            Extrapolation(),
            SecondText(),
            ablation.SCREEN,
            ablation.Ablation(),
            ShawClip(),
            Budget(),
            Inside(),
            VariantScreen(),
            Variants(),
            encoding_methods.SCREEN,
            Encodings(),
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
            Speed(),
            EncodingSpeed(),
            SeqPECost(),
            ReadingCost(),
        ),
        key=lambda experiment: experiment.order,
    )
}

__all__ = ["PROFILES", "Experiment", "RunConfig", "get", "names"]


def names() -> list[str]:
    """The names that `get` knows, in the order in which they should run."""
    return list(_REGISTRY)


def get(name: str) -> Experiment:
    """The experiment of this name.

    Raises:
        ValueError: an unknown name, answered with near matches.
    """
    return named("experiment", name, _REGISTRY)
