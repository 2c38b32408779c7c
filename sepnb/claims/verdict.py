"""What a claim asks for, and what our records can say to it: data, and the words of the ledger."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pandas as pd

REPRODUCED = "reproduced"
PARTLY = "partly"
NOT_REPRODUCED = "not reproduced"
HELD, REFUTED = "held", "refuted"
UNDECIDED = "undecided"
NOT_JUDGED = "not judged"
NOT_TESTABLE = "not testable here"
NOT_RUN = "not run"

OF_OURS = {REPRODUCED: HELD, NOT_REPRODUCED: REFUTED}
"""What a word is called where the statement is a hypothesis of ours, and of no source."""

WORDS = (REPRODUCED, PARTLY, NOT_REPRODUCED, HELD, REFUTED, UNDECIDED, NOT_JUDGED, NOT_TESTABLE, NOT_RUN)

HOLDS, FAILS, OPEN = "holds", "fails", "open"

ZERO = "zero"
"""The quantity that is 0 in every run: what a single quantity is held against."""

Tables = Mapping[str, pd.DataFrame | Mapping[str, Any] | None]
"""What a claim is judged by, by the names of `Claim.needs`: an experiment's table, a chapter's numbers, or
None."""


class Ask(NamedTuple):
    """One question: does the mean over seeds of `a` minus `b` lie between `low` and `high`?

    A quantity is named `method`, which is the metric of the judge, or `method:column`; of names joined by
    `+`, methods or columns, it is the mean. `zero` is 0."""

    a: str
    b: str = ZERO
    low: float = -math.inf
    high: float = math.inf

    @property
    def name(self) -> str:
        return self.a if self.b == ZERO else f"{self.a} minus {self.b}"


def pairs(of: Iterable[tuple[str, str]], *columns: str, **bounds: float) -> list[Ask]:
    """Pairs of methods, in each of the columns (none: in the metric of the judge), with the same bounds."""
    return [
        Ask(*(f"{name}:{column}" if column else name for name in pair), **bounds)
        for pair in of
        for column in columns or ("",)
    ]


def levels(methods: Iterable[str], *columns: str, **bounds: float) -> list[Ask]:
    """Each column of each method by itself, held against the same bounds."""
    return [Ask(f"{name}:{column}", **bounds) for name in methods for column in columns]


def changes(methods: Iterable[str], columns: Iterable[tuple[str, str]], **bounds: float) -> list[Ask]:
    """Of each method one column minus another, with the same bounds."""
    return [Ask(f"{name}:{a}", f"{name}:{b}", **bounds) for name in methods for a, b in columns]


FAR = ("2x", "4x", "8x")
"""The bins past the trained length, by the multiple of it at which each ends."""


def gap(readings: str | Sequence[str], places: Sequence[str] = FAR) -> list[str]:
    """The columns that hold the bits per byte of a reading minus those of the sliding window over the same
    bytes."""
    readings = [readings] if isinstance(readings, str) else readings
    return [f"gap/{reading}/{place}" for reading in readings for place in places]


class Floor(NamedTuple):
    """What every method that is compared must clear in the mean over seeds, so that it has learned anything.

    Args:
        bound: of `column`; below it where lower is better, above it where higher is.
        only: the ending of the methods that must clear it.
        but: the beginning of methods that need not.
    """

    bound: float
    column: str = "bits_per_byte"
    only: str = ""
    but: str | None = None

    def holds_for(self, method: str) -> bool:
        """Whether this method must clear the floor."""
        return method.endswith(self.only) and not (self.but is not None and method.startswith(self.but))


@dataclass(frozen=True)
class Unless:
    """A condition without which a claim is not testable: means over seeds inside their bounds, without a
    test.

    Args:
        asks: the condition.
        why: what is the matter where it is not so.
        any: one of the asks is enough.
        ratio: bounds are on mean(a) / mean(b).
        tested: the asks must hold by the test of the claim itself.
    """

    asks: tuple[Ask, ...]
    why: str
    any: bool = False
    ratio: bool = False
    tested: bool = False


class Answer(NamedTuple):
    """What the records say to one ask: `holds`, `fails` or `open`."""

    name: str
    value: float
    answer: str
    told: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.told or f'{self.value:+.3f}'} ({self.answer})"


@dataclass(frozen=True)
class Verdict:
    """One word, what it stands on, and the numbers.

    `stale` is set where records exist but no longer match the code. The word is then *not run*, because
    nothing was run with the present code, and the ledger shows the badge beside it.

    Attributes:
        word: one of `WORDS`.
        why: the reason in short, such as the number of seeds, or what stands in the way.
        answers: to each ask, where there was a test.
        numbers: by name; those of the answers if none are given.

    Raises:
        ValueError: a word that is not one of `WORDS`.
    """

    word: str
    why: str
    answers: tuple[Answer, ...] = ()
    numbers: dict[str, float] = field(default_factory=dict)
    stale: bool = False

    def __post_init__(self):
        if self.word not in WORDS:
            raise ValueError(f"{self.word!r} is not a verdict; use one of {', '.join(WORDS)}")
        if self.answers and not self.numbers:
            object.__setattr__(self, "numbers", {one.name: one.value for one in self.answers})

    def of_ours(self) -> "Verdict":
        """The same of a hypothesis of ours, which is held or refuted and not reproduced."""
        return replace(self, word=OF_OURS.get(self.word, self.word))

    @property
    def detail(self) -> str:
        """The reason with every answer; of a family that failed, how many of them do."""
        found = [one.answer for one in self.answers]
        counted = self.word in (NOT_REPRODUCED, REFUTED) and len(found) > 1
        many = found.count(FAILS)
        failed = [f"{many} of {len(found)} fail{'s' * (many == 1)}"] if counted else []
        return "; ".join([self.why, *failed, *map(str, self.answers)])

    @property
    def in_short(self) -> str:
        """The reason; of a family of comparisons, how many of them hold and between which means."""
        if len(self.answers) < 2:
            return self.detail
        means = [one.value for one in self.answers]
        between = f"means {min(means):+.2f} to {max(means):+.2f}".replace("-", "\N{MINUS SIGN}")
        found = [one.answer for one in self.answers]
        told = [f"{found.count(one)} {one}" for one in (HOLDS, FAILS, OPEN) if one in found]
        return "; ".join([self.why, f"{len(found)} comparisons", *told, between])
