"""What many positions cost: the time of an extrapolator in units of that of writing its rows.

It is timed in turns with the writing of an array of the same shape.
`learned` is held to no aim: a perceptron at every position, and its training, are no matter of writing.

Shape letters: L rows of the table (the trained length), d_pos its columns, N positions.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..extrapolators import CONTROLS, FORMS, METHODS, extrapolate
from ..validation import at_least
from .timing import MIN_REPEATS, Ratio, interleaved, paired_ratio

AIM = 3.0
"""How many times as long as the writing of its output an extrapolator may take on a CPU."""

HELD = tuple(method for method in METHODS if method != "learned")
"""The methods that the aim is for."""

MILLION = 10**6
TABLE_LENGTH = 128


class Cost(NamedTuple):
    """The time of one call of `extrapolate` to `width` columns, what it fits on the table included, over that
    of writing the rows."""

    method: str
    form: str
    width: int
    ratio: Ratio

    @property
    def reached(self) -> bool:
        """Whether the median is within the aim."""
        return self.ratio.median <= AIM


def times_of_writing(
    width: int = 64, *, n_positions: int = MILLION, repeats: int = MIN_REPEATS, device: str = "cpu"
) -> list[Cost]:
    """Every form of `HELD` at the positions 0 .. n_positions - 1, in turns with the writing of the rows.

    Args:
        width: d_pos, of the table that `drawn_table` gives.
        n_positions: N; a few thousand time the call, and no longer the rule.
        repeats, device: as in `sepnb.analysis.timing.interleaved`.

    Raises:
        ValueError: no positions, or what `interleaved` refuses.
    """
    at_least(1, n_positions=n_positions)
    positions = torch.arange(n_positions, device=device)
    steps = {"writing": lambda: torch.ones(n_positions, width, device=device)}
    for method, form in variants(HELD):
        steps[f"{method} {form}"] = call_of(method, form, drawn_table(width, device), positions)
    times = interleaved(steps, repeats=repeats, device=device)
    return [
        Cost(method, form, width, paired_ratio(times[f"{method} {form}"], times["writing"]))
        for method, form in variants(HELD)
    ]


def variants(methods: Sequence[str] = METHODS) -> Iterator[tuple[str, str]]:
    """Methods and forms; a control has one form."""
    for method in methods:
        for form in FORMS[:1] if method in CONTROLS else FORMS:
            yield method, form


def drawn_table(width: int, device: str = "cpu") -> Tensor:
    """`[TABLE_LENGTH, width]` from N(0, 0.02^2): what is computed does not depend on what stands in it."""
    generator = torch.Generator().manual_seed(0)
    return 0.02 * torch.randn(TABLE_LENGTH, width, generator=generator).to(device)


def call_of(method: str, form: str, table: Tensor, positions: Tensor) -> Callable[[], Tensor]:
    """One call of `extrapolate`; `interpolate` is told how many positions there are."""
    options = {"length": max(len(positions), len(table))} if method == "interpolate" else {}
    return lambda: extrapolate(table, positions, method, form=form, **options)
