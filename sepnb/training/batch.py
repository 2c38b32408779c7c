"""What one step of a training reads, checked once on the host, before any of it goes to a device."""

from dataclasses import dataclass
from typing import Union

import numpy as np
import torch
from torch import Tensor

from ..validation import instance


@dataclass(frozen=True, eq=False)
class Batch:
    """The inputs of a step, and what a model should answer.

    Args:
        inputs: tokens `[B, N]`, integers; or, with one target each, what a model takes, such as images.
        targets: token numbers `[B, N]`, or one number for each input, `[B]`; integers.
        positions: integers, as the model takes them: of tokens `[N]` or `[B, N]`; None leaves them to it.
        weights: how much each target counts; the loss of the step is the mean under these. None: all alike.

    Raises:
        TypeError, ValueError: other types or numbers than these; shapes that do not fit each other; a target
            or a weight below 0; weights that are all 0.
    """

    inputs: np.ndarray
    targets: np.ndarray
    positions: np.ndarray | None = None
    weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        shape = _numbers("targets", self.targets).shape
        if self.targets.ndim not in (1, 2):
            raise ValueError(f"targets have the shape {shape}; give [B, N] for tokens, else [B]")
        if self.of_texts:
            _shaped("inputs", _numbers("inputs", self.inputs), shape)
        elif instance("inputs", self.inputs, np.ndarray).shape[:1] != shape:
            raise ValueError(f"inputs of shape {self.inputs.shape} have {shape[0]} targets; give one each")
        if (lowest := self.targets.min(initial=0)) < 0:
            raise ValueError(f"targets holds {lowest}; a target is the number of an answer, at least 0")
        if self.positions is not None:
            _numbers("positions", self.positions)
            if self.of_texts:
                _shaped("positions", self.positions, shape, shape[1:])
        if self.weights is not None:
            _shaped("weights", _numbers("weights", self.weights, "iuf"), shape)
            if not (np.isfinite(self.weights).all() and (self.weights >= 0).all() and self.weights.any()):
                raise ValueError("weights must all be finite, none below 0 and one above it at least")

    @classmethod
    def of(cls, drawn: Union["Batch", np.ndarray]) -> "Batch":
        """A batch as it is; for tokens `[B, L+1]` the batch in which each token predicts the next."""
        if isinstance(drawn, cls):
            return drawn
        if instance("a batch", drawn, np.ndarray, "an integer array [B, L+1] or a Batch").ndim != 2:
            raise ValueError(f"a batch has the shape {drawn.shape}; give [B, L+1], or a Batch")
        return cls(drawn[:, :-1], drawn[:, 1:])

    @property
    def of_texts(self) -> bool:
        """Whether there is a target for each token, and not for each input."""
        return self.targets.ndim > 1

    def tensors(self) -> tuple[Tensor | None, ...]:
        """Inputs, targets, positions and weights; copies, because an array may be read-only."""
        arrays = self.inputs, self.targets, self.positions, self.weights
        return tuple(None if array is None else torch.from_numpy(_wide(array)) for array in arrays)


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.int64 if array.dtype.kind in "iu" else array.dtype)


def _numbers(what: str, array: np.ndarray, kinds: str = "iu") -> np.ndarray:
    if instance(what, array, np.ndarray).dtype.kind not in kinds:
        raise TypeError(f"{what} must hold {'integers' if kinds == 'iu' else 'numbers'}, got {array.dtype}")
    return array


def _shaped(what: str, array: np.ndarray, *shapes: tuple[int, ...]) -> None:
    if array.shape not in shapes:
        raise ValueError(f"{what} have the shape {array.shape}; give {' or '.join(map(str, shapes))}")
