"""Self-attention on streams: queries and keys may read every stream, values and outputs stay in their own.

    u = [u_pos || u_sem]
    Q = u W_Q, K = u W_K                        what a head reads is the config's `reads`
    V = [u_pos W_pos || u_sem W_sem]            block diagonal
    A = softmax(Q K^T d^-1/2 + bias + mask)     the one place where position and content meet
    z_ic = sum over keys j of A_ij V_jc         the sum runs over rows at a fixed column: no mixing
    y = [z_pos W_O,pos || z_sem W_O,sem]        cut at the border of the streams, not of the heads

Heads that read the same streams form a group, whose queries and keys are one matrix product. Strict has two:
the position heads, which need no content and so run once for the whole batch, and the sem heads, to whose
queries and keys the position streams only add a table, `u_pos W_Q,ps` and `u_pos W_K,ps`. Where the border of
two streams is a border of two heads, a group is cut there into spans, each one call of the attention kernel:
their values are then never joined, nor what they return split.

What else adds to the score of a sem head does so by more columns of its queries and keys, under the same
scale: in an untied model the position part, `u_pos W_Q,ps` beside `u_sem W_Q,ss` and not added to it; the
terms of encodings that have parameters in every layer; and in every head the term of one that makes its own
queries and keys of the positions.

Shape letters: B batch, H heads, N query length, M key length, d head width, w width of one stream. A tensor
that is the same for every sequence has a batch of 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..encodings.base import Place
from ..streams import BlockDiagonalLinear, Streams
from .averaging import Averaging, Span
from .cache import KVCache
from .config import TransformerConfig
from .context import AttentionContext


@dataclass(frozen=True)
class Part:
    """Queries and keys of a group, `[B, H, N, d]` for each of its spans, and the streams that make them."""

    reads: tuple[str, ...]
    queries: tuple[Tensor, ...]
    keys: tuple[Tensor, ...]


@dataclass(frozen=True)
class Group:
    """Neighbouring heads that read the same streams.

    Attributes:
        reads: the streams that make their queries and keys, and where each stands in the joined input.
        n_heads: how many they are.
        spans: the heads, cut where a stream begins.
    """

    reads: dict[str, slice]
    n_heads: int
    spans: tuple[Span, ...]


class Attention(nn.Module):
    """One layer of attention that computes only the streams in `outputs`.

    A head whose columns lie wholly in streams that nobody reads is not built: its values would reach
    nothing. In a head that straddles a border, the columns of an unread stream are zeros.

    Streams absent from the input are not computed, nor are the groups that write to them alone.
    """

    def __init__(self, config: TransformerConfig, outputs: tuple[str, ...]) -> None:
        super().__init__()
        self.streams, self.outputs, self.head_width = config.streams, outputs, config.head_width
        self.shared, d = config.heads_per_kv, config.head_width
        self.heads = config.heads_of(outputs)
        self.groups = [
            self._group(reads, tuple(heads)) for reads, heads in groupby(self.heads, key=config.reads)
        ]
        self.query_key = nn.ModuleList(
            nn.Linear(
                sum(self.streams.widths[name] for name in group.reads),
                (group.n_heads + group.n_heads // self.shared) * d,
                bias=config.bias,
            )
            for group in self.groups
        )
        split = "value_output" in config.splits
        self.value = BlockDiagonalLinear(
            self.streams,
            bias=config.bias,
            reduction=self.shared,
            split=split,
            outputs=outputs if split else None,
        )
        self.output = BlockDiagonalLinear(self.streams, bias=config.bias, split=split, outputs=outputs)
        self.untied = config.reading == "untied"
        hearing = sum(group.n_heads for group in self.groups if "sem" in group.reads)
        terms = [
            encoding.at_layer(self.streams.widths["sem"], hearing, config.max_length)
            for encoding in config.encodings
        ]
        self.terms = nn.ModuleList(term for term in terms if term is not None)
        written = outputs if split else self.streams.names
        spans = [span for group in self.groups for span in group.spans]
        written = {name for span in spans for name in span.columns if name in written}
        self.averaging = Averaging(config, len(self.heads), written)

    def _group(self, reads: tuple[str, ...], heads: tuple[int, ...]) -> Group:
        d, slices = self.head_width, self.streams.slices
        starts = {columns.start for columns in slices.values()}
        cuts = [n for n, head in enumerate(heads) if n == 0 or head * d in starts]
        spans = []
        for first, last in pairwise([*cuts, len(heads)]):
            start, stop = heads[first] * d, (heads[last - 1] + 1) * d
            overlaps = {
                name: min(stop, columns.stop) - max(start, columns.start) for name, columns in slices.items()
            }
            columns = {name: count for name, count in overlaps.items() if count > 0}
            place = self.heads.index(heads[first])
            spans.append(Span(heads[first:last], first, slice(place, place + last - first), columns))
        read = Streams(**{name: self.streams.widths[name] for name in reads})
        return Group(read.slices, len(heads), tuple(spans))

    def _heads(self, x: Tensor) -> Tensor:
        """`[B, N, H*d]` to `[B, H, N, d]`."""
        return x.unflatten(-1, (-1, self.head_width)).transpose(1, 2)

    def queries_and_keys(
        self, index: int, parts: Mapping[str, Tensor], table: Tensor | None = None
    ) -> list[Part]:
        """Normalised streams `[B, N, w]` to queries and keys of a group, before any rotation.

        Args:
            index: the group.
            parts: the streams; those whose contribution is in `table` may be absent.
            table: of `position_table`, added to what the streams in `parts` give.

        Returns:
            One part. An untied group that reads content and positions has two, in this order.
        """
        group, projection = self.groups[index], self.query_key[index]
        positions = tuple(name for name in group.reads if name != "sem")
        if self.untied and positions and "sem" in group.reads:
            if table is None:
                table = self._projected(index, {name: parts[name] for name in positions})
            content = self._projected(index, {"sem": parts["sem"]})
            return [self._part(index, ("sem",), content), self._part(index, positions, table)]
        if table is None:
            joined = projection(self.streams.join({name: parts[name] for name in group.reads}))
        else:
            joined = self._projected(index, {"sem": parts["sem"]}).add_(table)  # in place: one copy less
        return [self._part(index, tuple(group.reads), joined)]

    def _part(self, index: int, reads: tuple[str, ...], joined: Tensor) -> Part:
        # One split: in the backward pass a slice would fill a tensor of the whole width with zeros.
        spans, d = self.groups[index].spans, self.head_width
        counts = [len(span.heads) for span in spans]
        pieces = joined.split([n * d for n in counts] + [n // self.shared * d for n in counts], dim=-1)
        pieces = [self._heads(piece) for piece in pieces]
        return Part(reads, tuple(pieces[: len(spans)]), tuple(pieces[len(spans) :]))

    def _projected(self, index: int, parts: Mapping[str, Tensor]) -> Tensor:
        """What `parts`, some of the streams that a group reads, add to its queries and keys.

        The bias counts as the content's, so that it is added once.
        """
        projection, slices = self.query_key[index], self.groups[index].reads
        first, *others = (
            F.linear(x, projection.weight[:, slices[name]], projection.bias if name == "sem" else None)
            for name, x in parts.items()
        )
        return sum(others, start=first)

    def position_table(self, parts: Mapping[str, Tensor]) -> Tensor | None:
        """What the position streams give to the queries and keys of the sem heads: `[1, N, 2*H*d]`.

        None where no group reads both. `parts` are the normalised position streams.
        """
        for index, group in enumerate(self.groups):
            if "sem" in group.reads and len(group.reads) > 1:
                return self._projected(index, {n: parts[n] for n in group.reads if n != "sem"})
        return None

    def position_logits(self, table: Tensor, context: AttentionContext, layer: int = 0) -> Tensor:
        """Of an untied layer: the position part of the sem heads' scaled scores, `[H, N, N]`, no mask, in
        float32 or wider. A term of the score that an encoding adds of itself is no part of it."""
        for index, group in enumerate(self.groups):
            if "sem" in group.reads and len(group.reads) > 1:
                reads = tuple(name for name in group.reads if name != "sem")
                part = self._part(index, reads, table)
                (queries,), (keys,), (span,) = part.queries, part.keys, group.spans
                q, k = context.rotated(queries, keys, reads, Place(layer, span.heads), first=False)
                k = k.repeat_interleave(self.shared, dim=1)
                dtype = torch.promote_types(q.dtype, torch.float32)
                q, k = q.to(dtype), k.to(dtype)
                return (q @ k.transpose(-1, -2) * self.head_width**-0.5)[0]
        raise ValueError("no head of this layer reads content and positions")

    def values(self, parts: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Normalised streams `[B, N, w]` to the values of each stream, `[B, N, columns]`."""
        blocks = self.value.parts(parts)
        for span in (span for group in self.groups for span in group.spans):
            if computed := [blocks[name] for name in span.columns if name in blocks]:
                for name, count in span.columns.items():
                    if name not in blocks:  # an unread stream's columns in a straddling head
                        blocks[name] = computed[0].new_zeros(*computed[0].shape[:-1], count)
        return blocks

    def forward(
        self,
        parts: Mapping[str, Tensor],
        context: AttentionContext,
        cache: KVCache | None = None,
        layer: int = 0,
        table: Tensor | None = None,
        earlier: Mapping[str, Tensor] | None = None,
    ) -> dict[str, Tensor]:
        """Normalised streams `[B, N, w]` in, the output streams `[B, N, w]` out.

        Those of earlier tokens, `[B, M, w]`, give keys and values and ask for nothing; see `memory`.
        """
        whole = {n: torch.cat([earlier[n], x], dim=1) for n, x in parts.items()} if earlier else parts
        values, heard, mixed = self.values(whole), context.placed(whole), {}
        for index, group in enumerate(self.groups):
            if not any(values.keys() & span.columns.keys() for span in group.spans):
                continue
            made = self.queries_and_keys(index, heard, table if "sem" in group.reads else None)
            terms = self._terms(parts["sem"], context) if "sem" in group.reads else []
            for number, span in enumerate(group.spans):
                if not values.keys() & span.columns.keys():
                    continue
                v = self._heads(self.streams.join({name: values[name] for name in span.columns}))
                queries, keys = [], []
                for place, part in enumerate(made):
                    q, k = part.queries[number], part.keys[number]
                    if earlier:
                        q = q[..., -parts["sem"].shape[1] :, :]
                    if cache is not None:  # the values are kept once, with the first part
                        own = v if place == 0 else v[..., :0]
                        k, held = cache.extend((layer, span.heads, place), k, own)
                        v = held if place == 0 else v
                    q, k = context.rotated(q, k, part.reads, Place(layer, span.heads), first=place == 0)
                    queries.append(q)
                    keys.append(k)
                q, k = _beside(queries), _beside(keys)
                if self.shared > 1:
                    k, v = k.repeat_interleave(self.shared, dim=1), v.repeat_interleave(self.shared, dim=1)
                for more_q, more_k in terms:
                    q = _beside([q, more_q[:, span.first : span.first + len(span.heads)]])
                    k = _beside([k, more_k])
                z = self.averaging(span, q, k, v, context).transpose(1, 2).flatten(-2)
                mixed |= span.divided(z)
        return self.output.parts(mixed)

    def _terms(self, content: Tensor, context: AttentionContext) -> list[tuple[Tensor, Tensor]]:
        """Per term its columns of the queries and of the keys, of all heads that read the sem stream."""
        pairs = zip(self.terms, context.terms, strict=True)
        return [term(content, prepared) for term, prepared in pairs]


def _beside(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along the columns; a batch or a head that stands for all is repeated."""
    if len(tensors) == 1:
        return tensors[0]
    shape = torch.broadcast_shapes(*(x.shape[:-1] for x in tensors))
    return torch.cat([x.expand(*shape, -1) for x in tensors], dim=-1)
