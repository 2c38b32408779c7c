"""From a table of runs to a verdict: paired over seeds, corrected over the family, bounds set beforehand.

Every ask is: does the mean over seeds of `a` minus `b` lie inside `(low, high)`? Where lower is better,
"better" is `high=0`, "not worse" is `high=margin`, "level" is `low=-margin, high=margin`. The answer is

- *holds* if a paired t-test clears every finite bound, *fails* if it is beyond one, otherwise *open*;
- tested two-sidedly, because both answers are possible, at 5 % after Holm's correction over the asks of the
  claim.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from sepnb.claims.asks import ZERO, Ask, Floor, Unless
from sepnb.claims.verdict import HOLDS, NOT_JUDGED, NOT_RUN, NOT_TESTABLE, Answer, Verdict
from sepnb.records.verdicts import answers_to, word_of


def judge(
    table: pd.DataFrame | None,
    asks: Sequence[Ask],
    *,
    metric: str = "bits_per_byte",
    higher_is_better: bool = False,
    floors: Sequence[Floor] = (),
    unless: Sequence[Unless] = (),
    parts: bool = False,
    least_seeds: int = 6,
    significance: float = 0.05,
) -> Verdict:
    """The verdict over a family of asks: what stands in its way, else the word of `word_of`.

    Args:
        table: one row a run with columns method, seed, status and those that are asked for.
        asks: the family over which Holm's correction runs, all at a significance.
        metric, higher_is_better, floors, unless, parts: as of a `Claim`.
        least_seeds: with fewer the word is *not judged*; with fewer than six, not even differences of one
            sign pass a two-sided sign test.
    """
    rules = {"metric": metric, "higher_is_better": higher_is_better, "floors": floors, "unless": unless}
    if found := obstacle(table, asks, **rules, least_seeds=least_seeds):
        return found
    runs = Runs(table, metric)
    differences = [runs.difference(ask) for ask in asks]
    seeds = min(map(len, differences))
    answers = answer(asks, differences, significance)
    if seeds < least_seeds:
        told = "; ".join(f"{one.name} {one.value:+.3f}" for one in answers)
        few = f"{seeds} seeds, a verdict needs at least {least_seeds}; {told}"
        return Verdict(NOT_JUDGED, few, numbers={one.name: one.value for one in answers})
    return Verdict(word_of([one.answer for one in answers], parts), f"{seeds} seeds", answers)


def obstacle(
    table: pd.DataFrame | None,
    asks: Sequence[Ask],
    *,
    metric: str = "bits_per_byte",
    higher_is_better: bool = False,
    floors: Sequence[Floor] = (),
    unless: Sequence[Unless] = (),
    least_seeds: int = 6,
) -> Verdict | None:
    """What stands in the way of a verdict, with arguments as in `judge`: *not run* where a run is missing or
    stale, *not testable here* where one has no finite number, a method does not clear a floor or a condition
    is not met."""
    conditions = [ask for one in unless for ask in one.asks]
    compared, checked = methods_of(asks), methods_of(conditions)
    if found := incomplete(table, compared) or incomplete(table, checked, paired=False):
        return found
    runs = Runs(table, metric)
    return (
        _no_number(runs, [*asks, *conditions])
        or _below_a_floor(runs, dict.fromkeys([*compared, *checked]), floors, higher_is_better)
        or _not_met(runs, unless, least_seeds)
    )


def answer(
    asks: Sequence[Ask], differences: Sequence[np.ndarray], significance: float = 0.05
) -> tuple[Answer, ...]:
    """What the differences, one value a seed, say to each ask."""
    said = answers_to(differences, [(ask.low, ask.high) for ask in asks], significance)
    return tuple(
        Answer(ask.name, float(own.mean()), word)
        for ask, own, word in zip(asks, differences, said, strict=True)
    )


def inside(value: float, ask: Ask) -> bool:
    """Whether a value lies between the bounds of an ask."""
    return bool(ask.low < value < ask.high)


class Runs:
    """The runs of a table, by quantities as `Ask` names them: arrays, as pandas would copy the table each of
    hundreds of times. Two runs of one method and seed are a ValueError."""

    def __init__(self, table: pd.DataFrame, metric: str):
        self.table, self.metric = table, metric
        self.rows: dict[str, dict] = {}
        for row, (method, seed) in enumerate(zip(table["method"], table["seed"], strict=True)):
            if seed in self.rows.setdefault(method, {}):
                raise ValueError(f"{method} has two runs of seed {seed}, so that they cannot be paired")
            self.rows[method][seed] = row
        self.columns: dict[str, np.ndarray] = {}

    def values(self, quantity: str) -> np.ndarray:
        """One value a run in the order of the seeds, [seeds] float64; NaN where a run has none."""
        if quantity == ZERO:
            return np.zeros(1)
        of, _, columns = quantity.partition(":")
        names = columns.split("+") if columns else [self.metric]
        parts = [self._column(name)[self._order(method)] for method in of.split("+") for name in names]
        return sum(parts) / len(parts)

    def difference(self, ask: Ask) -> np.ndarray:
        """`a` minus `b`, one value a seed."""
        return self.values(ask.a) - self.values(ask.b)

    def seeds(self, quantity: str) -> list:
        """The seeds in the order of `values`."""
        return sorted(self.rows[quantity.split(":")[0].split("+")[0]])

    def _order(self, method: str) -> list[int]:
        return [self.rows[method][seed] for seed in sorted(self.rows[method])]

    def _column(self, name: str) -> np.ndarray:
        if name not in self.columns:
            there = name in self.table
            self.columns[name] = (
                self.table[name].to_numpy(dtype=float) if there else np.full(len(self.table), math.nan)
            )
        return self.columns[name]


def methods_of(asks: Iterable[Ask]) -> list[str]:
    """The methods whose runs the asks read."""
    quantities = [name for ask in asks for name in (ask.a, ask.b) if name != ZERO]
    return list(dict.fromkeys(method for name in quantities for method in name.split(":")[0].split("+")))


def incomplete(table: pd.DataFrame | None, methods: Sequence[str], paired: bool = True) -> Verdict | None:
    """*Not run* where a run of these methods is missing or stale: a verdict on a grid with holes would depend
    on who stopped it. If `paired`, they must have the same seeds."""
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
    if missing:
        return Verdict(NOT_RUN, f"{missing} of {len(status)} runs are missing", stale=bool(stale))
    if stale:
        return Verdict(NOT_RUN, f"{stale} of {len(status)} runs are stale: the code has changed", stale=True)
    if paired and len(set(map(frozenset, seeds.values()))) > 1:
        return Verdict(NOT_RUN, "the methods were not run with the same seeds, so they cannot be paired")
    return None


def _no_number(runs: Runs, asks: Sequence[Ask]) -> Verdict | None:
    """A run without a finite number decides nothing: without the metric itself it has diverged."""
    for quantity in dict.fromkeys(name for ask in asks for name in (ask.a, ask.b) if name != ZERO):
        finite = np.isfinite(runs.values(quantity))
        if not finite.all():
            seeds = [str(seed) for seed, there in zip(runs.seeds(quantity), finite, strict=True) if not there]
            where = f"(seed {', '.join(seeds)})"
            missing = f"{quantity} is missing in {len(seeds)} of {len(finite)} runs {where}"
            return Verdict(NOT_TESTABLE, missing if ":" in quantity else f"diverged: {quantity} {where}")
    return None


def _below_a_floor(
    runs: Runs, methods: Iterable[str], floors: Sequence[Floor], higher_is_better: bool
) -> Verdict | None:
    for floor in floors:
        means = {
            name: runs.values(f"{name}:{floor.column}").mean() for name in methods if floor.holds_for(name)
        }
        sign = -1 if higher_is_better else 1
        if short := {name: mean for name, mean in means.items() if not sign * mean < sign * floor.bound}:
            side, unit = "above" if higher_is_better else "below", floor.column.replace("_", " ")
            listed = ", ".join(f"{name} ({mean:.2f})" for name, mean in short.items())
            why = f"not {side} the bar of {floor.bound} {unit}: {listed}"
            return Verdict(NOT_TESTABLE, why, numbers=short)
    return None


def _not_met(runs: Runs, unless: Sequence[Unless], least_seeds: int) -> Verdict | None:
    for one in unless:
        numbers = {}
        for ask in one.asks:  # the means are compared, whose methods need not have the same seeds
            a, b = (float(runs.values(name).mean()) for name in (ask.a, ask.b))
            numbers[f"{ask.a} over {ask.b}" if one.ratio else ask.name] = a / b if one.ratio else a - b
        met = [inside(value, ask) for value, ask in zip(numbers.values(), one.asks, strict=True)]
        told = [f"{name} {value:+.3f}" for name, value in numbers.items()]
        if one.tested:
            differences = [runs.difference(ask) for ask in one.asks]
            answers, enough = answer(one.asks, differences), min(map(len, differences)) >= least_seeds
            met = [enough and found.answer == HOLDS for found in answers]
            told = list(map(str, answers))
        if not (any(met) if one.any else all(met)):
            return Verdict(NOT_TESTABLE, "; ".join([one.why, *told]), numbers=numbers)
    return None
