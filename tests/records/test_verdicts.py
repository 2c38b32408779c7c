"""The test behind every verdict: the correction over a family, and the test of one mean."""

from itertools import combinations

import numpy as np
import pytest

from sepnb.records.verdicts import holm, in_mean_and_seeds, p_below, p_value, paired_t, sign_flip


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
        less = ttest_1samp(differences, bound, alternative="less").pvalue
        assert p_below(differences, bound) == pytest.approx(less, rel=1e-9)
    assert paired_t(np.full(size, 0.5), 0.5) == 1.0 and paired_t(np.full(size, 0.5), 0.4) == 0.0
    assert [p_below(np.full(size, one), 0.5) for one in (0.4, 0.5, 0.6)] == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("size", [2, 6, 12])
def test_the_exact_test_is_that_of_scipy_also_where_sums_are_tied(size):
    from scipy.stats import permutation_test

    rng = np.random.default_rng(size)
    for differences in (rng.standard_normal(size), rng.integers(-2, 3, size) / 10, 0.7 + rng.random(size)):
        for bound in (0.0, 0.1):
            exact = permutation_test(
                [differences - bound], np.sum, permutation_type="samples", n_resamples=np.inf
            )
            less = permutation_test(
                [differences - bound],
                np.sum,
                permutation_type="samples",
                n_resamples=np.inf,
                alternative="less",
            )
            assert sign_flip(differences, bound) == pytest.approx(min(exact.pvalue, 1.0))
            assert sign_flip(differences, bound, below=True) == pytest.approx(less.pvalue)


def test_the_exact_test_of_six_of_one_sign_is_two_of_sixty_four_whatever_their_size():
    for scale in (1e-9, 1.0, 1e9):
        differences = scale * np.array([1.0, 2.0, 3.0, 4.0, 5.0, 60.0])
        assert sign_flip(differences, 0.0) == sign_flip(-differences, 0.0) == 2 / 64
        assert sign_flip(differences, 2 * differences.max(), below=True) == 1 / 64
    with pytest.raises(ValueError, match="21 differences"):
        sign_flip(np.ones(21), 0.0)


def test_of_two_bounds_the_exact_test_takes_the_one_that_is_harder_to_clear():
    inside = np.array([0.01, -0.01, 0.02, 0.0, 0.015, -0.02])
    assert p_value(inside, -0.03, 0.03, sign_flip) == 2 / 64
    assert p_value(inside, -0.03, 0.019, sign_flip) == sign_flip(inside, 0.019) > 2 / 64
    assert p_value(inside + 1, -0.03, 0.03, sign_flip) == sign_flip(inside + 1, 0.03) == 2 / 64


@pytest.mark.parametrize(
    ("values", "clears"),
    [
        ([0.9] * 6, True),  # on the bound
        ([0.9] * 4 + [1.0, 0.8], True),  # five of six, and the mean on the bound
        ([1.0] * 5 + [0.3], False),  # the mean
        ([1.0] * 4 + [0.89] * 2, False),  # four of six
        ([1.0] * 10 + [0.89] * 2, True),  # ten of twelve
        ([1.0] * 9 + [0.89] * 3, False),
        ([1.0] * 6 + [0.89], True),  # six of seven, more than five sixths
        ([1.0] * 5 + [0.89] * 2, False),  # five of seven, fewer
        ([1.0] * 5 + [float("nan")], False),
    ],
)
def test_a_bound_is_reached_in_the_mean_and_in_five_sixths_of_the_seeds(values, clears):
    assert in_mean_and_seeds(np.array(values) - 0.9) is clears
