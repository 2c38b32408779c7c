"""What chapter 15 counts: what changes in an encoding when positions get one more coordinate.

The two rules on counts were written, and written anew, when the counts were known: they are facts of the
code, and no measurement. The first rules compared SeqPE with a RoPE that is one class for one axis and
another for several. The axial class alone is RoPE on one axis too, and of it the same counts say the
opposite; so both forms are counted now, and no rule compares numbers of lines.
"""

from collections.abc import Sequence
from functools import partial

from sepnb.claims.claim import Claim
from sepnb.claims.measured import published, share
from sepnb.claims.verdict import Tables, Verdict
from sepnb.records.verdicts import NOT_TESTABLE

COUNTS = "chapter/15_two_dimensions"

COUNTED = ("same", "lines", "model", "training")
GIVEN = 2
"""Settings of the model that differ between two numbers of axes by themselves: that number, as the model and
as the encoding is told it."""


def kept(numbers: dict[str, float], family: str) -> list[bool]:
    """On two and on three axes: the same encoding; no more lines; no setting but the number of axes."""
    steps = [{key: numbers[f"{family}_{key}_{axes}"] for key in COUNTED} for axes in (2, 3)]
    return [
        all(step["same"] == 1 for step in steps),
        all(step["lines"] == 0 for step in steps),
        all(step["model"] <= GIVEN and step["training"] == 0 for step in steps),
    ]


def counted(tables: Tables, families: Sequence[str], *others: str) -> dict[str, float] | Verdict:
    """The counts of these families and other numbers of the chapter, or that they are not there."""
    keys = [f"{family}_{key}_{axes}" for family in families for axes in (2, 3) for key in COUNTED]
    return published(tables.get(COUNTS), [*keys, *others])


def _told(word: str, numbers: dict[str, float]) -> Verdict:
    shown = "; ".join(f"{name.replace('_', ' ')} {value:.2g}" for name, value in numbers.items())
    return Verdict(word, shown, numbers=numbers)


def no_redesign(claim: Claim, tables: Tables) -> Verdict:
    """What is kept of SeqPE, if every coordinate moves the logits."""
    hears = ("seqpe_hears_2", "seqpe_hears_3")
    numbers = counted(tables, ["seqpe"], *hears)
    if isinstance(numbers, Verdict):
        return numbers
    blind = min(numbers[key] for key in hears) <= 1e-3
    return _told(NOT_TESTABLE if blind else share(kept(numbers, "seqpe")), numbers)


def modified(claim: Claim, tables: Tables) -> Verdict:
    """ALiBi has no form on more axes, and RoPE is modified in both forms, if they are equal on one axis."""
    ropes = ("rope", "axial_rope")
    numbers = counted(tables, ropes, "alibi_has_2", "alibi_has_3", "ropes_apart")
    if isinstance(numbers, Verdict):
        return numbers
    parts = [numbers["alibi_has_2"] == numbers["alibi_has_3"] == 0]
    parts += [not all(kept(numbers, family)) for family in ropes]
    return _told(NOT_TESTABLE if numbers["ropes_apart"] > 1e-9 else share(parts), numbers)


_counts = partial(Claim, experiments=(COUNTS,), source="seqpe-abstract", parts=True)

CLAIMS = {
    "no-manual-redesign": _counts(
        "SeqPE needs no redesign for more axes",
        rule="On two and on three axes (a) SeqPE is the same encoding; (b) no line of its own code runs "
        "that did not run on fewer axes; (c) no setting of model or training has another value but the "
        "number of axes. Some of the three give *partly*. Not testable unless every coordinate moves the "
        "logits of a model with SeqPE by more than 1e-3, on two axes and on three. The rule followed the "
        "counts. It compares SeqPE with nothing: an earlier one asked for fewer new lines than RoPE has, "
        "and the answer hung on which of two forms that are equal on one axis is called RoPE.",
        how=no_redesign,
    ),
    "expert-designs-must-be-modified": _counts(
        "RoPE and ALiBi must be modified for more axes",
        rule="Modified is what becomes another encoding, runs more lines of its own code, or has more "
        "settings with other values than the number of axes, on two axes or on three. (a) ALiBi, as it is "
        "defined, has no form on two axes and none on three; (b) RoPE, as the class of one axis that hands "
        "over to the axial one, is modified; (c) RoPE, as the axial class alone, is modified too. Some of "
        "the three give *partly*. Not testable unless both forms of RoPE give the same logits on one axis, "
        "to 1e-9. The rule followed the counts; an earlier one counted the first form alone.",
        how=modified,
    ),
}
