"""Rules on what chapter 15 counts: what changes in this code from one axis to two and to three.

No statistics: a form is there or not, an encoding is the same or another, and lines of code run or do not.
Written when the counts were known: they are facts of the code that the rules read, and no measurement.
"""

from sepnb.claims.exact import _all, _answer, _numbers
from sepnb.claims.verdict import NOT_TESTABLE, Claim, Tables, Verdict

CHAPTER = "chapter/15_two_dimensions"


def rule_no_manual_redesign(tables: Tables) -> Verdict:
    """(a) On two and on three axes SeqPE is the same encoding with other values of its settings; (b) from one
    axis to two fewer lines of its own code are added than with RoPE; (c) from two to three none are. Some of
    the three give *partly*. Not testable unless every coordinate moves the logits of a model with SeqPE by
    more than 1e-3, on two axes and on three."""
    keys = ("seqpe_same_2", "seqpe_same_3", "seqpe_lines_2", "seqpe_lines_3", "rope_lines_2")
    hears = ("seqpe_hears_2", "seqpe_hears_3")
    numbers = _numbers(tables, CHAPTER, *keys, *hears)
    if isinstance(numbers, Verdict):
        return numbers
    if min(numbers[key] for key in hears) <= 1e-3:
        return _answer(NOT_TESTABLE, numbers)
    same = numbers["seqpe_same_2"] == numbers["seqpe_same_3"] == 1
    fewer = numbers["seqpe_lines_2"] < numbers["rope_lines_2"]
    return _all(numbers, [same, fewer, numbers["seqpe_lines_3"] == 0])


def rule_expert_designs_must_be_modified(tables: Tables) -> Verdict:
    """(a) From one axis to two RoPE becomes another encoding, with code of its own; (b) from two to three
    again; (c) ALiBi, as it is defined, has no form on two axes and none on three. Some of the three give
    *partly*."""
    keys = ("rope_same_2", "rope_lines_2", "rope_same_3", "rope_lines_3", "alibi_has_2", "alibi_has_3")
    numbers = _numbers(tables, CHAPTER, *keys)
    if isinstance(numbers, Verdict):
        return numbers
    another = [numbers[f"rope_same_{axes}"] == 0 and numbers[f"rope_lines_{axes}"] > 0 for axes in (2, 3)]
    return _all(numbers, [*another, numbers["alibi_has_2"] == numbers["alibi_has_3"] == 0])


_EXACT = {"source": "seqpe-abstract", "needs": (CHAPTER,), "stands_on": (_numbers, _answer, _all)}

CLAIMS = (
    Claim(
        id="no-manual-redesign",
        statement="SeqPE generalises to several dimensions without a manual redesign of the architecture.",
        rule=rule_no_manual_redesign,
        **_EXACT,
    ),
    Claim(
        id="expert-designs-must-be-modified",
        statement="Encodings designed by experts, such as RoPE and ALiBi, demand modifications to adapt to "
        "new modalities.",
        rule=rule_expert_designs_must_be_modified,
        **_EXACT,
    ),
)
