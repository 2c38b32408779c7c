"""The rule of a claim in words, as its declaration says it: which differences lie between which bounds."""

import math
import re
from collections.abc import Iterable, Sequence

from sepnb.claims.asks import ZERO, Ask, Floor, Unless
from sepnb.records.markup import code

WORDS = {
    "bits_per_byte": "bits per byte inside the trained length",
    "accuracy": "right answers as trained",
    "gap": "gap to its own sliding window",
    "gain": "context gain",
    "divergence": "divergence from the prediction in a fresh window",
    "recovered": "refitted minus trained rows",
    "fitted": "fitted rows",
    "fitted-masked": "rows fitted behind a window",
    "margin": "margin",
    "key": "key bytes",
    "replaced": "far context replaced",
    "shuffled": "far words in another order",
    "long": "far context as it is",
    "beyond/8": "gain from context beyond 8 bytes",
    "least": "margin",
    "native": "all keys visible",
    "native/1x": "from 0 on",
    "native-window": "a window of one trained length",
    "native-log": "logits that grow with log n",
    "native-at-1m": "from index 1,000,000 on",
    "clamp": "the last row held",
    "wrap": "the table repeated",
    "reflect": "the table mirrored",
    "zero": "rows of zeros",
    "interpolate": "the table stretched",
    "fourier": "Fourier",
    "alibi": "ALiBi-like",
    "fourier-full": "Fourier with all components",
    "cyclic-literal": "cyclic as printed",
    "frozen": "without tuning",
    "frozen-window": "a window without tuning",
    "tuned": "after tuning",
    "tuned-oracle": "its own sliding window",
    "tight": "read byte by byte",
    "added drift": "added drift",
    "drawn": "before training",
    "trained": "the trained window",
    "misaligned": "misaligned windows",
    "misaligned, never seen": "misaligned windows that no loss saw",
    "spread": "positions spread far apart",
    "moved": "distance moved",
    "log2 moved": "distance moved (log2)",
    "log2 narrowed": "spread (log2)",
    "resolution": "resolution of the trained window",
    "canvas-14": "a canvas of 14 x 14 patches",
    "upscaled-14": "pictures upscaled to 14 x 14 patches",
    "spread-14": "things spread over 14 x 14 patches",
    "canvas-12": "a canvas of 12 cells along an edge",
    "spread-12": "things spread over 12 cells along an edge",
    "compiled": "share of the speed of attention, compiled",
    "ahead": "speed over that of x-transformers",
    "growth": "time of a text in one piece over that of the same tokens in four",
    "speed": "speed over that of the dense sinusoidal model",
    "grow": "a grid that grows",
    "fit": "places fitted into the trained square",
}
"""What columns and their parts say; any other says itself."""


def composed(asks: Sequence[Ask], unless: Sequence[Floor | Unless], metric: str, parts: bool) -> str:
    """What a claim asks, a sentence for all that is asked alike, and what would keep it from an answer."""
    shared: dict[tuple, list] = {}
    for ask in asks:
        (a, of_a), (b, of_b) = (
            name.partition(":")[::2] for name in (ask.a, ask.b if ask.b != ZERO else ask.a)
        )
        common, one, other = _apart(of_a or metric, of_b or metric)
        shared.setdefault((a, b, one, other, ask.low, ask.high), []).append(common)
    alike: dict[tuple, list] = {}
    for (a, b, *how), columns in shared.items():
        alike.setdefault((tuple(columns), *how), []).append((a, b))
    told = [_sentence(methods, *how) for how, methods in alike.items()]
    told += ["Some of these give *partly*."] if parts and len(asks) > 1 else []
    dropping = [one for one in unless if isinstance(one, Floor) or one.of]
    voiding = [one for one in unless if one not in dropping]
    for ones, start, more in (
        (voiding, "Not testable where", "nor"),
        (dropping, "A comparison is dropped where", "or"),
    ):
        if whys := list(dict.fromkeys(one.why for one in ones if one.why)):
            told.append(f"{start} {f'; {more} where '.join(whys)}.")
    return " ".join(told)


def _apart(a: str, b: str) -> tuple[tuple[str, ...], str, str]:
    """Of two columns the parts that they share, and the part in which each differs."""
    ours, theirs = a.split("/"), b.split("/")
    if theirs == ["drawn", *ours]:
        return tuple(ours), "after training", "before training"
    differ = [one != other for one, other in zip(ours, theirs, strict=False)]
    if len(ours) != len(theirs) or sum(differ) > 1:
        return (), *(WORDS.get(name) or _columns([tuple(name.split("/"))]) for name in (a, b))
    common = tuple(part for part, other in zip(ours, differ, strict=True) if not other)
    return common, *(
        " ".join(_word(p) for p, d in zip(of, differ, strict=True) if d) for of in (ours, theirs)
    )


def _sentence(methods: list[tuple[str, str]], columns: tuple, one: str, other: str, low: float, high: float):
    of_one_method = all(a == b for a, b in methods)
    change = [f"{one} minus {other}"] if one and of_one_method else []
    measure = ", ".join([*change, _columns(columns)] if columns[0] else change)
    compared = (
        _methods(methods)
        if not one or of_one_method
        else _and(f"{_method(a)} ({one}) minus {_method(b)} ({other})" for a, b in methods)
    )
    verb = "are" if len(methods) > 1 and "each of" not in compared else "is"
    start = f"{measure[0].upper()}{measure[1:]}: " if measure else ""
    return f"{start}{compared} {verb} {_bounds(low, high)}."


def _columns(columns: Sequence[tuple[str, ...]]) -> str:
    """Columns in words; of those that differ part by part, every part is told once."""
    parts = [list(dict.fromkeys(part)) for part in zip(*columns, strict=False)]
    if math.prod(map(len, parts)) != len(columns) or len(set(map(len, columns))) > 1:
        return "; ".join(_columns([one]) for one in columns)
    told = [_and(map(_word, names)) for names in parts]
    bins = [all(re.fullmatch(r"\d+x", name) for name in names) for names in parts]
    return ", ".join(f"at {one}" if at else one for one, at in zip(told, bins, strict=True))


def _word(name: str) -> str:
    if name in WORDS:
        return WORDS[name]
    for start, words in (("native-at-", "at {} starts"), ("moved-", "the grid moved to {} places")):
        if name.startswith(start):
            return words.format(name.removeprefix(start).replace("-", " "))
    if name.endswith("-window"):
        return f"{_word(name.removesuffix('-window'))} with a window"
    return name.replace("-", " ").replace("_", " ")


def _methods(pairs: list[tuple[str, str]]) -> str:
    ones, others = (list(dict.fromkeys(names)) for names in zip(*pairs, strict=True))
    if all(a == b for a, b in pairs):
        return _and(map(_method, ones))
    if len(pairs) > 1 and len(ones) == 1:
        return f"{_method(ones[0])} minus each of {_and(map(_method, others))}"
    if len(pairs) > 1 and len(others) == 1:
        return f"each of {_and(map(_method, ones))} minus {_method(others[0])}"
    return _and(f"{_method(a)} minus {_method(b)}" for a, b in pairs)


def _method(name: str) -> str:
    several = [code(one) for one in name.split("+")]
    return several[0] if len(several) == 1 else f"the mean of {_and(several)}"


def _bounds(low: float, high: float) -> str:
    low_, high_ = (f"{x:+g}".replace("-", "\N{MINUS SIGN}") if x else "0" for x in (low, high))
    if math.isinf(low) or math.isinf(high):
        return f"above {low_}" if math.isinf(high) else f"below {high_}"
    return f"between {low_} and {high_}"


def _and(parts: Iterable[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
