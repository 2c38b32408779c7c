"""The equation of an encoding as the tests read it: pair by pair, in float64, without its modules.

A reference is given copies of the parameters of one layer and the positions of every sequence. What it makes
may have N x N x d numbers: it is there to be read beside the paper, and not to be fast. The tests that all
encodings share hold each model against it, in its output and in every gradient.

Shape letters: B batch, H heads, N tokens, d head width, n coordinates.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Layer:
    """What a reference is given, of one layer of a dense model.

    Attributes:
        encoding: with its options.
        leaf: a copy of a parameter, by the end of its name; the layer's own, or the one that all share.
        encoder: of SeqPE, with leaves for parameters; None elsewhere.
        at: positions `[B, N]` or `[B, N, n]`.
        max_length: of the model.
        number: of the layer, counted from 0.
    """

    encoding: Any
    leaf: Callable[[str], Tensor]
    encoder: Any
    at: Tensor
    max_length: int
    number: int

    @property
    def distance(self) -> Tensor:
        """i - j of every pair, `[B, 1, N, N]`, in float64, in which it is exact."""
        return (self.at[:, :, None] - self.at[:, None, :])[:, None].to(torch.float64)


@dataclass(frozen=True)
class Reference:
    """The equations of an encoding; None where it does not act.

    Attributes:
        at_input: layer and width to what is added to the residual state before it, `[B, N, width]`; before
            the first, or where it says `per_layer` before every one.
        at_query_key: the same for the normalised state, where queries and keys are made.
        scores: layer, q and k `[B, H, N, d]` and the normalised state to scaled scores `[B, H, N, N]`; those
            of keys after the query are hidden.
        at_value: layer and weights `[B, H, N, N]` to what is added to the averages, `[B, H, N, d]`.
    """

    at_input: Callable[[Layer, int], Tensor] | None = None
    at_query_key: Callable[[Layer, int], Tensor] | None = None
    scores: Callable[[Layer, Tensor, Tensor, Tensor], Tensor] | None = None
    at_value: Callable[[Layer, Tensor], Tensor] | None = None


def product(q: Tensor, k: Tensor) -> Tensor:
    """q . k of every pair."""
    return (q[..., :, None, :] * k[..., None, :, :]).sum(-1)


def scaled(q: Tensor, k: Tensor) -> Tensor:
    """q . k d^-1/2 of every pair: the score without an encoding."""
    return product(q, k) / math.sqrt(q.shape[-1])


def biased(bias: Callable[[Layer, int], Tensor]) -> Reference:
    """Scaled products and a bias, made of the layer and the number of heads: `[B, H, N, N]`, or what
    broadcasts to it."""
    return Reference(scores=lambda layer, q, k, u: scaled(q, k) + bias(layer, q.shape[1]))
