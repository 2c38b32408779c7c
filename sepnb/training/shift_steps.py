"""Shift steps: some steps of a training are read at positions that all moved by the same (Li et al. 2025).

Which steps, and by how much, comes from generators of their own: a run without shift steps reads the same
bytes in the same order. `sepnb.training.grid_shifts` does the same for the places of a grid.

Shape letters: L tokens in a sequence, the trained length.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from ..data.draws import at_least, generator_of, uniform
from .positions import RandomOffset


@dataclass(frozen=True)
class ShiftSteps(RandomOffset):
    """Some steps are read at random offsets, the others at the positions from 0 on (Li et al. 2025, SeqPE).

    The released code draws 320 offsets once and uses them in turn, 16 or 32 in a step; here every shift step
    draws its own, one for the whole batch unless `per` says otherwise.

    Args:
        probability: of a shift step.
        starts: offsets that a run draws once, and uses in turn, one for each row that asks; None draws anew
            every time. 320 is the released number, with `per` "sequence" and as many sequences as it has
            offsets in a step.

    Raises:
        TypeError: `starts` is no int.
        ValueError: a probability outside [0, 1], `starts` below 1, and what `RandomOffset` refuses.
    """

    name: ClassVar[str] = "shift-steps"

    probability: float = 0.1
    starts: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shifts(self.probability, self.starts)

    def decisions(self, seed: int) -> Iterator[bool]:
        """Whether each step of a run is a shift step, without end."""
        return decided(self.probability, seed)

    def outside(self, positions: np.ndarray) -> bool:
        """Whether any of the positions `[*B, L]` of a step lies outside of the trained window."""
        return bool((positions >= positions.shape[-1]).any())

    def _steps(self, batch_size: int, length: int, seed: int, steps: int) -> Iterator[np.ndarray]:
        if self.starts is None:
            drawn = super()._steps(batch_size, length, seed, steps)
        else:
            whole = self._draw(generator_of(seed, "positions"), self.starts, length)
            each = self.per == "sequence"
            turns = in_turn(whole, islice(self.decisions(seed), steps), batch_size if each else 1)
            drawn = (rows if each else rows[0] for rows in turns)
        for shifted, positions in zip(self.decisions(seed), drawn, strict=False):
            yield positions if shifted else np.broadcast_to(np.arange(length), positions.shape)

    def resolved(self) -> dict[str, Any]:
        """Every setting in plain JSON types; `starts` where there are some: older records keep their keys."""
        return without_starts(super().resolved())


def check_shifts(probability: float, starts: int | None) -> None:
    """Refuse what is no probability of a shift step, or no number of offsets.

    Raises:
        TypeError: `starts` is no int.
        ValueError: a probability outside [0, 1], or `starts` below 1.
    """
    if not 0 <= probability <= 1:
        raise ValueError(f"probability is {probability}; it lies between 0 and 1")
    if starts is not None:
        at_least(1, starts=starts)


def without_starts(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of shift steps, without a number of offsets where none is set."""
    return {key: value for key, value in settings.items() if key != "starts" or value is not None}


def in_turn(drawn: np.ndarray, decisions: Iterator[bool], rows: int) -> Iterator[np.ndarray]:
    """For every step the rows of `drawn` whose turn it is, round and round: shift steps use up so many."""
    used = 0
    for shifted in decisions:
        yield drawn[(used + np.arange(rows)) % len(drawn)]
        used += rows * shifted


def decided(probability: float, seed: int) -> Iterator[bool]:
    """Whether each step of a run is a shift step, without end."""
    generator = generator_of(seed, "shift-steps")
    while True:
        yield bool(uniform(generator, 1)[0] < probability)
