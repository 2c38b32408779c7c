"""The words of a verdict, the bounds of the four questions asked of long texts, and the test that decides
between words.

Every question is: does the mean of some differences lie inside `(low, high)`? Its answer is

- *holds* if a t-test of the differences clears every finite bound, *fails* if it is beyond one, otherwise
  *open*;
- tested two-sidedly, because both answers are possible, at 5 % after Holm's correction over a family.

The caller chooses the unit of a difference: one seed in claims, one window of text in a probe. The t-test
decides; for few differences the exact test `sign_flip` is reported beside it.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from scipy.special import stdtr

from .numbers import NOT_RUN

REPRODUCED = "reproduced"
PARTLY = "partly"
NOT_REPRODUCED = "not reproduced"
HELD, REFUTED = "held", "refuted"
UNDECIDED = "undecided"
NOT_JUDGED = "not judged"
NOT_TESTABLE = "not testable here"

OF_OURS = {REPRODUCED: HELD, NOT_REPRODUCED: REFUTED}
"""What a word is called where the statement is a hypothesis of ours, and of no source."""

WORDS = (REPRODUCED, PARTLY, NOT_REPRODUCED, HELD, REFUTED, UNDECIDED, NOT_JUDGED, NOT_TESTABLE, NOT_RUN)

HOLDS, FAILS, OPEN = "holds", "fails", "open"

OF_THE_SEEDS = Fraction(5, 6)
"""The share of the seeds that must agree with their mean: five of six, ten of twelve."""

SURVIVES = 0.03
"""Bits per byte, or per token, by which a model that survives may be above its own sliding window."""

USES = 0.02
"""Bits that far context must give to count as used: a smaller gain is none."""

WORSE, DEARER = 0.02, 0.03
"""Bits by which a model may be above its reference: quality, in long texts, and price, inside the trained
length."""


def answers_to(differences: Sequence[np.ndarray], bounds: Sequence[tuple[float, float]]) -> list[str]:
    """The answer to each question, from its differences `[n]` and its bounds: `holds`, `fails` or `open`."""
    p_values = [p_value(own, *ends) for own, ends in zip(differences, bounds, strict=True)]
    return [
        (HOLDS if low < own.mean() < high else FAILS) if sure else OPEN
        for own, (low, high), sure in zip(differences, bounds, holm(p_values, 0.05), strict=True)
    ]


def word_of(answers: Sequence[str], parts: bool = False) -> str:
    """The word of a family of answers, all of which must hold: one failure refutes it, even if others are
    open. With `parts`, some that hold and some that fail make *partly*."""
    if FAILS not in answers:
        return UNDECIDED if OPEN in answers else REPRODUCED
    if not parts:
        return NOT_REPRODUCED
    return PARTLY if HOLDS in answers else UNDECIDED if OPEN in answers else NOT_REPRODUCED


def holm(p_values: Sequence[float], significance: float) -> np.ndarray:
    """Which tests of a family are significant after the step-down correction of Holm (1979), [m] bool: the
    smallest p of m is held against significance / m, the next against significance / (m - 1), and so on until
    the first that is larger. `significance` bounds the probability of one false answer or more."""
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p)
    passed = p[order] <= significance / np.arange(len(p), 0, -1)
    significant = np.empty(len(p), dtype=bool)
    significant[order] = np.logical_and.accumulate(passed)
    return significant


def paired_t(differences: np.ndarray, bound: float) -> float:
    """Two-sided p of Student's t-test that the mean is `bound` (scipy.stats has the same, and takes half a
    second to import)."""
    if np.ptp(differences) == 0:  # no spread: the t statistic is 0/0 or infinite
        return float(differences[0] == bound)
    error = differences.std(ddof=1) / math.sqrt(len(differences))
    return 2 * float(stdtr(len(differences) - 1, -abs(differences.mean() - bound) / error))


def p_value(
    differences: np.ndarray,
    low: float,
    high: float,
    test: Callable[[np.ndarray, float], float] = paired_t,
) -> float:
    """Two-sided p that the mean lies where it is observed: inside, every finite bound must be cleared, so the
    largest p counts; outside, only the crossed bound counts. `test` is `paired_t` or `sign_flip`. Below two
    differences p is 1."""
    if len(differences) < 2:
        return 1.0
    mean = differences.mean()
    finite = [bound for bound in (low, high) if math.isfinite(bound)]
    if mean <= low:
        finite = [low]
    elif mean >= high:
        finite = [high]
    return max(test(differences, bound) for bound in finite)


def p_below(values: np.ndarray, bound: float) -> float:
    """One-sided p of the same test: small where the mean is below `bound`."""
    half = paired_t(values, bound) / 2
    return half if values.mean() < bound else 1 - half


def sign_flip(differences: np.ndarray, bound: float, *, below: bool = False) -> float:
    """Exact p that the differences lie symmetrically about `bound`: of all 2^n ways to flip the signs of
    their distances from it, the share whose sum is as far from 0 as the one seen; `below`, one-sided: as low.
    It assumes no normal distribution; with six differences the two-sided p is 2/64 at the least.

    Raises:
        ValueError: more than 20 differences, of which there would be more than a million ways.
    """
    away = np.asarray(differences, dtype=float) - bound
    if len(away) > 20:
        raise ValueError(f"{len(away)} differences have 2^{len(away)} flips; give 20 at most")
    sums = np.zeros(1)
    for one in away:
        sums = np.concatenate([sums + one, sums - one])
    seen, rounding = away.sum(), 1e-12 * np.abs(away).sum()
    extreme = sums <= seen + rounding if below else np.abs(sums) >= abs(seen) - rounding
    return float(extreme.mean())


def in_mean_and_seeds(margins: np.ndarray) -> bool:
    """Whether margins are at least 0 in their mean and in `OF_THE_SEEDS` of them."""
    margins = np.round(np.asarray(margins, dtype=float), 12)  # 0.9 minus 0.9, however it was summed
    return bool(round(margins.mean(), 12) >= 0 and (margins >= 0).sum() >= OF_THE_SEEDS * len(margins))
