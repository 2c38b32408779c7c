"""The test behind every verdict: the correction over a family, and the test of one mean."""

from itertools import combinations

import numpy as np
import pytest

from sepnb.records.verdicts import holm, paired_t


def closed_testing(p_values, significance):
    """What Holm's procedure is a short cut for: a test is significant if every subfamily that holds it is
    rejected by Bonferroni's correction."""
    family = range(len(p_values))
    subfamilies = [set(some) for size in range(1, len(p_values) + 1) for some in combinations(family, size)]
    kept = [some for some in subfamilies if len(some) * min(p_values[one] for one in some) > significance]
    return [not any(one in some for some in kept) for one in family]


def test_holm_is_the_closed_test_of_bonferroni_also_where_p_values_are_tied():
    rng, found = np.random.default_rng(0), set()
    for size in 20 * list(range(1, 8)):
        p = np.round(rng.beta(0.3, 3.0, size), int(rng.integers(2, 9))).tolist()
        significance = float(rng.choice([0.01, 0.05, 0.3]))
        assert holm(p, significance).tolist() == closed_testing(p, significance)
        found |= set(holm(p, significance).tolist())
    assert found == {True, False}


@pytest.mark.parametrize(
    ("p_values", "significant"),
    [
        ([0.05], [True]),  # on the bound
        ([0.03, 0.02, 0.04], [False, False, False]),  # the smallest has the strictest bound, 0.05 / 3
        ([0.03, 0.01, 0.04], [False, True, False]),  # 0.03 > 0.05 / 2 ends it, whatever stands behind
        ([0.025, 0.04, 0.01, 0.01], [True, True, True, True]),
        ([0.01, float("nan")], [True, False]),  # what is no number decides nothing
        ([], []),
    ],
)
def test_holm_steps_down_until_the_first_that_does_not_pass(p_values, significant):
    assert holm(p_values, 0.05).tolist() == significant


@pytest.mark.parametrize("size", [2, 6, 12])
def test_the_t_test_is_that_of_scipy(size):
    from scipy.stats import ttest_1samp

    rng = np.random.default_rng(size)
    for scale in (1e-4, 1.0, 100.0):
        differences, bound = scale * rng.standard_normal(size), 0.3 * scale
        expected = ttest_1samp(differences, bound).pvalue
        assert paired_t(differences, bound) == pytest.approx(expected, rel=1e-12)
    assert paired_t(np.full(size, 0.5), 0.5) == 1.0 and paired_t(np.full(size, 0.5), 0.4) == 0.0
