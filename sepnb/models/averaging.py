"""From queries, keys and values to averaged values: by the fused kernel, or in the open.

Biases of positions join the mask, and the kernel takes both; on CUDA they can go to FlexAttention instead,
see `flex`. Where an encoding makes scores that are no product plus bias, or adds to the averaged values, the
softmax is computed in the open. What is too large to be held at once is computed for some rows of queries at
a time, or some sequences, where no gradients are needed. Compiled formulas go in pieces too, because a CPU is
faster so; see `kernels`. And whatever is behind a window does, each piece with the keys of its band; see
`windows`.

Shape letters: B batch, H heads, N query length, M key length, d head width, e columns of queries and keys.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import kernels, windows
from .config import TransformerConfig
from .context import AttentionContext
from .freezing import Tape, attention_weights, masked_softmax

AT_ONCE = 2**24
"""Scores, or entries of a mask, that are held at once where no gradients are needed: 64 MiB in float32."""


@dataclass(frozen=True)
class Span:
    """Neighbouring heads of a group whose columns are whole streams, or the built part of them.

    Attributes:
        heads: their numbers.
        first: how many heads of the group stand before them.
        built: their places among the heads that the layer has.
        columns: how many of their columns lie in each stream, in order.
    """

    heads: tuple[int, ...]
    first: int
    built: slice
    columns: Mapping[str, int]

    def divided(self, z: Tensor) -> dict[str, Tensor]:
        """The columns of the heads side by side, `[B, N, H*d]`, to those of each stream."""
        if len(self.columns) == 1:  # a split into one piece would copy its gradient
            return dict.fromkeys(self.columns, z)
        return dict(zip(self.columns, z.split(list(self.columns.values()), dim=-1), strict=True))


class Averaging(nn.Module):
    """What the heads of one layer do with queries, keys and values, as encodings change it.

    Args:
        config: of the model.
        n_built: how many heads the layer has.
        written: the streams to which they write; see `ValueModule` for those that hear positions.

    Raises:
        ValueError: two encodings that both make the scores, or both add to the values.
    """

    def __init__(self, config: TransformerConfig, n_built: int, written: Collection[str]) -> None:
        super().__init__()
        self.n_heads, self.head_width = config.n_heads, config.head_width
        self.hearing = frozenset(written) - ({"sem"} if config.separated else set())
        d, encodings = config.head_width, config.encodings
        biases = [encoding.at_score(n_built) for encoding in encodings if encoding.per_layer]
        width, causal = config.streams.d_model, config.causal
        pairs = {encoding.name: encoding.at_pairs(n_built, d, width, causal) for encoding in encodings}
        added = {e.name: e.at_values(n_built, d, causal) for e in encodings if self.hearing}
        self.biases = nn.ModuleList(bias for bias in biases if bias is not None)
        self.pairs, self.added = _only(pairs, "scores"), _only(added, "averaged values")
        self.tape: Tape | None = None

    @property
    def in_the_open(self) -> bool:
        """Whether the attention weights themselves are needed."""
        return self.pairs is not None or self.added is not None

    @property
    def elementwise(self) -> bool:
        """Whether a score is made of its own product and numbers of its pair, and nothing is added to
        averages: what FlexAttention can compute."""
        return self.added is None and (self.pairs is None or self.pairs.combine is not None)

    @property
    def reads_positions(self) -> bool:
        """Whether anything here depends on the positions."""
        return len(self.biases) > 0 or self.in_the_open

    def forward(self, span: Span, q: Tensor, k: Tensor, v: Tensor, context: AttentionContext) -> Tensor:
        """The values, averaged with the weights of these heads.

        Args:
            span: the heads.
            q, k: `[B, H, N, e]` and `[B, H, M, e]`; of a head's own d columns, and others beside them.
            v: `[B, H, M, d]`.
            context: of this forward pass.

        Returns:
            `[B, H, N, d]`.
        """
        if self._flexible(q, k, context):
            from . import flex  # only where it serves: importing it takes a while

            q = q if context.sharpening is None else q * context.sharpening
            table = self._looked_up(span, context)
            how = {"scale": self.head_width**-0.5, "backend": context.compiler}
            if self.pairs is not None:
                how["combine"] = self.pairs.combine
            return flex.attention(q, k, v, table, **how)
        n = q.shape[-2]
        if context.banded and self.tape is None:
            return self._band(span, q, k, v, context)
        size = self._rows_at_once(q, k, context)
        if size >= n:
            return self._rows(span, q, k, v, context)
        pieces = []
        for start in range(0, n, size):
            stop = min(start + size, n)
            part = context.rows(start, stop, keep=torch.is_grad_enabled())
            m = part.n_keys
            pieces.append(self._rows(span, q[..., start:stop, :], k[..., :m, :], v[..., :m, :], part))
        return torch.cat(pieces, dim=-2)

    def _band(self, span: Span, q: Tensor, k: Tensor, v: Tensor, context: AttentionContext) -> Tensor:
        """Behind a window: each piece of queries with the keys that one of them sees."""
        n, window, held = q.shape[-2], context.window, self._held(q, context)
        size = windows.rows_of_a_piece(window)
        keep = torch.is_grad_enabled()
        if not keep:  # what the layers share is made once, if all of it may be held
            size = min(size, max(1, AT_ONCE // max(1, held * (window - 1 + size))))
            keep = held * n * (window - 1 + size) <= AT_ONCE
        rows = [(start, min(start + size, n)) for start in range(0, n, size)]
        keys = [context.keys_of(*bounds) for bounds in rows]
        pieces = zip(rows, *(windows.cut(x, at) for x, at in ((q, rows), (k, keys), (v, keys))), strict=True)
        averaged = [self._rows(span, *qkv, context.rows(*at, keep=keep)) for at, *qkv in pieces]
        return averaged[0] if len(averaged) == 1 else torch.cat(averaged, dim=-2)

    def _flexible(self, q: Tensor, k: Tensor, context: AttentionContext) -> bool:
        """Whether FlexAttention makes these scores; see `flex`."""
        if context.compiler is None or not kernels.on_cuda(q) or torch.compiler.is_compiling():
            return False
        biased = len(context.biases) > 0 or len(self.biases) > 0
        openly = not self.elementwise or self.tape is not None
        if self.pairs is not None:  # what sharpens comes after it, and after the biases
            openly = openly or biased or context.sharpening is not None
        whole = context.causal and context.consecutive and context.window is None
        whole = whole and q.shape[-2] == k.shape[-2] and context.key_documents is None
        wide = self.head_width >= kernels.NARROWEST
        changed = biased or self.pairs is not None
        return changed and wide and whole and not openly and torch.is_grad_enabled()

    def _looked_up(self, span: Span, context: AttentionContext) -> Tensor:
        """What FlexAttention joins the products of these heads with, the sum of their biases as a rule:
        `[H, N]`, for the distances N - 1 to 0, if all of them are functions of it, else `[H, N, N]`."""
        if self.pairs is not None:
            positions = context.key_positions
            return self.pairs.of_distance(positions - positions[-1], span.built)
        of_distance = all(bias.toeplitz for bias in (*context.biases, *self.biases))
        queries, keys = context.query_positions, context.key_positions
        queries = queries[-1:] if of_distance else queries
        tables = [bias(queries, keys, True)[list(span.heads)] for bias in context.biases]
        tables += [bias(queries, keys, True)[span.built] for bias in self.biases]
        table = sum(tables[1:], start=tables[0])
        return table[:, 0] if of_distance else table

    def _rows_at_once(self, q: Tensor, k: Tensor, context: AttentionContext) -> int:
        """How many queries meet their keys at once. All, for who records the weights; with gradients all,
        except by compiled formulas on a CPU, which take them in pieces (see `kernels`)."""
        n, m = q.shape[-2], k.shape[-2]
        if self.tape is not None:
            return n
        if torch.is_grad_enabled():
            squares = self.in_the_open or context.masked or len(self.biases) > 0
            pieces = squares and context.causal and kernels.compiles(context.compiler)
            return kernels.rows_of_a_piece(n) if pieces and kernels.on_cpu(q) else n
        each = m * self._held(q, context)
        return n if n * each <= AT_ONCE else max(1, AT_ONCE // each)

    def _held(self, q: Tensor, context: AttentionContext) -> int:
        """How many numbers are held for a query and a key, scores or entries of a mask."""
        if self.in_the_open:
            return q.shape[0] * q.shape[1]
        if not context.masked and not len(self.biases):
            return 0  # the kernel holds no scores
        biased = len(context.biases) > 0 or len(self.biases) > 0
        own = context.by_sequence if biased else context.key_documents is not None
        return (self.n_heads if biased else 1) * (q.shape[0] if own else 1)

    def _rows(self, span: Span, q: Tensor, k: Tensor, v: Tensor, context: AttentionContext) -> Tensor:
        mask = self._mask(span, context)
        mask = mask if mask is None else mask.to(q.dtype)
        if self.tape is not None:
            return self._openly(span, q, k, v, mask, context)
        compiling = context.compiler is not None and torch.is_grad_enabled()
        if self.in_the_open or (compiling and mask is not None and mask.requires_grad):
            self._prepare(context)
            return kernels.chosen(Averaging._openly, context.compiler)(self, span, q, k, v, mask, context)
        if compiling and mask is not None and mask.dim() == 3:
            mask = mask[None]  # in three dimensions the fused kernel does not take it
        width, more = v.shape[-1], q.shape[-1] - v.shape[-1]
        if context.sharpening is not None:
            q = q * context.sharpening
        v = F.pad(v, (0, more)) if more else v  # fused kernels want one width
        scale = self.head_width**-0.5 if more else None  # of the head, whatever stands beside its columns
        how = {"attn_mask": mask, "is_causal": context.causal and mask is None, "scale": scale}
        size = _sequences_at_once(q, k, mask)
        if size >= len(q):
            return F.scaled_dot_product_attention(q, k, v, **how)[..., :width]
        pieces = [
            F.scaled_dot_product_attention(
                *(x if len(x) == 1 else x[start : start + size] for x in (q, k, v)), **how
            )
            for start in range(0, len(q), size)
        ]
        return torch.cat(pieces)[..., :width]

    def _prepare(self, context: AttentionContext) -> None:
        """Have what all layers share made now, and not while something is compiled."""
        for site, module in (("pairs", self.pairs), ("values", self.added)):
            if module is not None:
                context.prepared(site, module)

    def _openly(
        self, span: Span, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, context: AttentionContext
    ) -> Tensor:
        weights = self._weights(span, q, k, mask, context)
        return self._with_added(span, weights @ v, weights, context)

    def _mask(self, span: Span, context: AttentionContext) -> Tensor | None:
        """The additive mask of these heads, biases included."""
        mask = context.mask
        if mask is not None and mask.dim() > 2 and len(span.heads) < mask.shape[-3]:
            mask = mask[..., span.heads, :, :]  # one slice per head
        if len(self.biases):
            own = context.own_bias(self.biases)[..., span.built, :, :]
            mask = own if mask is None else mask + own
        return mask

    def _weights(
        self, span: Span, q: Tensor, k: Tensor, mask: Tensor | None, context: AttentionContext
    ) -> Tensor:
        """`[B, H, N, M]`, by the plain formula, or from the tape."""
        held = None if self.tape is None else self.tape.play(span.heads)
        if held is not None:
            return held
        if self.pairs is None:
            q = q if context.sharpening is None else q * context.sharpening
            weights = attention_weights(q, k, mask, causal=context.causal, scale=self.head_width**-0.5)
        else:
            scores = self.pairs(q, k, context.prepared("pairs", self.pairs), span.built)
            scores = scores if context.sharpening is None else scores * context.sharpening
            weights = masked_softmax(scores, mask, causal=context.causal)
        return weights if self.tape is None else self.tape.record(span.heads, weights)

    def _with_added(self, span: Span, z: Tensor, weights: Tensor, context: AttentionContext) -> Tensor:
        """z `[B, H, N, d]` and what an encoding adds to those of its columns that may hear it."""
        hearing = [name in self.hearing for name in span.columns]
        if self.added is None or not any(hearing):
            return z
        more = self.added(weights, context.prepared("values", self.added), span.built)
        if not all(hearing):  # a head straddles the border of two streams
            counts = torch.tensor(list(span.columns.values()), device=z.device)
            keep = torch.tensor(hearing, device=z.device).repeat_interleave(counts)
            more = more * keep.unflatten(0, (-1, 1, self.head_width))
        return z + more


def _sequences_at_once(q: Tensor, k: Tensor, mask: Tensor | None) -> int:
    """How many sequences attend at once: all, for gradients and by the fused kernel. That takes no mask in
    three dimensions, and torch then holds the scores of every sequence."""
    if torch.is_grad_enabled() or mask is None or mask.dim() != 3:
        return len(q)
    each = q.shape[1] * q.shape[-2] * k.shape[-2]
    return max(1, AT_ONCE // max(1, each))


def share(layers: Iterable[Averaging]) -> None:
    """Let the layers of a model have in common what their encodings share over layers."""
    made = [layer.pairs for layer in layers if layer.pairs is not None]
    for pairs in made[1:]:
        pairs.share(made[0])


def _only(modules: Mapping[str, nn.Module | None], what: str) -> nn.Module | None:
    """The one module among those that encodings built, by their names."""
    made = {name: module for name, module in modules.items() if module is not None}
    if len(made) > 1:
        raise ValueError(f"{' and '.join(made)} would each make the {what} of a layer; keep one of them")
    return next(iter(made.values()), None)
