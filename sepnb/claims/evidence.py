"""From a table of runs to a verdict: paired over seeds, corrected over the family, bounds set beforehand.

Every ask is: does the mean over seeds of `a` minus `b` lie inside `(low, high)`? Where lower is better,
"better" is `high=0`, "not worse" is `high=margin`, "level" is `low=-margin, high=margin`. The answer is

- *holds* if a paired t-test clears every finite bound, *fails* if it is beyond one, otherwise *open*;
- tested two-sidedly, because both answers are possible, at 5 % after Holm's correction over the asks of the
  claim.

A floor voids a pair, not a family: a comparison with a method that misses it is dropped by name, and Holm's
correction runs over those that are left. Where to miss a floor only makes a method worse, a comparison that
holds although that works against it is kept; it counts in the correction whatever it says.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from sepnb.claims.asks import ZERO, Ask, Floor, Unless
from sepnb.claims.verdict import Answer, Cause, Dropped, Verdict
from sepnb.records.run_table import RunTable
from sepnb.records.verdicts import (
    HOLDS,
    NOT_JUDGED,
    NOT_RUN,
    NOT_TESTABLE,
    answers_to,
    in_mean_and_seeds,
    p_value,
    paired_t,
    sign_flip,
    word_of,
)

SEEDS = 6
"""With fewer the word is *not judged*: not even differences of one sign pass a two-sided sign test."""


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
    bounds = [(ask.low, ask.high) for ask in asks]
    said = answers_to(differences, bounds)
    tests = [
        [p_value(own, *ends, test) for test in (paired_t, sign_flip)]
        for own, ends in zip(differences, bounds, strict=True)
    ]
    return tuple(
        Answer(ask.name, float(own.mean()), word, "", *both)
        for ask, own, word, both in zip(asks, differences, said, tests, strict=True)
    )


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
