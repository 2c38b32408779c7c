"""Why a verdict is what it is, in the words of a page: no column, and no name that only the code knows."""

import pytest

from sepnb.claims import Verdict, get
from sepnb.companion.evidence.reason import because


def test_numbers_without_chance_stand_beside_what_is_asked_for_and_their_control():
    claim = get("strict-is-dense-plus-tables")
    numbers = {"dense_with_tables_error": 2e-15, "dense_without_tables_error": 0.42}
    verdict = Verdict("held", "dense with tables error 2e-15", numbers=numbers)
    assert because(claim, verdict) == "measured 2e-15, asked for at most 1e-06; control 0.42"
    both = get("semantics-do-not-depend-on-position")
    numbers = {"frozen_jacobian_split": 0.0, "live_jacobian_sem_by_pos": 0.33}
    assert because(both, Verdict("partly", "", numbers=numbers)) == "measured 0 and 0.33, asked for exactly 0"


@pytest.mark.parametrize(
    ("word", "why", "seen", "message"),
    [
        ("not run", "no runs of separated-sinusoidal", (), "no runs of separated sinusoidal"),
        (
            "not testable here",
            "the bar is not met",
            ("rope-long:gap/native/8x -0.001",),
            "the bar is not met",
        ),
        ("held", "separated-learned:held, most 0", (), "separated learned, most 0"),
    ],
)
def test_what_only_the_code_knows_is_left_out_or_told_by_its_title(word, why, seen, message):
    assert because(get("seqpe-survives"), Verdict(word, why, seen=seen)) == message
