"""Replaced context: does a model use what lies far back? Put another document there and see what it costs.

A model that only survives a long text has the same loss whatever stands at its beginning. One that uses it
has a larger one once that beginning is replaced. Shape letters: n windows, N bytes read in each.
"""

from typing import Any

import numpy as np
from torch import nn

from ..validation import at_least
from .losses import Losses, evaluate


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
    """The losses of `evaluate` where everything but the recent past of a byte is of another document.

    The windows are scored in chunks of `stride` bytes. The first byte of a chunk is predicted from `recent`
    bytes of its own text, the last from `recent` + `stride` - 1, and the places before these hold the bytes
    of `of_another_document`. Indices, lengths and distances are as in `evaluate`: the content alone differs.
    The first `recent` bytes have no older past and are scored as they are.

    Args:
        model, windows, documents: as in `evaluate`, and so is `how`: device, precision and batch_size.
        recent: bytes of their own past that all scored bytes keep at least.
        stride: bytes scored in one pass.
    """
    at_least(1, recent=recent, stride=stride)
    foreign, length = of_another_document(windows, documents), windows.shape[1] - 1
    pieces = [evaluate(model, windows[:, : min(recent, length) + 1], documents, **how).bits]
    for start in range(recent, length, stride):
        stop, kept = min(start + stride, length), start - recent + 1
        mixed = np.concatenate([foreign[:, :kept], windows[:, kept : stop + 1]], axis=1)
        pieces.append(evaluate(model, mixed, documents, **how).bits[:, start:])
    return Losses(np.concatenate(pieces, axis=1), documents)
