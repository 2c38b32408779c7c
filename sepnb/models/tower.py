"""The position tower of an isolated model: its position streams, run once for all sequences and all texts.

Where the position streams never hear the content, a model is a transformer of the width of its sem stream,
with a table added to the queries and keys of each layer. The tables depend on the positions alone. In
training they are computed once per batch, with gradients; at inference once per length.

Shape letters: H heads of the sem stream, N positions, d head width, w width of one stream.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class PositionPass:
    """What the position streams of an isolated model give to the content.

    Attributes:
        tables: for each layer what they add to the queries and keys of the sem heads, `[1, N, 2*H*d]`.
        streams: their final state, `[1, N, w]` each.
    """

    tables: tuple[Tensor | None, ...]
    streams: dict[str, Tensor]


Kept = TypeVar("Kept")


class PassMemory(Generic[Kept]):
    """The latest answers of a module that is not being trained, such as a position pass for each length.

    They are dropped as soon as a parameter is written, replaced or moved. What a fused optimiser writes, or
    anyone through `.data` or numpy, is not counted by torch; so who holds a memory drops them in every pass
    with gradients too, and in `train` and `eval`.
    """

    capacity = 4

    def __init__(self) -> None:
        # Aliases, so that the memory of a parameter is not given to another one while a pass of it is held.
        self._written: list[tuple[Tensor, int]] = []
        self._passes: dict[Hashable, Kept] = {}

    def forget(self) -> None:
        """Drop every answer."""
        self._written, self._passes = [], {}

    def recall(self, model: nn.Module, key: Hashable, compute: Callable[[], Kept]) -> Kept:
        """The answer of `key`, computed if it is not held."""
        parameters = list(model.parameters())
        if any(parameter.is_inference() for parameter in parameters):
            return compute()  # writes to these are not counted at all
        if not self._current(parameters):
            self.forget()
            self._written = [(parameter.detach(), parameter._version) for parameter in parameters]
        if key not in self._passes:
            while len(self._passes) >= self.capacity:
                del self._passes[next(iter(self._passes))]
            self._passes[key] = compute()
        return self._passes[key]

    def _current(self, parameters: list[nn.Parameter]) -> bool:
        return len(parameters) == len(self._written) and all(
            (now.data_ptr(), now.dtype, now._version) == (then.data_ptr(), then.dtype, version)
            for now, (then, version) in zip(parameters, self._written, strict=True)
        )

    def __reduce__(self) -> tuple:
        return PassMemory, ()  # a copy of the model may answer by another rule, and a file needs none


def arithmetic(device: torch.device) -> torch.dtype | None:
    """In what maps are computed on a device under autocast; None outside of it."""
    kind = device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None


def may_remember(model: nn.Module) -> bool:
    """Whether nothing but the positions and the rules of evaluation can change what a module computes, and
    nobody listens to it: a hook on one of its modules may do either."""
    quiet = not model.training and not torch.is_grad_enabled() and not torch.compiler.is_compiling()
    return quiet and not any(
        getattr(module, "tape", None) is not None or module._forward_hooks or module._forward_pre_hooks
        for module in model.modules()
    )
