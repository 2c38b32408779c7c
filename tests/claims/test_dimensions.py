"""Verdicts on what changes with the number of axes, from invented numbers: every word, from both rules."""

import pytest

from sepnb import claims
from sepnb.claims import dimensions as rules

REDESIGN, EXPERTS = (claim.id for claim in rules.CLAIMS)
KEPT = {"same": 1, "lines": 0, "model": 2, "training": 0}
WORLD = {
    f"{family}_{key}_{axes}": value
    for family in ("seqpe", "rope", "axial_rope")
    for axes in (2, 3)
    for key, value in KEPT.items()
} | {"seqpe_hears_2": 0.1, "seqpe_hears_3": 0.1, "alibi_has_2": 0, "alibi_has_3": 0, "ropes_apart": 0.0}


def word(claim_id: str, **changes) -> str:
    return claims.get(claim_id).rule({rules.CHAPTER: WORLD | changes}).word


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "reproduced"),
        ({"seqpe_lines_2": 3}, "partly"),
        ({"seqpe_lines_3": 1}, "partly"),
        ({"seqpe_same_3": 0}, "partly"),
        ({"seqpe_model_2": 3}, "partly"),
        ({"seqpe_training_3": 10}, "partly"),
        ({"seqpe_lines_2": 3, "seqpe_training_2": 10}, "partly"),
        ({"seqpe_same_2": 0, "seqpe_lines_3": 1, "seqpe_training_2": 10}, "not reproduced"),
        ({"seqpe_hears_3": 0.0}, "not testable here"),
        ({"rope_lines_2": 20, "axial_rope_lines_2": 0}, "reproduced"),  # compared with nothing
    ],
)
def test_seqpe_has_to_stay_the_same_and_to_hear(changes, expected):
    assert word(REDESIGN, **changes) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "partly"),
        ({"rope_same_2": 0, "axial_rope_lines_3": 1}, "reproduced"),
        ({"rope_same_2": 0, "rope_lines_2": 20}, "partly"),
        ({"rope_same_2": 0, "axial_rope_model_2": 3, "alibi_has_2": 1}, "partly"),
        ({"alibi_has_3": 1}, "not reproduced"),
        ({"ropes_apart": 1e-6}, "not testable here"),
    ],
)
def test_rope_in_both_forms_and_alibi_have_to_change(changes, expected):
    assert word(EXPERTS, **changes) == expected


@pytest.mark.parametrize("claim_id", [REDESIGN, EXPERTS])
def test_a_chapter_that_has_not_run_is_told(claim_id):
    rule = claims.get(claim_id).rule
    assert rule({rules.CHAPTER: None}).word == "not run"
    verdict = rule({rules.CHAPTER: {"seqpe_same_2": 1}})
    assert verdict.word == "not run" and "does not publish" in verdict.detail
