"""What a claim asks for: bounds on quantities, floors and conditions, as data."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

ZERO = "zero"
"""The quantity that is 0 in every run: what a single quantity is held against."""
Names = str | Sequence[str]
"""Some names; in a string commas part them."""


class Ask(NamedTuple):
    """One question: does the mean over seeds of `a` minus `b` lie between `low` and `high`?

    A quantity is named `method`, which means the metric of the claim, or `method:column`; of methods or
    columns joined by `+` it is the mean. `zero` is 0."""

    a: str
    b: str = ZERO
    low: float = -math.inf
    high: float = math.inf

    @property
    def name(self) -> str:
        return self.a if self.b == ZERO else f"{self.a} minus {self.b}"


def pairs(of: Names, *columns: str, **bounds: float) -> list[Ask]:
    """Pairs of methods, "a - b, c - d", in each of the columns (none: in the metric of the judge)."""
    return [
        Ask(*(f"{name}:{column}" if column else name for name in pair.split(" - ")), **bounds)
        for pair in listed(of)
        for column in columns or ("",)
    ]


def against(ones: Names, others: Names, *columns: str, **bounds: float) -> list[Ask]:
    """Each of some methods minus each of others."""
    return pairs([f"{a} - {b}" for a in listed(ones) for b in listed(others)], *columns, **bounds)


def each(form: str, names: Names) -> list[str]:
    """A text with each of the names in the place of its braces."""
    return [form.replace("{}", name) for name in listed(names)]


def levels(methods: Names, *columns: str, **bounds: float) -> list[Ask]:
    """Each column of each method by itself."""
    return [Ask(f"{name}:{column}", **bounds) for name in listed(methods) for column in columns]


def changes(methods: Names, columns: Iterable[tuple[str, str]], **bounds: float) -> list[Ask]:
    """Of each method one column minus another."""
    return [Ask(f"{name}:{a}", f"{name}:{b}", **bounds) for name in listed(methods) for a, b in columns]


def listed(names: Names) -> Sequence[str]:
    """The names; a string is split at its commas."""
    return names.split(", ") if isinstance(names, str) else names


FAR = ("2x", "4x", "8x")
"""The bins past the trained length, by the multiple of it at which each ends."""


def gap(readings: Names, places: Sequence[str] = FAR) -> list[str]:
    """The columns that hold the bits per byte of a reading minus those of the sliding window over the same
    bytes."""
    return [f"gap/{reading}/{place}" for reading in listed(readings) for place in places]


class Floor(NamedTuple):
    """The bound that a method's mean over seeds must clear to show that it learned anything. It applies to
    names that end with `only` and do not begin with `but`. Comparisons with a method that misses it are
    dropped; the rest of the family is judged.

    Args:
        seeds: five of six seeds must reach the bound too; reaching it is enough.
        one_sided: missing the floor only makes a method worse, so that a comparison that holds in spite of
            this is kept. Not for a model that knows nothing and therefore loses nothing.
        why: what is wrong with such a method, in words.
    """

    bound: float
    column: str = "bits_per_byte"
    only: str = ""
    but: str | None = None
    seeds: bool = False
    one_sided: bool = False
    why: str = ""

    def holds_for(self, method: str) -> bool:
        """Whether this method must clear the floor."""
        return method.endswith(self.only) and not (self.but is not None and method.startswith(self.but))


@dataclass(frozen=True)
class Unless:
    """A condition without which a claim is not testable: means over seeds lie inside their bounds, without a
    test.

    Args:
        asks: the condition; with `any`, one of them is enough.
        why: what is wrong if the condition fails.
        ratio: bounds are on mean(a) / mean(b).
        of: the one comparison that is dropped if the condition fails; None: the claim is not testable.
    """

    asks: Sequence[Ask]
    why: str
    any: bool = False
    ratio: bool = False
    of: Ask | None = None


def unless_neither(asks: Sequence[Ask], known: Callable[[str], Ask], why: str) -> dict:
    """The asks and conditions of a claim that drops a comparison where of neither of its two quantities holds
    what `known` asks of one: of two that know nothing none is better."""
    conditions = (Unless((known(ask.a), known(ask.b)), why, any=True, of=ask) for ask in asks)
    return {"asks": tuple(asks), "unless": tuple(conditions)}
