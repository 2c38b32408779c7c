"""How much memory a piece of work holds at once, followed tensor by tensor: the same on every machine."""

import weakref
from typing import Any

from torch import Tensor
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
