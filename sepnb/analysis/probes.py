"""Linear probes: what a straight read-out of a state can tell, fitted in closed form.

A probe that succeeds shows that something is there and how it is written; one that fails shows only that it
is not written linearly.

Shape letters: n examples, w width of the state, K targets.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..validation import above_zero

RIDGE = 1e-3
"""Weight of the squared coefficients beside the mean squared error, the features having variance 1. It is the
same for all probes and was not tuned."""


@dataclass(frozen=True)
class LinearProbe:
    """Standardise, multiply, add: `((x - mean) / scale) @ weights + offset`, in float64.

    Attributes:
        mean, scale: of each feature; a feature that never moves has scale infinity and so no say.
        weights: `[w, K]`.
        offset: `[K]`, the mean of the targets.
    """

    mean: Tensor
    scale: Tensor
    weights: Tensor
    offset: Tensor

    def __call__(self, features: Float[Tensor, "*shape w"]) -> Float[Tensor, "*shape K"]:
        return (features.double() - self.mean) / self.scale @ self.weights + self.offset


def fit_probe(
    features: Float[Tensor, "n w"], targets: Float[Tensor, "n K"], *, ridge: float = RIDGE
) -> LinearProbe:
    """Ridge regression of the targets on the standardised features.

    Args:
        ridge: the lambda of `mean |y - z W|^2 + lambda |W|^2`.

    Raises:
        ValueError: not one target for each example, no examples, or a ridge that is not above 0.
    """
    if len(features) != len(targets) or not len(features):
        raise ValueError(f"{len(features)} examples and {len(targets)} targets; give one target for each")
    above_zero("ridge", ridge)
    x, y = features.double(), targets.double()
    mean, offset = x.mean(0), y.mean(0)
    scale = (x - mean).square().mean(0).sqrt()
    scale = torch.where(scale > 0, scale, torch.inf)
    z = (x - mean) / scale
    moments = z.T @ z / len(z) + ridge * torch.eye(z.shape[1], dtype=z.dtype)
    return LinearProbe(mean, scale, torch.linalg.solve(moments, z.T @ (y - offset) / len(z)), offset)


def fit_classifier(features: Float[Tensor, "n w"], labels: Int[Tensor, " n"], classes: int) -> LinearProbe:
    """A probe whose K outputs are regressed on one indicator per class; the largest output is its answer.

    From features that say nothing it answers the most frequent class.
    """
    indicators = torch.nn.functional.one_hot(labels.long(), classes).double()
    return fit_probe(features, indicators)


def r_squared(predicted: Tensor, target: Tensor) -> float:
    """1 - (squared error) / (squared deviation of the target from its mean): 0 for the mean, less for worse;
    ValueError for a target that never moves."""
    target = target.double()
    total = (target - target.mean()).square().sum()
    if total == 0:
        raise ValueError("the target never moves: there is no variance of which a share could be explained")
    return float(1 - (predicted.double() - target).square().sum() / total)


def accuracy(probe: LinearProbe, features: Float[Tensor, "n w"], labels: Int[Tensor, " n"]) -> float:
    """The share of labels that are the class with the largest output."""
    return float((probe(features).argmax(-1) == labels).double().mean())


def majority_rate(fitted_on: Int[Tensor, " n"], scored: Int[Tensor, " m"]) -> float:
    """The accuracy of always answering what is most frequent in `fitted_on`: a classifier's chance level."""
    return float((scored == fitted_on.bincount().argmax()).double().mean())
