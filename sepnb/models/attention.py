"""Self-attention on streams: queries and keys may read every stream, values and outputs stay in their own.

    u = [u_pos || u_sem]
    Q = u W_Q, K = u W_K                        what a head reads is the config's `reads`
    V = [u_pos W_pos || u_sem W_sem]            block diagonal
    A = softmax(Q K^T d^-1/2 + bias + mask)     the one place where position and content meet
    z_ic = sum over keys j of A_ij V_jc         the sum runs over rows at a fixed column: no mixing
    y = [z_pos W_O,pos || z_sem W_O,sem]        cut at the border of the streams, not of the heads

Heads that read the same streams form a group, whose queries and keys are one matrix product. A strict model
has two groups: the position heads, which need no content and so run once for the whole batch, and the sem
heads, to whose queries and keys the position streams only add a table, `u_pos W_Q,ps` and `u_pos W_K,ps`.
Whatever else adds to the score of a sem head stands in more columns of its queries and keys, under the same
scale: the position part of an untied model, which is not added to that of the content, and the terms of
encodings.

Shape letters: B batch, H heads, N query length, M key length, d head width, w width of one stream. A tensor
that is the same for every sequence has a batch of 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..encodings.base import Place, Site
from ..streams import BlockDiagonalLinear
from .attention_core import AttentionCore
from .cache import KVCache
from .config import TransformerConfig
from .context import AttentionContext
from .layout import BlockLayout, Span, heads_for


@dataclass(frozen=True)
class Part:
    """Queries and keys of a group, `[B, H, N, d]` for each of its spans, and the streams that make them."""

    reads: tuple[str, ...]
    queries: tuple[Tensor, ...]
    keys: tuple[Tensor, ...]


class Attention(nn.Module):
    """One layer of attention, counted from 0, with the heads and streams that its block needs. In a head that
    straddles a border, the columns of a stream that nobody reads are zeros."""

    def __init__(self, config: TransformerConfig, layout: BlockLayout, layer: int) -> None:
        super().__init__()
        self.streams, self.head_width, self.shared = config.streams, config.head_width, config.heads_per_kv
        self.layer, self.heads, self.groups = layer, layout.heads, layout.groups
        self.bare, encodings = config.without_position(layer), config.encodings_of(layer)
        self.common = max((one.common_key(self.head_width) for one in encodings), default=0)
        own = self.head_width - self.common  # columns that are not made once for all keys
        # The group whose queries and keys are made of content and positions; there is one at most.
        self.both = next(
            (n for n, g in enumerate(self.groups) if "sem" in g.reads and len(g.reads) > 1), None
        )
        self.query_key = nn.ModuleList(
            nn.Linear(
                sum(self.streams.widths[name] for name in group.reads),
                group.n_heads * self.head_width + group.n_heads // self.shared * own + self.common,
                bias=config.bias,
            )
            for group in self.groups
        )
        split, outputs = "value_output" in config.splits, layout.attended
        how = {"bias": config.bias, "split": split}
        values = outputs if split else None
        self.value = BlockDiagonalLinear(self.streams, reduction=self.shared, outputs=values, **how)
        self.output = BlockDiagonalLinear(self.streams, outputs=outputs, **how)
        heads = heads_for(config, layout)
        terms = [e.at_query_key(heads) for e in encodings if e.each_layer(Site.QUERY_KEY)]
        self.terms = nn.ModuleList(term for term in terms if term is not None)
        spans = [span for group in self.groups for span in group.spans]
        written = {name for span in spans for name in span.columns if not split or name in outputs}
        self.averaging = AttentionCore(config, heads, written, encodings)  # named as weights were first saved

    @property
    def core(self) -> AttentionCore:
        """From queries, keys and values to averaged values."""
        return self.averaging

    def forward(
        self,
        u: Mapping[str, Tensor],
        context: AttentionContext,
        cache: KVCache | None = None,
        table: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """Normalised streams `[B, N, w]` in, the output streams `[B, N, w]` out.

        Streams absent from the input are not computed, nor are the heads that write to them alone. Tokens
        before those of the context's queries give keys and values only. The cache is extended in place; with
        a `table` of `position_table` the position streams may be absent.
        """
        context = self.context_here(context)
        values = self.values(u)  # V = u W_V, stream by stream
        read, z = context.embedded(u), {}  # u as queries and keys see it: one encoding adds to u_sem here
        for index, group in enumerate(self.groups):
            spans = [span for span in group.spans if values.keys() & span.columns.keys()]
            if not spans:
                continue
            parts = self.queries_and_keys(index, read, table)  # Q = u W_Q, K = u W_K
            terms = self.terms_of(u["sem"], context, cache) if "sem" in group.reads else []
            for span in spans:
                v = self._to_heads(self.streams.join({name: values[name] for name in span.columns}))
                q, k, v = self._placed(span, parts, v, context, cache)  # kept in the cache, rotated
                q, k = with_terms(span, q, k, terms)
                averaged = self.core(span, q, k, v, context)  # softmax(Q K^T d^-1/2 + bias + mask) V
                z |= span.divided(averaged.transpose(1, 2).flatten(-2))
        return self.output.parts(z)  # y = z W_O, stream by stream

    def context_here(self, context: AttentionContext) -> AttentionContext:
        """The context as this layer has it: without what encodings made, where none acts in it."""
        return context.bare if self.bare else context

    def values(self, u: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Normalised streams `[B, N, w]` to the values of each stream, `[B, N, columns]`."""
        blocks = self.value.parts(u)
        for span in (span for group in self.groups for span in group.spans):
            if computed := [blocks[name] for name in span.columns if name in blocks]:
                for name, count in span.columns.items():
                    if name not in blocks:  # an unread stream's columns in a straddling head
                        blocks[name] = computed[0].new_zeros(*computed[0].shape[:-1], count)
        return blocks

    def queries_and_keys(
        self, index: int, u: Mapping[str, Tensor], table: Tensor | None = None
    ) -> list[Part]:
        """Normalised streams `[B, N, w]` to queries and keys of the group with this index, before any
        rotation: one part, or of an untied group that reads content and positions two, in this order. Streams
        whose contribution is in `table` may be absent."""
        group = self.groups[index]
        table = table if index == self.both else None
        if len(group.parts) > 1:
            of_content, of_positions = group.parts
            table = self.position_table(u) if table is None else table
            content = self._projected(index, {"sem": u["sem"]})
            return [self._part(index, of_content, content), self._part(index, of_positions, table)]
        if table is None:
            joined = self.query_key[index](self.streams.join({name: u[name] for name in group.reads}))
        else:
            joined = self._projected(index, {"sem": u["sem"]}).add_(table)  # in place: one copy less
        return [self._part(index, tuple(group.reads), joined)]

    def position_table(self, u: Mapping[str, Tensor]) -> Tensor | None:
        """What the normalised position streams give to queries and keys of the sem heads, `[1, N, 2*H*d]`;
        None where no group reads both."""
        if self.both is None:
            return None
        positions = [name for name in self.groups[self.both].reads if name != "sem"]
        return self._projected(self.both, {name: u[name] for name in positions})

    @property
    def table_width(self) -> int | None:
        """Columns of a `position_table`; None where there is none."""
        return None if self.both is None else len(self.query_key[self.both].weight)

    def _to_heads(self, x: Tensor) -> Tensor:
        """`[B, N, H*d]` to `[B, H, N, d]`."""
        return x.unflatten(-1, (-1, self.head_width)).transpose(1, 2)

    def _projected(self, index: int, u: Mapping[str, Tensor]) -> Tensor:
        """What some of the streams that a group reads add to its queries and keys; the bias comes with the
        content, so that it is added once."""
        projection, slices = self.query_key[index], self.groups[index].reads
        first, *others = (
            F.linear(x, projection.weight[:, slices[name]], projection.bias if name == "sem" else None)
            for name, x in u.items()
        )
        return sum(others, start=first)

    def _part(self, index: int, reads: tuple[str, ...], joined: Tensor) -> Part:
        # One split: in the backward pass a slice would fill a tensor of the whole width with zeros.
        spans, d, own = self.groups[index].spans, self.head_width, self.head_width - self.common
        counts = [len(span.heads) for span in spans]
        widths = [n * d for n in counts] + [n // self.shared * own for n in counts]
        joined, *common = joined.split([sum(widths), self.common], dim=-1) if self.common else (joined,)
        pieces = joined.split(widths, dim=-1)
        queries = tuple(self._to_heads(piece) for piece in pieces[: len(spans)])
        keys = [piece.unflatten(-1, (-1, own)).transpose(1, 2) for piece in pieces[len(spans) :]]
        return Part(reads, queries, tuple(_beside([*(x[:, None] for x in common), key]) for key in keys))

    def _placed(
        self, span: Span, parts: list[Part], v: Tensor, context: AttentionContext, cache: KVCache | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of a span: cached keys and values come first, encodings have changed
        queries and keys, and every query head has a key of its own."""
        queries, keys, n = [], [], context.n_queries
        for number, part in enumerate(parts):
            q, k = part.queries[span.number], part.keys[span.number]
            q = q[..., q.shape[-2] - n :, :]
            place = self.layer, span.heads, number
            if cache is not None and number == 0:  # the values are kept once, with the first part
                k, v = cache.extend(place, k, v)
            elif cache is not None:
                k, _ = cache.extend(place, k, v[..., :0])
            q, k = context.rotated(q, k, part.reads, Place(self.layer, span.heads), first=number == 0)
            queries.append(q)
            keys.append(k)
        q, k = _beside(queries), _beside(keys)
        if self.shared > 1:
            k, v = k.repeat_interleave(self.shared, dim=1), v.repeat_interleave(self.shared, dim=1)
        return q, k, v

    def terms_of(
        self, content: Tensor, context: AttentionContext, cache: KVCache | None = None
    ) -> list[tuple[Tensor, Tensor]]:
        """Per term its columns of the queries and of the keys, of all heads that read the sem stream, whose
        normalised states are `content`, `[B, M, w]`."""
        asking, made = content[:, content.shape[1] - context.n_queries :], []
        for number, (term, prepared) in enumerate(zip(self.terms, context.terms, strict=True)):
            kept = term.kept(content)
            if kept is not None and cache is not None:
                kept, _ = cache.extend((self.layer, "term", number), kept, kept[..., :0])
            made.append(term(asking, prepared) if kept is None else term(asking, prepared, kept))
        return made


def with_terms(
    span: Span, q: Tensor, k: Tensor, terms: Sequence[tuple[Tensor, Tensor]]
) -> tuple[Tensor, Tensor]:
    """Queries and keys with the columns of each term beside their own, under the same scale."""
    for more in terms:
        q, k = (_beside([x, of_heads(y, span)]) for x, y in zip((q, k), more, strict=True))
    return q, k


def of_heads(columns: Tensor, span: Span) -> Tensor:
    """The columns of the heads of a span, of those of its group `[B, H, N, e]`; one for all stays one."""
    return columns if columns.shape[1] == 1 else columns[:, span.of_group]


def _beside(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along the columns; a batch or a head that stands for all is repeated."""
    if len(tensors) == 1:
        return tensors[0]
    shape = torch.broadcast_shapes(*(x.shape[:-1] for x in tensors))
    return torch.cat([x.expand(*shape, -1) for x in tensors], dim=-1)
