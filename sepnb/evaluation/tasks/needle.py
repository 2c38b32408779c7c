"""A needle in a haystack of real text: `{K472}` is hidden somewhere, and `{K` asks for its digits.

    … the old house {K472}stood upon the hill{Q905} and no one …  {Q905}{K472}

One needle alone can be found by copying the only digits of the text; so there are several.
"""

from math import comb

import numpy as np

from ... import validation
from .samples import Draws, Samples, sized

SIZE = 6
"""Bytes of a needle: a brace, a capital, three digits, a brace."""

NAMES = 26


def needle(
    text: np.ndarray,
    n: int,
    length: int,
    *,
    seed: int,
    depth: float | int | None = None,
    needles: int = 4,
    queries: int = 2,
) -> Samples:
    """Needles in slices of a text, and the questions for them.

    The digits of an answer follow its question, as in training: each is scored at the byte before it, and an
    answer is `answer_length` = 3 of them.

    Args:
        text: uint8 `[T]`, the haystack; slices of it are drawn anywhere.
        n: samples.
        length: bytes of each, at least `6 * needles + 6 * queries - 1`.
        seed: the same seed gives the same samples.
        depth: where the requested needle stands, from 0, the start of the text, to 1, its end just before
            the question; there is then one question. None: all needles stand anywhere.
        needles: in a sample, at most 26.
        queries: of the needles, how many are asked for.

    Raises:
        TypeError, ValueError: a text, a size or a depth of another kind; a text that is too short for the
            samples, or holds what could be taken for a needle.
    """
    validation.whole("needles", needles, 1, NAMES)
    validation.whole("queries", queries, 1, needles)
    queries = queries if depth is None else 1
    sized(n, length, SIZE * (needles + queries) - 1, f"{needles} needles and {queries} queries")
    if depth is not None:
        validation.number("depth", depth, 0, 1)
    room = length + 1 - SIZE * queries
    hay = room - SIZE * needles
    _checked(text, hay)
    draws, rows = Draws(seed, "needle"), np.arange(n)[:, None]
    names = ord("A") + draws.distinct(n, needles, NAMES)
    digits = ord("0") + draws.below(10, n, needles, 3)
    brace = np.broadcast_to(np.array([ord("{"), ord("}")]), (n, needles, 2))
    written = np.concatenate([brace[..., :1], names[..., None], digits, brace[..., 1:]], axis=2)
    if depth is None:
        first = draws.blocks(n, needles, SIZE, room)
        chosen = draws.distinct(n, queries, needles)
    else:
        first = _around(draws, n, room, needles, round(depth * (room - SIZE)))
        chosen = np.zeros((n, 1), np.int64)
    inside = first[:, :, None] + np.arange(SIZE)
    is_needle = np.zeros((n, room), bool)
    is_needle[rows[:, :, None], inside] = True
    start = draws.below(len(text) - hay + 1, n, 1)
    body = np.empty((n, room), np.int64)
    body[~is_needle] = text[start + np.arange(hay)].ravel()
    body[rows[:, :, None], inside] = written
    asks = written[rows, chosen].reshape(n, SIZE * queries)
    whole = np.concatenate([body, asks], axis=1)
    place = np.arange(SIZE) + SIZE * np.arange(queries)[:, None]
    at = (room + place[:, 1:4]).ravel()  # the capital and the first two digits
    scored, source = np.zeros((n, length), bool), np.full((n, length), -1)
    scored[:, at] = True
    source[:, at] = (np.take_along_axis(first, chosen, axis=1)[:, :, None] + np.arange(2, 5)).reshape(n, -1)
    return Samples(
        whole[:, :-1], whole[:, 1:], scored, source, _chance(digits, chosen), vocab_size=256, answer_length=3
    )


def _checked(text: np.ndarray, hay: int) -> None:
    if not isinstance(text, np.ndarray) or text.dtype != np.uint8:
        raise TypeError(f"text must be a uint8 array of bytes, got {getattr(text, 'dtype', type(text))}")
    if text.ndim != 1 or len(text) < hay:
        raise ValueError(f"text has the shape {list(text.shape)}; the samples take slices of {hay} bytes")
    brace = np.flatnonzero(text[:-1] == ord("{"))
    follows = text[brace + 1]
    if ((follows >= ord("A")) & (follows <= ord("Z"))).any():
        raise ValueError("text holds a brace before a capital, which reads as a needle; leave that part out")


def _around(draws: Draws, n: int, room: int, needles: int, place: int) -> np.ndarray:
    """First indices `[n, needles]`: the first needle stands at `place`, the others anywhere beside it.

    How many stand before it is drawn by how many arrangements there are, so that all are equally likely.
    """
    others, sides = needles - 1, (place, room - SIZE - place)
    spread = [_ways(sides[0], k) * _ways(sides[1], others - k) for k in range(others + 1)]
    if not sum(spread):
        raise ValueError(f"{needles} needles do not fit around index {place}; give a longer text or fewer")
    edges = np.cumsum([ways / sum(spread) for ways in spread])
    before = np.minimum(np.searchsorted(edges, draws.below(2**40, n) / 2**40, side="right"), others)
    first = np.full((n, needles), place)
    for k in np.unique(before).tolist():
        rows = np.flatnonzero(before == k)
        left = draws.blocks(len(rows), k, SIZE, sides[0])
        right = draws.blocks(len(rows), others - k, SIZE, sides[1])
        first[rows, 1:] = np.concatenate([left, place + SIZE + right], axis=1)
    return first


def _ways(room: int, blocks: int) -> int:
    """How many arrangements of so many needles a room holds."""
    return comb(room - (SIZE - 1) * blocks, blocks) if room >= SIZE * blocks else 0


def _chance(digits: np.ndarray, chosen: np.ndarray) -> dict[str, float]:
    """Accuracy by digit of guesses that use no name: any digit, the commonest of the needles, or the digit at
    the same place of a needle drawn among them."""
    n = len(digits)
    counts = (digits.reshape(n, -1, 1) == ord("0") + np.arange(10)).sum(axis=1)
    answers = digits[np.arange(n)[:, None], chosen]  # [n, queries, 3]
    mode = ord("0") + counts.argmax(axis=1)
    same = digits[:, None, :, :] == answers[:, :, None, :]
    return {
        "uniform": 0.1,
        "mode in context": float((answers == mode[:, None, None]).mean()),
        "random source": float(same.mean()),
    }
