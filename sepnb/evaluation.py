"""Bits per byte, kept by window and by position, so that every summary comes from the same losses."""

from collections.abc import Sequence
from dataclasses import dataclass
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

    def by_position(self, edges: Sequence[int]) -> list[dict[str, float]]:
        """The mean over [start, stop) of the position in the window, for each pair of neighbouring edges."""
        if list(edges) != sorted(set(edges)) or edges[0] < 0 or edges[-1] > self.bits.shape[1]:
            raise ValueError(f"edges {list(edges)} must rise from 0 to at most {self.bits.shape[1]}")
        return [
            {"start": start, "stop": stop, "bits_per_byte": float(self.bits[:, start:stop].mean())}
            for start, stop in zip(edges[:-1], edges[1:], strict=True)
        ]

    def by_document(self) -> list[dict[str, float]]:
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
        ValueError: no windows, or one document label short.
    """
    if len(windows) == 0:
        raise ValueError("there are no windows to score; is the text shorter than one window?")
    documents = np.zeros(len(windows), dtype=int) if documents is None else np.asarray(documents)
    if len(documents) != len(windows):
        raise ValueError(f"{len(windows)} windows have {len(documents)} document labels; give one each")
    model.to(device).eval()
    pieces = []
    for start in range(0, len(windows), batch_size):
        batch = torch.as_tensor(windows[start : start + batch_size], dtype=torch.long, device=device)
        with autocast(device, precision):
            pieces.append(next_token_losses(model, batch).double().cpu().numpy())
    return Losses(np.concatenate(pieces) / log(2), documents)
