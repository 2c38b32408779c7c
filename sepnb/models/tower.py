"""The position tower of an isolated model: its position streams, run once for all sequences and all texts.

Where the position streams never hear the content, a model is a transformer of the width of its sem stream,
with a table added to the queries and keys of each layer. The tables depend on the positions alone. In
training they are computed once per batch, with gradients. At inference they are kept: under a causal mask the
tables of a text are the first rows of those of any longer one.

Shape letters: H heads of the sem stream, N positions, d head width, w width of one stream.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from .cache import KVCache


@dataclass(frozen=True)
class PositionPass:
    """What the position streams of an isolated model give to the content.

    Attributes:
        tables: for each layer what they add to the queries and keys of the sem heads, `[1, N, 2*H*d]`.
        streams: their final state, `[1, N, w]` each.
    """

    tables: tuple[Tensor | None, ...]
    streams: dict[str, Tensor]


AHEAD = 64
"""A position after others is computed with those that follow it, up to a multiple of this many."""


class PrefixPass:
    """The position pass of the positions 0 to M-1, which grows as longer texts are met.

    Attributes:
        length: M.
        cache: keys and values of the position heads, for what comes after, and for a caller's cache.
    """

    length: int
    cache: KVCache

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Hold nothing."""
        self.length, self.cache = 0, KVCache(1, 0)
        self._passes: PositionPass | None = None

    def reach(
        self,
        start: int,
        stop: int,
        limit: int | float,
        compute: Callable[[int, int, KVCache], PositionPass],
    ) -> None:
        """Hold all positions below `stop`.

        From position 0 that is one pass, the one that would be run without a memory. For positions after
        those of a caller's cache, it goes some ahead.

        Args:
            start, stop: the positions asked for.
            limit: none is computed from here on unless it is asked for.
            compute: the pass of the positions from its first argument to before its second, after those whose
                keys and values are in the cache, which it extends.
        """
        if self.length >= stop:
            return
        end = max(stop, min(-(-stop // AHEAD) * AHEAD, limit)) if start else stop
        if start == 0:
            self.clear()
        try:
            self._append(compute(self.length, end, self.cache), end)
        except BaseException:  # some layers may have left their keys behind, and others not
            self.clear()
            raise

    def _append(self, more: PositionPass, length: int) -> None:
        held = self._passes
        if held is not None:
            tables = zip(held.tables, more.tables, strict=True)
            more = PositionPass(
                tuple(None if old is None else torch.cat([old, new], dim=1) for old, new in tables),
                {name: torch.cat([x, more.streams[name]], dim=1) for name, x in held.streams.items()},
            )
        self._passes, self.length = more, length

    def between(self, start: int, stop: int) -> PositionPass:
        """The rows of the positions from `start` to `stop` - 1."""
        tables = (None if table is None else table[:, start:stop] for table in self._passes.tables)
        streams = {name: x[:, start:stop] for name, x in self._passes.streams.items()}
        return PositionPass(tuple(tables), streams)

    def extend(self, cache: KVCache, start: int, stop: int) -> None:
        """Append what the position heads leave behind at these positions to a caller's cache."""
        for place, (keys, values) in self.cache.items():
            cache.extend(place, keys[..., start:stop, :], values[..., start:stop, :])


Kept = TypeVar("Kept")


class PassMemory(Generic[Kept]):
    """The latest answers of a module that is not being trained, such as its position pass.

    They are dropped when a number among the parameters that they were computed from is another one. The
    parameters are compared with a copy, because torch does not count what a fused optimiser writes, or anyone
    through `.data` or numpy.
    """

    capacity = 4

    def __init__(self) -> None:
        self._copies: list[Tensor] = []
        self._kept: dict[Hashable, Kept] = {}

    def forget(self) -> None:
        """Drop every answer."""
        self._copies, self._kept = [], {}

    def recall(self, parameters: Iterable[Tensor], key: Hashable, compute: Callable[[], Kept]) -> Kept:
        """The answer of `key`, computed if it is not held; `parameters`: all that it depends on."""
        now = _joined(parameters)
        if not _equal(now, self._copies):
            self.forget()
            self._copies = now
        if key not in self._kept:
            while len(self._kept) >= self.capacity:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = compute()
        return self._kept[key]

    def __reduce__(self) -> tuple:
        return PassMemory, ()  # a copy of the model may answer by another rule, and a file needs none


def _joined(tensors: Iterable[Tensor]) -> list[Tensor]:
    """A copy of all numbers, one vector for each kind of tensor."""
    kinds: dict[tuple, list[Tensor]] = {}
    for tensor in tensors:
        kinds.setdefault((tensor.dtype, tensor.device), []).append(tensor.detach().reshape(-1))
    return [torch.cat(parts) for parts in kinds.values()]


def _equal(one: list[Tensor], other: list[Tensor]) -> bool:
    return [(x.dtype, x.device, x.shape) for x in one] == [
        (x.dtype, x.device, x.shape) for x in other
    ] and all(torch.equal(x, y) for x, y in zip(one, other, strict=True))


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
