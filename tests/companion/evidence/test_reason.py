"""Why a verdict is what it is, in the words of a page: no column, and no name that only the code knows."""

import re

import pytest

from sepnb.claims import Verdict, get
from sepnb.claims.images import COUNTED
from sepnb.companion.evidence.reason import because, titled


def test_numbers_without_chance_stand_beside_what_is_asked_for_and_their_control():
    claim = get("strict-is-dense-plus-tables")
    numbers = {"dense_with_tables_error": 2e-15, "dense_without_tables_error": 0.42}
    verdict = Verdict("held", "dense with tables error 2e-15", numbers=numbers)
    assert because(claim, verdict) == "measured 2e-15, asked for at most 1e-06; control 0.42"
    both = get("semantics-do-not-depend-on-position")
    numbers = {"frozen_jacobian_split": 0.0, "live_jacobian_sem_by_pos": 0.33}
    assert because(both, Verdict("partly", "", numbers=numbers)) == "measured 0 and 0.33, asked for exactly 0"


@pytest.mark.parametrize(
    ("word", "why", "seen", "told"),
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
def test_what_only_the_code_knows_is_left_out_or_told_by_its_title(word, why, seen, told):
    assert because(get("seqpe-survives"), Verdict(word, why, seen=seen)) == told


def test_a_name_is_replaced_where_it_stands_alone():
    assert titled("rope beside separated-sinusoidal") == "RoPE beside separated sinusoidal"
    assert titled("rope-that-nobody-knows, europe") == "rope-that-nobody-knows, europe"


def test_counts_of_what_is_kept_become_a_sentence():
    same = {"same": 1, "lines": 0, "model": 2, "training": 0}
    counts = {
        f"{of}_{key}_{axes}": same[key]
        for of in ("seqpe", "rope", "axial_rope")
        for key in COUNTED
        for axes in (2, 3)
    }

    def told(claim_id, **changes):
        return because(get(claim_id), Verdict("partly", "", numbers=counts | changes))

    kept = told("no-manual-redesign")
    assert re.findall(r"\bno\b", kept) == ["no", "no"] and "stays the same" in kept
    assert "some new lines" in told("no-manual-redesign", seqpe_lines_3=4)
    assert told("expert-designs-must-be-modified", rope_same_2=0, alibi_has_2=0, alibi_has_3=0) == (
        "ALiBi has no form on more axes; RoPE as the class of one axis is modified; "
        "RoPE as the axial class is kept"
    )
