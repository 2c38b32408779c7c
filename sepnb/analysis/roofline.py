"""The limit of a speed-up on a machine that is not equally good at multiplying and at moving numbers.

An operation takes at least the time of its multiply-adds, and at least that of the bytes it reads and writes;
the longer of the two is its *roofline* (Williams, Waterman and Patterson 2009). Which one it is, depends on
the machine's *balance*: the multiply-adds that it does while it moves one byte. An operation with fewer
multiply-adds a byte than that waits for memory.

Counted is what every operation of an eager step reads and writes, its backward pass included. What stays in a
cache costs less than the count says; what a kernel reads twice costs more.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ..validation import number
from .flops import products_of


class Work(NamedTuple):
    """One operation by its name in torch, such as "aten::mm"; its multiply-adds, 0 where it is neither a
    matrix product nor attention; and the bytes that it moves, those of its inputs and outputs."""

    operation: str
    multiply_adds: float
    moved: int

    @property
    def intensity(self) -> float:
        """Multiply-adds for each byte moved."""
        return self.multiply_adds / self.moved


class _Followed(TorchDispatchMode):
    """Every operation that moves numbers; a view and a fresh allocation move none."""

    def __init__(self) -> None:
        super().__init__()
        self.work: list[Work] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, result = kwargs or {}, []
        counted = products_of(lambda: result.append(function(*args, **kwargs)))
        (out,), schema = result, function._schema
        aliases = [one.alias_info for one in schema.returns]
        views = any(alias is not None and not alias.is_write for alias in aliases)
        if not views and not {"empty", "detach", "view"} & set(schema.name.replace("::", "_").split("_")):
            tensors = [one for one in tree_leaves((args, kwargs, out)) if isinstance(one, Tensor)]
            if moved := sum(one.numel() * one.itemsize for one in tensors):
                self.work.append(Work(schema.name, counted, moved))
        return out


def work_of(step: Callable[[], object]) -> list[Work]:
    """What each operation of one call does, in their order."""
    with _Followed() as followed:
        step()
    return followed.work


def roofline(work: Iterable[Work], balance: float | int) -> float:
    """The time of these operations one after the other, in units of one multiply-add, at a balance in
    multiply-adds a byte. ValueError for a negative balance."""
    number("balance", balance, 0)
    return float(sum(max(one.multiply_adds, balance * one.moved) for one in work))


def limit(baseline: Iterable[Work], other: Iterable[Work], balance: float | int) -> float:
    """How many times as fast as `baseline` the `other` can be at this balance; at 0, where bytes are moved
    for nothing, the ratio of the multiply-adds."""
    return roofline(baseline, balance) / roofline(other, balance)
