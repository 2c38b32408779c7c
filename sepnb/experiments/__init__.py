"""Experiments: one file per question. To add one, write its class and name it in `_REGISTRY`."""

from difflib import get_close_matches

from .ablation import Ablation
from .ablation_screen import AblationScreen
from .base import PROFILES, Experiment, RunConfig
from .budget import Budget
from .context_extension import ContextExtension
from .encoding_screen import EncodingScreen
from .encoding_speed import EncodingSpeed
from .encodings import Encodings
from .extrapolation import Extrapolation
from .image_screen import ImageScreen
from .images import Images
from .in_window import InWindow
from .inside import Inside
from .lr_screen import LearningRateScreen
from .recipe_screen import RecipeScreen
from .recipes import Recipes
from .second_text import SecondText
from .seqpe_cost import SeqPECost
from .seqpe_distances import SeqPEDistances
from .seqpe_geometry import SeqPEGeometry
from .seqpe_stream import SeqPEStream
from .seqpe_stream_geometry import SeqPEStreamGeometry
from .seqpe_stream_screen import SeqPEStreamScreen
from .shaw_clip import ShawClip
from .speed import Speed
from .volume_screen import VolumeScreen
from .volumes import Volumes

_REGISTRY: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in sorted(
        (
            LearningRateScreen(),
            InWindow(),
            Extrapolation(),
            SecondText(),
            AblationScreen(),
            Ablation(),
            ShawClip(),
            Budget(),
            Inside(),
            RecipeScreen(),
            Recipes(),
            EncodingScreen(),
            Encodings(),
            SeqPEGeometry(),
            SeqPEDistances(),
            SeqPEStreamScreen(),
            SeqPEStream(),
            SeqPEStreamGeometry(),
            ImageScreen(),
            Images(),
            VolumeScreen(),
            Volumes(),
            ContextExtension(),
            Speed(),
            EncodingSpeed(),
            SeqPECost(),
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
    if name not in _REGISTRY:
        near = get_close_matches(name, _REGISTRY) or list(_REGISTRY)
        raise ValueError(f"unknown experiment {name!r}; did you mean {', '.join(near)}?")
    return _REGISTRY[name]
