"""Bits per byte, kept by window and by position, so that every summary comes from the same losses."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log

import numpy as np
import torch
from torch import nn

from .training import autocast, next_token_losses


@dataclass(frozen=True)
class Losses:
    """What a model pays for each byte of a set of windows.

    Attributes:
        bits: `[n, L]` float64; bits[w, i] is the cost of byte i+1 of window w, given the i+1 bytes before it.
        documents: `[n]`, the document of each window.
    """

    bits: np.ndarray
    documents: np.ndarray

    @property
    def bits_per_byte(self) -> float:
        """The mean over all scored bytes."""
        return float(self.bits.mean())

    def by_position(self, edges: Sequence[int]) -> list[dict[str, float | int]]:
        """The mean over [start, stop) of the position in the window, for each pair of neighbouring edges."""
        rising = len(edges) > 1 and list(edges) == sorted(set(edges))
        if not rising or edges[0] < 0 or edges[-1] > self.bits.shape[1]:
            raise ValueError(
                f"edges {list(edges)} must be two or more, rising, from 0 up and to at most "
                f"{self.bits.shape[1]}"
            )
        return [
            {"start": start, "stop": stop, "bits_per_byte": float(self.bits[:, start:stop].mean())}
            for start, stop in pairwise(edges)
        ]

    def by_document(self) -> list[dict[str, float | int]]:
        """Bytes scored and bits paid in each document: what a bootstrap over documents needs."""
        return [
            {
                "document": int(document),
                "bytes": int((self.documents == document).sum() * self.bits.shape[1]),
                "bits": float(self.bits[self.documents == document].sum()),
            }
            for document in np.unique(self.documents)
        ]


@torch.no_grad()
def evaluate(
    model: nn.Module,
    windows: np.ndarray,
    documents: np.ndarray | None = None,
    *,
    device: str = "cpu",
    precision: str = "float32",
    batch_size: int = 64,
) -> Losses:
    """Score windows `[n, L+1]` of bytes: each byte but the first, given those before it in its window.

    Args:
        model: takes tokens `[B, L]`, returns logits `[B, L, V]`; it is put into evaluation mode.
        windows: integers `[n, L+1]`.
        documents: `[n]`, the document of each window; by default all of one.
        device, precision, batch_size: how it is computed; the result differs by rounding only.

    Raises:
        ValueError: no windows, windows without a byte to predict, or not one document label for each.
    """
    if len(windows) == 0:
        raise ValueError("there are no windows to score; is the text shorter than one window?")
    if windows.ndim != 2 or windows.shape[1] < 2:
        raise ValueError(f"windows of shape {list(windows.shape)} predict nothing; give [n, L+1] with L >= 1")
    documents = np.zeros(len(windows), dtype=int) if documents is None else np.asarray(documents)
    if len(documents) != len(windows):
        raise ValueError(f"{len(windows)} windows have {len(documents)} document labels; give one each")
    model.to(device).eval()
    pieces = []
    for start in range(0, len(windows), batch_size):
        piece = windows[start : start + batch_size].astype(np.int64)  # a copy: the windows may be read-only
        batch = torch.from_numpy(piece).to(device)
        with autocast(device, precision):
            pieces.append(next_token_losses(model, batch).double().cpu().numpy())
    return Losses(np.concatenate(pieces) / log(2), documents)
