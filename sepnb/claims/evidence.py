"""From a table of runs to a verdict: paired over seeds, corrected over the family, bounds set beforehand.

Every ask is: does the mean over seeds of `a` minus `b` lie inside `(low, high)`? Where lower is better,
"better" is `high=0`, "not worse" is `high=margin`, "level" is `low=-margin, high=margin`. The answer is

- *holds* if a paired t-test clears every finite bound, *fails* if it is beyond one, otherwise *open*;
- tested two-sidedly, because both answers are possible, at 5 % after Holm's correction over the asks of the
  claim.

A floor voids a pair, not a family: a comparison with a method that misses it is dropped by name, and Holm's
correction runs over those that are left. Where to miss a floor only makes a method worse, a comparison that
holds although that works against it is kept; it counts in the correction whatever it says.

Without seeds, `by_rounds` judges timed records, and `exactly` numbers in which there is no chance.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from sepnb.claims.asks import ZERO, Ask, Floor, Unless
from sepnb.claims.verdict import Answer, Cause, Dropped, Tables, Verdict
from sepnb.records.run_table import RunTable
from sepnb.records.verdicts import (
    FAILS,
    HOLDS,
    NOT_JUDGED,
    NOT_RUN,
    NOT_TESTABLE,
    OPEN,
    answers_to,
    in_mean_and_seeds,
    p_value,
    paired_t,
    sign_flip,
    word_of,
)

SEEDS = 6
"""With fewer the word is *not judged*: not even differences of one sign pass a two-sided sign test."""


def by_seeds(claim: Any, tables: Tables) -> Verdict:
    """Judged over the seeds of its experiment and of the methods beside it."""
    return judge(
        claim.table(tables),
        claim.asks,
        metric=claim.metric,
        higher_is_better=claim.higher_is_better,
        floors=claim.floors,
        unless=claim.unless,
        parts=claim.parts,
    )


def judge(
    table: pd.DataFrame | None,
    asks: Sequence[Ask],
    *,
    metric: str = "bits_per_byte",
    higher_is_better: bool = False,
    floors: Sequence[Floor] = (),
    unless: Sequence[Unless] = (),
    parts: bool = False,
) -> Verdict:
    """The verdict over a family of asks: what stands in its way, else the word of `word_of`.

    Args:
        table: one row a run with columns method, seed, status and those that are asked for.
        asks: the family over which Holm's correction runs.
        metric, higher_is_better, floors, unless, parts: as of a `Claim`.
    """
    conditions = [ask for one in unless for ask in one.asks]
    compared, checked = methods_of(asks), methods_of(conditions)
    if found := incomplete(table, compared) or incomplete(table, checked, paired=False):
        return found
    runs = RunTable(table, metric)
    only_checked = [name for name in checked if name not in compared]
    found = (
        _no_number(runs, [*asks, *conditions])
        or _short(runs, only_checked, floors, higher_is_better)
        or _not_met(runs, [one for one in unless if one.of is None])
    )
    if found:
        return found
    void, against = _voided(runs, asks, floors, unless, higher_is_better)
    judged = [ask for ask in asks if ask not in void or ask in against]
    differences = [values(runs, ask.a) - values(runs, ask.b) for ask in judged]
    answers = answer(judged, differences) if judged else ()
    kept = [
        (ask, one) for ask, one in zip(judged, answers, strict=True) if ask not in void or one.answer == HOLDS
    ]
    if not kept:
        first, *_ = void.values()
        others = dict.fromkeys(one.detail for one in void.values() if one.detail != first.detail)
        numbers = {name: value for one in void.values() for name, value in one.numbers.items()}
        return replace(first, seen=(*first.seen, *others), numbers=numbers)
    left, answers = zip(*kept, strict=True)
    dropped = tuple(Dropped(ask.name, void[ask].detail) for ask in asks if ask not in left)
    seeds = min(map(len, differences))
    if seeds < SEEDS:
        few = f"{seeds} seeds, a verdict needs at least {SEEDS}"
        seen = tuple(f"{one.name} {one.value:+.3f}" for one in answers)
        numbers = {one.name: one.value for one in answers}
        return Verdict(NOT_JUDGED, few, numbers=numbers, seen=seen, dropped=dropped)
    though = [f"although {void[ask].detail}" for ask in asks if ask in left and ask in void]
    return family(answers, parts, ", ".join(dict.fromkeys([f"{seeds} seeds", *though])), dropped)


def family(answers: Sequence[Answer], parts: bool, why: str, dropped: Sequence[Dropped] = ()) -> Verdict:
    """The verdict on comparisons that were judged, however each was: over seeds, over rounds or by a rule."""
    return Verdict(
        word_of([one.answer for one in answers], parts), why, tuple(answers), dropped=tuple(dropped)
    )


def _voided(
    runs: RunTable,
    asks: Sequence[Ask],
    floors: Sequence[Floor],
    unless: Sequence[Unless],
    higher_is_better: bool,
) -> tuple[dict[Ask, Verdict], set[Ask]]:
    """The comparisons in which a method misses a floor, or whose own condition is not met; and those of them
    in which that works against the ask, so that an answer that holds is kept."""
    void, spared = {}, set()
    for ask in asks:
        for floor in floors:
            short = _short(runs, methods_of([ask]), [floor], higher_is_better)
            if short and (ask not in void or ask in spared):
                void[ask] = short
                against = floor.one_sided and all(
                    _against(ask, name, higher_is_better) for name in short.numbers
                )
                spared = spared | {ask} if against else spared - {ask}
        if found := _not_met(runs, [one for one in unless if one.of == ask]):
            void[ask] = found
            spared -= {ask}
    return void, spared


def _against(ask: Ask, method: str, higher_is_better: bool) -> bool:
    """Whether an imperfect method works against the ask: if it were better, the difference would lie further
    inside its one bound. False if the method is on both sides or the ask has two bounds."""
    sides = [method in methods_of([Ask(name)]) for name in (ask.a, ask.b)]
    if all(sides) or math.isfinite(ask.low) == math.isfinite(ask.high):
        return False
    if_better_the_difference_grows = sides[0] == higher_is_better
    return if_better_the_difference_grows == math.isfinite(ask.low)


def answer(asks: Sequence[Ask], differences: Sequence[np.ndarray]) -> tuple[Answer, ...]:
    """What the differences, one value a seed, say to each ask."""
    said, answers = answers_to(differences, [(ask.low, ask.high) for ask in asks]), []
    for ask, own, word in zip(asks, differences, said, strict=True):
        p, exact = (p_value(own, ask.low, ask.high, test) for test in (paired_t, sign_flip))
        answers.append(Answer(ask.name, float(own.mean()), word, "", p, exact))
    return tuple(answers)


def inside(value: float, ask: Ask) -> bool:
    """Whether a value lies between the bounds of an ask."""
    return bool(ask.low < value < ask.high)


def values(runs: RunTable, quantity: str) -> np.ndarray:
    """One value a seed; of `zero` one for all."""
    return np.zeros(1) if quantity == ZERO else runs.each(quantity)


def methods_of(asks: Iterable[Ask]) -> list[str]:
    """The methods whose runs the asks read."""
    quantities = [name for ask in asks for name in (ask.a, ask.b) if name != ZERO]
    return list(dict.fromkeys(method for name in quantities for method in name.split(":")[0].split("+")))


def incomplete(table: pd.DataFrame | None, methods: Sequence[str], paired: bool = True) -> Verdict | None:
    """*Not run* if a run of these methods is missing or stale, else None: the verdict on an incomplete grid
    would depend on when it was stopped. If `paired`, the methods must have the same seeds."""
    if table is None or table.empty:
        return Verdict(NOT_RUN, "no runs")
    seeds: dict[str, set] = {name: set() for name in methods}
    status = []
    for method, seed, state in zip(table["method"], table["seed"], table["status"], strict=True):
        if method in seeds:
            seeds[method].add(seed)
            status.append(state)
    if absent := [name for name in methods if not seeds[name]]:
        return Verdict(NOT_RUN, f"no runs of {', '.join(absent)}")
    missing, stale = status.count("not run"), status.count("stale")
    cause = Cause.STALE if stale else None
    if missing:
        return Verdict(NOT_RUN, f"{missing} of {len(status)} runs are missing", cause=cause)
    if stale:
        return Verdict(NOT_RUN, f"{stale} of {len(status)} runs are stale: the code has changed", cause=cause)
    if paired and len(set(map(frozenset, seeds.values()))) > 1:
        return Verdict(NOT_RUN, "the methods were not run with the same seeds, so they cannot be paired")
    return None


def _no_number(runs: RunTable, asks: Sequence[Ask]) -> Verdict | None:
    """A run without a finite number decides nothing: without the metric itself it has diverged."""
    for quantity in dict.fromkeys(name for ask in asks for name in (ask.a, ask.b) if name != ZERO):
        finite = np.isfinite(runs.each(quantity))
        if not finite.all():
            seeds = [str(seed) for seed, there in zip(runs.seeds(quantity), finite, strict=True) if not there]
            where = f"(seed {', '.join(seeds)})"
            missing = f"{quantity} is missing in {len(seeds)} of {len(finite)} runs {where}"
            return Verdict(NOT_TESTABLE, missing if ":" in quantity else f"diverged: {quantity} {where}")
    return None


def _short(
    runs: RunTable, methods: Sequence[str], floors: Sequence[Floor], higher_is_better: bool
) -> Verdict | None:
    """*Not testable* where some of the methods miss the first floor that any misses, each with its mean."""
    sign, side = (1, "above") if higher_is_better else (-1, "below")
    for floor in floors:
        short = {}
        for name in filter(floor.holds_for, methods):
            found = runs.each(f"{name}:{floor.column}")
            margins = sign * (found - floor.bound)
            if not (in_mean_and_seeds(margins) if floor.seeds else margins.mean() > 0):
                short[name] = float(found.mean())
        if short:
            why = floor.why or f"not {side} the bar of {floor.bound} {floor.column.replace('_', ' ')}"
            listed = ", ".join(f"{name} ({mean:.2f})" for name, mean in short.items())
            return Verdict(NOT_TESTABLE, f"{why}: {listed}", numbers=short)
    return None


def _not_met(runs: RunTable, unless: Sequence[Unless]) -> Verdict | None:
    for one in unless:
        numbers = {}
        for ask in one.asks:  # the means are compared, whose methods need not have the same seeds
            a, b = (float(values(runs, name).mean()) for name in (ask.a, ask.b))
            numbers[f"{ask.a} over {ask.b}" if one.ratio else ask.name] = a / b if one.ratio else a - b
        met = [inside(value, ask) for value, ask in zip(numbers.values(), one.asks, strict=True)]
        shown = [f"{name} {value:+.3f}" for name, value in numbers.items()]
        if not (any(met) if one.any else all(met)):
            return Verdict(NOT_TESTABLE, one.why, seen=tuple(shown), numbers=numbers)
    return None


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
    return word_of([HOLDS if one else FAILS for one in parts], parts=True)
