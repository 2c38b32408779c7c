"""Does a ranking outlive more training? What the experiment `budget` says of verdicts on one budget.

It trained some pairs, smaller than those of most verdicts, for one, four and sixteen times as long. Two
models exchange places where one is ahead at one budget and the other at another: their ranking is
*budget-dependent*.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pandas as pd

from sepnb.claims.evidence import incomplete
from sepnb.claims.verdict import Dependence, Verdict
from sepnb.records.run_table import RunTable, summarise
from sepnb.records.verdicts import NOT_RUN, OF_OURS, PARTLY

TABLE = "experiment/budget"
DEPENDENT, KEPT = "budget-dependent", "no exchange"
RANKED = ("learned", "sinusoidal", "rope", "alibi", "separated-sinusoidal", "strict-sinusoidal")
TRAINED = (*RANKED, "separated-sinusoidal-wide")
"""Every model of the experiment: those ranked, and one with as many parameters as the dense one."""
BUDGETS = (1, 4, 16)
"""Multiples of the shortest training."""
LEVEL = 0.03
"""Bits per byte by which neither of two models is ahead."""


def places(
    table: pd.DataFrame, methods: list[str], only: Sequence[tuple[str, str]] | None = None
) -> pd.DataFrame:
    """Who is ahead of whom, for every two methods at every budget of the table, or for `only` some pairs.

    Differences are paired by seed. Their t intervals hold together over all pairs of methods and all budgets
    with a probability of 95 % (Bonferroni).

    Args:
        table: one row a run with columns method, budget, seed, status and bits_per_byte.

    Returns:
        Columns a, b, budget, difference (mean of a minus b, lower is better), half (of the interval; NaN
        with one seed) and place: that of a, "level" where the interval lies within `LEVEL`, "ahead" or
        "behind" where it leaves out 0, else "open".
    """
    table = table[["method", "budget", "seed", "status", "bits_per_byte"]].astype({"bits_per_byte": float})
    pairs = list(combinations(methods, 2))
    budgets = sorted(set(table["budget"]))
    confidence = 1 - 0.05 / (len(pairs) * len(budgets))
    rows = []
    for budget in budgets:
        runs = table[table["budget"] == budget]
        for a, b in pairs if only is None else only:
            mean, half, _ = summarise(RunTable(runs).difference(a, b, "bits_per_byte"), confidence)
            if max(mean + half, half - mean) < LEVEL:
                place = "level"
            elif abs(mean) > half:
                place = "ahead" if mean < 0 else "behind"
            else:
                place = "open"
            rows.append((a, b, budget, mean, half, place))
    return pd.DataFrame(rows, columns=["a", "b", "budget", "difference", "half", "place"])


def exchanges(standing: pd.DataFrame) -> list[tuple[str, str]]:
    """The pairs of `places` of which each is ahead at some budget: where the ranking is budget-dependent."""
    seen = standing.groupby(["a", "b"], sort=False)["place"].agg(set)
    return [pair for pair, own in seen.items() if {"ahead", "behind"} <= own]


def overridden(verdict: Verdict, pairs: Sequence[tuple[str, str]], table: pd.DataFrame | None) -> Verdict:
    """A verdict after one training, with what more training says of the order of its pairs, by the table of
    `budget`: where that turns, what was decided holds at some budgets, which is *partly*. Where a run of more
    training is not there, it may be the one that turns the order, and nothing is decided. The intervals hold
    together over all pairs of the experiment."""
    if missing := _absent(pairs, table):
        return replace(verdict if verdict.word == NOT_RUN else missing, budget=Dependence(NOT_RUN))
    runs = table[table["method"].isin(TRAINED)]
    standing = places(runs, list(TRAINED), only=pairs)
    told = []
    for (a, b), rows in standing.groupby(["a", "b"], sort=False):
        by_budget = (f"{row.place} at {row.budget}x" for row in rows.itertuples())
        told.append(f"{a} beside {b}: {', '.join(by_budget)}")
    more = Dependence(DEPENDENT if exchanges(standing) else KEPT, "; ".join(told))
    if more.label == DEPENDENT and verdict.word in {*OF_OURS, *OF_OURS.values()}:
        verdict = replace(verdict, word=PARTLY, why=f"{verdict.why}; {more}")
    return replace(verdict, budget=more)


def _absent(pairs: Sequence[tuple[str, str]], table: pd.DataFrame | None) -> Verdict | None:
    """*Not run* where the table of `budget` lacks a current run of a model of these pairs at any budget."""
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    if table is not None and not table.empty:
        of = table[table["method"].isin(names)]
        names = [f"{name} at {budget}x" for name in names for budget in BUDGETS]
        table = of.assign(method=[f"{m} at {n}x" for m, n in zip(of["method"], of["budget"], strict=True)])
    found = incomplete(table, names)
    return found and replace(found, why=f"with more training {found.why}")
