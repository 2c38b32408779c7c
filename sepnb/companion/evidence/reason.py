"""Why a verdict is what it is, for a table that people read: what was measured, and no name of a column.

The page of claims has every comparison by its names; here a reader learns how many there are and how large.
"""

import re
from collections.abc import Iterable

from sepnb.claims.asks import Ask
from sepnb.claims.claim import Claim
from sepnb.claims.evidence import exactly
from sepnb.claims.verdict import Verdict
from sepnb.plots.looks import METHODS
from sepnb.records.verdicts import NOT_JUDGED, NOT_RUN


def because(claim: Claim, verdict: Verdict) -> str:
    """The reason in short, in the words of the page."""
    if claim.how is exactly and verdict.numbers and verdict.word not in (NOT_JUDGED, NOT_RUN):
        return _measured(claim, verdict.numbers)
    return titled(verdict.in_short)


def titled(text: str) -> str:
    """The text with the titles of methods in the place of their names, and of `method:column`."""
    return _NAMES.sub(lambda found: METHODS[found[1]].label, text)


_NAMES = re.compile(
    rf"(?<![\w:-])({'|'.join(sorted(METHODS, key=len, reverse=True))})(?::[\w/+-]+)?(?![\w-])"
)


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
