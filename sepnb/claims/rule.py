"""The rule of a claim, written from its declaration: a table of what is compared, in which column, within
which bounds, and what would prevent an answer. Parts of columns keep their names in the records, which the
page of claims explains; measures are put into words.
"""

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sepnb.claims.asks import ZERO, Ask, Floor, Unless
from sepnb.records.markup import code

MEASURES = {
    "bits_per_byte": "bits per byte inside the trained length",
    "gap": "gap to its own sliding window",
    "gain": "context gain",
    "accuracy": "right answers",
    "far": "right answers far back",
    "near": "right answers near the end",
    "key": "bits at key bytes",
    "tight": "bits read byte by byte",
    "compiled": "compiled speed over that of attention alone",
    "ahead": "speed over that of x-transformers",
}
"""What stands first in a column and does not say itself what is measured."""


class Line(NamedTuple):
    """Asks that share their bounds: each `a` minus each `b` lies within the bounds in each column. Without a
    `b`, the column itself does."""

    a: tuple[str, ...]
    b: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    bounds: tuple[float, float]

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """The line in words: models, those they are held against, columns, bounds."""
        names = (_and(map(_method, of)) for of in (self.a, self.b))
        return *names, _columns(self.columns), _bounds(*self.bounds)


def lines(asks: Sequence[Ask], metric: str) -> list[Line]:
    """The table of what is asked, a line for all that is asked alike."""
    found = []
    for ask in asks:
        (a, ours), (b, theirs) = (name.partition(":")[::2] for name in (ask.a, ask.b))
        b, theirs = ("", ours) if ask.b == ZERO else (b, theirs)
        found.append(
            Line((a,), (b,) if b not in ("", a) else (), (_apart(ours or metric, theirs or metric),), ask[2:])
        )
    for field in ("columns", "a", "b"):  # what differs in this alone becomes one line
        alike: dict[tuple, list[Line]] = {}
        for line in found:
            alike.setdefault(line._replace(**{field: ()}), []).append(line)
        found = [
            same._replace(**{field: tuple(dict.fromkeys(one for line in of for one in getattr(line, field)))})
            for same, of in alike.items()
        ]
    return found


def conditions(unless: Sequence[Floor | Unless], some: bool) -> str:
    """What would keep a claim from an answer, and whether `some` of its asks are an answer."""
    sentences = ["Some of these give *partly*."] if some else []
    dropping = [one for one in unless if isinstance(one, Floor) or one.of]
    voiding = [one for one in unless if one not in dropping]
    for ones, start, more in (
        (voiding, "Not testable where", "nor"),
        (dropping, "A comparison is dropped where", "or"),
    ):
        if whys := list(dict.fromkeys(one.why for one in ones if one.why)):
            sentences.append(f"{start} {f'; {more} where '.join(whys)}.")
    return " ".join(sentences)


def _apart(a: str, b: str) -> tuple[str, ...]:
    """The parts of a column, such as `gap/native/8x`; of two columns those that they share, and where they
    differ one minus the other."""
    ours, theirs = a.split("/"), b.split("/")
    if len(ours) == len(theirs):
        return tuple(p if p == q else f"{p} minus {q}" for p, q in zip(ours, theirs, strict=True))
    if theirs[-len(ours) :] == ours:
        return (*ours, f"minus {'/'.join(theirs[: -len(ours)])}")
    return (f"{_columns([ours])} minus {_columns([theirs])}",)


def _columns(columns: Sequence[Sequence[str]]) -> str:
    """Columns in words; of those that differ part by part, every part is told once."""
    words = []
    for length in dict.fromkeys(map(len, columns)):
        alike = [one for one in columns if len(one) == length]
        parts = [list(dict.fromkeys(part)) for part in zip(*alike, strict=True)]
        if math.prod(map(len, parts)) == len(alike):
            words.append(_measured(*parts))
        else:
            words += [_measured(*([part] for part in one)) for one in alike]
    return "; ".join(words)


def _measured(names: Sequence[str], *how: Sequence[str]) -> str:
    """What is measured, and in brackets how it is read and where."""
    read = [f"at {_and(part)}" if re.match(r"\d+x", part[0]) else _and(map(_word, part)) for part in how]
    return _and(map(_word, names)) + (f" ({', '.join(read)})" if read else "")


def _word(name: str) -> str:
    return MEASURES.get(name, re.sub(r"(?<=\w)[-_](?=\w)", " ", name))


def _method(name: str) -> str:
    several = [code(one) for one in name.split("+")]
    return several[0] if len(several) == 1 else f"the mean of {_and(several)}"


def _bounds(low: float, high: float) -> str:
    low_, high_ = (f"{x:g}".replace("-", "\N{MINUS SIGN}") for x in (low, high))
    if math.isinf(low) or math.isinf(high):
        return f"above {low_}" if math.isinf(high) else f"below {high_}"
    return f"between {low_} and {high_}"


def _and(parts: Iterable[str]) -> str:
    *first, last = [*parts] or [""]
    return f"{', '.join(first)} and {last}" if first else last
