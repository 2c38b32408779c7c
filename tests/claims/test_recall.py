"""The rule of *uses*: learned inside, found far back, not behind a window; in the mean and in five seeds."""

import pandas as pd
import pytest

from sepnb.claims import ledger, recall
from sepnb.claims.verdict import HELD, NOT_JUDGED, NOT_RUN, NOT_TESTABLE, REFUTED, UNDECIDED


def runs(method="rope", inside=0.99, far=0.95, window=0.1, chance=0.125, seeds=6, **columns):
    """Runs of a method; a value given as a list is one a seed."""
    columns = {
        "accuracy/native/1x": inside,
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
        (runs(far=[0.91] * 5 + [0.3]), REFUTED),
        (runs(far=0.5), REFUTED),
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
    assert recall.uses(table, "rope").word == word


def test_another_way_of_reading_is_judged_by_what_it_finds_and_the_window_of_the_method():
    table = runs(far=0.2, **{"far/ntk": 0.97})
    assert recall.uses(table, "rope", "ntk").word == HELD and recall.uses(table, "rope").word == REFUTED
    assert recall.uses(table, "rope", "yarn").word == NOT_TESTABLE


def test_a_claim_of_uses_holds_only_with_all_its_methods_and_partly_where_it_counts_parts():
    claim = ledger.get("needle-ntk-generalises")
    far = {f"far/{name}": 0.95 for name in ("ntk", "ntk-by-parts", "yarn")}
    task = "experiment/needle"
    assert claim.judge({task: runs(**far)}).word == "reproduced"
    assert claim.judge({task: runs(**far | {"far/ntk": 0.2})}).word == "partly"
    assert claim.judge({task: runs(**far | {"far/ntk": [0.99] * 4 + [0.89] * 2})}).word == UNDECIDED
    assert claim.judge({task: runs(**dict.fromkeys(far, 0.2))}).word == "not reproduced"
    assert claim.judge({task: runs(inside=0.3, **far)}).word == NOT_TESTABLE
    assert claim.judge({task: None}).word == NOT_RUN
    assert set(claim.judge({task: runs(**far)}).numbers) == {f"rope:{name}" for name in far}


def test_a_run_that_never_learned_counts_with_all_its_steps():
    derived = recall.steps(runs(**{"steps": 1024, "steps_to_0.95": [512.0] * 5 + [float("nan")]}))
    assert derived["log2_steps"].tolist() == [9.0] * 5 + [10.0]
