"""Bits per byte, kept by window and by position, so that every summary comes from the same losses."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import log
from typing import Any

import numpy as np
import torch
from torch import nn

from ..encodings.held import held_embeddings
from ..models import LanguageModel
from ..training.config import PRECISIONS
from ..training.device import autocast
from ..training.losses import next_token_losses
from ..training.positions import PositionSampler
from ..validation import device as on_a_device
from ..validation import instance, one_of, option, shown, whole


@dataclass(frozen=True)
class Losses:
    """The loss of each byte of a set of windows.

    Attributes:
        bits: `[n, L]` float64; bits[w, i] is that of byte i+1 of window w, given the i+1 bytes before it.
        documents: `[n]`, the document of each window.
    """

    bits: np.ndarray
    documents: np.ndarray

    @property
    def bits_per_byte(self) -> float:
        """The mean over all scored bytes."""
        return float(self.bits.mean())

    def by_position(
        self, edges: Sequence[int], marked: np.ndarray | None = None
    ) -> list[dict[str, float | int | None]]:
        """The mean over [start, stop) of the position in the window, for each pair of neighbouring edges.

        Args:
            edges: rising, from 0 up and to at most L.
            marked: bool `[n, L]`, bytes to report separately. Each row then also has `marked_share`, their
                share of the bytes, and the means over them and over the others in bits per byte, `marked`
                and `rest`, None if there is no such byte.
        """
        rising = len(edges) > 1 and list(edges) == sorted(set(edges))
        if not rising or edges[0] < 0 or edges[-1] > self.bits.shape[1]:
            raise ValueError(
                f"edges {list(edges)} must be two or more, rising, from 0 up and to at most "
                f"{self.bits.shape[1]}"
            )
        if marked is not None and marked.shape != self.bits.shape:
            raise ValueError(
                f"marks of shape {list(marked.shape)} do not fit bits of shape {list(self.bits.shape)}; "
                "give one for each scored byte"
            )
        if marked is not None and marked.dtype != bool:
            raise TypeError(f"marks are {marked.dtype}, which would be read as indices; give bool")
        rows: list[dict[str, float | int | None]] = []
        for start, stop in pairwise(edges):
            bits = self.bits[:, start:stop]
            row = {"start": start, "stop": stop, "bits_per_byte": float(bits.mean())}
            rows.append(row if marked is None else row | _apart(bits, marked[:, start:stop]))
        return rows

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


def _apart(bits: np.ndarray, marked: np.ndarray) -> dict[str, float | None]:
    """The share of the marked bytes, and the means over them and over the others."""
    means = {
        name: float(bits[chosen].mean()) if chosen.any() else None
        for name, chosen in (("marked", marked), ("rest", ~marked))
    }
    return {"marked_share": float(marked.mean()), **means}


DRAWN_FROM = 1_000_000
"""The first seed of positions that are drawn for reading; those of training are below."""


class AtDrawnPositions(nn.Module):
    """A model that reads at positions which a sampler draws, for each sequence anew.

    The draws follow one another, those of each length apart, so that they do not depend on how many sequences
    are read at once. Another `draw` draws other positions.
    """

    def __init__(self, model: nn.Module, sampler: PositionSampler, draw: int = 0) -> None:
        super().__init__()
        self.model, self.sampler, self.seed = model, sampler, DRAWN_FROM + draw
        self._draws: dict[int, Iterator[np.ndarray]] = {}

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits `[B, N, V]` of tokens `[B, N]`."""
        rows, length = tokens.shape
        if length not in self._draws:
            sizes = {"batch_size": 1, "length": length, "seed": self.seed, "steps": sys.maxsize}
            self._draws[length] = self.sampler.positions(**sizes)
        drawn = np.stack([next(self._draws[length]).reshape(length) for _ in range(rows)])
        return self.model(tokens, torch.from_numpy(drawn).to(tokens.device))


def as_trained(model: nn.Module, sampler: PositionSampler | None) -> nn.Module:
    """The model as it reads a text: from position 0 on, unless it was trained for drawn positions."""
    return model if sampler is None or not sampler.at_evaluation else AtDrawnPositions(model, sampler)


