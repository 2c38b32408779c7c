"""Verdicts without seeds: over the rounds of timed records, and over numbers in which there is no chance."""

from collections.abc import Sequence
from typing import Any

from sepnb.claims.evidence import family, incomplete, inside, methods_of
from sepnb.claims.verdict import Answer, Tables, Verdict
from sepnb.records.verdicts import (
    FAILS,
    HOLDS,
    NOT_REPRODUCED,
    NOT_RUN,
    NOT_TESTABLE,
    OPEN,
    PARTLY,
    REPRODUCED,
)

ENDS = ("_lower", "_upper")
"""What a timed column's quartiles over the rounds end in."""


def by_rounds(claim: Any, tables: Tables) -> Verdict:
    """The verdict of a claim over timed quantities, `method:column`, of one record each. The quartiles over
    its rounds stand in the place of seeds: an ask holds if three quarters of the rounds are inside, fails if
    three quarters are outside, and is open between the two. *Not testable here* where a record has no such
    column, as without a compiler or without another package."""
    table, asks = claim.table(tables), claim.asks
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
            untimed = f"no {column.replace('_', ' ')} of {method} was timed here"
            return Verdict(NOT_TESTABLE, untimed)
        low, middle, high = (float(cell.iloc[0][name]) for name in names)
        found = HOLDS if inside(low, ask) and inside(high, ask) else OPEN
        if low >= ask.high or high <= ask.low:
            found = FAILS
        answers.append(Answer(ask.a, middle, found, f"{middle:.3g}, quartiles {low:.3g} to {high:.3g}"))
    return family(answers, claim.parts, "quartiles over the rounds")


def exactly(claim: Any, tables: Tables) -> Verdict:
    """The verdict of a claim over numbers that a chapter computes without chance: each lies inside its closed
    bounds or not, as the word of `share`."""
    numbers = tables.get(claim.experiment)
    if numbers is None:
        return Verdict(NOT_RUN, "the chapter has not been executed")
    conditions = [ask for one in claim.unless for ask in one.asks]
    keys = [ask.a for ask in [*claim.asks, *conditions]]
    if absent := [key for key in keys if key not in numbers]:
        return Verdict(NOT_RUN, f"the chapter does not publish {', '.join(absent)}")
    found = {key: float(numbers[key]) for key in keys}
    shown = "; ".join(f"{name.replace('_', ' ')} {value:.2g}" for name, value in found.items())
    met, held = ([ask.low <= found[ask.a] <= ask.high for ask in asks] for asks in (conditions, claim.asks))
    return Verdict(share(held) if all(met) else NOT_TESTABLE, shown, numbers=found)


def share(parts: Sequence[bool]) -> str:
    """The verdict on a claim in parts: all hold, some hold, none holds."""
    return REPRODUCED if all(parts) else PARTLY if any(parts) else NOT_REPRODUCED
