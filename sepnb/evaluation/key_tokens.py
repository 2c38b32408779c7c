"""Key bytes: those whose loss falls most with more context, under a model that takes part in no comparison.

Most bytes of a text follow from the few before them, so a mean over all bytes hides the gain of far context.
Fang et al. (2024, LongPPL) score a model on *key tokens* alone: those that a given model predicts much better
from a long context than from a short one, and well. Their thresholds are for tokens of large models. Here a
fixed share of the bytes is taken, those with the largest fall, so that a list is as long for a weak selector
as for a good one. It is made once, of the test text, and all models are scored on it.

Shape letters: n windows, N bytes read in each.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..data.draws import uniform
from ..validation import number, whole
from .long_windows import LongWindows
from .losses import Losses


def key_bytes(short: np.ndarray, long: np.ndarray, *, share: float, first: int) -> np.ndarray:
    """Which bytes gain most by the longer context.

    Args:
        short, long: their losses `[n, N]` in bits, by the short and by the long context.
        share: of the bytes from `first` on, between 0 and 1; at least one is taken.
        first: the first column in which the two contexts differ.

    Returns:
        Bool `[n, N]`; no byte before `first`, and none that gains nothing.
    """
    number("share", share, most=1, above=0, needs="give more than 0 and at most 1")
    if short.shape != long.shape or short.ndim != 2:
        raise ValueError(f"short is {list(short.shape)} and long {list(long.shape)}; give both as [n, N]")
    whole("first", first, 0, short.shape[1] - 1, needs="some byte must be left to choose")
    fall = (short - long)[:, first:]
    count = max(1, round(share * fall.size))
    chosen = np.argsort(-fall, axis=None, kind="stable")[:count]
    marked = np.zeros(fall.size, dtype=bool)
    marked[chosen] = fall.ravel()[chosen] > 0
    return np.concatenate([np.zeros((len(short), first), dtype=bool), marked.reshape(fall.shape)], axis=1)


def drawn_bytes(shape: tuple[int, int], *, share: float, first: int) -> np.ndarray:
    """The same share of bytes drawn at random, always alike, bool `[n, N]`: a stand-in for a missing list."""
    drawn = uniform(np.random.PCG64(0), shape[0] * shape[1]).reshape(shape)
    return key_bytes(drawn, np.zeros(shape), share=share, first=first)


def listed(marked: np.ndarray, held: LongWindows, names: Sequence[str]) -> list[dict[str, Any]]:
    """The marked bytes `[n, N]` of windows as rows that do not depend on the windows: for each document with
    marked bytes, its name and the rising offsets in it."""
    rows = []
    for document in np.unique(held.documents):
        own = held.documents == document
        at = held.starts[own, None] + 1 + np.arange(marked.shape[1])
        if (offsets := np.unique(at[marked[own]])).size:
            rows.append({"kind": "key", "document": names[document], "offsets": offsets.tolist()})
    return rows


def found(keys: Mapping[str, Sequence[int]], held: LongWindows, names: Sequence[str]) -> np.ndarray:
    """Where the windows hold a byte of a list, offsets by document: bool `[n, N]`."""
    length = held.tokens.shape[1] - 1
    marked = np.zeros((len(held.tokens), length), dtype=bool)
    for row, (document, start) in enumerate(zip(held.documents, held.starts, strict=True)):
        inside = np.asarray(keys.get(names[document], ()), dtype=int) - start - 1
        marked[row, inside[(inside >= 0) & (inside < length)]] = True
    return marked


def apart(losses: Losses, marked: np.ndarray, first: int) -> tuple[float, float]:
    """Bits per byte of the marked bytes, and of all others from column `first` on.

    Raises:
        ValueError: none is marked.
    """
    if not marked.any():
        raise ValueError("no byte is marked; the windows hold none of the list")
    others = ~marked
    others[:, :first] = False
    return float(losses.bits[marked].mean()), float(losses.bits[others].mean())
