"""Where, and what: tasks that content alone does not solve.

a c [X] b d e a …  X +3      `indirect_index`: find X, go three places right, and answer e
. c . . a . c …  | c a c     `ordered_copy`: the items of the text, without the noise, in their order
"""

import numpy as np

from .samples import Draws, Samples, asked, sized

SYMBOLS = 32
"""Different tokens that can be an answer; they are drawn with replacement."""

ANCHORS, QUERIES, FARTHEST = 16, 4, 4
"""Of `indirect_index`: different names of a place, how many are asked, and the longest way from one."""

ITEMS, NOISE = 8, 16
"""Of `ordered_copy`: how many items are copied, and different tokens of noise."""


def indirect_index(n: int, length: int, *, seed: int) -> Samples:
    """Find a name, go k places to the left or right, and say what stands there.

    After Gopalakrishnan et al. 2025 (PoPE, arXiv 2509.10534). Four of sixteen names stand once each among
    symbols; each is asked once, by a shift of 1 to 4 places left or right and then the name, at which the
    answer is scored. What stands there is a symbol, never a name. So ordered, two layers can be enough: at
    the last token the first finds the name's place and the shift, and the second looks at the sum of both.

    Args:
        n: samples.
        length: tokens of each, at least 24.
        seed: the same seed gives the same samples.

    Raises:
        TypeError, ValueError: a size that is no int, or leaves no sample.
    """
    sized(n, length, 4 * QUERIES + 2 * QUERIES, f"{QUERIES} names, their answers and {QUERIES} queries")
    draws, room, rows = Draws(seed, "indirect-index"), length - 2 * QUERIES, np.arange(n)[:, None]
    names, shifts = SYMBOLS, SYMBOLS + ANCHORS
    body = draws.below(SYMBOLS, n, room)
    places, held = draws.distinct(n, QUERIES, room), draws.distinct(n, QUERIES, ANCHORS)
    body[rows, places] = names + held
    reach = np.concatenate([np.arange(-FARTHEST, 0), np.arange(1, FARTHEST + 1)])
    there = places[:, :, None] + reach  # [n, QUERIES, 2 FARTHEST]
    inside = (there >= 0) & (there < room)
    symbol = body[rows[:, :, None], there.clip(0, room - 1)] < SYMBOLS
    allowed = inside & symbol
    # The r-th of the allowed shifts, r drawn: each is equally likely. There is one at least, since four
    # places on one side hold more than the three other names.
    wanted = draws.below(allowed.sum(axis=2), n, QUERIES)
    chosen = (allowed.cumsum(axis=2) > wanted[:, :, None]).argmax(axis=2)
    query = np.stack([shifts + chosen, names + held], axis=2).reshape(n, 2 * QUERIES)
    tokens = np.concatenate([body, query], axis=1)
    queries = np.broadcast_to(np.arange(room + 1, length, 2), (n, QUERIES))
    answers = asked(tokens, queries, places + reach[chosen])
    counts = (body[:, :, None] == np.arange(SYMBOLS)).sum(axis=1)
    total = counts.sum(axis=1, keepdims=True)
    mode, target = counts.argmax(axis=1), answers[0][rows, queries]
    chance = {
        "uniform": 1 / SYMBOLS,
        "mode in context": float((target == mode[:, None]).mean()),
        "random source": float((np.take_along_axis(counts, target, axis=1) / total).mean()),
    }
    return Samples(tokens, *answers, chance, shifts + len(reach))


def ordered_copy(n: int, length: int, *, seed: int) -> Samples:
    """Copy the eight items of a text in their order, without the noise between them.

    Items are drawn with replacement, so that the item before does not say which comes next. After a mark the
    items follow; each is scored at the token before it. `answer_length` is 8: an exact match is a whole copy.

    Args:
        n: samples.
        length: tokens of each, at least 16.
        seed: the same seed gives the same samples.

    Raises:
        TypeError, ValueError: a size that is no int, or leaves no sample.
    """
    sized(n, length, 2 * ITEMS, f"{ITEMS} items and their copy")
    draws, room, rows = Draws(seed, "ordered-copy"), length - ITEMS, np.arange(n)[:, None]
    mark = SYMBOLS + NOISE
    body, items = SYMBOLS + draws.below(NOISE, n, room), draws.below(SYMBOLS, n, ITEMS)
    places = draws.blocks(n, ITEMS, 1, room)
    body[rows, places] = items
    tokens = np.concatenate([body, np.full((n, 1), mark), items[:, :-1]], axis=1)
    answers = asked(tokens, np.broadcast_to(np.arange(room, length), (n, ITEMS)), places)
    counts = (items[:, :, None] == items[:, None, :]).sum(axis=2)  # of each item, in its sample
    most = items[np.arange(n), counts.argmax(axis=1)]
    chance = {
        "uniform": 1 / SYMBOLS,
        "mode in context": float((items == most[:, None]).mean()),
        "random source": float(counts.mean() / ITEMS),
    }
    return Samples(tokens, *answers, chance, mark + 1, ITEMS)
