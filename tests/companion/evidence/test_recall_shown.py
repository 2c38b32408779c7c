"""Tables of who learned a task and who uses far answers: by the rule; what was not run is called so."""

import pandas as pd
import pytest

from sepnb.companion.evidence import recall_shown as shown
from sepnb.records.verdicts import HELD, NOT_JUDGED, NOT_RUN, NOT_TESTABLE, REFUTED

from ...claims.test_recall import runs


def with_guess(*tables):
    """Runs of several methods, with the chance levels of the trained length."""
    guesses = {"chance/uniform/1x": 0.05, "chance/random source/1x": 0.125}
    return pd.concat(tables, ignore_index=True).assign(**guesses)


def missing(method, seeds=6):
    return pd.DataFrame({"method": method, "seed": range(1, seeds + 1), "status": NOT_RUN})


@pytest.mark.parametrize(
    ("table", "word"),
    [
        (runs(), "yes"),
        (runs(inside=[0.99] * 5 + [0.94]), "yes"),
        (runs(inside=[0.99] * 4 + [0.94] * 2), "no"),
        (runs(inside=[1.0] * 5 + [0.1]), "no"),
        (runs(seeds=5), NOT_JUDGED),
        (runs("alibi"), NOT_RUN),
        (missing("rope"), NOT_RUN),
    ],
)
def test_a_task_is_learned_in_the_mean_and_in_five_seeds_of_six(table, word):
    assert shown.is_learned(table, "rope") == word


def test_what_was_learned_stands_beside_the_best_guess_and_the_worst_seed():
    reached = runs(inside=[0.99] * 5 + [0.93], **{"steps_to_0.95": [100, 200, 300, 400, 500, float("nan")]})
    table = shown.learned_table(with_guess(reached, missing("alibi")), ["rope", "alibi"])
    rope, alibi = table.to_dict("records")
    assert rope["learned"] == "yes" and rope["worst seed"] == "0.93" and rope["best guess"] == "0.12"
    assert rope["seeds that got to 95 %"] == "5 of 6" and rope["their median step"] == "300"
    assert {alibi[name] for name in ("learned", "answers found, inside", "worst seed")} == {NOT_RUN}


def test_every_reading_but_the_window_has_its_verdict():
    table = with_guess(
        runs(far=0.2, **{"far/ntk": 0.97, "accuracy/ntk/8x": 0.97}),
        runs("none", inside=0.5),
        missing("alibi"),
    )
    found = shown.uses_table(table, ["rope", "none", "alibi"])
    assert list(zip(found["method"], found["read"], found["learned"], found["uses"], strict=True)) == [
        ("RoPE", "as trained", "yes", REFUTED),
        ("RoPE", "NTK-aware", "yes", HELD),
        ("none", "as trained", "no", NOT_TESTABLE),
        ("ALiBi", "as trained", NOT_RUN, NOT_RUN),
    ]
    beside = [[str(cell)[:4] for cell in found[name]] for name in ("4L to 8L back", "all of 8L", "last L")]
    assert beside == [["0.20", "0.97", "0.95", "not "], ["0.97", "0.97", "0.97", "not "], ["not "] * 4]
