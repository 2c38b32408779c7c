"""Does a ranking outlive more training? What the experiment `budget` says of it, and of verdicts on one
budget.

Two models exchange places where one is ahead at one budget and the other at another; a ranking in which that
happens is *budget-dependent*. A verdict on models trained at one budget holds for that budget: where `budget`
trained the same pair for one, four and sixteen times as long, its records say what becomes of their order.
Its models are smaller than those of most verdicts, and a pair that it did not train has no label.
"""

from collections.abc import Sequence
from itertools import combinations

import pandas as pd

from sepnb.claims.verdict import NOT_RUN, Dependence
from sepnb.records.run_table import RunTable, summarise

TABLE = "experiment/budget"
DEPENDENT, KEPT = "budget-dependent", "no exchange"


def models() -> tuple[str, ...]:
    """Those ranked."""
    return ("learned", "sinusoidal", "rope", "alibi", "separated-sinusoidal", "strict-sinusoidal")


def budgets() -> tuple[int, ...]:
    """Multiples of the shortest training."""
    return (1, 4, 16)


def places(
    table: pd.DataFrame,
    methods: list[str],
    *,
    margin: float = 0.03,
    significance: float = 0.05,
    only: Sequence[tuple[str, str]] | None = None,
) -> pd.DataFrame:
    """Who is ahead of whom, for every two methods at every budget of the table.

    Differences are paired by seed. Their t intervals hold together with probability 1 - significance
    (Bonferroni over all pairs and budgets).

    Args:
        table: one row a run with columns method, budget, seed, status and bits_per_byte.
        methods: those compared.
        margin: differences whose interval lies within plus and minus this many bits per byte are level.
        significance: of all intervals together.
        only: the pairs wanted; None is all. Intervals hold together over all either way.

    Returns:
        Columns a, b, budget, difference (mean of a minus b, lower is better), half (of the interval; NaN
        with one seed) and place: that of a, "ahead" or "behind" where the interval leaves out 0, "level" or
        "open".
    """
    table = table[["method", "budget", "seed", "status", "bits_per_byte"]].astype({"bits_per_byte": float})
    pairs = list(combinations(methods, 2))
    budgets = sorted(set(table["budget"]))
    confidence = 1 - significance / (len(pairs) * len(budgets))
    rows = []
    for budget in budgets:
        runs = table[table["budget"] == budget]
        for a, b in pairs if only is None else only:
            mean, half, _ = summarise(RunTable(runs).difference(a, b, "bits_per_byte"), confidence)
            if max(mean + half, half - mean) < margin:
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


def dependence(pairs: Sequence[tuple[str, str]], table: pd.DataFrame | None) -> Dependence:
    """Whether two models of a pair exchange places between the budgets.

    Intervals hold together over all pairs of the models that `budget` trained, as in `places`.

    Args:
        pairs: of methods that `budget` trained.
        table: of the experiment `budget`.
    """
    trained = [*models(), "separated-sinusoidal-wide"]
    if table is None or table.empty or not _complete(table, trained):
        return Dependence(NOT_RUN)
    standing = places(table, trained, only=pairs)
    told = []
    for a, b in pairs:
        rows = standing[(standing.a == a) & (standing.b == b)]
        told.append(
            f"{a} beside {b}: " + ", ".join(f"{row.place} at {row.budget}x" for row in rows.itertuples())
        )
    return Dependence(DEPENDENT if exchanges(standing) else KEPT, "; ".join(told))


def _complete(table: pd.DataFrame, methods: list[str]) -> bool:
    """Whether every model has current runs at every budget, and no run is missing or stale."""
    rows = table[table["method"].isin(methods)]
    there = set(zip(rows["method"], rows["budget"], strict=True))
    wanted = {(method, budget) for method in methods for budget in budgets()}
    return wanted <= there and bool((rows["status"] == "ok").all())
