"""Text to train and to evaluate on: load it, draw training batches from it, cut evaluation windows out of it.

::

    splits = load("eltec-eng")
    for batch in sample_batches(splits.train, batch_size=16, length=256, seed=0, steps=9):  # int64 [16, 257]
        ...
    held_out = windows(splits.validation, length=256, per_document=16_384)  # .tokens int64 [n, 257]

Everything here is numpy: what a run reads depends on the text, the sizes and the seed only, never on the
method that is trained, the machine or the process.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sepnb.data.corpora import Document, Splits, Text, load
from sepnb.data.dataset import Bytes, DataDamaged, DataMissing
from sepnb.data.draws import uniform
from sepnb.validation import at_least, instance, shown

__all__ = [
    "MARKERS",
    "DataDamaged",
    "DataMissing",
    "Document",
    "Entropies",
    "Splits",
    "Text",
    "Windows",
    "drawn_windows",
    "entropies",
    "load",
    "marked",
    "marks",
    "sample_batches",
    "windows",
]


def sample_batches(
    text: Text, *, batch_size: int, length: int, seed: int, steps: int
) -> Iterator[np.ndarray]:
    """Yield `steps` batches of random windows, int64 `[batch_size, length + 1]`: inputs and their targets.

    Every start inside every document is equally likely and no window crosses a border between documents.
    Documents shorter than `length + 1` bytes are skipped. Two methods given the same seed read the same bytes
    in the same order.

    Raises:
        ValueError: a size below one, or no document as long as a window.
    """
    instance("text", text, Text)
    documents = [document.data for document in text.documents]
    return drawn_windows(documents, text.name, batch_size=batch_size, length=length, seed=seed, steps=steps)


def drawn_windows(
    documents: Sequence[np.ndarray], name: str, *, batch_size: int, length: int, seed: int, steps: int
) -> Iterator[np.ndarray]:
    """`sample_batches` of documents that hold any integers, each 1-D; `name` is what a message calls them."""
    at_least(1, batch_size=batch_size, length=length, steps=steps)
    at_least(0, seed=seed)  # numpy hashes lists too, and dies of one that holds itself
    longest = max(map(len, documents), default=0)
    documents = [document for document in documents if len(document) > length]
    if not documents:
        raise ValueError(
            f"no document of {name} has {shown(length + 1)} bytes (the longest has {longest}): "
            f"a window of length {shown(length)} fits nowhere; take a length below {max(longest, 1)}"
        )
    # start s of the text is start s - first[k] of the document k with first[k] <= s < first[k + 1]
    first = np.cumsum([0] + [len(data) - length for data in documents])
    generator = np.random.PCG64(seed)

    def batch() -> np.ndarray:
        starts = np.minimum((uniform(generator, batch_size) * first[-1]).astype(np.int64), first[-1] - 1)
        holders = np.searchsorted(first, starts, side="right") - 1
        offsets = starts - first[holders]
        rows = zip(holders, offsets, strict=True)
        return np.stack([documents[k][at : at + length + 1] for k, at in rows]).astype(np.int64)

    return (batch() for _ in range(steps))


class Windows(NamedTuple):
    """Evaluation windows: `tokens` int64 `[n, length + 1]`; `document` and `start`, int64 `[n]`, say where
    each one begins (index into `text.documents`, byte offset in that document)."""

    tokens: np.ndarray
    document: np.ndarray
    start: np.ndarray


def windows(
    text: Text, *, length: int, limit_bytes: int | None = None, per_document: int | None = None
) -> Windows:
    """Cut each document into windows of `length` scored bytes that follow each other without a gap.

    Window `k` of a document holds its bytes `k*length .. (k+1)*length`, both included: the first is context
    only, so that the document's bytes `1 .. n*length` are scored, each exactly once. What is left at its end,
    fewer than `length` bytes, is not scored.

    Args:
        length: scored bytes of one window.
        limit_bytes: scored bytes in all, shared equally: every document gives at most its share, from its
            beginning. What a short document leaves over is not given to the others.
        per_document: scored bytes of one document at most, from its beginning.

    Raises:
        ValueError: a size below one, or limits so small that no window fits.
    """
    instance("text", text, Text)
    limits = {"limit_bytes": limit_bytes, "per_document": per_document}
    at_least(1, length=length, **{name: value for name, value in limits.items() if value is not None})
    share = None if limit_bytes is None else limit_bytes // max(len(text.documents), 1)
    bounds = [bound for bound in (share, per_document) if bound is not None]
    tokens, document, start = [], [], []
    for k, held in enumerate(text.documents):
        n = min([len(held) - 1, *bounds]) // length
        if n < 1:
            continue
        cut = np.lib.stride_tricks.sliding_window_view(held.data[: n * length + 1], length + 1)[::length]
        tokens.append(cut.astype(np.int64))
        document.append(np.full(n, k))
        start.append(np.arange(n) * length)
    if not tokens:
        raise ValueError(
            f"no window of {shown(length)} scored bytes fits into {text!r} with limit_bytes="
            f"{shown(limit_bytes)} and per_document={shown(per_document)}: raise the limits or lower length"
        )
    return Windows(np.concatenate(tokens), np.concatenate(document), np.concatenate(start))


class Entropies(NamedTuple):
    """Floors in bits per byte: what knowing byte frequencies, or byte pairs, and nothing else reaches."""

    unigram: float
    bigram: float


def entropies(train: Text, test: Text) -> Entropies:
    """Cross-entropy of `test`, in bits per byte, under unigram and bigram byte models fitted on `train`.

    The unigram model adds one to every count: `p(b) = (c(b) + 1) / (C + 256)`. The bigram model falls back on
    it with the weight of one observation: `p(b | a) = (c(a, b) + p(b)) / (c(a) + 1)`, where `c(a)` counts the
    `a` that have a successor. Pairs never cross documents. Both score every byte but each document's first.

    Raises:
        ValueError: `test` has no byte to score.
    """
    unigrams = np.zeros(256, dtype=np.int64)
    for document in train.documents:
        unigrams += np.bincount(document.data, minlength=256)
    pairs = _pair_counts(train)
    scored = _pair_counts(test)
    if scored.sum() == 0:
        raise ValueError(f"{test!r} has no byte with a predecessor: there is nothing to score")
    p_byte = (unigrams + 1) / (unigrams.sum() + 256)
    p_next = (pairs + p_byte) / (pairs.sum(axis=1, keepdims=True) + 1)
    unigram = -(scored.sum(axis=0) * np.log2(p_byte)).sum() / scored.sum()
    bigram = -(scored * np.log2(p_next)).sum() / scored.sum()
    return Entropies(float(unigram), float(bigram))


def _pair_counts(text: Text) -> np.ndarray:
    """How often byte `b` follows byte `a` inside a document: int64 `[256, 256]`, row `a`, column `b`."""
    counts = np.zeros(256 * 256, dtype=np.int64)
    for document in text.documents:
        data = document.data.astype(np.int64)
        counts += np.bincount(data[:-1] * 256 + data[1:], minlength=256 * 256)
    return counts.reshape(256, 256)


MARKERS = (b"<unk>", b"@-@", b"@,@", b"@.@")
"""WikiText-2 writes rare words as `<unk>` and joins words and numbers by the others. A byte model learns to
spell these quickly, so their bytes are reported apart from the rest."""


def marked(data: Bytes, markers: Sequence[bytes] = MARKERS) -> np.ndarray:
    """Where `data` (uint8 `[n]`) spells one of `markers`: bool `[n]`, true on every byte of an occurrence."""
    raw = data.tobytes()
    mask = np.zeros(len(raw), dtype=bool)
    for marker in markers:
        at = raw.find(marker)
        while at >= 0:
            mask[at : at + len(marker)] = True
            at = raw.find(marker, at + 1)
    return mask


def marks(text: Text, markers: Sequence[bytes] = MARKERS) -> Text:
    """`text` with 1 for every byte that is `marked` and 0 for every other: a window cut out of it is the mask
    of the window cut out of `text` in the same way, also where a mark lies across the border of two windows.
    """
    documents = []
    for document in text.documents:
        data = marked(document.data, markers).astype(np.uint8)
        data.flags.writeable = False
        documents.append(Document(document.name, document.author, data))
    return Text(f"{text.name}, marked", tuple(documents))
