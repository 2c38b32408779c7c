"""The directions in which the position embeddings of a trained text vary, and a model that reads within them.

The position embeddings of a short text lie close to a space of fewer dimensions than the model has columns,
because slow waves hardly move there. At slowed positions they can leave that space: a fast wave then turns
further than it did in training, beside slow waves that do not. Outside of that space the model has only read
content.

Shape letters: N positions, D model width, k directions.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from ..encodings import InputModule
from ..models import LanguageModel
from ..models.weights import sharing_copy
from ..validation import number, whole

LEAST = 0.01
"""Of the largest singular value, what a direction has at least."""


class Directions(NamedTuple):
    """The mean of the position embeddings of a trained text, and directions in which they vary: orthonormal
    columns."""

    mean: Float[Tensor, " D"]
    axes: Float[Tensor, "D k"]

    def inside(self, embeddings: Float[Tensor, "... D"]) -> Float[Tensor, "... D"]:
        """The nearest embeddings that differ from the mean in these directions alone."""
        mean, axes = (part.to(embeddings) for part in self)
        return mean + (embeddings - mean) @ axes @ axes.T

    def share_outside(self, embeddings: Float[Tensor, "... D"]) -> float:
        """The share of the squared distance from the mean that is in no such direction, 0 to 1."""
        mean = self.mean.to(embeddings)
        left = embeddings - self.inside(embeddings)
        return float(left.square().sum() / (embeddings - mean).square().sum())


def trained_directions(encode: Callable[[Tensor], Tensor], length: int, least: float = LEAST) -> Directions:
    """The directions of the embeddings of the positions 0 to `length` - 1, by singular values.

    Args:
        encode: positions `[N]` to embeddings `[N, D]`, such as an encoding at the input of a model.
        length: the trained length.
        least: what the singular value of a direction is at least, of the largest one.

    Raises:
        ValueError: a length below 2, a `least` that is not between 0 and 1.
    """
    whole("length", length, 2)
    number("least", least, above=0, most=1)
    table = encode(torch.arange(length)).detach().double()
    mean = table.mean(0)
    _, sizes, axes = torch.linalg.svd(table - mean, full_matrices=False)
    return Directions(mean, axes[sizes >= least * sizes[0]].T)


class _Within(InputModule):
    def __init__(self, module: InputModule, directions: Directions) -> None:
        super().__init__()
        self.module, self.directions, self.limit = module, directions, module.limit

    def forward(self, positions: Tensor) -> Tensor:
        return self.directions.inside(self.module(positions))


def kept_within(model: LanguageModel, trained: LanguageModel, least: float = LEAST) -> LanguageModel:
    """A copy of a model that reads within the directions of the position embeddings of a trained text.

    Args:
        model: the model, at slowed positions for example. The copy shares its weights.
        trained: the same model with positions as in training.
        least: see `trained_directions`.

    Raises:
        ValueError: a model without an encoding at the input.
    """
    if not len(trained.transformer.input_encodings):
        raise ValueError(
            "this model has no encoding at the input; give one that adds position embeddings there"
        )
    clone = sharing_copy(model)
    modules = clone.transformer.input_encodings
    for at, shown in enumerate(trained.transformer.input_encodings):
        modules[at] = _Within(modules[at], trained_directions(shown, trained.config.max_length, least))
    return clone.eval()
