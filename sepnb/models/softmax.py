"""The explicit softmax of attention, for what a fused kernel does not take and for looking at it.

Shape letters: B batch, H heads, N query length, M key length, d head width.
"""

import torch
from torch import Tensor


def attention_weights(
    q: Tensor, k: Tensor, mask: Tensor | None, *, causal: bool, scale: float | None = None
) -> Tensor:
    """softmax(q k^T scale + mask), `[B, H, N, M]`: the plain formula.

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
