"""Which positions the losses of SeqPE read: anchors with candidates, and windows of teacher and student.

All draws come from the raw output of one generator: a seed gives the same positions with every version of
numpy, and seed and number of steps are its whole state.

Shape letters: P anchors, K candidates of each, n coordinates, R windows, m positions in each.
"""

from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np

from ..data.draws import uniform
from ..validation import at_least, number, one_of
from .digits import edited, numeral_of, value_of

KINDS = ("uniform", "edited", "window", "around")
EDIT_DRAWS = 2 + 3 * 3
"""Random numbers of an edited candidate: the coordinate, how many edits, and three for each of 3 edits."""


class Candidates(NamedTuple):
    """Anchors int64 `[P, n]` and the candidates of each, `[P, K, n]`."""

    anchors: np.ndarray
    candidates: np.ndarray


class Windows(NamedTuple):
    """Positions int64 `[R, m, n]` inside the trained window, and the same places in windows elsewhere."""

    teacher: np.ndarray
    student: np.ndarray


@dataclass(frozen=True)
class CandidateSampler:
    """Anchors anywhere in the ranges, each with K distinct candidates that are not the anchor.

    Each anchor draws the kind of its candidates:

    - *uniform*: anywhere;
    - *edited*: a share of them are neighbours of the anchor's numeral, made by one to three insertions,
      deletions, swaps or replacements of digits, each kept only if it is farther from the anchor than the
      nearest of the others: a numeral that looks alike is never the right answer. The others are uniform;
    - *window*: all in one box that stands anywhere, as released;
    - *around*: all in one box that the anchor is in, which asks for near neighbours.

    Released code edits the numerals of all coordinates run together, and goes through all anchors in a
    shuffled order; here an edit stays within one coordinate, and every step draws its own anchors.

    Args:
        ranges: positions of each coordinate, from 0 on; more than K, as in a box.
        anchors, candidates: P and K.
        kinds: shares of the kinds, of `KINDS`; they sum to 1.
        window: sides of the box, one for each coordinate, cut to the range.
        edited: share of its candidates that an anchor of that kind tries to edit.
        base: of the numerals.
    """

    ranges: tuple[int, ...]
    anchors: int = 16
    candidates: int = 32
    kinds: tuple[tuple[str, float], ...] = (("edited", 0.4), ("window", 0.6))
    window: tuple[int, ...] = (256,)
    edited: float = 0.25
    base: int = 10

    def __post_init__(self) -> None:
        at_least(1, anchors=self.anchors, candidates=self.candidates)
        at_least(2, base=self.base, **{f"ranges[{axis}]": count for axis, count in enumerate(self.ranges)})
        for kind, _ in self.kinds:
            one_of("kind", kind, KINDS)
        shares = [share for _, share in self.kinds]
        if min(shares, default=-1) < 0 or abs(sum(shares) - 1) > 1e-9:
            raise ValueError(f"kinds={self.kinds} are no shares; give numbers of at least 0 that sum to 1")
        number("edited", self.edited, 0, 1)
        if len(self.window) != len(self.ranges):
            raise ValueError(f"window={self.window} for {len(self.ranges)} coordinates; give a side for each")
        boxed = any(kind in ("window", "around") for kind, _ in self.kinds)
        for what, sides in (("ranges", self.ranges), *([("window", self.box)] if boxed else [])):
            if prod(sides) <= self.candidates:
                raise ValueError(
                    f"{what} {sides} hold {prod(sides)} positions, too few for {self.candidates} candidates "
                    f"beside the anchor"
                )

    @property
    def box(self) -> tuple[int, ...]:
        """The sides of the box, no longer than the ranges."""
        return tuple(map(min, self.window, self.ranges))

    def draw(self, generator: np.random.PCG64) -> Candidates:
        """The anchors of a step and their candidates."""
        ranges = np.array(self.ranges)
        drawn = uniform(generator, self.anchors * len(ranges)).reshape(-1, len(ranges))
        anchors = (drawn * ranges).astype(np.int64)
        edges = np.cumsum([share for _, share in self.kinds])[:-1]
        chosen = np.searchsorted(edges, uniform(generator, self.anchors), side="right")
        kinds = np.array([kind for kind, _ in self.kinds])[chosen]
        corners, sides = np.zeros_like(anchors), np.broadcast_to(ranges, anchors.shape).copy()
        placed = uniform(generator, anchors.size).reshape(anchors.shape)
        for kind in ("window", "around"):
            rows = kinds == kind
            sides[rows] = self.box
            corners[rows] = self._corners(kind, anchors[rows], placed[rows])
        candidates = self._in_boxes(generator, anchors, corners, sides)
        self._edit(generator, anchors, candidates, np.flatnonzero(kinds == "edited"))
        return Candidates(anchors, candidates)

    def _corners(self, kind: str, anchors: np.ndarray, placed: np.ndarray) -> np.ndarray:
        """Where boxes begin: anywhere, or so that they hold their anchors."""
        ranges, box = np.array(self.ranges), np.array(self.box)
        if kind == "window":
            return (placed * (ranges - box + 1)).astype(np.int64)
        lowest, highest = np.maximum(0, anchors - box + 1), np.minimum(anchors, ranges - box)
        return lowest + (placed * (highest - lowest + 1)).astype(np.int64)

    def _in_boxes(
        self, generator: np.random.PCG64, anchors: np.ndarray, corners: np.ndarray, sides: np.ndarray
    ) -> np.ndarray:
        """K distinct positions in the box of each anchor, without the anchor, in random order."""
        within = anchors - corners
        inside = ((within >= 0) & (within < sides)).all(axis=1)
        own = _flat(within, sides)
        chosen = distinct(generator, sides.prod(axis=1) - inside, self.candidates)
        chosen += inside[:, None] & (chosen >= own[:, None])  # step over the anchor
        return corners[:, None] + _unflat(chosen, sides)

    def _edit(
        self, generator: np.random.PCG64, anchors: np.ndarray, candidates: np.ndarray, rows: np.ndarray
    ) -> None:
        """Replace the first candidates of some anchors, in place, by edited numerals where they may stand."""
        count = min(int(self.candidates * self.edited), self.candidates - 1)
        drawn = uniform(generator, len(rows) * count * EDIT_DRAWS).reshape(len(rows), count, EDIT_DRAWS)
        for row, edits in zip(rows, drawn.tolist(), strict=True):
            anchor, own = anchors[row], candidates[row]
            nearest = _squared(own[count:] - anchor).min()
            taken = {tuple(position) for position in own}
            for place in range(count):
                found = self._edited(edits[place], anchor)
                allowed = (found < self.ranges).all() and _squared(found - anchor) > nearest
                if allowed and tuple(found) not in taken:
                    taken.add(tuple(found))
                    own[place] = found

    def _edited(self, drawn: list[float], anchor: np.ndarray) -> np.ndarray:
        """The position with the numeral of one coordinate edited once to three times, by `EDIT_DRAWS` numbers
        in [0, 1)."""
        which, times, *drawn = drawn
        axis = int(which * len(anchor))
        numeral = numeral_of(int(anchor[axis]), self.base)
        for edit in range(1 + int(times * 3)):
            numeral = edited(numeral, *drawn[3 * edit : 3 * edit + 3], base=self.base)
        # Digits beyond the range's own say only that the number is too large.
        value = min(value_of(numeral, self.base), self.ranges[axis])
        return np.where(np.arange(len(anchor)) == axis, value, anchor)


