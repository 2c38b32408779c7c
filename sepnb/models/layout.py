"""What follows from a config: for every block the streams that it computes, its heads and their groups.

It is worked out once, when a model is built. What would reach nothing is never built: a stream that nobody
reads, a head that writes only to such streams.

Shape letters: B batch, H heads, N tokens, d head width.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise

from torch import Tensor

from ..encodings import Heads
from ..streams import Streams
from ..validation import instance
from .config import SPLIT, TransformerConfig


@dataclass(frozen=True)
class Span:
    """Neighbouring heads of a group whose columns are whole streams, or the built part of them: one call of
    the attention kernel.

    Attributes:
        number: of the span among those of its group.
        heads: their numbers in the model.
        of_group, built: where they stand among the heads of the group, and among those of the layer.
        columns: how many of their columns lie in each stream, in order.
    """

    number: int
    heads: tuple[int, ...]
    of_group: slice
    built: slice
    columns: Mapping[str, int]

    def divided(self, z: Tensor) -> dict[str, Tensor]:
        """The columns of the heads side by side, `[B, N, H*d]`, to those of each stream."""
        if len(self.columns) == 1:  # a split into one piece would copy its gradient
            return dict.fromkeys(self.columns, z)
        return dict(zip(self.columns, z.split(list(self.columns.values()), dim=-1), strict=True))


@dataclass(frozen=True)
class Group:
    """Neighbouring heads that read the same streams: their queries and keys are one matrix product.

    Attributes:
        reads: the streams that make their queries and keys, and where each stands in the joined input.
        n_heads, spans: how many they are, and the heads, cut where a stream begins.
        parts: the same streams as they are projected: in an untied model content, then positions.
    """

    reads: dict[str, slice]
    n_heads: int
    spans: tuple[Span, ...]
    parts: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class BlockLayout:
    """One block.

    Attributes:
        outputs: the streams that it computes.
        attended: those to which its attention adds so that it can: more than `outputs` before a joint MLP.
        normalised: those that its attention reads.
        heads, groups: the heads that are built, by their numbers in the model and by what they read.
    """

    outputs: tuple[str, ...]
    attended: tuple[str, ...]
    normalised: tuple[str, ...]
    heads: tuple[int, ...]
    groups: tuple[Group, ...]

    @classmethod
    def of(cls, config: TransformerConfig, outputs: tuple[str, ...]) -> "BlockLayout":
        attended = outputs if "mlp" in config.splits else evolving(config)
        heads = _heads(config, attended)
        needed = set(attended if "value_output" in config.splits else config.streams.names)
        needed.update(name for head in heads for name in config.reads(head))
        groups = [_group(config, tuple(group), heads) for _, group in groupby(heads, key=config.reads)]
        return cls(outputs, attended, config.streams.select(needed), heads, tuple(groups))


@dataclass(frozen=True)
class Layout:
    """A stack of blocks, the streams of its input that reach the output (`live`), and those that the read-out
    and its norm need (`last`)."""

    blocks: tuple[BlockLayout, ...]
    live: tuple[str, ...]
    last: tuple[str, ...]

    @classmethod
    def of(cls, config: TransformerConfig) -> "Layout":
        """From the last block to the first: each computes what those after it need."""
        instance("config", config, TransformerConfig)
        # A joint norm reads every stream.
        needed = last = readout(config) if "norm" in config.splits else config.streams.names
        blocks: list[BlockLayout] = []
        for _ in range(config.n_layers):
            outputs = tuple(name for name in needed if name in evolving(config))
            again = bool(blocks) and blocks[-1].outputs == outputs
            blocks.append(blocks[-1] if again else BlockLayout.of(config, outputs))
            whole = config.splits == frozenset(SPLIT)  # what is joint reads every stream
            read = {*blocks[-1].outputs, *blocks[-1].normalised} if whole else config.streams.names
            needed = config.streams.select({*needed, *read})
        return cls(tuple(reversed(blocks)), config.streams.select({*last, *needed}), last)


def readout(config: TransformerConfig) -> tuple[str, ...]:
    """The streams from which the output is computed."""
    return ("sem",) if config.readout == "sem" else config.streams.names


def evolving(config: TransformerConfig) -> tuple[str, ...]:
    """The streams to which the blocks add."""
    return ("sem",) if config.separated and config.pos_stream == "constant" else config.streams.names


def heads_for(config: TransformerConfig, layout: Layout | BlockLayout) -> Heads:
    """The heads that modules of one block are built for, or those that all layers share."""
    one = isinstance(layout, BlockLayout)
    groups = layout.groups if one else ()
    return Heads(
        count=len(layout.heads) if one else config.n_heads,
        width=config.head_width,
        model_width=config.streams.d_model,
        content_width=config.streams.widths["sem"],
        reading=sum(group.n_heads for group in groups if "sem" in group.reads),
        max_length=config.max_length,
        causal=config.causal,
        layers=(layout.heads,) if one else tuple(block.heads for block in layout.blocks),
        shared=config.heads_per_kv,
    )


def _heads(config: TransformerConfig, outputs: tuple[str, ...]) -> tuple[int, ...]:
    """The heads with columns in `outputs`; all of them where one output map reads them all."""
    if "value_output" not in config.splits:
        return tuple(range(config.n_heads))
    d, slices = config.head_width, config.streams.slices
    return tuple(
        head
        for head in range(config.n_heads)
        if any(slices[name].start < (head + 1) * d and head * d < slices[name].stop for name in outputs)
    )


def _group(config: TransformerConfig, heads: tuple[int, ...], built: tuple[int, ...]) -> Group:
    d, slices = config.head_width, config.streams.slices
    starts = {columns.start for columns in slices.values()}
    cuts = [n for n, head in enumerate(heads) if n == 0 or head * d in starts]
    spans = []
    for number, (first, last) in enumerate(pairwise([*cuts, len(heads)])):
        start, stop = heads[first] * d, (heads[last - 1] + 1) * d
        overlaps = {name: min(stop, at.stop) - max(start, at.start) for name, at in slices.items()}
        columns = {name: count for name, count in overlaps.items() if count > 0}
        place = built.index(heads[first])
        at = slice(first, last), slice(place, place + last - first)
        spans.append(Span(number, heads[first:last], *at, columns))
    reads = Streams(**{name: config.streams.widths[name] for name in config.reads(heads[0])})
    return Group(reads.slices, len(heads), tuple(spans), tuple(config.parts(heads[0])))
