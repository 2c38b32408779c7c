"""What our records can say to a claim: the words of the ledger, and what they stand on."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any, NamedTuple

import pandas as pd

from sepnb.records.verdicts import FAILS, HOLDS, NOT_REPRODUCED, OF_OURS, OPEN, REFUTED, UNDECIDED, WORDS

Tables = Mapping[str, pd.DataFrame | Mapping[str, Any] | None]
"""What a claim is judged by, by the names of `Claim.needs`: an experiment's table, a chapter's numbers, or
None."""


class Cause(Enum):
    """Why a verdict decides nothing, where its display depends on it."""

    STALE = auto()
    """The code has changed since the runs: none was made with it."""
    BASE = auto()
    """The method is what others are compared with."""
    NOT_LEARNED = auto()
    """The method did not learn its task inside the trained length."""


class Answer(NamedTuple):
    """What the records say to one ask: `holds`, `fails` or `open`; where there was a test, its p before
    Holm's correction, and that of the exact sign-flip test beside it."""

    name: str
    value: float
    answer: str
    told: str = ""
    p: float | None = None
    exact: float | None = None

    def __str__(self) -> str:
        tests = [
            f"{name} {f'{p:.3f}' if p >= 0.001 else '< 0.001'}"
            for name, p in (("p", self.p), ("exact p", self.exact))
            if p is not None
        ]
        return f"{self.name} {self.told or f'{self.value:+.3f}'} ({', '.join([self.answer, *tests])})"


class Dropped(NamedTuple):
    """A comparison that was not judged, and what is the matter with it."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name} dropped: {self.why}"


@dataclass(frozen=True)
class Dependence:
    """What more training makes of a verdict: `budget-dependent`, `no exchange` or `not run`, and the places
    of every pair by budget."""

    label: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.label}: {self.detail}" if self.detail else self.label


@dataclass(frozen=True)
class Verdict:
    """One word, what it stands on, and the numbers.

    Attributes:
        word: one of `WORDS`; any other is a ValueError.
        why: the reason in short, such as the number of seeds, or what stands in the way.
        answers: to each ask, where there was a test.
        numbers: by name; those of the answers if none are given.
        seen: the observations behind an obstacle, a text each.
        cause: the kind of obstacle, if readers of a verdict distinguish it.
        budget: the effect of more training; None if no run shows it.
        dropped: comparisons that were not judged.
    """

    word: str
    why: str
    answers: tuple[Answer, ...] = ()
    numbers: dict[str, float] = field(default_factory=dict)
    seen: tuple[str, ...] = ()
    cause: Cause | None = None
    budget: Dependence | None = None
    dropped: tuple[Dropped, ...] = ()

    def __post_init__(self):
        if self.word not in WORDS:
            raise ValueError(f"{self.word!r} is not a verdict; use one of {', '.join(WORDS)}")
        if self.answers and not self.numbers:
            object.__setattr__(self, "numbers", {one.name: one.value for one in self.answers})

    def of_ours(self) -> "Verdict":
        """The same of a hypothesis of ours, which is held or refuted and not reproduced."""
        return replace(self, word=OF_OURS.get(self.word, self.word))

    @property
    def stale(self) -> bool:
        """Whether the code is another than that of the records."""
        return self.cause is Cause.STALE

    @property
    def counted(self) -> str:
        """The word, and of a family in which one failure is enough how many comparisons decide it, unless all
        do: "refuted, 1 of 10"."""
        found = [one.answer for one in self.answers]
        many = found.count({UNDECIDED: OPEN, NOT_REPRODUCED: FAILS, REFUTED: FAILS}.get(self.word, ""))
        return f"{self.word}, {many} of {len(found)}" if 0 < many < len(found) else self.word

    @property
    def detail(self) -> str:
        """The reason with every answer; of a family, how many fail and how many are open."""
        found = [one.answer for one in self.answers]
        failed, still_open = found.count(FAILS), found.count(OPEN)
        counts = []
        if len(found) > 1 and self.word in (NOT_REPRODUCED, REFUTED, UNDECIDED):
            counts += [f"{failed} of {len(found)} fail{'s' * (failed == 1)}"] if failed else []
            counts += [f"undecided in {still_open} of {len(found)}"] if still_open else []
        return "; ".join([self.why, *self.seen, *counts, *map(str, self.answers), *map(str, self.dropped)])

    @property
    def in_short(self) -> str:
        """The reason without the names of what was compared: of one comparison its mean, of a family how many
        of them hold and between which means."""
        if not self.answers:
            return self.why
        means, found = zip(*((one.value, one.answer) for one in self.answers), strict=True)
        if len(means) == 1:
            parts = [self.answers[0].told or _signed(f"mean {means[0]:+.3f}")]
        else:
            counts = [(found.count(one), words) for one, words in IN_WORDS.items()]
            parts = [f"{len(found)} comparisons", *(f"{n} {words[n != 1]}" for n, words in counts if n)]
            parts.append(_signed(f"means {min(means):+.2f} to {max(means):+.2f}"))
        return "; ".join([self.why, *parts, *dict.fromkeys(f"dropped: {one.why}" for one in self.dropped)])


def _signed(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


IN_WORDS = {HOLDS: ("holds", "hold"), FAILS: ("fails", "fail"), OPEN: ("is open", "are open")}
"""Answers, of one comparison and of several."""
