"""Shift steps: some steps of a training are read at positions that all moved by the same (Li et al. 2025).

On one axis the move is the offset of a text, on n axes that of a grid. Which steps, and by how much, comes
from generators of their own: a run without shift steps reads the same bytes in the same order.

Shape letters: L tokens in a sequence, the trained length; N cells of a grid, n axes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from math import prod
from typing import Any, ClassVar

import numpy as np

from ..data.draws import generator_of, uniform
from ..encodings import grid_positions
from ..encodings.base import to_json
from ..records.settings import without_defaults
from ..validation import at_least, number
from .positions import RandomOffset


class _Shifts:
    """What a text and a grid share: which steps are shift steps, and by how much these move."""

    probability: float
    starts: int | None

    def _check(self) -> None:
        number("probability", self.probability, 0, 1, needs="it lies between 0 and 1")
        if self.starts is not None:
            at_least(1, starts=self.starts)

    def decisions(self, seed: int) -> Iterator[bool]:
        """Whether each step of a run is a shift step, without end."""
        generator = generator_of(seed, "shift-steps")
        while True:
            yield bool(uniform(generator, 1)[0] < self.probability)

    def moved(self, room: Sequence[int], *, rows: int, seed: int, steps: int) -> Iterator[np.ndarray]:
        """The moves of `rows` sequences or grids in every step, int64 `[rows, n]`, 0 outside of shift steps.
        Every move below `room`, one number an axis, is equally likely. With `starts` a run draws so many
        moves once, and the rows that shift take them in turn, round and round."""
        generator, used = generator_of(seed, "positions"), 0

        def draw(count: int) -> np.ndarray:
            drawn = uniform(generator, count * len(room)).reshape(count, -1)
            return (drawn * room).astype(np.int64)

        pool = None if self.starts is None else draw(self.starts)
        for shifted in islice(self.decisions(seed), steps):
            yield shifted * (draw(rows) if pool is None else pool[(used + np.arange(rows)) % len(pool)])
            used += rows * shifted


@dataclass(frozen=True)
class ShiftSteps(_Shifts, RandomOffset):
    """Some steps of a text are read at random offsets, the others at the positions from 0 on.

    Args:
        probability: of a shift step.
        starts: offsets that a run draws once, and uses in turn, one for each row that asks; None draws anew
            every time, one for the whole batch unless `per` says otherwise. Released are 320, with `per`
            "sequence" and 16 or 32 sequences in a step.
    """

    name: ClassVar[str] = "shift-steps"

    probability: float = 0.1
    starts: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check()

    def outside(self, positions: np.ndarray) -> bool:
        """Whether any of the positions `[*B, L]` of a step lies outside of the trained window."""
        return bool((positions >= positions.shape[-1]).any())

    def _steps(self, batch_size: int, length: int, seed: int, steps: int) -> Iterator[np.ndarray]:
        each = self.per == "sequence"
        room, rows = (self.maximum - length + 1,), batch_size if each else 1
        for moves in self.moved(room, rows=rows, seed=seed, steps=steps):
            positions = moves + np.arange(length)
            yield positions if each else positions[0]

    def resolved(self) -> dict[str, Any]:
        return without_defaults(super().resolved(), starts=None)


@dataclass(frozen=True)
class GridShiftSteps(_Shifts):
    """Some steps are read at a grid that moved, each axis by a step count of its own.

    Every move that keeps the grid below `ranges` is equally likely, the one by nothing among them. The
    released image program counts cells from 0; here the first cell has another place, because the origin is
    that of the class token (see `sepnb.models.image`).

    Args:
        grid: cells along each axis.
        ranges: one more than the largest coordinate of each axis that can occur; the grid must fit.
        probability: of a shift step.
        first: the coordinate, on every axis, of the first cell of the grid that did not move.
        starts: moves that a run draws once, and uses in turn, 320 as released; None draws anew in every shift
            step, one move for the whole batch.
    """

    name: ClassVar[str] = "grid-shift-steps"

    grid: tuple[int, ...]
    ranges: tuple[int, ...]
    probability: float = 0.1
    first: int = 1
    starts: int | None = None

    def __post_init__(self) -> None:
        at_least(1, **{f"grid[{axis}]": side for axis, side in enumerate(self.grid)})
        at_least(0, first=self.first)
        if len(self.grid) != len(self.ranges):
            raise ValueError(f"grid={self.grid} and ranges={self.ranges} differ in axes; give both as many")
        if min(self.moves) < 1:
            raise ValueError(
                f"a grid of {self.grid} whose first cell is at {self.first} does not fit into {self.ranges}; "
                f"give at least {tuple(side + self.first for side in self.grid)}"
            )
        self._check()

    @property
    def moves(self) -> tuple[int, ...]:
        return tuple(end - self.first - side + 1 for side, end in zip(self.grid, self.ranges, strict=True))

    def drawn(self, *, seed: int, steps: int) -> Iterator[np.ndarray]:
        """By how much the grid moved in every step, int64 `[n]`: by nothing but in shift steps."""
        at_least(1, steps=steps)
        return (move for (move,) in self.moved(self.moves, rows=1, seed=seed, steps=steps))

    def positions(self, *, seed: int, steps: int) -> Iterator[np.ndarray]:
        """The places of the cells in every step, row by row: int64 `[N, n]`."""
        home = self.home
        return (home + move for move in self.drawn(seed=seed, steps=steps))

    @property
    def home(self) -> np.ndarray:
        """The places of the cells of the grid that did not move, int64 `[N, n]`."""
        return grid_positions(*self.grid).numpy().astype(np.int64) + self.first

    def outside(self, positions: np.ndarray) -> bool:
        """Whether any of the places `[*B, N, n]` of a step lies outside of the grid that did not move."""
        within = positions - self.first
        return bool(((within < 0) | (within >= self.grid)).any())

    def coverage(self, *, seed: int, steps: int) -> dict[str, float]:
        """What a run of this seed meets of what can occur: the share of the `coordinates` of an axis, as a
        mean over axes, and of the `cells`."""
        reached = np.zeros([end - self.first for end in self.ranges], dtype=bool)
        for places in self.positions(seed=seed, steps=steps):
            reached[tuple((places - self.first).T)] = True
        axes = range(reached.ndim)
        along = [reached.any(axis=tuple(other for other in axes if other != axis)).mean() for axis in axes]
        return {"coordinates": float(np.mean(along)), "cells": float(reached.sum() / prod(reached.shape))}

    def trained_indices(self) -> int:
        """Below this every axis has coordinates that can occur."""
        return min(self.ranges)

    def resolved(self) -> dict[str, Any]:
        """Every setting in plain JSON types; `starts` where there are some."""
        return to_json(without_defaults({"name": self.name, **asdict(self)}, starts=None))


Shifts = ShiftSteps | GridShiftSteps
"""What decides which steps are shift steps."""
