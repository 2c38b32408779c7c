"""What an extrapolator is: a frozen description that turns a table into a rule for every position.

The description is what a record stores. The rule is fitted once and asked often: whatever depends on the
table alone is computed before the first position is known.

Shape letters: L rows of the table (the trained length), d_pos its columns, N positions.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from ..validation import floating, integers, one_of, readable

FORMS = ("corrected", "literal")

BLOCK = 4096
"""Positions that a rule is given at once on a CPU, so that what it computes on the way stays in the cache."""

Rule = Callable[[Tensor], Tensor]
"""Positions, int64 `[N]`, to rows `[N, d_pos]`, in the dtype of the table or a wider one."""


@dataclass(frozen=True)
class Extrapolator(ABC):
    """Base of all extrapolators; a subclass sets `name`, has its options as fields, and refuses bad ones.

    Tables are `[L, d_pos]`, floating, finite and detached, and positions not negative. A rule never changes
    a table.
    """

    name: ClassVar[str]

    @abstractmethod
    def corrected(self, table: Tensor) -> Rule:
        """The repaired formula; unless its class says otherwise, it keeps the window bit for bit."""

    @abstractmethod
    def literal(self, table: Tensor) -> Rule:
        """The formula as it is printed, at every position, also inside the window."""


class Control(Extrapolator):
    """A rule to compare with. Nobody printed it, so that its two forms are the same."""

    def literal(self, table: Tensor) -> Rule:
        return self.corrected(table)


class Continuation:
    """A table continued by one extrapolator: `continuation(positions)` gives the rows.

    The table, `[L, d_pos]`, floating and finite, of at least 2 rows, is copied as it is now: training it
    further does not change the continuation, and gradients do not flow into it. Autocast has no effect:
    position embeddings are no activations, and a position rounded to bfloat16 is another one.
    """

    def __init__(
        self, table: Float[Tensor, "L d_pos"], extrapolator: Extrapolator, form: str = "corrected"
    ) -> None:
        one_of("form", form, FORMS)
        check_table(table)
        self.table = table.detach().clone()
        self.extrapolator, self.form = extrapolator, form
        with torch.autocast(table.device.type, enabled=False):
            self.rule: Rule = getattr(extrapolator, form)(self.table)

    def __call__(self, positions: Integer[Tensor, "*shape"]) -> Float[Tensor, "*shape d_pos"]:
        """Rows of these positions, which are not negative, in the dtype and on the device of the table."""
        check_positions(positions)
        flat = positions.to(self.table.device, torch.int64).reshape(-1)
        with torch.autocast(flat.device.type, enabled=False):
            if flat.device.type != "cpu" or len(flat) <= BLOCK:
                rows = self.rule(flat).to(self.table.dtype)
            else:
                rows = self.table.new_empty(len(flat), self.table.shape[1])
                for block, place in zip(flat.split(BLOCK), rows.split(BLOCK), strict=True):
                    place.copy_(self.rule(block))
        return rows.reshape(*positions.shape, self.table.shape[1])


def check_table(table: Tensor) -> None:
    """Raise unless `table` is `[L, d_pos]`, floating and finite, with L at least 2."""
    readable("the table", floating("the table", table))
    if table.dim() != 2 or table.shape[1] < 1:
        raise ValueError(f"the table has shape {list(table.shape)}; give [L, d_pos], d_pos at least 1")
    if table.shape[0] < 2:
        raise ValueError(f"the table has {table.shape[0]} rows; at least 2 are needed to continue it")
    if not torch.isfinite(table).all():
        row = int((~torch.isfinite(table)).any(1).nonzero()[0])
        raise ValueError(f"row {row} of the table is not finite; did the training diverge?")


def check_positions(positions: Tensor) -> None:
    """Raise unless `positions` is an integer tensor without negative values."""
    readable("positions", integers("positions", positions))
    if positions.numel() and (lowest := int(positions.min())) < 0:
        raise ValueError(f"position {lowest} is negative; the first position is 0")


def working_dtype(table: Tensor) -> torch.dtype:
    """float64 for a float64 table, else float32: sums are not rounded to bfloat16 on the way."""
    return torch.float64 if table.dtype == torch.float64 else torch.float32


def keep_window(table: Tensor, beyond: Rule) -> Rule:
    """Rows of the table inside the window, bit for bit, and those of `beyond` elsewhere."""

    def rule(positions: Tensor) -> Tensor:
        rows = beyond(positions).to(table.dtype)
        inside = (positions < len(table)).nonzero().squeeze(1)
        if len(inside):
            rows[inside] = table[positions[inside]]
        return rows

    return rule