@torch.no_grad()
def evaluate(
    model: nn.Module,
    windows: np.ndarray,
    documents: np.ndarray | None = None,
    *,
    positions: np.ndarray | None = None,
    device: str = "cpu",
    precision: str = "float32",
    batch_size: int = 64,
) -> Losses:
    """Score windows `[n, L+1]` of bytes: each byte but the first, given those before it in its window.

    Args:
        model: takes tokens `[B, L]`, and positions where they are given, returns logits `[B, L, V]`; it is
            put into evaluation mode.
        windows: integers `[n, L+1]`.
        documents: `[n]`, the document of each window; by default all of one.
        positions: integers `[L]`, those of the L bytes that are read; by default the model's own, 0 to L-1.
            From s on, they isolate the effect of an unseen index: no length and no distance is unseen.
        device, precision, batch_size: how it is computed; the result differs by rounding only.
    """
    _check(windows)
    device = on_a_device("device", device)
    one_of("precision", precision, PRECISIONS)
    whole("batch_size", batch_size)
    if len(windows) == 0:
        raise ValueError("there are no windows to score; is the text shorter than one window?")
    if windows.ndim != 2 or windows.shape[1] < 2:
        raise ValueError(f"windows of shape {list(windows.shape)} predict nothing; give [n, L+1] with L >= 1")
    documents = np.zeros(len(windows), dtype=int) if documents is None else np.asarray(documents)
    if documents.shape != windows.shape[:1]:
        labels = documents.size if documents.ndim == 1 else f"an array {list(documents.shape)} of"
        raise ValueError(f"{len(windows)} windows have {labels} document labels; give one each")
    length = windows.shape[1] - 1
    if positions is not None and np.shape(positions) != (length,):
        raise ValueError(
            f"positions of shape {list(np.shape(positions))} do not fit windows that read {length} bytes; "
            f"give [{length}]"
        )
    at = None if positions is None else torch.from_numpy(np.array(positions)).to(device)
    reading, pieces = instance("model", model, nn.Module).to(device).eval(), []
    with held_embeddings(model):
        if isinstance(model, LanguageModel) and model.config.isolated:
            with autocast(device, precision):  # once for all batches
                reading = partial(model, tables=model.position_tables(length if at is None else at))
        for start in range(0, len(windows), batch_size):
            piece = windows[start : start + batch_size].astype(np.int64)  # a copy: they may be read-only
            batch = torch.from_numpy(piece).to(device)
            with autocast(device, precision):
                pieces.append(next_token_losses(reading, batch, at).double().cpu().numpy())
    return Losses(np.concatenate(pieces) / log(2), documents)


def _check(windows: Any) -> None:
    if not isinstance(windows, np.ndarray) or windows.dtype.kind not in "iu":
        got = f"an array of {windows.dtype}" if isinstance(windows, np.ndarray) else shown(windows)
        raise TypeError(f"windows must be a numpy array of integers, the tokens of a text; got {got}")


def sliding(
    model: nn.Module,
    windows: np.ndarray,
    documents: np.ndarray | None = None,
    *,
    window: int,
    stride: int,
    sinks: int = 0,
    **how: Any,
) -> Losses:
    """Score windows `[n, N+1]` by a window that slides over them: no pass reads more than `window` bytes, at
    positions 0 to `window` - 1. The baseline for whatever is said to extrapolate.

    The first `window` bytes are scored as by `evaluate`. After them each pass scores the next `stride` bytes,
    which are the last of those it reads: byte i is given the last `window` - `stride` + 1 to `window` bytes.
    Stride 1 gives every byte exactly the last min(i, `window`), at one pass a byte.

    Args:
        model, documents: as in `evaluate`, and so is `how`: device, precision and batch_size, in passes.
        window: bytes read in one pass, such as the trained length L.
        stride: bytes scored in one pass, at most `window` - `sinks`.
        sinks: the first bytes of the text, kept in front of the last `window` - `sinks` ones and followed by
            them without a gap in the positions (Xiao et al. 2024).
    """
    _check(windows)
    whole("window", window, needs="a pass must read at least 1 byte")
    option("sinks", sinks, int)
    option("stride", stride, int)
    if not 0 <= sinks < window:
        raise ValueError(
            f"sinks is {sinks}; give 0 to {window - 1}, so that a window of {window} has room left"
        )
    if not 1 <= stride <= window - sinks:
        raise ValueError(
            f"stride is {stride}; give 1 to {window - sinks}, the bytes of a window minus the sinks"
        )
    first = evaluate(model, windows[..., : window + 1], documents, **how)
    length = windows.shape[1] - 1
    if length <= window:
        return first
    stops = np.minimum(np.arange(window, length, stride) + stride, length)
    recent = np.lib.stride_tricks.sliding_window_view(windows, window - sinks + 1, axis=1)
    passes = recent[:, stops - (window - sinks)]  # [n, passes, bytes]: the last byte is only predicted
    kept = np.broadcast_to(windows[:, None, :sinks], (*passes.shape[:2], sinks))
    read = np.concatenate([kept, passes], axis=2).reshape(-1, window + 1)
    scored = evaluate(model, read, **how).bits[:, -stride:].reshape(len(windows), len(stops), stride)
    tail = length - window - stride * (len(stops) - 1)  # what the last pass adds; it ends with the text
    later = np.concatenate([scored[:, :-1].reshape(len(windows), -1), scored[:, -1, stride - tail :]], axis=1)
    return Losses(np.concatenate([first.bits, later], axis=1), first.documents)