@dataclass(frozen=True)
class WindowSampler:
    """The same places in the trained window and in windows elsewhere: a move and m places for each.

    Args:
        ranges: positions of each coordinate, from 0 on.
        trained: sides of the trained window.
        windows, places: R and m, no more than a window has.
        first: the coordinate, on every axis, at which the trained window begins.
        away: a window elsewhere begins at least this far out in one coordinate or more; 0 in one of them
            allows every start.
    """

    ranges: tuple[int, ...]
    trained: tuple[int, ...]
    windows: int = 16
    places: int = 32
    away: tuple[int, ...] = (1,)
    first: int = 0

    def __post_init__(self) -> None:
        at_least(1, windows=self.windows, places=self.places)
        at_least(0, first=self.first)
        if not len(self.ranges) == len(self.trained) == len(self.away):
            raise ValueError(
                f"ranges={self.ranges}, trained={self.trained} and away={self.away} differ in coordinates"
            )
        at_least(1, **{f"trained[{axis}]": side for axis, side in enumerate(self.trained)})
        at_least(0, **{f"away[{axis}]": out for axis, out in enumerate(self.away)})
        if (np.array(self.trained) + self.first > self.ranges).any():
            begun = f" from {self.first} on" * (self.first > 0)
            raise ValueError(f"a window of {self.trained}{begun} does not fit into {self.ranges}")
        if self.places > prod(self.trained):
            raise ValueError(f"{self.places} places in a window of {prod(self.trained)}; ask for fewer")
        if (np.array(self.away) >= self.starts).all():
            raise ValueError(
                f"no window of {self.trained} within {self.ranges} begins {self.away} out; the last start is "
                f"{tuple(int(start) - 1 for start in self.starts)}"
            )

    @property
    def starts(self) -> np.ndarray:
        """How many moves of the window each coordinate has, the one by 0 among them."""
        return np.array(self.ranges) - self.first - self.trained + 1

    def draw(self, generator: np.random.PCG64) -> Windows:
        """The windows of a step."""
        sides = np.broadcast_to(np.array(self.trained), (self.windows, len(self.trained)))
        inside = self.first + _unflat(distinct(generator, sides.prod(axis=1), self.places), sides)
        return Windows(inside, inside + self._starts(generator)[:, None])

    def _starts(self, generator: np.random.PCG64) -> np.ndarray:
        """Moves, uniform over those that are far enough out: those that are not are drawn again."""
        found = np.zeros((self.windows, len(self.trained)), dtype=np.int64)
        near = np.ones(self.windows, dtype=bool)
        while near.any():
            drawn = uniform(generator, int(near.sum()) * found.shape[1]).reshape(-1, found.shape[1])
            found[near] = (drawn * self.starts).astype(np.int64)
            near &= (found < self.away).all(axis=1)
        return found


