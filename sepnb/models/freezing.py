"""Attention weights in the open: computed by the plain formula, recorded, and held constant."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from .apart import own_modules


class Tape:
    """The attention weights of one layer, recorded once and then held constant."""

    def __init__(self) -> None:
        self._spans: dict[tuple[int, ...], Tensor] = {}

    def play(self, heads: tuple[int, ...]) -> Tensor | None:
        """What was recorded of these heads."""
        return self._spans.get(heads)

    def record(self, heads: tuple[int, ...], weights: Tensor) -> Tensor:
        self._spans[heads] = weights.detach()
        return self._spans[heads]

    @property
    def weights(self) -> Tensor | None:
        """All heads that were built, `[B, H, N, M]`; None before the first forward pass."""
        if not self._spans:
            return None
        spans = [self._spans[heads] for heads in sorted(self._spans)]
        batch = max(len(weights) for weights in spans)
        return torch.cat([weights.expand(batch, -1, -1, -1) for weights in spans], dim=1)


def attention_weights(
    q: Tensor, k: Tensor, mask: Tensor | None, *, causal: bool, scale: float | None = None
) -> Tensor:
    """softmax(q k^T scale + mask), `[B, H, N, M]`: the plain formula, for looking and for freezing.

    The scale is d^-1/2 unless given.
    """
    scores = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    return masked_softmax(scores, mask, causal=causal)


def masked_softmax(scores: Tensor, mask: Tensor | None, *, causal: bool) -> Tensor:
    """softmax(scores + mask) over the keys, `[B, H, N, M]`; with no mask, the causal one if `causal`."""
    if mask is not None:
        scores = scores + mask
    elif causal:
        n, m = scores.shape[-2:]
        scores = scores.masked_fill(~causal_mask(n, m, scores.device), -torch.inf)
    return scores.softmax(dim=-1)


def causal_mask(n: int, m: int, device: torch.device) -> Tensor:
    """True where query n of the last `n` of `m` tokens may look: bool `[n, m]`."""
    return torch.ones(n, m, dtype=torch.bool, device=device).tril(m - n)


def visible(n: int, m: int, device: torch.device, *, window: int | None = None, sinks: int = 0) -> Tensor:
    """`causal_mask`, narrowed to the last `window` tokens, itself included, and the first `sinks`."""
    seen = causal_mask(n, m, device)
    if window is None:
        return seen
    recent = ~torch.ones_like(seen).tril(m - n - window)
    return seen & (recent | (torch.arange(m, device=device) < sinks))


@contextmanager
def frozen_attention(model: nn.Module) -> Iterator[list[Tape]]:
    """Hold the attention weights constant: the first forward pass inside records them, later ones reuse them.

    With the weights frozen, everything that still passes from one stream to another passes through values,
    outputs, MLPs and norms. With live weights there is also the routing leak: content decides where a
    position is read. The tapes are yielded in the order of the layers; each holds `weights` `[B, H, N, M]`.
    """
    layers = [module for module in own_modules(model) if hasattr(module, "tape")]
    for layer in layers:
        layer.tape = Tape()
    try:
        yield [layer.tape for layer in layers]
    finally:
        for layer in layers:
            layer.tape = None
