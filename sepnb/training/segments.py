"""Consecutive segments: every sequence of a batch reads on in its text, step after step; for training with a
memory (`sepnb.training.memory`), and without one as its control. Shape letters: B sequences of L tokens."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import numpy as np

from ..data import text as texts
from ..data.draws import at_least
from .positions import Batch, PositionSampler


@dataclass(frozen=True)
class Segments(PositionSampler):
    """Each sequence is read in `count` segments of L tokens, one in a step, at positions 0 to count L - 1.

    Then all sequences begin elsewhere, at position 0 again; a memory is emptied there. Every start from which
    all segments fit into a document is equally likely: documents shorter than count L + 1 bytes are never
    read.
    """

    name: ClassVar[str] = "segments"

    count: int

    def __post_init__(self) -> None:
        at_least(1, count=self.count)

    def batches(
        self, text: texts.Text, *, batch_size: int, length: int, seed: int, steps: int
    ) -> Iterator[Batch]:
        """The texts are those that `text.sample_batches` draws at this seed, of `count` times the length."""
        at_least(1, batch_size=batch_size, length=length, steps=steps)
        sizes = {"batch_size": batch_size, "length": self.count * length, "seed": seed}
        drawn = texts.sample_batches(text, **sizes, steps=-(-steps // self.count))
        return islice(self._cut(drawn, length), steps)

    def _cut(self, drawn: Iterator[np.ndarray], length: int) -> Iterator[Batch]:
        for tokens in drawn:  # [B, count L + 1]
            for start in range(0, self.count * length, length):
                at = np.arange(start, start + length)
                yield Batch(tokens[:, at], tokens[:, at + 1], at)

    def positions(self, *, batch_size: int, length: int, seed: int, steps: int) -> Iterator[np.ndarray]:
        at_least(1, batch_size=batch_size, length=length, steps=steps)
        return (step % self.count * length + np.arange(length) for step in range(steps))

    def trained_indices(self, length: int) -> int:
        return self.count * length

    def trained_distances(self, length: int) -> int:
        """Those within a segment. A memory shows more; a training has it beside its positions."""
        return length
