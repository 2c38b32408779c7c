"""Attention some rows of queries at a time: for what is too large to be held at once, and for windows.

Without gradients a text goes in pieces whose scores, or whose mask, fit into `AT_ONCE` numbers. Behind a
window it goes in pieces of queries, each with the keys of its band; see `windows`. And compiled formulas go
in pieces too, because a CPU is faster so; see `kernels`. What is computed stays the same.

Shape letters: B batch, H heads, N query length, M key length, e columns.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import windows
from ..context import AttentionContext
from ..layout import Span
from . import kernels

AT_ONCE = 2**24
"""Scores, or entries of a mask, that are held at once where no gradients are needed: 64 MiB in float32."""
OF_A_GPU = 256
"""On a GPU that has more memory than so many bytes for each of these, more are held."""


def at_once(device: torch.device) -> int:
    """How many scores are held at once on a device: `AT_ONCE`, and on a large GPU more, because there every
    piece waits for the launch of its kernels."""
    if device.type != "cuda":
        return AT_ONCE
    return max(AT_ONCE, torch.cuda.get_device_properties(device).total_memory // OF_A_GPU)


def attend(
    core: nn.Module,
    span: Span,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    context: AttentionContext,
    size: int,
    keep: bool,
) -> Tensor:
    """`AttentionCore.attend` for pieces of `size` queries, each with the keys that one of them sees; `size`
    and `keep` are those of `rows_at_once`."""
    n = q.shape[-2]
    rows = [(start, min(start + size, n)) for start in range(0, n, size)]
    keys = [context.keys_of(*at) for at in rows]
    pieces = zip(rows, *(windows.cut(x, at) for x, at in ((q, rows), (k, keys), (v, keys))), strict=True)
    averaged = [core.attend(span, *qkv, context.rows(*at, keep=keep)) for at, *qkv in pieces]
    return averaged[0] if len(averaged) == 1 else torch.cat(averaged, dim=-2)


def fused(
    q: Tensor, k: Tensor, v: Tensor, context: AttentionContext, *, attn_mask: Tensor | None, **how: Any
) -> Tensor:
    """torch's fused kernel, some sequences at a time if the mask has three dimensions, `[H, N, M]`: the
    kernel takes none such, and torch then holds the scores of every sequence."""
    size = len(q)
    if not torch.is_grad_enabled() and attn_mask is not None and attn_mask.dim() == 3:
        each = max(1, q.shape[1] * q.shape[-2] * k.shape[-2])
        size = max(1, (context.at_once or at_once(q.device)) // each)
    if size >= len(q):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask, **how)
    pieces = [
        F.scaled_dot_product_attention(
            *(x if len(x) == 1 else x[start : start + size] for x in (q, k, v)), attn_mask=attn_mask, **how
        )
        for start in range(0, len(q), size)
    ]
    return torch.cat(pieces)


def rows_at_once(core: nn.Module, q: Tensor, k: Tensor, context: AttentionContext) -> tuple[int, bool]:
    """How many queries meet their keys at once, and whether layers share what a piece makes of positions.

    With gradients all meet, except with a window and by compiled formulas on a CPU.
    """
    n, grad, before = q.shape[-2], torch.is_grad_enabled(), (context.window or 1) - 1
    if grad and context.banded:
        return windows.rows_of_a_piece(context.window), True
    if grad:
        squares = core.explicit or context.masked or len(core.biases) > 0
        compiled = squares and context.causal and kernels.compiles(context.compiler) and kernels.on_cpu(q)
        return kernels.rows_of_a_piece(n) if compiled else n, True
    held, most = _held(core, q, context), context.at_once or at_once(q.device)
    if not context.banded:
        each = k.shape[-2] * held
        return n if n * each <= most else max(1, most // each), False
    size = windows.rows_of_a_piece(context.window)
    size = min(size, max(1, most // max(1, held * (before + size))))
    return size, held * n * (before + size) <= most


def _held(core: nn.Module, q: Tensor, context: AttentionContext) -> int:
    """How many numbers are held for a query and a key, scores or entries of a mask."""
    if core.explicit:
        return q.shape[0] * q.shape[1]
    if not context.masked and not len(core.biases):
        return 0  # the kernel holds no scores
    biased = len(context.biases) > 0 or len(core.biases) > 0
    own = context.by_sequence if biased else context.key_documents is not None
    return (core.n_heads if biased else 1) * (q.shape[0] if own else 1)
