"""Rules on the experiment `budget` (chapter 10): does a ranking outlive more training?

Written before its records. Two models exchange places where one is ahead at one budget and the other at
another; a ranking in which that happens is *budget-dependent*.

The rule on equal parameters was written when three seeds of the models of equal width had been seen.
"""

import math
from collections.abc import Sequence
from itertools import combinations

import pandas as pd

from sepnb.claims.evidence import RULES_OF_EVIDENCE, Comparison, _below_the_bar, _not_complete, judge
from sepnb.claims.in_window import OURS
from sepnb.claims.verdict import (
    NOT_REPRODUCED,
    REPRODUCED,
    UNDECIDED,
    Claim,
    Tables,
    Verdict,
)
from sepnb.records.summaries import paired, summarise

TABLE = "experiment/budget"


def models() -> tuple[str, ...]:
    """Those ranked. Functions and no constants, so that git sees a change of them as one of the rules."""
    return ("learned", "sinusoidal", "rope", "alibi", "separated-sinusoidal", "strict-sinusoidal")


def budgets() -> tuple[int, ...]:
    """Multiples of the shortest training."""
    return (1, 4, 16)


def by_budget(table: pd.DataFrame | None) -> pd.DataFrame | None:
    """The table with each model at each budget as a method of its own, such as "rope at 4x"."""
    if table is None or table.empty:
        return table
    names = [f"{row.method} at {row.budget}x" for row in table.itertuples()]
    return table.assign(method=names)


def unusable(table: pd.DataFrame | None, methods: Sequence[str]) -> Verdict | None:
    """Runs of the table of `by_budget` are missing or stale or diverged, or a method has not learned after
    the longest training: below the bar of `in_window` by then. To have learned little before is a result."""
    longest = budgets()[-1]
    names = [f"{method} at {budget}x" for budget in budgets() for method in methods]
    last = [f"{method} at {longest}x" for method in methods]
    return (
        _not_complete(table, names)
        or _below_the_bar(table, names, math.inf)
        or _below_the_bar(table, last, 3.35)
    )


def places(
    table: pd.DataFrame, methods: list[str], *, margin: float = 0.03, significance: float = 0.05
) -> pd.DataFrame:
    """Who is ahead of whom, for every two methods at every budget of the table.

    Differences are paired by seed. Their t intervals hold together with probability 1 - significance
    (Bonferroni over all pairs and budgets).

    Args:
        table: one row a run with columns method, budget, seed, status and bits_per_byte.
        methods: those compared.
        margin: differences whose interval lies within plus and minus this many bits per byte are level.
        significance: of all intervals together.

    Returns:
        Columns a, b, budget, difference (mean of a minus b, lower is better), half (of the interval; NaN
        with one seed) and place: that of a, "ahead" or "behind" where the interval leaves out 0, "level" or
        "open".
    """
    pairs = list(combinations(methods, 2))
    budgets = sorted(set(table["budget"]))
    confidence = 1 - significance / (len(pairs) * len(budgets))
    rows = []
    for budget in budgets:
        runs = table[table["budget"] == budget]
        for a, b in pairs:
            mean, half, _ = summarise(paired(runs, a, b, "bits_per_byte"), confidence)
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


def rule_separation_ahead_at_every_budget(tables: Tables) -> Verdict:
    """Separated minus dense, both with the sinusoid, is below -0.03 bits per byte after 1, 4 and 16 times the
    shortest training. The bar of 3.35 holds for the longest training."""
    separated, dense = "separated-sinusoidal", "sinusoidal"
    table = by_budget(tables.get(TABLE))
    if obstacle := unusable(table, [separated, dense]):
        return obstacle
    pairs = [(f"{separated} at {n}x", f"{dense} at {n}x") for n in budgets()]
    return judge(table, [Comparison(a, b, high=-0.03) for a, b in pairs], bar=math.inf)


def rule_separation_ahead_at_equal_parameters_and_every_budget(tables: Tables) -> Verdict:
    """Separated, widened to as many block parameters as dense (within 5 %), minus dense, both with the
    sinusoid, is below -0.03 bits per byte after 1, 4 and 16 times the shortest training. The bar of 3.35
    holds for the longest training."""
    wide, dense = "separated-sinusoidal-wide", "sinusoidal"
    table = by_budget(tables.get(TABLE))
    if obstacle := unusable(table, [wide, dense]):
        return obstacle
    pairs = [(f"{wide} at {n}x", f"{dense} at {n}x") for n in budgets()]
    return judge(table, [Comparison(a, b, high=-0.03) for a, b in pairs], bar=math.inf)


def rule_ranking_stable_under_budget(tables: Tables) -> Verdict:
    """No two of six models exchange places between 1, 4 and 16 times the shortest training. Two models are
    level where the interval of their difference, paired by seed and corrected over all pairs and budgets at
    5 %, lies within 0.03 bits per byte of 0; else one is ahead where it leaves out 0, and else their order is
    open. One exchange makes the claim *not reproduced*; without any it is *reproduced* if no order is open,
    and *undecided* otherwise. The bar of 3.35 holds for the longest training."""
    if obstacle := unusable(by_budget(tables.get(TABLE)), models()):
        return obstacle
    runs = tables[TABLE].astype({"bits_per_byte": float})
    standing = places(runs, list(models()))
    exchanged = [f"{a} and {b}" for a, b in exchanges(standing)]
    pairs, unsettled = (
        len(rows.groupby(["a", "b"])) for rows in (standing, standing[standing.place == "open"])
    )
    numbers = {"pairs": float(pairs), "exchanged": float(len(exchanged)), "open": float(unsettled)}
    seeds = runs["seed"].nunique()
    said = [f"{seeds} seeds", f"of {pairs} pairs {unsettled} are open at some budget"]
    said += [f"exchanged: {', '.join(exchanged)}"] if exchanged else []
    if seeds < 6:
        return Verdict(UNDECIDED, "; ".join([*said, "a verdict needs at least 6 seeds"]), numbers)
    word = NOT_REPRODUCED if exchanged else UNDECIDED if unsettled else REPRODUCED
    return Verdict(word, "; ".join(said), numbers)


CLAIMS = (
    Claim(
        id="separation-ahead-at-every-budget",
        source=OURS,
        statement="What the separated model gains over the dense one that adds the same sinusoid is not only "
        "speed of learning: it is still there after four and sixteen times the training.",
        rule=rule_separation_ahead_at_every_budget,
        needs=(TABLE,),
        stands_on=(by_budget, budgets, unusable, *RULES_OF_EVIDENCE),
    ),
    Claim(
        id="separation-ahead-at-equal-parameters-and-every-budget",
        source=OURS,
        statement="With as many parameters the separated model is ahead of the dense one that adds the same "
        "sinusoid, after little training and after much.",
        rule=rule_separation_ahead_at_equal_parameters_and_every_budget,
        needs=(TABLE,),
        stands_on=(by_budget, budgets, unusable, *RULES_OF_EVIDENCE),
    ),
    Claim(
        id="ranking-stable-under-budget",
        source=OURS,
        statement="The ranking of the key models does not depend on the budget: no two of them exchange "
        "places between one, four and sixteen times the training.",
        rule=rule_ranking_stable_under_budget,
        needs=(TABLE,),
        stands_on=(
            by_budget,
            models,
            budgets,
            unusable,
            places,
            exchanges,
            paired,
            summarise,
            *RULES_OF_EVIDENCE,
        ),
    ),
)
