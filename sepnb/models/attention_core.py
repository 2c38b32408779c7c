"""The core of attention: queries, keys and values to averaged values, by the kernel that serves.

    z = softmax(q k^T d^-1/2 + bias + mask) v

Biases of positions join the mask, and torch's fused kernel takes both. The softmax is explicit where an
encoding makes scores that are no product plus bias or adds to the averages, and where a hook asks for the
weights (see `pattern`). What is for speed is one call each: `pieces`, `flex` and `kernels`.

Shape letters: B batch, H heads, N query length, M key length, d head width, e columns of queries and keys.
"""

from collections.abc import Callable, Collection, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import validation
from ..encodings.base import Encoding, Heads, PairModule, ScoreModule, Site
from .config import TransformerConfig
from .context import AttentionContext
from .fast import kernels, pieces
from .layout import Span
from .windows import causal_mask


class AttentionCore(nn.Module):
    """What the heads of one layer do with queries, keys and values, as encodings change it.

    `written` are the streams to which the heads write; see `ValueModule` for those that are given positions;
    `encodings` those that act in the layer.
    Two encodings that both make the scores, or both add to the values, are a ValueError.
    """

    def __init__(
        self,
        config: TransformerConfig,
        heads: Heads,
        written: Collection[str],
        encodings: Collection[Encoding],
    ) -> None:
        super().__init__()
        self.n_heads, self.head_width = config.n_heads, config.head_width
        self.positional = frozenset(written) - ({"sem"} if config.separated else set())
        scores = {e.name: e.at_score(heads) for e in encodings if e.each_layer(Site.SCORE)}
        added = {e.name: e.at_value(heads) for e in encodings if self.positional}
        self.biases = nn.ModuleList(one for one in scores.values() if isinstance(one, ScoreModule))
        pairs = {name: one for name, one in scores.items() if isinstance(one, PairModule)}
        self.pairs, self.added = _only(pairs, "scores"), _only(added, "averaged values")
        self.pattern_hook: Callable[[tuple[int, ...], Callable[[], Tensor]], Tensor] | None = None

    @property
    def explicit(self) -> bool:
        """Whether an encoding needs the attention weights themselves."""
        return self.pairs is not None or self.added is not None

    @property
    def elementwise(self) -> bool:
        """Whether a score is its own product and a number of its pair: what FlexAttention can compute."""
        return self.added is None and (self.pairs is None or self.pairs.combine is not None)

    @property
    def reads_positions(self) -> bool:
        """Whether anything here depends on the positions."""
        return len(self.biases) > 0 or self.explicit

    def forward(self, span: Span, q: Tensor, k: Tensor, v: Tensor, context: AttentionContext) -> Tensor:
        """Values `[B, H, M, d]` averaged with the weights of these heads, `[B, H, N, d]`; queries and keys,
        `[B, H, N, e]` and `[B, H, M, e]`, may have more columns than the d of a head."""
        if self.pattern_hook is not None:
            return self.by_softmax(span, q, k, v, self.mask(span, q.dtype, context), context)
        if self._to_flex(q, k, context):
            from .fast import flex  # only where it serves: importing it takes a while

            return flex.attend(self, span, q, k, v, context)
        size, keep = pieces.rows_at_once(self, q, k, context)
        if size >= q.shape[-2] and not context.banded:
            return self.attend(span, q, k, v, context)
        return pieces.attend(self, span, q, k, v, context, size, keep)

    def _to_flex(self, q: Tensor, k: Tensor, context: AttentionContext) -> bool:
        """Whether FlexAttention serves; see `flex` for where it does."""
        if context.compiler is None or not kernels.on_cuda(q) or torch.compiler.is_compiling():
            return False
        biased = len(context.biases) > 0 or len(self.biases) > 0
        fits = self.elementwise and self.head_width >= kernels.NARROWEST
        if self.pairs is not None:  # what sharpens comes after it, and after the biases
            fits = fits and not biased and context.sharpening is None
        whole = context.causal and context.consecutive and context.window is None
        whole = whole and q.shape[-2] == k.shape[-2] and context.key_documents is None
        return (biased or self.pairs is not None) and fits and whole and torch.is_grad_enabled()

    def attend(self, span: Span, q: Tensor, k: Tensor, v: Tensor, context: AttentionContext) -> Tensor:
        """The same at once for queries and keys that are those of the context: a text, or a piece of it."""
        mask = self.mask(span, q.dtype, context)
        compiling = context.compiler is not None and torch.is_grad_enabled()
        if self.explicit or (compiling and mask is not None and mask.requires_grad):
            for site, module in (("pairs", self.pairs), ("values", self.added)):
                if module is not None:  # made now, for all layers, and not while something is compiled
                    context.prepared(site, module)
            formula = kernels.chosen(AttentionCore.by_softmax, context.compiler)
            return formula(self, span, q, k, v, mask, context)
        if compiling and mask is not None and mask.dim() == 3:
            mask = mask[None]  # in three dimensions the fused kernel does not take it
        if context.sharpening is not None:
            q = q * context.sharpening
        more = q.shape[-1] - v.shape[-1]
        scale = self.head_width**-0.5 if more else None  # of the head, whatever columns are added to it
        padded = F.pad(v, (0, more)) if more else v  # fused kernels want one width
        causal = context.causal and mask is None
        averaged = pieces.fused(q, k, padded, context, attn_mask=mask, is_causal=causal, scale=scale)
        return averaged[..., : v.shape[-1]]

    def by_softmax(
        self, span: Span, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, context: AttentionContext
    ) -> Tensor:
        """The same by the explicit softmax."""
        if self.pattern_hook is None:
            weights = self.weights(span, q, k, mask, context)
        else:
            weights = self.pattern_hook(span.heads, lambda: self.weights(span, q, k, mask, context))
        z = weights @ v
        given = [name in self.positional for name in span.columns]
        if self.added is None or not any(given):
            return z
        more = self.added(weights, context.prepared("values", self.added), span.built)
        if not all(given):  # a head straddles the border of two streams
            counts = torch.tensor(list(span.columns.values()), device=z.device)
            keep = torch.tensor(given, device=z.device).repeat_interleave(counts)
            more = more * keep.unflatten(0, (-1, 1, self.head_width))
        return z + more

    def weights(
        self, span: Span, q: Tensor, k: Tensor, mask: Tensor | None, context: AttentionContext
    ) -> Tensor:
        """The attention weights of these heads, `[B, H, N, M]`."""
        if self.pairs is None:
            q = q if context.sharpening is None else q * context.sharpening
            return masked_softmax(
                q @ k.transpose(-1, -2) * self.head_width**-0.5, mask, causal=context.causal
            )
        scores = self.pairs(q, k, context.prepared("pairs", self.pairs), span.built)
        scores = scores if context.sharpening is None else scores * context.sharpening
        return masked_softmax(scores, mask, causal=context.causal)

    def mask(self, span: Span, dtype: torch.dtype, context: AttentionContext) -> Tensor | None:
        """The additive mask of these heads, with biases; None where the kernel's own causal one serves."""
        mask = context.mask
        if mask is not None and mask.dim() > 2 and len(span.heads) < mask.shape[-3]:
            mask = mask[..., span.heads, :, :]  # one slice per head
        if len(self.biases):
            own = context.own_bias(self.biases)[..., span.built, :, :]
            mask = own if mask is None else mask + own
        return mask if mask is None else mask.to(dtype)


