"""The long windows that a run reads past its trained length, so that seeds do not share their bytes.

The beginning of each document that is long enough is cut into six blocks of windows. A run reads whole
blocks: which ones its seed decides.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from ..data import text
from ..validation import at_least

BLOCKS = 6


@dataclass(frozen=True)
class Beyond:
    """How much text past the trained length a run reads.

    Args:
        length: the trained length L, in which bins, windows and starts are counted.
        times: the long windows are this many times as long, a power of two.
        documents: test documents that are read, the first of those that hold six blocks.
        windows: long windows of one block of a document; the scope "all" of a protocol.
        part: of these, the first ones, which every protocol scores: the scope "part".
        tight: documents of whose block the first window is read at stride 1: the scope "tight". They change
            from block to block.
        batch_bytes: bytes in one forward pass, for speed only.
    """

    length: int
    times: int
    documents: int
    windows: int
    part: int
    tight: int
    batch_bytes: int

    def __post_init__(self) -> None:
        at_least(1, **asdict(self))
        if self.times & (self.times - 1):
            raise ValueError(
                f"times is {self.times}; the bins double, so give a power of two, such as "
                f"{1 << self.times.bit_length()}"
            )
        for few, many in (("part", "windows"), ("tight", "documents")):
            if getattr(self, few) > getattr(self, many):
                raise ValueError(
                    f"{few} is {getattr(self, few)} and {many} is {getattr(self, many)}; "
                    f"lower {few} to {getattr(self, many)} at most"
                )

    @property
    def longest(self) -> int:
        """Bytes of a long window."""
        return self.times * self.length

    @property
    def edges(self) -> list[int]:
        """Borders of the bins [0, L), [L, 2L), [2L, 4L) and so on."""
        return [0, *(self.length * 2**k for k in range(self.times.bit_length()))]


def blocks_of(seed: int, count: int = 1) -> tuple[int, ...]:
    """The `count` blocks that a seed reads, counted from 0; `BLOCKS // count` seeds in a row read all."""
    apart = BLOCKS // count
    return tuple(range((seed - 1) % apart, BLOCKS, apart))


class LongWindows(NamedTuple):
    """The windows of a run: tokens `[n, times * L + 1]`, the document of each, for each scope a mask of its
    windows, where each window starts in its document, and `marked`, bool `[n, times * L]`: the scored bytes
    that are reported separately, if any are."""

    tokens: np.ndarray
    documents: np.ndarray
    scopes: dict[str, np.ndarray]
    marked: np.ndarray | None = None
    starts: np.ndarray | None = None


def long_windows(held_out: text.Text, beyond: Beyond, blocks: Sequence[int]) -> LongWindows:
    """The long windows of these blocks, in the order of the documents."""
    whole = BLOCKS * beyond.windows
    cut = text.windows(held_out, length=beyond.longest, per_document=whole * beyond.longest)
    documents, counts = np.unique(cut.document, return_counts=True)
    documents = documents[counts == whole][: beyond.documents]
    if len(documents) < beyond.documents:
        raise ValueError(
            f"{len(documents)} documents of {held_out.name} hold {BLOCKS} blocks of {beyond.windows} windows "
            f"of {beyond.longest} bytes; {beyond.documents} are needed: lower documents, windows or times"
        )
    number = cut.start // beyond.longest
    block, place = number // beyond.windows, number % beyond.windows
    chosen = np.isin(cut.document, documents) & np.isin(block, blocks)
    block, place, document = block[chosen], place[chosen], cut.document[chosen]
    turn = (np.searchsorted(documents, document) - block * beyond.tight) % len(documents)
    scopes = {
        "all": np.ones(len(document), dtype=bool),
        "part": place < beyond.part,
        "tight": (place == 0) & (turn < beyond.tight),
    }
    return LongWindows(cut.tokens[chosen], document, scopes, starts=cut.start[chosen])
