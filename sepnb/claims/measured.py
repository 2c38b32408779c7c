"""Verdicts without seeds: over the rounds of timed records, and over numbers in which there is no chance."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from sepnb.claims.asks import Ask, Unless
from sepnb.claims.evidence import incomplete, inside, methods_of, word_of
from sepnb.claims.verdict import (
    FAILS,
    HOLDS,
    NOT_REPRODUCED,
    NOT_RUN,
    NOT_TESTABLE,
    OPEN,
    PARTLY,
    REPRODUCED,
    Answer,
    Verdict,
)

ENDS = ("_lower", "_upper")
"""What a timed column's quartiles over the rounds end in."""


def rounds(table: pd.DataFrame | None, asks: Sequence[Ask], parts: bool = False) -> Verdict:
    """The verdict over timed quantities, `method:column`, of one record each: quartiles over the rounds, in
    the columns `<column>_lower` and `<column>_upper`, stand in the place of seeds. An ask holds if three
    quarters of the rounds are inside, fails if three quarters are outside, and is open between the two.

    *Not testable here* where a record has no such column, as without a compiler or without another package.
    """
    if table is None or (table["status"] == "not run").all():
        return Verdict(NOT_RUN, "no runs")
    known, answers = set(table.method), []
    if obstacle := incomplete(table, [name for name in methods_of(asks) if name in known]):
        return obstacle
    for ask in asks:
        method, _, column = ask.a.partition(":")
        names = [f"{column}{ENDS[0]}", column, f"{column}{ENDS[1]}"]
        cell = table[table.method == method]
        if cell.empty or not set(names) <= set(cell) or cell[names].isna().any(axis=None):
            return Verdict(NOT_TESTABLE, f"no {column.replace('_', ' ')} of {method} was timed here")
        low, middle, high = (float(cell.iloc[0][name]) for name in names)
        found = HOLDS if inside(low, ask) and inside(high, ask) else OPEN
        if low >= ask.high or high <= ask.low:
            found = FAILS
        answers.append(Answer(ask.a, middle, found, f"{middle:.3g}, quartiles {low:.3g} to {high:.3g}"))
    return Verdict(
        word_of([one.answer for one in answers], parts), "quartiles over the rounds", tuple(answers)
    )


def exactly(numbers: Mapping[str, Any] | None, asks: Sequence[Ask], unless: Sequence[Unless] = ()) -> Verdict:
    """The verdict over numbers that a chapter computes without chance: each lies inside its closed bounds or
    not.

    Every ask holds, *reproduced*; some, *partly*; none, *not reproduced*.
    """
    conditions = [ask for one in unless for ask in one.asks]
    keys = list(dict.fromkeys(ask.a for ask in [*asks, *conditions]))
    found = published(numbers, keys)
    if isinstance(found, Verdict):
        return found
    told = "; ".join(f"{name.replace('_', ' ')} {value:.2g}" for name, value in found.items())
    if not all(ask.low <= found[ask.a] <= ask.high for ask in conditions):
        return Verdict(NOT_TESTABLE, told, numbers=found)
    return Verdict(share([ask.low <= found[ask.a] <= ask.high for ask in asks]), told, numbers=found)


def published(numbers: Mapping[str, Any] | None, keys: Sequence[str]) -> dict[str, float] | Verdict:
    """These numbers of a chapter, or that they are not there."""
    if numbers is None:
        return Verdict(NOT_RUN, "the chapter has not been executed")
    if absent := [key for key in keys if key not in numbers]:
        return Verdict(NOT_RUN, f"the chapter does not publish {', '.join(absent)}")
    return {key: float(numbers[key]) for key in keys}


def share(parts: Sequence[bool]) -> str:
    """The word of a claim that counts its parts, each of which is so or not."""
    return REPRODUCED if all(parts) else PARTLY if any(parts) else NOT_REPRODUCED
