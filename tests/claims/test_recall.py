"""The rule of *uses*: learned inside, found far back and over all, not behind a window; in the mean and in
five of six seeds, and refuted by a test alone."""

import pandas as pd
import pytest

from sepnb.claims import ledger, recall
from sepnb.claims.uses import uses
from sepnb.claims.verdict import Cause
from sepnb.records.verdicts import HELD, NOT_JUDGED, NOT_RUN, NOT_TESTABLE, REFUTED, UNDECIDED


def runs(method="rope", inside=0.99, far=0.95, window=0.1, chance=0.125, seeds=6, **columns):
    """Runs of a method; a value given as a list is one a seed."""
    columns = {
        "accuracy/native/1x": inside,
        "accuracy/native/8x": columns.pop("all", 0.97),
        "far/native": far,
        "far/window": window,
        "chance/uniform/8x": chance / 2,
        "chance/random source/8x": chance,
        **columns,
    }
    return pd.DataFrame({"method": method, "seed": range(1, seeds + 1), "status": "ok", **columns})


@pytest.mark.parametrize(
    ("table", "word"),
    [
        (runs(), HELD),
        (runs(far=[0.91] * 5 + [0.86]), HELD),
        (runs(far=[0.99] * 4 + [0.89] * 2), UNDECIDED),
        (runs(far=[0.91] * 5 + [0.3]), UNDECIDED),  # one seed alone is no test
        (runs(far=0.5), REFUTED),
        (runs(all=0.7), REFUTED),  # far answers alone are not enough
        (runs(all=[0.97] * 4 + [0.89] * 2), UNDECIDED),
        (runs(far=0.9, all=0.9), HELD),  # on the bound
        (runs(all=float("nan")), NOT_TESTABLE),
        (runs(seeds=12), HELD),
        (runs(seeds=12, far=[0.99] * 9 + [0.89] * 3), UNDECIDED),
        (runs(inside=[0.99] * 4 + [0.9] * 2), NOT_TESTABLE),
        (runs(inside=[1.0] * 5 + [0.1]), NOT_TESTABLE),
        (runs(window=0.16), NOT_TESTABLE),
        (runs(window=0.15), HELD),
        (runs(far=[0.95] * 5 + [float("nan")]), NOT_TESTABLE),
        (runs(seeds=5), NOT_JUDGED),
        (runs("alibi"), NOT_RUN),
        (runs().assign(status=["ok"] * 5 + ["not run"]), NOT_RUN),
        (None, NOT_RUN),
    ],
)
def test_uses_is_the_word_of_the_rule(table, word):
    assert uses(table, "rope").word == word


def test_a_task_that_was_not_learned_is_the_cause():
    assert uses(runs(inside=0.5), "rope").cause is Cause.NOT_LEARNED
    assert uses(runs(far=float("nan")), "rope").cause is None and uses(runs(), "rope").cause is None


def test_what_is_refuted_is_below_by_a_test_corrected_over_both_shares():
    """A p of 0.03 of one share would pass alone."""
    from scipy.stats import ttest_1samp

    seeds = [0.97, 0.94, 0.76, 0.86, 0.71, 0.83]
    for lower, within, word in (
        (0.0, (0.1, 0.2), UNDECIDED),
        (0.035, (0.025, 0.05), UNDECIDED),
        (0.07, (0, 0.025), REFUTED),
    ):
        every = [one - lower for one in seeds]
        p = ttest_1samp(every, 0.9, alternative="less").pvalue
        assert within[0] < p < within[1]
        verdict = uses(runs(all=every), "rope")
        assert verdict.word == word and f" and {p:.3f}, exact p" in verdict.why


def test_another_way_of_reading_is_judged_by_what_it_finds_and_the_window_of_the_method():
    table = runs(far=0.2, **{"far/ntk": 0.97, "accuracy/ntk/8x": 0.97})
    assert uses(table, "rope", "ntk").word == HELD and uses(table, "rope").word == REFUTED
    assert uses(table, "rope", "yarn").word == NOT_TESTABLE


def test_a_claim_of_uses_holds_only_with_all_its_methods_and_partly_where_it_counts_parts():
    claim = ledger.get("needle-ntk-generalises")
    names = ("ntk", "ntk-by-parts", "yarn")
    far = {f"far/{name}": 0.95 for name in names} | {f"accuracy/{name}/8x": 0.95 for name in names}
    unsure = {"far/ntk": [0.99] * 4 + [0.89] * 2}
    for changes, word in (
        ({}, "reproduced"),
        ({"far/ntk": 0.2}, "partly"),
        (unsure, UNDECIDED),
        (unsure | {"far/yarn": 0.2}, "partly"),  # one holds, one fails
        (dict.fromkeys(far, 0.2), "not reproduced"),
        ({"inside": 0.3}, NOT_TESTABLE),
    ):
        assert claim.judge({"experiment/needle": runs(**far | changes)}).word == word
    found = claim.judge({"experiment/needle": runs(**far, seeds=12)})
    assert set(found.numbers) == {f"rope:far/{name}" for name in names} and found.why == "12 seeds"
    unread = claim.judge({"experiment/needle": runs(**far | {"far/ntk": float("nan")})})
    assert unread.word == "reproduced" and str(unread.dropped[0]).startswith("rope:far/ntk dropped: a run of")
    assert claim.judge({"experiment/needle": None}).word == NOT_RUN


def test_a_run_that_never_learned_counts_with_all_its_steps():
    derived = recall.steps(runs(**{"steps": 1024, "steps_to_0.95": [512.0] * 5 + [float("nan")]}))
    assert derived["log2_steps"].tolist() == [9.0] * 5 + [10.0]
