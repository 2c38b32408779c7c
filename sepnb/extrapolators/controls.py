"""Controls: the plain rules that a table of extrapolators must carry. A method that does not beat them has
added nothing: (3) and (4) of the printed formulas are close to `wrap`, (5) and (6) to `clamp`."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..validation import flag, whole
from .base import Control, Rule, keep_window, working_dtype

LONGEST = 2**40
"""Of `Interpolate`: a position times the rows of a table must fit into int64."""


@dataclass(frozen=True)
class Clamp(Control):
    """p_i = p_min(i, L-1): beyond the window every position is the last one."""

    name = "clamp"

    def corrected(self, table: Tensor) -> Rule:
        return lambda positions: table.index_select(0, positions.clamp(max=len(table) - 1))


@dataclass(frozen=True)
class Wrap(Control):
    """p_i = p_(i mod L): the window again and again, with a jump from row L-1 to row 0."""

    name = "wrap"

    def corrected(self, table: Tensor) -> Rule:
        return lambda positions: table.index_select(0, positions % len(table))


@dataclass(frozen=True)
class Reflect(Control):
    """Forth and back with period 2(L-1): a wrap without the jump, to tell whether the jump is the problem."""

    name = "reflect"

    def corrected(self, table: Tensor) -> Rule:
        period = 2 * (len(table) - 1)

        def rule(positions: Tensor) -> Tensor:
            there = positions % period
            return table.index_select(0, torch.minimum(there, period - there))

        return rule


@dataclass(frozen=True)
class Zero(Control):
    """Zeros from row L on, or, to see whether position is used at all, `everywhere`."""

    name = "zero"

    everywhere: bool = False

    def __post_init__(self) -> None:
        flag("everywhere", self.everywhere)

    def corrected(self, table: Tensor) -> Rule:
        def zeros(positions: Tensor) -> Tensor:
            return table.new_zeros(len(positions), table.shape[1])

        return zeros if self.everywhere else keep_window(table, zeros)


@dataclass(frozen=True)
class Interpolate(Control):
    """Position interpolation (Chen et al. 2023): `length` positions spread evenly over [0, L-1].

    Row i is the table read at t = i (L-1) / (length-1), linearly between its rows, so that the window is
    rewritten as well; for `length <= L` it is the table itself. t is taken in the integers, so that a row
    that falls on a row of the table is that row bit for bit. The length must be given: the largest position
    so far would change the rows that a growing cache holds already.
    """

    name = "interpolate"

    length: int | None = None

    def __post_init__(self) -> None:
        if self.length is not None:
            whole("length", self.length, 1, LONGEST)

    def corrected(self, table: Tensor) -> Rule:
        if self.length is None:
            raise ValueError(
                "interpolate needs length=, the number of positions that it spreads over the table"
            )
        last, length = len(table) - 1, max(self.length, len(table))
        dtype = working_dtype(table)
        start, step = table.to(dtype), torch.zeros_like(table, dtype=dtype)
        step[:-1] = start.diff(dim=0)

        def rule(positions: Tensor) -> Tensor:
            if len(positions) and (highest := int(positions.max())) >= length:
                raise ValueError(
                    f"position {highest} is outside length {length}; give length={highest + 1} or more"
                )
            scaled = positions * last
            row = scaled // (length - 1)
            share = (scaled - row * (length - 1)).to(torch.float64) / (length - 1)
            return start.index_select(0, row).addcmul_(step.index_select(0, row), share.to(dtype)[:, None])

        return rule
