"""From a table of runs to a verdict: paired over seeds, corrected over the family, bounds set beforehand.

Every comparison asks: does the mean over seeds of `score(a) - score(b)` lie inside `(low, high)`?
"Better" is `high=0`, "not worse" is `high=margin`, "level" is `low=-margin, high=margin`. The answer is

- *holds* if a paired t-test clears every finite bound, *fails* if it is beyond one, otherwise *open*;
- tested two-sidedly, because both answers are possible, at 5 % after Holm's correction over the comparisons
  of the claim.

Scores are bits per byte: lower is better.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtr

from sepnb.claims.verdict import NOT_REPRODUCED, NOT_RUN, NOT_TESTABLE, PARTLY, REPRODUCED, UNDECIDED, Verdict


class Comparison(NamedTuple):
    """One pair of methods and the bounds within which the claim wants the mean of `score(a) - score(b)`."""

    a: str
    b: str
    low: float = -math.inf
    high: float = math.inf


def judge(
    table: pd.DataFrame | None,
    comparisons: list[Comparison],
    *,
    bar: float,
    least_seeds: int = 6,
    significance: float = 0.05,
) -> Verdict:
    """The verdict of one claim: a family of comparisons that must all lie inside their bounds.

    In this order: a run missing or stale gives *not run*; a run that diverged, or a method whose mean does
    not clear the bar, *not testable here*; fewer than `least_seeds` seeds or an open comparison, *undecided*;
    else *reproduced* if all hold, *not reproduced* if all fail, *partly* if some do.

    Args:
        table: one row a run with columns method, seed, status and bits_per_byte; None if there is none.
        comparisons: the family over which Holm's correction runs.
        bar: bits per byte that each method's mean over seeds must be below.
        least_seeds: with fewer than six, not even differences of one sign pass a two-sided sign test.
        significance: of the whole family.
    """
    methods = list(dict.fromkeys(name for pair in comparisons for name in (pair.a, pair.b)))
    obstacle = _not_complete(table, methods) or _below_the_bar(table, methods, bar)
    if obstacle:
        return obstacle
    scores = _scores(table, methods)
    differences = {pair: scores[pair.a] - scores[pair.b] for pair in comparisons}
    numbers = {f"{pair.a} minus {pair.b}": float(values.mean()) for pair, values in differences.items()}
    listed = [f"{name} {mean:+.3f}" for name, mean in numbers.items()]
    seeds = len(scores[methods[0]])
    if seeds < least_seeds:
        few = f"{seeds} seeds, a verdict needs at least {least_seeds}"
        return Verdict(UNDECIDED, "; ".join([few, *listed]), numbers)

    p_values = [_p_value(differences[pair], pair) for pair in comparisons]
    decided = holm(p_values, significance)
    answers = [
        ("holds" if pair.low < differences[pair].mean() < pair.high else "fails") if sure else "open"
        for pair, sure in zip(comparisons, decided, strict=True)
    ]
    answered = [f"{text} ({answer})" for text, answer in zip(listed, answers, strict=True)]
    return Verdict(_word(answers), "; ".join([f"{seeds} seeds", *answered]), numbers)


def holm(p_values: Sequence[float], significance: float) -> np.ndarray:
    """Which tests of a family are significant after the step-down correction of Holm (1979).

    The smallest p of m is held against significance / m, the next against significance / (m - 1), and so on
    until the first that is larger: from there on no test is significant.

    Args:
        p_values: one for each test, in any order.
        significance: the largest probability of one false answer or more in the whole family.

    Returns:
        One truth value for each test, in the order given, [m] bool.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p)
    passed = p[order] <= significance / np.arange(len(p), 0, -1)
    significant = np.empty(len(p), dtype=bool)
    significant[order] = np.logical_and.accumulate(passed)
    return significant


def _word(answers: list[str]) -> str:
    if "open" in answers:
        return UNDECIDED
    if "fails" not in answers:
        return REPRODUCED
    return PARTLY if "holds" in answers else NOT_REPRODUCED


