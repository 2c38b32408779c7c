"""Rules on what chapter 15 counts: what changes in this code from one axis to two and to three.

No statistics: a form is there or not, an encoding is the same or another, settings differ or not, and lines
of code run or do not. Both rules were written, and written anew, when the counts were known: they are facts
of the code that the rules read, and no measurement. The first rules compared SeqPE with a RoPE that is one
class for one axis and another for several. The axial class alone is RoPE on one axis too, and of it the same
counts say the opposite; so both forms are counted now, and no rule compares numbers of lines.
"""

from sepnb.claims.exact import _all, _answer, _numbers
from sepnb.claims.verdict import NOT_TESTABLE, Claim, Tables, Verdict

CHAPTER = "chapter/15_two_dimensions"

COUNTED = ("same", "lines", "model", "training")
GIVEN = 2
"""Settings of the model that differ between two numbers of axes by themselves: that number, as the model and
as the encoding is told it."""


def _kept(numbers: dict[str, float], family: str) -> list[bool]:
    """On two and on three axes: the same encoding; no more lines; no setting but the number of axes."""
    steps = [{key: numbers[f"{family}_{key}_{axes}"] for key in COUNTED} for axes in (2, 3)]
    return [
        all(step["same"] == 1 for step in steps),
        all(step["lines"] == 0 for step in steps),
        all(step["model"] <= GIVEN and step["training"] == 0 for step in steps),
    ]


def _keys(*families: str) -> list[str]:
    return [f"{family}_{key}_{axes}" for family in families for axes in (2, 3) for key in COUNTED]


def rule_no_manual_redesign(tables: Tables) -> Verdict:
    """On two and on three axes (a) SeqPE is the same encoding; (b) no line of its own code runs that did not
    run on fewer axes; (c) no setting of model or training has another value but the number of axes. Some of
    the three give *partly*. Not testable unless every coordinate moves the logits of a model with SeqPE by
    more than 1e-3, on two axes and on three. The rule followed the counts. It compares SeqPE with nothing: an
    earlier one asked for fewer new lines than RoPE has, and the answer hung on which of two forms that are
    equal on one axis is called RoPE."""
    hears = ("seqpe_hears_2", "seqpe_hears_3")
    numbers = _numbers(tables, CHAPTER, *_keys("seqpe"), *hears)
    if isinstance(numbers, Verdict):
        return numbers
    if min(numbers[key] for key in hears) <= 1e-3:
        return _answer(NOT_TESTABLE, numbers)
    return _all(numbers, _kept(numbers, "seqpe"))


def rule_expert_designs_must_be_modified(tables: Tables) -> Verdict:
    """Modified is what becomes another encoding, runs more lines of its own code, or has more settings with
    other values than the number of axes, on two axes or on three. (a) ALiBi, as it is defined, has no form on
    two axes and none on three; (b) RoPE, as the class of one axis that hands over to the axial one, is
    modified; (c) RoPE, as the axial class alone, is modified too. Some of the three give *partly*. Not
    testable unless both forms of RoPE give the same logits on one axis, to 1e-9. The rule followed the
    counts; an earlier one counted the first form alone."""
    alibi = ("alibi_has_2", "alibi_has_3")
    numbers = _numbers(tables, CHAPTER, *alibi, *_keys("rope", "axial_rope"), "ropes_apart")
    if isinstance(numbers, Verdict):
        return numbers
    if numbers["ropes_apart"] > 1e-9:
        return _answer(NOT_TESTABLE, numbers)
    modified = [not all(_kept(numbers, family)) for family in ("rope", "axial_rope")]
    return _all(numbers, [numbers["alibi_has_2"] == numbers["alibi_has_3"] == 0, *modified])


_EXACT = {
    "source": "seqpe-abstract",
    "needs": (CHAPTER,),
    "stands_on": (_numbers, _answer, _all, _kept, _keys),
}

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
