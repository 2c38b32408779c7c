"""Self-attention on streams: queries and keys may read every stream, values and outputs stay in their own.

    u = [u_pos || u_sem]
    Q = u W_Q, K = u W_K                        what a head reads is the config's `reads`
    V = [u_pos W_pos || u_sem W_sem]            block diagonal
    A = softmax(Q K^T d^-1/2 + bias + mask)     the one place where position and content meet
    z_ic = sum over keys j of A_ij V_jc         the sum runs over rows at a fixed column: no mixing
    y = [z_pos W_O,pos || z_sem W_O,sem]        cut at the border of the streams, not of the heads

Shape letters: B batch, H heads, N query length, M key length, d head width, w width of one stream.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..encodings import QueryKeyModule
from ..streams import BlockDiagonalLinear
from .cache import KVCache
from .config import TransformerConfig


@dataclass
class AttentionContext:
    """What all layers of one forward pass share.

    Attributes:
        rotations: per query/key encoding its module and what it prepared for the queries and for the keys.
        mask: additive `[N, M]`, `[H, N, M]` or `[B, H, N, M]`, biases included; None: see `causal`.
        causal: with no mask, let the kernel apply the causal one.
    """

    rotations: list[tuple[QueryKeyModule, object, object]]
    mask: Tensor | None
    causal: bool


class _Tape:
    """The attention weights of one module, recorded once and then held constant."""

    def __init__(self) -> None:
        self.weights: Tensor | None = None


class Attention(nn.Module):
    """One layer of attention that computes only the streams in `outputs`.

    A head whose columns lie wholly in streams that nobody reads is not built: its values would reach
    nothing. In a head that straddles a border, the columns of an unread stream are zeros.
    """

    def __init__(self, config: TransformerConfig, outputs: tuple[str, ...]) -> None:
        super().__init__()
        self.streams, self.outputs, self.head_width = config.streams, outputs, config.head_width
        d = config.head_width
        wanted = {column for name in outputs for column in range(*self._range(name))}
        self.heads = [h for h in range(config.n_heads) if wanted & set(range(h * d, (h + 1) * d))]
        live = {column for head in self.heads for column in range(head * d, (head + 1) * d)}
        self.columns = {name: len(live & set(range(*self._range(name)))) for name in self.streams.names}
        self.groups = [(reads, len(list(heads))) for reads, heads in groupby(self.heads, key=config.reads)]
        self.query_key = nn.ModuleList(
            nn.Linear(sum(self.streams.widths[name] for name in reads), 2 * count * d, bias=config.bias)
            for reads, count in self.groups
        )
        self.value = BlockDiagonalLinear(self.streams, bias=config.bias, outputs=outputs)
        self.output = BlockDiagonalLinear(self.streams, bias=config.bias, outputs=outputs)
        self.tape: _Tape | None = None

    def _range(self, name: str) -> tuple[int, int]:
        columns = self.streams.slices[name]
        return columns.start, columns.stop

    def _heads(self, x: Tensor) -> Tensor:
        """`[B, N, H*d]` to `[B, H, N, d]`."""
        return x.unflatten(-1, (-1, self.head_width)).transpose(1, 2)

    def queries_and_keys(self, parts: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Normalised streams `[B, N, w]` to queries and keys `[B, H, N, d]`, before any rotation."""
        queries, keys = [], []
        for (reads, _), projection in zip(self.groups, self.query_key, strict=True):
            q, k = projection(self.streams.join({name: parts[name] for name in reads})).chunk(2, dim=-1)
            queries.append(self._heads(q))
            keys.append(self._heads(k))
        return (
            (queries[0], keys[0])
            if len(queries) == 1
            else (torch.cat(queries, dim=1), torch.cat(keys, dim=1))
        )

    def values(self, parts: Mapping[str, Tensor]) -> Tensor:
        """Normalised streams `[B, N, w]` to values `[B, H, N, d]`."""
        blocks = self.value.parts(parts)
        for name, count in self.columns.items():
            if count and name not in blocks:
                blocks[name] = parts[name].new_zeros(*parts[name].shape[:-1], count)
        return self._heads(self.streams.join(blocks))

    def forward(
        self,
        parts: Mapping[str, Tensor],
        context: AttentionContext,
        cache: KVCache | None = None,
        layer: int = 0,
    ) -> dict[str, Tensor]:
        """Normalised streams `[B, N, w]` in, the output streams `[B, N, w]` out."""
        q, k = self.queries_and_keys(parts)
        v = self.values(parts)
        if cache is not None:
            k, v = cache.extend(layer, k, v)
        for module, for_queries, for_keys in context.rotations:
            q, k = module(q, for_queries), module(k, for_keys)
        mask = context.mask
        if mask is not None and mask.dim() > 2 and len(self.heads) < mask.shape[-3]:
            mask = mask[..., self.heads, :, :]  # one slice per head: keep the heads that were built
        if self.tape is None:
            mask = mask if mask is None else mask.to(q.dtype)
            z = F.scaled_dot_product_attention(
                q, k, v, attn_mask=mask, is_causal=context.causal and mask is None
            )
        else:
            if self.tape.weights is None:
                self.tape.weights = attention_weights(q, k, mask, causal=context.causal).detach()
            z = self.tape.weights @ v
        z = z.transpose(1, 2).flatten(-2)
        pieces = z.split([count for count in self.columns.values() if count], dim=-1)
        named = dict(zip((name for name, count in self.columns.items() if count), pieces, strict=True))
        return self.output.parts(named)


def attention_weights(q: Tensor, k: Tensor, mask: Tensor | None, *, causal: bool) -> Tensor:
    """softmax(q k^T d^-1/2 + mask), `[B, H, N, M]`: the plain formula, for looking and for freezing."""
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores + mask
    elif causal:
        scores = scores.masked_fill(~causal_mask(q.shape[-2], k.shape[-2], q.device), -torch.inf)
    return scores.softmax(dim=-1)


def causal_mask(n: int, m: int, device: torch.device) -> Tensor:
    """True where query n of the last `n` of `m` tokens may look: bool `[n, m]`."""
    return torch.ones(n, m, dtype=torch.bool, device=device).tril(m - n)


@contextmanager
def frozen_attention(model: nn.Module) -> Iterator[list[_Tape]]:
    """Hold the attention weights constant: the first forward pass inside records them, later ones reuse them.

    With the weights frozen, everything that still passes from one stream to another passes through values,
    outputs, MLPs and norms. With live weights there is also the routing leak: content decides where a
    position is read. The tapes are yielded in the order of the layers; each holds `weights` `[B, H, N, M]`.
    """
    layers = [module for module in model.modules() if isinstance(module, Attention)]
    for layer in layers:
        layer.tape = _Tape()
    try:
        yield [layer.tape for layer in layers]
    finally:
        for layer in layers:
            layer.tape = None
