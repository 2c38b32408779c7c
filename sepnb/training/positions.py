"""At which positions a model is trained: from 0 on, at a random offset, at random positions, with a position
gap, or in two chunks at their true distance. Random-offset steps are in `sepnb.training.shifts`.

A sampler is a frozen description that yields batches; `TrainingConfig.positions` holds it. Positions come
from a generator of their own: a random offset leaves the bytes of a run, and their order, as they are.

Shape letters: B sequences, L tokens in each, the trained length.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from ..data import text as texts
from ..data.draws import generator_of, uniform
from ..records.settings import plain
from ..validation import at_least, instance, one_of
from .batch import Batch


@dataclass(frozen=True)
class PositionSampler(ABC):
    """Base of all samplers. Like the bytes, positions depend on sizes and seed only."""

    name: ClassVar[str]
    at_evaluation: ClassVar[bool] = False
    """Whether texts are read at drawn positions too, not at those from 0 on."""

    def batches(
        self, text: texts.Text, *, batch_size: int, length: int, seed: int, steps: int
    ) -> Iterator[Batch]:
        """`steps` batches of `batch_size` sequences of `length` tokens: the bytes of `text.sample_batches` of
        this seed at `positions`, unless a sampler draws other bytes."""
        sizes = {"batch_size": batch_size, "length": length, "seed": seed, "steps": steps}
        pairs = zip(self.positions(**sizes), texts.sample_batches(text, **sizes), strict=True)
        return (Batch(tokens[:, :-1], tokens[:, 1:], positions) for positions, tokens in pairs)

    @abstractmethod
    def positions(self, *, batch_size: int, length: int, seed: int, steps: int) -> Iterator[np.ndarray]:
        """The positions of `batches` alone, which depend on no text."""

    @abstractmethod
    def trained_indices(self, length: int) -> int:
        """Positions that can occur lie below this."""

    @abstractmethod
    def trained_distances(self, length: int) -> int:
        """Distances between a query and a key that can occur lie below this."""

    def resolved(self) -> dict[str, Any]:
        """Every setting in plain JSON types."""
        return {"name": self.name} | {key: plain(value) for key, value in asdict(self).items()}


@dataclass(frozen=True)
class DrawnPositions(PositionSampler):
    """The bytes that a seed draws for every method, read at positions below a maximum drawn beside them.

    Args:
        maximum: one more than the largest position that can occur; at least 1.
        per: "step", one draw for the whole batch, or "sequence". Only positions that the whole batch shares
            let a model run isolated position streams once for the batch.
    """

    maximum: int
    per: str = "step"

    def __post_init__(self) -> None:
        at_least(1, maximum=self.maximum)
        one_of("per", self.per, ("step", "sequence"))

    def positions(self, *, batch_size: int, length: int, seed: int, steps: int) -> Iterator[np.ndarray]:
        """ValueError where sequences are longer than `maximum`."""
        at_least(1, batch_size=batch_size, length=length, steps=steps)
        if length > self.maximum:
            raise ValueError(
                f"maximum is {self.maximum}, and sequences of {length} tokens have as many positions; "
                f"give at least {length}"
            )
        return self._steps(batch_size, length, seed, steps)

    def trained_indices(self, length: int) -> int:
        return self.maximum

    def _steps(self, batch_size: int, length: int, seed: int, steps: int) -> Iterator[np.ndarray]:
        generator, each = generator_of(seed, "positions"), self.per == "sequence"
        for _ in range(steps):
            drawn = self._draw(generator, batch_size if each else 1, length)
            yield drawn if each else drawn[0]

    @abstractmethod
    def _draw(self, generator: np.random.PCG64, rows: int, length: int) -> np.ndarray:
        """Positions for as many sequences, int64 `[rows, L]`, each row ascending."""


@dataclass(frozen=True)
class RandomOffset(DrawnPositions):
    """Each sequence is read at `length` neighbouring positions that begin at a random one (SHAPE; Kiyono et
    al. 2021).

    The offset is uniform, and all positions below `maximum` can occur.
    """

    name: ClassVar[str] = "random-offset"

    def trained_distances(self, length: int) -> int:
        return length

    def _draw(self, generator: np.random.PCG64, rows: int, length: int) -> np.ndarray:
        offsets = (uniform(generator, rows) * (self.maximum - length + 1)).astype(np.int64)
        return offsets[:, None] + np.arange(length)


@dataclass(frozen=True)
class RandomPositions(DrawnPositions):
    """Each sequence is read at `length` random positions below `maximum`, without repetition and in order.

    Every choice is as likely (Ruoss et al. 2023, who draw one a step). Longer texts are read in the same way:
    up to `maximum` tokens no position and no distance is new, but the positions of a longer text lie closer.
    """

    name: ClassVar[str] = "random-positions"
    at_evaluation: ClassVar[bool] = True

    def trained_distances(self, length: int) -> int:
        return self.maximum if length > 1 else 1

    def _draw(self, generator: np.random.PCG64, rows: int, length: int) -> np.ndarray:
        # Where the `length` least of `maximum` random numbers stand, every choice of places is as likely.
        ranked = uniform(generator, rows * self.maximum).reshape(rows, -1).argsort(axis=-1, kind="stable")
        return np.sort(ranked[:, :length], axis=-1).astype(np.int64)


@dataclass(frozen=True)
class PositionGap(DrawnPositions):
    """Each sequence is cut in two, and the second part is read at positions that lie further on (PoSE of two
    chunks; Zhu et al. 2023).

    The cut is uniform over the places between two tokens, the gap uniform from 0 to `maximum` - L. The text
    is whatever it was: the first token of the second part follows the last of the first.
    """

    name: ClassVar[str] = "position-gap"

    per: str = "sequence"

    def trained_distances(self, length: int) -> int:
        return self.maximum if length > 1 else 1

    def _draw(self, generator: np.random.PCG64, rows: int, length: int) -> np.ndarray:
        cut, gap = uniform(generator, 2 * rows).reshape(2, rows, 1)
        gaps = (gap * (self.maximum - length + 1)).astype(np.int64)
        later = np.arange(length) > np.floor(cut * (length - 1))
        return np.arange(length) + gaps * later


@dataclass(frozen=True)
class DrawnFactors(PositionSampler):
    """One draw a step: a factor f of a context extension, and the position up to f L - `length` at which the
    texts of the step begin, L being `trained`. Every factor, and every start, is as likely.

    Positions are all that it yields. Whoever trains gives the model the factor of the step, by `draws`: see
    `sepnb.training.adapting`.

    Args:
        factors: ints of at least 1, such as (8, 16).
        trained: L.
    """

    name: ClassVar[str] = "drawn-factors"

    factors: tuple[int, ...]
    trained: int

    def __post_init__(self) -> None:
        if not instance("factors", self.factors, tuple, "(8, 16)"):
            raise ValueError("factors is empty; give one at least, such as (8, 16)")
        at_least(1, trained=self.trained, **{f"factor {n}": factor for n, factor in enumerate(self.factors)})

    def draws(self, *, length: int, seed: int, steps: int) -> Iterator[tuple[int, int]]:
        """The factor f and the start of every step. ValueError: texts longer than f L for one of them."""
        at_least(1, length=length, steps=steps)
        if (least := min(self.factors) * self.trained) < length:
            raise ValueError(
                f"length is {length}, and {min(self.factors)} times {self.trained} positions are {least}: "
                f"give texts of at most {least}, or factors of at least {-(-length // self.trained)}"
            )
        return self._draws(length, seed, steps)

    def _draws(self, length: int, seed: int, steps: int) -> Iterator[tuple[int, int]]:
        generator = generator_of(seed, "positions")
        for _ in range(steps):
            which, at = uniform(generator, 2)
            factor = self.factors[int(which * len(self.factors))]
            yield factor, int(at * (factor * self.trained - length + 1))

    def positions(self, *, batch_size: int, length: int, seed: int, steps: int) -> Iterator[np.ndarray]:
        at_least(1, batch_size=batch_size)
        return (start + np.arange(length) for _, start in self.draws(length=length, seed=seed, steps=steps))

    def trained_indices(self, length: int) -> int:
        return max(self.factors) * self.trained

    def trained_distances(self, length: int) -> int:
        return length


@dataclass(frozen=True)
class TrueGap(PositionSampler):
    """Each sequence is two chunks of L/2 tokens of one document, read at their true distance.

    The first chunk stands at positions 0 to L/2 - 1, the second, `gap` bytes further on in the document, at
    L/2 + gap to L + gap - 1. The gap lies in [0, `maximum`), and gap + 1 is log-uniform. Both chunks are
    predicted, each byte from those before it in its chunk and, in the second, from the whole first chunk.

    A seed draws other bytes than without a sampler; documents shorter than L + `maximum` bytes are never
    read; and the longest contiguous context is L/2.

    Args:
        maximum: the gap is smaller, in bytes; at least 1.
        indices: "true", or as a control "contiguous": the same chunks at positions 0 to L - 1.
        second: "same" document, or as a control "other": the second chunk is of another document.
    """

    name: ClassVar[str] = "true-gap"

    maximum: int
    indices: str = "true"
    second: str = "same"

    def __post_init__(self) -> None:
        at_least(1, maximum=self.maximum)
        one_of("indices", self.indices, ("true", "contiguous"))
        one_of("second", self.second, ("same", "other"))

    def batches(
        self, text: texts.Text, *, batch_size: int, length: int, seed: int, steps: int
    ) -> Iterator[Batch]:
        """Every start from which the largest gap still fits, in every document that holds it, is equally
        likely, whatever the gap. ValueError: an odd length, or too few documents that are long enough."""
        _even(batch_size, length, steps)
        room = length + self.maximum  # of the largest gap, the last target included
        documents = [document.data for document in text.documents if len(document) >= room]
        needed = 1 if self.second == "same" else 2
        if len(documents) < needed:
            raise ValueError(
                f"{len(documents)} documents of {text.name} have {room} bytes, a sequence of {length} with a "
                f"gap below {self.maximum}; {needed} needed: lower the maximum"
            )
        return self._chunks(documents, room, batch_size, length // 2, seed, steps)

    def positions(self, *, batch_size: int, length: int, seed: int, steps: int) -> Iterator[np.ndarray]:
        _even(batch_size, length, steps)
        return (self._placed(gaps, length // 2) for _, gaps, _ in self._draws(batch_size, seed, steps))

    def trained_indices(self, length: int) -> int:
        return length + (self.maximum - 1 if self.indices == "true" else 0)

    def trained_distances(self, length: int) -> int:
        return self.trained_indices(length)

    def _draws(
        self, batch_size: int, seed: int, steps: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Per step, `[B]` each: where the first chunk begins, in [0, 1); the gap; where another begins."""
        generator = generator_of(seed, "positions")
        for _ in range(steps):
            begun, gapped, elsewhere = uniform(generator, 3 * batch_size).reshape(3, -1)
            yield begun, ((self.maximum + 1.0) ** gapped).astype(np.int64) - 1, elsewhere

    def _placed(self, gaps: np.ndarray, half: int) -> np.ndarray:
        """The positions of both chunks, `[B, L]`."""
        within = np.arange(half)
        shown = np.zeros_like(gaps) if self.indices == "contiguous" else gaps
        second = half + shown[:, None] + within
        return np.concatenate([np.broadcast_to(within, second.shape), second], axis=1)

    def _chunks(
        self, documents: list[np.ndarray], room: int, batch_size: int, half: int, seed: int, steps: int
    ) -> Iterator[Batch]:
        # start s of all documents is start s - first[k] of the document k with first[k] <= s < first[k + 1]
        first = np.cumsum([0] + [len(data) - room + 1 for data in documents])
        sizes = np.diff(first)
        for begun, gaps, elsewhere in self._draws(batch_size, seed, steps):
            starts = (begun * first[-1]).astype(np.int64)
            holders = np.searchsorted(first, starts, side="right") - 1
            offsets = starts - first[holders]
            others, later = holders, offsets + half + gaps
            if self.second == "other":  # a start in any document but this one, at no particular distance
                drawn = (elsewhere * (first[-1] - sizes[holders])).astype(np.int64)
                drawn += np.where(drawn >= first[holders], sizes[holders], 0)
                others = np.searchsorted(first, drawn, side="right") - 1
                later = drawn - first[others]
            tokens = np.stack(
                [
                    [documents[k][at : at + half + 1] for k, at in ((a, one), (b, two))]
                    for a, one, b, two in zip(holders, offsets, others, later, strict=True)
                ]
            ).astype(np.int64)  # [B, 2, L/2 + 1]
            yield Batch(
                tokens[:, :, :-1].reshape(batch_size, -1),
                tokens[:, :, 1:].reshape(batch_size, -1),
                self._placed(gaps, half),
            )


def _even(batch_size: int, length: int, steps: int) -> None:
    at_least(1, batch_size=batch_size, length=length, steps=steps)
    if length % 2:
        raise ValueError(f"length is {length}; two chunks of one size need an even number of tokens")
