"""Shift steps of a grid: the places at which the patches of an image stand in a training (Li et al. 2025).

What `shift_steps.ShiftSteps` is for a text: some steps are read at places that all moved by the same, the
others at those of the trained grid. The released image program counts cells from 0 and draws 320 moves once,
32 of them for a step; here places are counted from `first`, because the origin is that of the class token
(see `sepnb.models.image`), and every shift step draws its own move, one for the whole batch.

Shape letters: N cells of the grid, n axes.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from math import prod
from typing import Any, ClassVar

import numpy as np

from ..data.draws import at_least, generator_of, uniform
from ..encodings import grid_positions
from .shift_steps import ShiftSteps, check_shifts, decided, in_turn, without_starts


@dataclass(frozen=True)
class GridShiftSteps:
    """Some steps are read at a grid that moved, each axis by a step count of its own.

    Every move that keeps the grid below `ranges` is equally likely, the one by nothing among them. No cell
    ever stands at a coordinate below `first`, so that with `first` 1 none meets the origin.

    Args:
        grid: cells along each axis.
        ranges: one more than the largest coordinate of each axis that can occur.
        probability: of a shift step.
        first: the coordinate, on every axis, of the first cell of the grid that did not move.
        starts: moves that a run draws once, and uses in turn; None draws anew in every shift step. 320 is the
            released number.

    Raises:
        TypeError: a size that is no int.
        ValueError: a size below 1, a grid that does not fit, a probability outside [0, 1], or `starts` below
            1.
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
        check_shifts(self.probability, self.starts)

    @property
    def moves(self) -> tuple[int, ...]:
        """How many moves each axis has."""
        return tuple(end - self.first - side + 1 for side, end in zip(self.grid, self.ranges, strict=True))

    def decisions(self, seed: int) -> Iterator[bool]:
        """Whether each step of a run is a shift step, without end."""
        return decided(self.probability, seed)

    def drawn(self, *, seed: int, steps: int) -> Iterator[np.ndarray]:
        """By how much the grid moved in every step, int64 `[n]`: by nothing but in shift steps."""
        at_least(1, steps=steps)
        generator, decisions = generator_of(seed, "positions"), self.decisions(seed)
        if self.starts is None:
            moves = (self._moves(generator, 1) for _ in range(steps))
        else:
            moves = in_turn(self._moves(generator, self.starts), islice(self.decisions(seed), steps), 1)
        for (move,), shifted in zip(moves, decisions, strict=False):
            yield move * shifted

    def _moves(self, generator: np.random.PCG64, count: int) -> np.ndarray:
        """So many moves, int64 `[count, n]`."""
        drawn = uniform(generator, count * len(self.grid)).reshape(count, -1)
        return (drawn * self.moves).astype(np.int64)

    def positions(self, *, seed: int, steps: int) -> Iterator[np.ndarray]:
        """The places of the cells in every step, row by row: int64 `[N, n]`."""
        home = self.home
        return (home + move for move in self.drawn(seed=seed, steps=steps))

    @property
    def home(self) -> np.ndarray:
        """The places of the cells of the grid that did not move, int64 `[N, n]`."""
        return grid_positions(*self.grid).numpy().astype(np.int64) + self.first

    def outside(self, positions: np.ndarray) -> bool:
        """Whether any of the places `[*B, N, n]` of a step, all cells or some, lies outside of the grid that
        did not move."""
        within = positions - self.first
        return bool(((within < 0) | (within >= self.grid)).any())

    def coverage(self, *, seed: int, steps: int) -> dict[str, float]:
        """What a run of this seed meets of what can occur: the share of the `coordinates` of an axis, the
        mean over axes, and the share of the `cells`."""
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
        """Every setting in plain JSON types; `starts` where there are some: older records keep their keys."""
        settings = without_starts({"name": self.name, **asdict(self)})
        return {key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()}


Shifts = ShiftSteps | GridShiftSteps
"""What decides which steps are shift steps."""
