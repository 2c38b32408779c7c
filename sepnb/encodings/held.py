"""Embeddings of positions that many passes of a model share.

An encoding that computes its embeddings by a network need not do so anew in every pass while the weights stay
as they are. Whoever makes many passes does so inside of `held_embeddings(model)`: there each position is
encoded once. A model without such an encoding reads there as everywhere.

Shape letters: P positions, D columns of an embedding.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from ..validation import restored

HELD = 2**26
"""Numbers of embeddings that are held, 256 MiB in float32; of a text with more, nothing is."""


class Rows:
    """Embeddings of D columns that were computed, by the number of their position, ascending."""

    def __init__(self, columns: int) -> None:
        self.most = HELD // columns
        self._numbers, self._rows = None, None

    def of(self, numbers: Tensor, embed: Callable[[Tensor], Tensor]) -> Tensor:
        """The embeddings of positions int64 `[P]`, `[P, D]`; `embed` computes those that are not held."""
        held = numbers[:0] if self._numbers is None else self._numbers
        new = numbers[~torch.isin(numbers, held)].unique()
        if len(held) + len(new) > self.most:
            held, self._rows, new = held[:0], None, numbers.unique()
            if len(new) > self.most:
                self._numbers = None
                return embed(numbers)
        if len(new) or self._rows is None:
            rows = embed(new)
            rows = rows if self._rows is None else torch.cat([self._rows, rows])
            self._numbers, order = torch.cat([held, new]).sort()
            self._rows = rows[order]
        return self._rows[torch.searchsorted(self._numbers, numbers)]


class Holding(nn.Module):
    """A module whose embeddings can be held: `held` is None outside of `held_embeddings`."""

    columns: int
    """Of an embedding."""
    held: Rows | None = None


@contextmanager
def held_embeddings(model: nn.Module) -> Iterator[None]:
    """Inside this context, passes without gradients encode every position only once. The weights, their dtype
    and device, and the precision of the passes must not change."""
    modules = [module for module in model.modules() if isinstance(module, Holding)]
    with restored(modules, "held"):
        for module in modules:
            module.held = Rows(module.columns)
        yield
