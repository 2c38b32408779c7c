"""A text as a probe reads it: its tokens, cut into windows, and what counting them alone tells."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch


def windows(text: Sequence[int] | np.ndarray, longest: int) -> np.ndarray:
    """All windows `[n, longest + 1]` of a text `[N]`, one after another; the last token of a window is the
    first of the next."""
    count = (len(text) - 1) // longest
    return np.lib.stride_tricks.sliding_window_view(text[: count * longest + 1], longest + 1)[::longest]


def as_tokens(text: Any) -> np.ndarray:
    """A text as int64 `[N]`.

    Raises:
        TypeError, ValueError: not integers, not one axis, or a negative one.
    """
    array = text.detach().cpu().numpy() if isinstance(text, torch.Tensor) else np.asarray(text)
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"text must be a 1-D array of integers, its tokens; got {type(text).__name__} of {array.dtype}. "
            f"Of bytes give np.frombuffer(data, np.uint8), of words what the model's tokenizer makes of them"
        )
    if array.ndim != 1:
        raise ValueError(f"text has the shape {list(array.shape)}; give all tokens in one row, [N]")
    if array.size and array.min() < 0:
        raise ValueError(f"text holds {array.min()}; tokens are at least 0")
    return array.astype(np.int64)


def counted(tokens: np.ndarray) -> float:
    """Bits a token that their frequencies alone leave: the loss of a model that has only counted them."""
    counts = np.unique(tokens[:, 1:], return_counts=True)[1]
    shares = counts / counts.sum()
    return float(-(shares * np.log2(shares)).sum())
