"""Replaced and shuffled context: does a model use far context? Replace that context and measure the cost.

A model that only survives a long text has the same loss whatever its beginning holds. A model that uses the
beginning has a higher loss once it comes from another document. If the beginning has its own words in another
order, the model keeps what it gained from the words and loses what it gained from their order. Shape letters:
n windows, N bytes read in each.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import nn

from ..data.draws import uniform
from ..validation import at_least
from .losses import Losses, evaluate

SPACE = ord(" ")


def of_another_document(windows: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """For each window `[n, N+1]` one of the next document, the window of the same number there or its last;
    ValueError where all windows are of one document."""
    names, index = np.unique(documents, return_inverse=True)
    if len(names) < 2:
        raise ValueError("all windows are of one document; text of another one needs windows of at least 2")
    held = [np.flatnonzero(index == k) for k in range(len(names))]
    chosen = np.empty(len(windows), dtype=int)
    for k, own in enumerate(held):
        others = held[(k + 1) % len(names)]
        chosen[own] = others[np.minimum(np.arange(len(own)), len(others) - 1)]
    return windows[chosen]


def with_replaced_context(
    model: nn.Module,
    windows: np.ndarray,
    documents: np.ndarray,
    *,
    recent: int,
    stride: int,
    **how: Any,
) -> Losses:
    """The losses of `evaluate` if all but the recent past of each byte comes from another document.

    The windows are scored in chunks of `stride` bytes. The first byte of a chunk is predicted from `recent`
    bytes of its own text, the last byte from `recent` + `stride` - 1; everything before holds the bytes of
    `of_another_document`. Indices, lengths and distances are as in `evaluate`: the content alone differs.
    The first `recent` bytes have no older past and are scored unchanged.

    Args:
        model, windows, documents: as in `evaluate`, and so is `how`: device, precision and batch_size.
        recent: bytes of their own past that all scored bytes keep at least.
        stride: bytes scored in one pass.
    """
    foreign = of_another_document(windows, documents)
    return with_another_past(
        model, windows, documents, lambda kept: foreign[:, :kept], recent=recent, stride=stride, **how
    )


def with_shuffled_context(model: nn.Module, windows: np.ndarray, documents: np.ndarray, **how: Any) -> Losses:
    """The same as `with_replaced_context`, with its arguments, but what lies before the recent past are its
    own words in another order, that of `shuffled_words`."""
    return with_another_past(model, windows, documents, lambda kept: shuffled_words(windows[:, :kept]), **how)


def shuffled_words(windows: np.ndarray, seed: int = 0) -> np.ndarray:
    """The words of each row of bytes `[n, N]` in another order, drawn for each row anew; a word is what ends
    with a space, or with the row."""
    at_least(0, seed=seed)
    generator = np.random.PCG64([seed, windows.shape[1]])
    rows = []
    for row in windows:
        words = np.split(row, np.flatnonzero(row == SPACE) + 1)
        order = np.argsort(uniform(generator, len(words)), kind="stable")
        rows.append(np.concatenate([words[k] for k in order]))
    return np.stack(rows)


def with_another_past(
    model: nn.Module,
    windows: np.ndarray,
    documents: np.ndarray,
    past: Callable[[int], np.ndarray],
    *,
    recent: int,
    stride: int,
    **how: Any,
) -> Losses:
    """The losses where the first `kept` bytes of a pass are those of `past(kept)`, `[n, kept]`; all else as
    in `with_replaced_context`."""
    at_least(1, recent=recent, stride=stride)
    length = windows.shape[1] - 1
    pieces = [evaluate(model, windows[:, : min(recent, length) + 1], documents, **how).bits]
    for start in range(recent, length, stride):
        stop, kept = min(start + stride, length), start - recent + 1
        mixed = np.concatenate([past(kept), windows[:, kept : stop + 1]], axis=1)
        pieces.append(evaluate(model, mixed, documents, **how).bits[:, start:])
    return Losses(np.concatenate(pieces, axis=1), documents)