def distinct(generator: np.random.PCG64, counts: np.ndarray, k: int) -> np.ndarray:
    """For each of some counts, `k` distinct numbers below it, every ordered choice as likely, `[len, k]`: by
    Floyd's algorithm (Bentley and Floyd 1987) for all rows at once, then a shuffle."""
    chosen = np.full((len(counts), k), -1, dtype=np.int64)
    for place, drawn in enumerate(uniform(generator, k * len(counts)).reshape(k, -1)):
        last = counts - k + place
        found = (drawn * (last + 1)).astype(np.int64)
        again = (chosen[:, :place] == found[:, None]).any(axis=1)
        chosen[:, place] = np.where(again, last, found)
    order = uniform(generator, chosen.size).reshape(chosen.shape).argsort(axis=1, kind="stable")
    return np.take_along_axis(chosen, order, axis=1)


def _squared(away: np.ndarray) -> np.ndarray | np.int64:
    return np.square(away).sum(axis=-1)


def _flat(position: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """The number of a position in a box of these sides, last coordinate fastest: `[P, n]` to `[P]`."""
    number = np.zeros(len(position), dtype=np.int64)
    for axis in range(sides.shape[1]):
        number = number * sides[:, axis] + position[:, axis]
    return number


def _unflat(numbers: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """The inverse: numbers `[P, K]` in boxes `[P, n]` to positions `[P, K, n]`."""
    columns = []
    for axis in reversed(range(sides.shape[1])):
        numbers, column = np.divmod(numbers, sides[:, axis, None])
        columns.append(column)
    return np.stack(columns[::-1], axis=-1)
