"""The words of the ledger: what a claim is, and what our records can say of it."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

REPRODUCED = "reproduced"
PARTLY = "partly"
NOT_REPRODUCED = "not reproduced"
NOT_TESTABLE = "not testable here"
UNDECIDED = "undecided"
NOT_RUN = "not run"

WORDS = (REPRODUCED, PARTLY, NOT_REPRODUCED, NOT_TESTABLE, UNDECIDED, NOT_RUN)

Tables = Mapping[str, pd.DataFrame | Mapping[str, Any] | None]
"""What a rule reads, by the names of `Claim.needs`: an experiment's table, a chapter's numbers, or None."""


@dataclass(frozen=True)
class Verdict:
    """One word, the reason in a sentence, and the numbers it stands on.

    `stale` is set where records exist but no longer match the code. The word is then *not run*, because
    nothing was run with the present code, and the ledger shows the badge beside it.

    Raises:
        ValueError: a word that is not one of `WORDS`.
    """

    word: str
    detail: str
    numbers: dict[str, float] = field(default_factory=dict)
    stale: bool = False

    def __post_init__(self):
        if self.word not in WORDS:
            raise ValueError(f"{self.word!r} is not a verdict; use one of {', '.join(WORDS)}")

    @property
    def in_short(self) -> str:
        """The reason; of a family of comparisons, how many of them hold and between which means."""
        counts = {answer: self.detail.count(f"({answer})") for answer in ("holds", "fails", "open")}
        if sum(counts.values()) < 2:
            return self.detail
        compared = [value for name, value in self.numbers.items() if " minus " in name]
        means = compared or list(self.numbers.values())
        between = f"means {min(means):+.2f} to {max(means):+.2f}".replace("-", "\N{MINUS SIGN}")
        told = [f"{count} {answer}" for answer, count in counts.items() if count]
        return "; ".join([self.detail.split(";")[0], f"{sum(counts.values())} comparisons", *told, between])


@dataclass(frozen=True)
class Claim:
    """A statement that our records can judge.

    Args:
        id: short kebab-case name.
        source: public short name of the document that makes the statement.
        statement: the statement, in our words.
        rule: a pure function of the tables named by `needs`, at module level and named `rule_<id>` (dashes as
            underscores), so that git can tell when it last changed. Its docstring is the rule in the
            reader's words.
        needs: `experiment/<name>` or `chapter/<name>`.
        stands_on: the functions the rule calls; a change of one of them is a change of the rule.

    Raises:
        ValueError: a rule with another name or without words, or a need of another form.
    """

    id: str
    source: str
    statement: str
    rule: Callable[[Tables], Verdict]
    needs: tuple[str, ...]
    stands_on: tuple[Callable, ...] = ()

    def __post_init__(self):
        expected = "rule_" + self.id.replace("-", "_")
        if self.rule.__name__ != expected:
            raise ValueError(f"claim {self.id!r} needs a rule named {expected}, got {self.rule.__name__}")
        if not self.rule.__doc__:
            raise ValueError(f"{expected} has no docstring; write there, in the reader's words, what decides")
        for need in self.needs:
            kind, _, name = need.partition("/")
            if kind not in ("experiment", "chapter") or not name:
                raise ValueError(
                    f"claim {self.id!r} needs {need!r}; write experiment/<name> or chapter/<name>"
                )

    @property
    def rule_text(self) -> str:
        """The rule in the reader's words, on one line."""
        return " ".join(inspect.getdoc(self.rule).split())
