"""Do predictions stay the same in a text longer than the trained length?

The same bytes are read twice: in a fresh window at trained positions, and far into a long text. The
prediction of the next byte can change for two reasons only: there is more context, or the model is disturbed.
The distance between the two predictions measures the change, whichever byte follows.

Shape letters: n windows, N bytes read in each, V vocabulary.
"""

from typing import Any

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from torch import Tensor, nn

from ..training.device import autocast
from ..validation import whole


@torch.no_grad()
def log_probabilities(
    model: nn.Module,
    tokens: np.ndarray,
    *,
    device: str = "cpu",
    precision: str = "float32",
    batch_size: int = 64,
) -> Tensor:
    """Log probabilities of the next byte after each of `[n, N]` bytes, read at positions 0 to N-1: float32
    `[n, N, V]`, in nats. The model is put into evaluation mode."""
    reading, pieces = model.to(device).eval(), []
    for start in range(0, len(tokens), batch_size):
        batch = torch.from_numpy(tokens[start : start + batch_size].astype(np.int64)).to(device)
        with autocast(device, precision):
            logits = reading(batch)
        pieces.append(logits.float().log_softmax(-1).cpu())
    return torch.cat(pieces)


def moved(model: nn.Module, reader: nn.Module, tokens: np.ndarray, *, length: int, **how: Any) -> np.ndarray:
    """How far predictions move in a long text: KL(fresh || long) in bits, float64 `[n, N - length]`, for each
    byte that is predicted past the trained length.

    *fresh* is the model's prediction from the last length/2 + 1 to `length` bytes, at positions from 0 on;
    *long* is the reader's, from all bytes at their own positions. 0 means no change.

    Args:
        model: as it was trained.
        reader: the same weights under a rule of evaluation, or with other rows.
        tokens: integers `[n, N]`, N a multiple of half the length.
        length: trained length L, even.
        how: device, precision and batch_size, in windows of N bytes, as in `evaluate`.

    Raises:
        ValueError: tokens that such windows do not cover.
    """
    half = whole("length", length, 2, needs="half of it is a stride") // 2
    if length % 2 or tokens.ndim != 2 or tokens.shape[1] % half or tokens.shape[1] <= length:
        raise ValueError(
            f"tokens have the shape {list(tokens.shape)} and length is {length}; give [n, N], N a multiple "
            f"of length / 2 and above length"
        )
    size = how.pop("batch_size", 64)
    pieces = []
    for start in range(0, len(tokens), size):  # one piece at a time: V numbers a byte are many
        piece = tokens[start : start + size]
        far = log_probabilities(reader, piece, batch_size=size, **how)[:, length:]
        windows = sliding_window_view(piece, length, axis=1)[:, half::half]
        fresh = log_probabilities(model, windows.reshape(-1, length), batch_size=8 * size, **how)[:, half:]
        fresh, far = fresh.reshape(far.shape).double(), far.double()
        pieces.append((fresh.exp() * (fresh - far)).sum(-1).numpy() / np.log(2))
    return np.concatenate(pieces)
