"""Why a verdict is what it is, for a table that people read: what was measured, and no name of a column.

The page of claims has every comparison by its names; here a reader learns how many there are and how large.
"""

import re
from collections.abc import Iterable

from sepnb.claims.asks import Ask
from sepnb.claims.claim import Claim
from sepnb.claims.images import kept
from sepnb.claims.measured import exactly
from sepnb.claims.verdict import Verdict
from sepnb.plots.looks import METHODS
from sepnb.records.verdicts import NOT_JUDGED, NOT_RUN


def because(claim: Claim, verdict: Verdict) -> str:
    """The reason in short, in the words of the page."""
    if verdict.numbers and verdict.word not in (NOT_JUDGED, NOT_RUN):
        if claim.how is exactly:
            return _measured(claim, verdict.numbers)
        if counted := _counted(claim.id, verdict.numbers):
            return counted
    return titled(verdict.in_short)


def titled(text: str) -> str:
    """The text with the titles of methods in the place of their names, and of `method:column`."""
    return _NAMES.sub(lambda found: METHODS[found[1]].label, text)


_NAMES = re.compile(
    rf"(?<![\w:-])({'|'.join(sorted(METHODS, key=len, reverse=True))})(?::[\w/+-]+)?(?![\w-])"
)


def _counted(claim_id: str, numbers: dict[str, float]) -> str:
    """What the counts of one of these claims say; nothing of any other claim."""
    match claim_id:
        case "no-manual-redesign":
            same, lines, settings = kept(numbers, "seqpe")
            return (
                f"SeqPE {'stays the same' if same else 'becomes another'} encoding, runs "
                f"{'no' if lines else 'some'} new lines of its own code and needs "
                f"{'no' if settings else 'some'} settings with other values"
            )
        case "expert-designs-must-be-modified":
            ropes = [all(kept(numbers, family)) for family in ("rope", "axial_rope")]
            alibi = numbers["alibi_has_2"] == numbers["alibi_has_3"] == 0
            return (
                f"ALiBi has {'no' if alibi else 'a'} form on more axes; RoPE as the class of one axis is "
                f"{'kept' if ropes[0] else 'modified'}; RoPE as the axial class is "
                f"{'kept' if ropes[1] else 'modified'}"
            )
    return ""


def _measured(claim: Claim, numbers: dict[str, float]) -> str:
    """What a chapter computed without chance, beside what the rule asks for."""
    asked: dict[str, list[str]] = {}
    for ask in claim.asks:
        asked.setdefault(_bound(ask), []).append(f"{numbers[ask.a]:.2g}")
    parts = [f"measured {_and(values)}, asked for {bound}" for bound, values in asked.items()]
    controls = [f"{numbers[ask.a]:.2g}" for one in claim.unless for ask in one.asks]
    return "; ".join([*parts, *([f"control {_and(controls)}"] if controls else [])])


def _bound(ask: Ask) -> str:
    if ask.low == ask.high:
        return f"exactly {ask.low:g}"
    return f"at least {ask.low:g}" if ask.high == float("inf") else f"at most {ask.high:g}"


def _and(values: Iterable[str]) -> str:
    *first, last = values
    return f"{', '.join(first)} and {last}" if first else last
