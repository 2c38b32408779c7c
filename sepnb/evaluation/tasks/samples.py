"""What every task gives, and the draws that tasks share.

Shape letters: n samples, N tokens of each.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ... import validation
from ...data.draws import uniform

MOST = 2**28
"""No call makes more tokens, 2 GB: what asks for more is a slip."""


@dataclass(frozen=True)
class Samples:
    """Questions whose answers stand in the text, for a model that predicts at every token.

    Attributes:
        tokens: int64 `[n, N]`.
        targets: int64 `[n, N]`, what is right at a scored token; elsewhere the next token, or where a text
            ends any token.
        scored: bool `[n, N]`, the tokens at which an answer is asked.
        source: int64 `[n, N]`, the index of the token that answers, -1 where nothing is scored:
            `tokens[source] == targets` there.
        chance: accuracy of guesses that need no position or no question, by name.
        vocab_size: tokens are below it.
        answer_length: how many scored tokens, in their order, make one answer.
    """

    tokens: np.ndarray
    targets: np.ndarray
    scored: np.ndarray
    source: np.ndarray
    chance: Mapping[str, float]
    vocab_size: int
    answer_length: int = 1

    def __len__(self) -> int:
        return len(self.tokens)


class Draws:
    """The random numbers of one call: the same for the same seed and task.

    Args:
        seed: an int from 0 up.
        task: its name.
    """

    def __init__(self, seed: int, task: str) -> None:
        self._generator = np.random.PCG64([validation.whole("seed", seed, 0), *task.encode()])

    def below(self, bound: int | np.ndarray, *shape: int) -> np.ndarray:
        """Ints from 0 to `bound` - 1, int64 of a shape that `bound` broadcasts with."""
        drawn = uniform(self._generator, int(np.prod(shape))).reshape(shape)
        return np.floor(drawn * bound).astype(np.int64)

    def distinct(self, n: int, count: int, of: int) -> np.ndarray:
        """In each of `n` rows `count` different ints from 0 to `of` - 1, int64 `[n, count]`."""
        drawn = uniform(self._generator, n * of).reshape(n, of)
        return np.argsort(drawn, axis=1, kind="stable")[:, :count]

    def blocks(self, n: int, count: int, size: int, room: int) -> np.ndarray:
        """First indices of `count` blocks of `size` tokens that do not overlap, rising, int64 `[n, count]`.

        All arrangements in `room` tokens are equally likely.
        """
        free = room - count * (size - 1)
        return np.sort(self.distinct(n, count, free), axis=1) + np.arange(count) * (size - 1)


def sized(n: int, length: int, least: int, holds: str) -> None:
    """Refuse a call that makes no sample.

    Args:
        n, length: of the call.
        least: the shortest text of the task.
        holds: what must fit in.

    Raises:
        TypeError, ValueError: `n` or `length` is no int, `n` is below 1, or `length` below `least`; or both
            together are more than `MOST`.
    """
    validation.whole("length", length, least, MOST, needs=f"{holds} take at least {least} tokens")
    validation.whole("n", n, 1, MOST // length)


def asked(
    tokens: np.ndarray, queries: np.ndarray, sources: np.ndarray, scored: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Targets, scored and source of a text that asks for single tokens.

    Args:
        tokens: `[n, N]`.
        queries, sources: int `[n, q]`, the indices of the questions and of their answers.
        scored: bool `[n, q]`, which of the queries count; all where it is left out.

    Returns:
        `targets`, `scored` and `source` of `Samples`, `[n, N]` each.
    """
    rows = np.arange(len(tokens))[:, None]
    counts = np.ones_like(queries, dtype=bool) if scored is None else scored
    targets, marks = np.roll(tokens, -1, axis=1), np.zeros(tokens.shape, bool)
    source = np.full(tokens.shape, -1)
    targets[rows, queries] = np.where(counts, tokens[rows, sources], targets[rows, queries])
    marks[rows, queries] = counts
    source[rows, queries] = np.where(counts, sources, -1)
    return targets, marks, source
