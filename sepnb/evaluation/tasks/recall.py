"""Recall by content: a key was written beside a value, and is asked later.

    noise  k3 v7  noise  k1 v2  noise …  k1 k3      the answers, v2 and v7, are asked at the last keys

`mqar` can be solved without knowing where anything stands. `latest_value` writes a key several times and asks
for the last value, `occurrence` for the first, second or third: both need the order of what was written.

Ids are counted from 0: keys, then values, then ordinals where there are some, then noise.
"""

import numpy as np

from ... import validation
from .samples import Draws, Samples, asked, sized

VALUES, NOISE = 32, 16
"""Different values and noise tokens of the tasks of order."""


def _written(
    draws: Draws, n: int, room: int, keys: np.ndarray, values: np.ndarray, noise: np.ndarray
) -> tuple:
    """A text `[n, room]` of pairs among noise, and the index of each pair's value, `[n, pairs]`.

    Args:
        draws: of the call.
        n, room: samples, and tokens for the pairs and the noise.
        keys, values: int `[n, pairs]`, in the order in which they are written.
        noise: int `[noise]`, the ids to fill up with.
    """
    text = noise[draws.below(len(noise), n, room)]
    first, rows = draws.blocks(n, keys.shape[1], 2, room), np.arange(n)[:, None]
    text[rows, first], text[rows, first + 1] = keys, values
    return text, first + 1


def mqar(
    n: int, length: int, *, seed: int, keys: int = 32, values: int = 32, noise: int = 16, pairs: int = 8
) -> Samples:
    """Multi-query associative recall, after Arora et al. 2023 (arXiv 2312.04927).

    Pairs of a key and its value stand anywhere in the text, all keys and all values different. Then each key
    is asked once, in another order; the answers are not in the text that asks.

    Args:
        n: samples.
        length: tokens of each, at least `3 * pairs`.
        seed: the same seed gives the same samples.
        keys, values, noise: how many different tokens of each kind there are.
        pairs: in a sample, at most `keys` and at most `values`.

    Raises:
        TypeError, ValueError: a size that is no int, or leaves no sample.
    """
    for name, size in {"keys": keys, "values": values, "noise": noise, "pairs": pairs}.items():
        validation.whole(name, size, most=validation.WIDEST)
    if pairs > min(keys, values):
        raise ValueError(
            f"pairs is {pairs}; the {keys} keys and {values} values of a sample must be different"
        )
    sized(n, length, 3 * pairs, f"{pairs} pairs and as many queries")
    draws = Draws(seed, "mqar")
    written, given = draws.distinct(n, pairs, keys), keys + draws.distinct(n, pairs, values)
    body, places = _written(draws, n, length - pairs, written, given, keys + values + np.arange(noise))
    order = draws.distinct(n, pairs, pairs)
    tokens = np.concatenate([body, np.take_along_axis(written, order, axis=1)], axis=1)
    queries = np.broadcast_to(np.arange(length - pairs, length), (n, pairs))
    answers = asked(tokens, queries, np.take_along_axis(places, order, axis=1))
    chance = {"uniform": 1 / values, "mode in context": 1 / pairs, "random source": 1 / pairs}
    return Samples(tokens, *answers, chance, keys + values + noise)


def latest_value(n: int, length: int, *, seed: int, keys: int = 6, writes: int = 12) -> Samples:
    """The last of several values of a key: a register that is overwritten.

    Writes, a key and then a value, stand anywhere in the text; all values of a sample are different. Then
    each key is asked once, in any order. Scored are the keys that were written twice or more, of which every
    sample has one at least; those written once need no order.

    Args:
        n: samples.
        length: tokens of each, at least `2 * writes + keys`.
        seed: the same seed gives the same samples.
        keys: how many there are.
        writes: in a sample, from 2 to the number of values.

    Raises:
        TypeError, ValueError: a size that is no int, or leaves no sample.
    """
    validation.whole("keys", keys, most=validation.WIDEST)
    validation.whole("writes", writes, 2, VALUES)
    sized(n, length, 2 * writes + keys, f"{writes} writes and {keys} queries")
    draws = Draws(seed, "latest-value")
    written = draws.below(keys, n, writes)
    counts = (written[:, :, None] == np.arange(keys)).sum(axis=1)
    single = np.flatnonzero(counts.max(axis=1) < 2)  # no key twice: two random writes get one key
    pair = draws.distinct(n, 2, writes)[single]
    written[single, pair[:, 1]] = written[single, pair[:, 0]]
    counts = (written[:, :, None] == np.arange(keys)).sum(axis=1)
    given = keys + draws.distinct(n, writes, VALUES)
    body, places = _written(draws, n, length - keys, written, given, keys + VALUES + np.arange(NOISE))
    order = draws.distinct(n, keys, keys)
    tokens = np.concatenate([body, order], axis=1)
    queries = np.broadcast_to(np.arange(length - keys, length), (n, keys))
    last = writes - 1 - (written[:, ::-1, None] == np.arange(keys)).argmax(axis=1)  # [n, keys]
    sources = np.take_along_axis(np.take_along_axis(places, last, axis=1), order, axis=1)
    scored = np.take_along_axis(counts, order, axis=1) >= 2
    answers = asked(tokens, queries, sources, scored)
    by_key = float((1 / counts[counts >= 2]).mean())
    chance = {"uniform": 1 / VALUES, "mode in context": 1 / writes, "random source": by_key}
    return Samples(tokens, *answers, chance, keys + VALUES + NOISE)


KEYS, TIMES = 4, 3


def occurrence(n: int, length: int, *, seed: int) -> Samples:
    """The k-th value of a key: four keys are written three times each, with values that are all different.

    Then every key is asked once, followed by an ordinal, at which the answer is scored.

    Args:
        n: samples.
        length: tokens of each, at least 32.
        seed: the same seed gives the same samples.

    Raises:
        TypeError, ValueError: a size that is no int, or leaves no sample.
    """
    writes = KEYS * TIMES
    sized(n, length, 2 * writes + 2 * KEYS, f"{writes} writes and {KEYS} queries")
    draws = Draws(seed, "occurrence")
    written = draws.distinct(n, writes, writes) % KEYS
    given, ordinals = KEYS + draws.distinct(n, writes, VALUES), KEYS + VALUES
    body, places = _written(draws, n, length - 2 * KEYS, written, given, ordinals + TIMES + np.arange(NOISE))
    order, which = draws.distinct(n, KEYS, KEYS), draws.below(TIMES, n, KEYS)
    by_key = np.argsort(written, axis=1, kind="stable").reshape(n, KEYS, TIMES)  # each key's, in order
    wanted = by_key[np.arange(n)[:, None], order, which]
    query = np.stack([order, ordinals + which], axis=2).reshape(n, 2 * KEYS)
    tokens = np.concatenate([body, query], axis=1)
    queries = np.broadcast_to(np.arange(length - 2 * KEYS + 1, length, 2), (n, KEYS))
    answers = asked(tokens, queries, np.take_along_axis(places, wanted, axis=1))
    chance = {"uniform": 1 / VALUES, "mode in context": 1 / writes, "random source": 1 / TIMES}
    return Samples(tokens, *answers, chance, ordinals + TIMES + NOISE)