def _p_value(differences: np.ndarray, bounds: Comparison) -> float:
    """Two-sided p of the mean lying on the side of the bounds where it is seen.

    Inside, every finite bound must be cleared, so the largest p counts; outside, the bound passed counts.
    """
    mean = differences.mean()
    finite = [bound for bound in (bounds.low, bounds.high) if math.isfinite(bound)]
    if mean <= bounds.low:
        finite = [bounds.low]
    elif mean >= bounds.high:
        finite = [bounds.high]
    return max(_paired_t(differences, bound) for bound in finite)


def _paired_t(differences: np.ndarray, bound: float) -> float:
    """Two-sided p of Student's t-test that the mean is `bound` (scipy.stats has the same, and takes half a
    second to import)."""
    if np.ptp(differences) == 0:  # no spread: the t statistic is 0/0 or infinite
        return float(differences[0] == bound)
    error = differences.std(ddof=1) / math.sqrt(len(differences))
    return 2 * float(stdtr(len(differences) - 1, -abs(differences.mean() - bound) / error))


def _columns(table: pd.DataFrame, methods: list[str], *columns: str) -> list[tuple]:
    """The runs of these methods as tuples of method and the columns asked for: a table is asked hundreds of
    times, and pandas would copy it each time."""
    wanted = set(methods)
    read = zip(table["method"].tolist(), *(table[column].tolist() for column in columns), strict=True)
    return [run for run in read if run[0] in wanted]


def _scores(table: pd.DataFrame, methods: list[str], column: str = "bits_per_byte") -> dict[str, np.ndarray]:
    """By method, one value a run in the order of the seeds, [seeds] float64; NaN where a run has none.

    Raises:
        ValueError: two runs of one method and seed.
    """
    runs: dict[str, dict] = {method: {} for method in methods}
    for method, seed, value in _columns(table, methods, "seed", column):
        if seed in runs[method]:
            raise ValueError(f"{method} has two runs of seed {seed}, so that they cannot be paired")
        runs[method][seed] = value
    return {
        method: np.array([own[seed] for seed in sorted(own)], dtype=float) for method, own in runs.items()
    }


def _not_complete(table: pd.DataFrame | None, methods: list[str]) -> Verdict | None:
    """A verdict on a grid with holes would depend on who stopped it, so a single missing run is enough."""
    if table is None or table.empty:
        return Verdict(NOT_RUN, "no runs")
    seeds: dict[str, set] = {}
    status = []
    for method, seed, state in _columns(table, methods, "seed", "status"):
        seeds.setdefault(method, set()).add(seed)
        status.append(state)
    absent = [name for name in methods if name not in seeds]
    if absent:
        return Verdict(NOT_RUN, f"no runs of {', '.join(absent)}")
    missing, stale = status.count("not run"), status.count("stale")
    if missing:
        return Verdict(NOT_RUN, f"{missing} of {len(status)} runs are missing", stale=bool(stale))
    if stale:
        return Verdict(NOT_RUN, f"{stale} of {len(status)} runs are stale: the code has changed", stale=True)
    if len(set(map(frozenset, seeds.values()))) > 1:
        return Verdict(NOT_RUN, "the methods were not run with the same seeds, so they cannot be paired")
    return None


def _below_the_bar(table: pd.DataFrame, methods: list[str], bar: float) -> Verdict | None:
    """A method that has not learned decides nothing; NaN and None are runs that diverged."""
    scores: dict[str, list[float]] = {}
    diverged = []
    for method, seed, value in _columns(table, methods, "seed", "bits_per_byte"):
        if value is None or not math.isfinite(value):
            diverged.append(f"{method} (seed {seed})")
        scores.setdefault(method, []).append(value)
    if diverged:
        return Verdict(NOT_TESTABLE, f"diverged: {', '.join(diverged)}")
    means = {name: math.fsum(scores[name]) / len(scores[name]) for name in methods}
    short = {name: mean for name, mean in means.items() if mean >= bar}
    if short:
        listed = ", ".join(f"{name} ({mean:.2f})" for name, mean in short.items())
        return Verdict(NOT_TESTABLE, f"not below the bar of {bar} bits per byte: {listed}", short)
    return None


RULES_OF_EVIDENCE = (
    judge,
    holm,
    _word,
    _p_value,
    _paired_t,
    _columns,
    _scores,
    _not_complete,
    _below_the_bar,
)
"""What a verdict of `judge` stands on beside its own rule: a later change of one of these is a later rule."""
