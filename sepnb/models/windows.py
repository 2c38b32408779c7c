"""Which keys a query sees: those up to itself, or with a window the last W of them, itself included.

A window is a mask, and goes with every encoding. It counts tokens in the order of the sequence, not
positions, and these stay as they are. After n layers a token depends on n (W - 1) + 1 tokens.

With a window attention goes in pieces of queries, so that time and memory grow with N W. With sinks, the
first tokens of a text, the mask is one of all keys; so it is where the attention weights are recorded.

Shape letters: B batch, H heads, N tokens, M keys, W tokens of a window.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..validation import whole

LEAST_ROWS = 64
"""Queries of a piece, at least: below it the call of a kernel takes longer than what it computes."""


def check(window: Any, causal: bool) -> None:
    """Raise unless `window` is None, or a positive int on a causal model."""
    if window is None:
        return
    whole("window", window, needs="a query sees at least 1 token, itself")
    if not causal:
        raise ValueError(
            f"window={window}: a window needs a causal model, because it counts tokens up to the query; use "
            f"causal=True, or leave it out"
        )


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


def rows_of_a_piece(window: int) -> int:
    """How many queries go through together: half a window. A piece of P queries has P + W - 1 keys, of which
    each query sees W; smaller pieces would compute less that is hidden, and be more."""
    return max(LEAST_ROWS, -(-window // 2))


def cut(x: Tensor, bounds: Sequence[tuple[int, int]]) -> tuple[Tensor, ...]:
    """The tokens `start` to `stop` - 1 of `[B, H, N, d]` for each of the bounds, which may overlap.

    The gradient of a slice is as long as what it was cut from: of many slices these would be many times N
    numbers. Here they are added up in one tensor.
    """
    if torch.is_grad_enabled() and x.requires_grad:
        return _Cut.apply(x, tuple(bounds))
    return tuple(x[..., start:stop, :] for start, stop in bounds)


class _Cut(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor, bounds: tuple[tuple[int, int], ...]) -> tuple[Tensor, ...]:
        return tuple(x[..., start:stop, :] for start, stop in bounds)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
        x, ctx.bounds = inputs
        ctx.shape = x.shape
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, None]:
        known = [(at, g) for at, g in zip(ctx.bounds, gradients, strict=True) if g is not None]
        if not known:
            return None, None
        whole = known[0][1].new_zeros(ctx.shape)
        for (start, stop), gradient in known:
            whole[..., start:stop, :] += gradient
        return whole, None
