"""What the readings of a probe say: four verdicts, and one for each axis.

The bounds and the test are the book's (`sepnb.records.verdicts`). A probe has one model and no seeds: the
unit is the window of text, so that what is decided is decided of this checkpoint on text of this kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf

import numpy as np

from ..records.run_table import summarise, text_of
from ..records.verdicts import (
    DEARER,
    FAILS,
    HELD,
    HOLDS,
    NOT_JUDGED,
    NOT_TESTABLE,
    OF_OURS,
    REFUTED,
    SURVIVES,
    USES,
    WORSE,
    answers_to,
    word_of,
)
from .readings import Plan, Readings

AXES = {
    "index": "the same window, begun far out,",
    "length": "seeing more keys, at trained positions,",
    "distance": "moving the older half of a window far back",
}
"""What is done to a window to find what each costs."""


@dataclass(frozen=True)
class Verdict:
    """One word with the numbers behind it.

    Attributes:
        verdict: held, refuted, undecided, not judged or not testable here.
        why: the finding, or what stands in the way, in a sentence.
        numbers: by name the mean over windows, in bits per token, and both ends of its 95 % interval.
        bound: what the numbers are held against; None where nothing was.
    """

    verdict: str
    why: str
    numbers: dict[str, dict[str, float]] = field(default_factory=dict)
    bound: float | None = None


def judged(plan: Plan, found: Readings) -> tuple[dict[str, Verdict], dict[str, Verdict]]:
    """The four verdicts, and those of the axes, by name. A model that has learned no more of the text than
    how often each token comes gets none."""
    four = {one.__name__: one(plan, found) for one in (survives, uses, quality, price)}
    inside, by_axis = found.native[:, : plan.length].mean(), axes(plan, found)
    if inside < found.text:
        return four, by_axis
    why = (
        f"inside its trained length it takes {inside:.2f} bits a token, and the frequencies of the tokens "
        f"alone give {found.text:.2f}: it has learned nothing that could be lost"
    )
    return tuple(
        {
            name: one if one.verdict == NOT_JUDGED else replace(one, verdict=NOT_TESTABLE, why=why)
            for name, one in group.items()
        }
        for group in (four, by_axis)
    )


def survives(plan: Plan, found: Readings) -> Verdict:
    """Not more than `SURVIVES` above its own sliding window, in each stretch past the trained length."""
    gaps = {
        f"gap/{stop // plan.length}x": (found.native - found.slid)[:, start:stop].mean(1)
        for start, stop in pairwise(plan.borders[1:])
    }
    numbers = {name: estimate(own) for name, own in gaps.items()}
    answers = answers_to([*gaps.values()], [(-inf, SURVIVES)] * len(gaps))
    missing = [f"{k}x" for k in plan.times if k * plan.length > plan.reach]
    if missing and FAILS not in answers:
        why = f"its table of positions ends before {missing[0]} its trained length"
        return Verdict(NOT_TESTABLE, why, numbers, SURVIVES)
    worst = max(gaps, key=lambda name: gaps[name].mean())
    why = (
        f"at {worst.removeprefix('gap/')} its trained length its loss minus that of its own sliding window "
        f"is {text_of(gaps[worst])}"
    )
    return Verdict(_word(answers), why, numbers, SURVIVES)


def uses(plan: Plan, found: Readings) -> Verdict:
    """In the farthest stretch, tokens older than a trained length give more than `USES`: both where another
    passage stands in their place and where nothing does."""
    if found.replaced is None:
        return Verdict(
            NOT_TESTABLE, "it reads no more than its trained length, so that nothing lies far back"
        )
    gains = {
        "gain/replaced": (found.replaced - found.intact).mean(1),
        "gain/removed": (found.slid - found.native)[:, plan.last].mean(1),
    }
    answers = answers_to([*gains.values()], [(USES, inf)] * 2)
    word, near = _word(answers), found.near.mean(1)
    numbers = {name: estimate(own) for name, own in (gains | {"gain/near": near}).items()}
    (near_too,) = answers_to([near], [(0.0, inf)])
    if word != HELD and near_too != HOLDS:
        why = f"not even near context is worth anything here: {text_of(near)}"
        return Verdict(NOT_TESTABLE, why, numbers, USES)
    least = min(gains, key=lambda name: gains[name].mean())
    how = "replacing" if least == "gain/replaced" else "leaving out"
    why = f"{how} what is older than a trained length costs it {text_of(gains[least])}"
    return Verdict(word, why, numbers, USES)


def quality(plan: Plan, found: Readings) -> Verdict:
    """In the farthest stretch not more than `WORSE` above the reference behind its sliding window."""
    if found.replaced is None:
        return Verdict(NOT_TESTABLE, "it reads no more than its trained length")
    own = found.native[:, plan.last].mean(1)
    other = None if found.reference_slid is None else found.reference_slid.mean(1)
    where = f"at {plan.reach // plan.length}x its trained length its loss minus that of the reference"
    return _beside(own, other, WORSE, f"{where} behind a sliding window")


def price(plan: Plan, found: Readings) -> Verdict:
    """Inside the trained length not more than `DEARER` above the reference."""
    own = found.native[:, : plan.length].mean(1)
    other = None if found.reference is None else found.reference.mean(1)
    return _beside(own, other, DEARER, "inside the trained length its loss minus that of the reference")


def _beside(own: np.ndarray, other: np.ndarray | None, bound: float, where: str) -> Verdict:
    """A loss held against that of the reference on the same tokens."""
    if other is None:
        return Verdict(NOT_JUDGED, "no reference was given", {"loss": estimate(own)})
    numbers = {"loss": own, "reference": other, "difference": own - other}
    word = _word(answers_to([own - other], [(-inf, bound)]))
    why = f"{where} is {text_of(own - other)}"
    return Verdict(word, why, {name: estimate(one) for name, one in numbers.items()}, bound)


def axes(plan: Plan, found: Readings) -> dict[str, Verdict]:
    """Each axis: what it costs alone, held against `SURVIVES`. What a model reads badly at far indices cannot
    show what distance does to it."""
    verdicts = {}
    for name, what in AXES.items():
        if name in found.unread:
            verdicts[name] = Verdict(NOT_JUDGED, found.unread[name])
            continue
        if name in found.past_table:
            verdicts[name] = Verdict(NOT_TESTABLE, found.past_table[name])
            continue
        cost = found.axes[name]
        word = _word(answers_to([cost], [(-inf, SURVIVES)]))
        why = f"{what} costs {text_of(cost)}"
        if name == "distance" and verdicts["index"].verdict == REFUTED:
            word, why = NOT_TESTABLE, "at far indices it already fails, where distances are the trained ones"
        elif name == "index" and found.follows_length:
            why += "; its rule follows the largest position, so that this is not the index alone"
        verdicts[name] = Verdict(word, why, {"cost": estimate(cost)}, SURVIVES)
    return verdicts


def estimate(values: np.ndarray) -> dict[str, float]:
    """The mean of one value a window and the ends of its t interval."""
    found = summarise(values)
    return {"mean": found.mean, "low": found.mean - found.half, "high": found.mean + found.half}


def _word(answers: Sequence[str]) -> str:
    return OF_OURS.get(word := word_of(answers), word)