def attention_weights(
    q: Tensor, k: Tensor, mask: Tensor | None, *, causal: bool, scale: float | None = None
) -> Tensor:
    """softmax(q k^T scale + mask), `[B, H, N, M]`: the plain formula, of queries `[B, H, N, d]` and keys
    `[B, H, M, d]`. The scale is d^-1/2 unless given."""
    validation.floats(q=(q, "B H N d+"), k=(k, "B H M d"))
    validation.flag("causal", causal)
    scale = q.shape[-1] ** -0.5 if scale is None else validation.number("scale", scale)
    scores = q @ k.transpose(-1, -2) * scale
    if mask is not None and validation.floating("mask", mask).dim() > 4:
        raise ValueError(f"mask has shape {list(mask.shape)}; give one that [B, H, N, M] can be added to")
    return masked_softmax(scores, mask, causal=causal)


def masked_softmax(scores: Tensor, mask: Tensor | None, *, causal: bool) -> Tensor:
    """softmax(scores + mask) over the keys, `[B, H, N, M]`; with no mask, the causal one if `causal`."""
    if mask is not None:
        scores = scores + mask
    elif causal:
        n, m = scores.shape[-2:]
        scores = scores.masked_fill(~causal_mask(n, m, scores.device), -torch.inf)
    return scores.softmax(dim=-1)


def _only(modules: Mapping[str, nn.Module | None], what: str) -> nn.Module | None:
    """The one module among those that encodings built, by their names."""
    made = {name: module for name, module in modules.items() if module is not None}
    if len(made) > 1:
        raise ValueError(f"{' and '.join(made)} would each make the {what} of a layer; keep one of them")
    return next(iter(made.values()), None)
