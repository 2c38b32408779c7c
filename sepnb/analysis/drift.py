"""What becomes of a state when the same text starts at another index.

Shape letters: B texts, N tokens, w width, H heads.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def drift(states: Float[Tensor, "B N w"], reference: Float[Tensor, "B N w"]) -> float:
    """How far the states have moved from the reference, `|x - r| / |r|` over all tokens.

    0 is no change; two unrelated states of the same norm are sqrt(2) apart.

    Raises:
        ValueError: a reference that is 0 throughout.
    """
    size = reference.double().norm()
    if size == 0:
        raise ValueError("the reference is 0 throughout: it has no norm to measure a drift in")
    return float((states.double() - reference.double()).norm() / size)


def attention_distance(weights: Float[Tensor, "B H N M"], reference: Float[Tensor, "B H N M"]) -> float:
    """The share of attention that goes elsewhere: the mean total variation distance, from 0 to 1.

    The first token, which can only attend to itself, is left out.

    Raises:
        ValueError: no second token.
    """
    _has_choice(weights)
    return float((weights.double() - reference.double())[..., 1:, :].abs().sum(-1).mean() / 2)


def attention_entropy(weights: Float[Tensor, "B H N N"]) -> float:
    """The mean entropy in units of that of looking at all visible tokens alike: 1 if nothing is chosen.

    Of causal weights, from the second token on.

    Raises:
        ValueError: no second token.
    """
    _has_choice(weights)
    entropy = torch.special.entr(weights.double()).sum(-1)[..., 1:]
    most = torch.arange(2, weights.shape[-2] + 1, dtype=torch.float64).log()
    return float((entropy / most).mean())


def _has_choice(weights: Tensor) -> None:
    if weights.shape[-2] < 2:
        raise ValueError("one token attends to itself whatever the positions; give two or more")
