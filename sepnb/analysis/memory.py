"""How much memory a piece of work holds at once, followed tensor by tensor: the same on every machine."""

import weakref
from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode


class MemoryWatch(TorchDispatchMode):
    """Within it, `held` is the bytes of all living tensors made so far, `peak` the most there ever were, and
    `largest` the numbers in the largest single tensor, backward passes included.

    A view counts with the memory that it shares. For work without gradients: what autograd keeps for itself
    is not seen in the first two.
    """

    def __init__(self) -> None:
        super().__init__()
        self.held = self.peak = self.largest = 0
        self._users: dict[int, int] = {}  # living tensors by the address of their memory

    def __torch_dispatch__(self, function, types, args=(), kwargs=None) -> Any:
        out = function(*args, **(kwargs or {}))
        for one in out if isinstance(out, tuple | list) else (out,):
            if isinstance(one, Tensor) and (size := one.untyped_storage().nbytes()):
                self.largest = max(self.largest, size // one.itemsize)
                self._follow(one, one.untyped_storage().data_ptr(), size)
        return out

    def _follow(self, tensor: Tensor, address: int, size: int) -> None:
        if address not in self._users:
            self._users[address] = 0
            self.held += size
            self.peak = max(self.peak, self.held)
        self._users[address] += 1
        weakref.finalize(tensor, self._left, address, size)

    def _left(self, address: int, size: int) -> None:
        self._users[address] -= 1
        if not self._users[address]:
            del self._users[address]
            self.held -= size


def kept_for_backward(step: Callable[[], Any], *, weights: Iterable[Tensor] = ()) -> int:
    """Bytes that autograd keeps of one forward pass until the backward one: what training needs beside the
    weights, their gradients and the state of the optimiser.

    Args:
        step: a forward pass; its outputs hold what is kept.
        weights: tensors that are there anyway, and not counted.

    Memory that several tensors share is counted once.
    """
    there = {one.untyped_storage().data_ptr() for one in weights}
    kept: dict[int, Tensor] = {}  # by address: held here, so that none is used twice

    def keep(tensor: Tensor) -> Tensor:
        kept.setdefault(tensor.untyped_storage().data_ptr(), tensor)
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        outputs = step()
    total = sum(one.untyped_storage().nbytes() for at, one in kept.items() if at not in there)
    del outputs
    return total
