"""Verdicts on what changes with the number of axes, from invented numbers: every word, from both rules."""

import pytest

from sepnb import claims
from sepnb.claims import dimensions as rules

REDESIGN, EXPERTS = (claim.id for claim in rules.CLAIMS)
WORLD = {
    "seqpe_same_2": 1, "seqpe_same_3": 1, "seqpe_lines_2": 3, "seqpe_lines_3": 0,
    "seqpe_hears_2": 0.1, "seqpe_hears_3": 0.1,
    "rope_same_2": 0, "rope_same_3": 0, "rope_lines_2": 20, "rope_lines_3": 4,
    "alibi_has_2": 0, "alibi_has_3": 0,
}  # fmt: skip


def word(claim_id: str, **changes) -> str:
    return claims.get(claim_id).rule({rules.CHAPTER: WORLD | changes}).word


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "reproduced"),
        ({"seqpe_lines_2": 20}, "partly"),
        ({"seqpe_lines_3": 1}, "partly"),
        ({"seqpe_same_3": 0}, "partly"),
        ({"seqpe_same_2": 0, "seqpe_lines_2": 30, "seqpe_lines_3": 1}, "not reproduced"),
        ({"seqpe_hears_3": 0.0}, "not testable here"),
    ],
)
def test_seqpe_has_to_stay_the_same_and_to_hear(changes, expected):
    assert word(REDESIGN, **changes) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "reproduced"),
        ({"rope_same_3": 1, "rope_lines_3": 0}, "partly"),
        ({"alibi_has_2": 1}, "partly"),
        ({"rope_same_2": 1, "rope_same_3": 1, "alibi_has_3": 1}, "not reproduced"),
    ],
)
def test_rope_and_alibi_have_to_change(changes, expected):
    assert word(EXPERTS, **changes) == expected


@pytest.mark.parametrize("claim_id", [REDESIGN, EXPERTS])
def test_a_chapter_that_has_not_run_is_told(claim_id):
    rule = claims.get(claim_id).rule
    assert rule({rules.CHAPTER: None}).word == "not run"
    verdict = rule({rules.CHAPTER: {"seqpe_same_2": 1}})
    assert verdict.word == "not run" and "does not publish" in verdict.detail
