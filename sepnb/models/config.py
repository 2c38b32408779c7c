"""What a model is: one frozen description for dense and separated, so that two models differ in one field."""

from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any

from ..encodings import Encoding, Site, build
from ..settings import without_defaults
from ..streams import Streams
from .fit import MODES, SPLIT, check


@dataclass(frozen=True)
class TransformerConfig:
    """A pre-norm, residual transformer on one or more streams.

    The stream `sem` carries the content; every other one is a *position stream*, filled by an encoding at the
    input. With the sem stream alone the model is the dense one.

    Args:
        streams: how the width is divided; `Streams.dense(D)` gives the dense baseline.
        n_layers: blocks.
        n_heads: heads; must divide the model width.
        encoding: a name of `sepnb.encodings.names()`, a built encoding, or a tuple of them. One that acts at
            the input is added to the content of a one-stream model and fills the position streams of a
            separated one, which needs exactly one such.
        mode: "separated" or "strict", a preset of `query_key`; without effect on a single stream. What strict
            computes once serves the sequences that share their positions and the mask. Positions `[B, N]` and
            documents, as padding on the left and packed texts need them, are right and cost a tower for each
            sequence: pad a causal model on the right.
        norm: "split", one norm per stream, or "joint", one over the whole width; a preset of `split`.
        readout: "sem" or "both": the streams from which the output is computed.
        max_length: positions trained on; the number of rows of a learned table.
        causal: each query sees keys up to itself; False gives a bidirectional encoder.
        expansion, activation, norm_kind: as in `StreamMLP`, `StreamNorm`.
        bias: biases on all maps of the blocks. Those of the keys add the same number to all scores of a
            query, which a softmax takes out again, unless an encoding rotates keys or gates scores. They are
            built and counted all the same: models that differ in their encoding then differ in nothing else.
        embedding_std: of the token embedding when it is drawn. Half puts a token beside a sinusoid, whose
            root mean square is 0.71; at 0.02, the value of large models, an added sinusoid drowns the token.
        tie_embeddings: the output layer shares the weights of the token embedding; needs readout="sem".
        query_key: one of `fit.QUERY_KEY`; None takes the mode's.
        split: which of `fit.SPLIT` are block diagonal; None takes all, less the norm where `norm` is "joint".
        pos_stream: one of `fit.POS_STREAM`.
        n_kv_heads: key and value heads, each shared by n_heads / n_kv_heads query heads (Ainslie et al.
            2023); must divide n_heads. None gives every query head its own.
        dropout: share of what enters the stack, and of what each sublayer adds to it, that is zeroed in
            training. Where isolated position streams run once for the batch, one mask serves all sequences;
            positions `[B, N]` give every sequence its own.
        axes: coordinates of a position: 1 for a text, 2 for the rows and columns of an image. Every encoding
            must take so many; but where there is a position stream for each coordinate, an input encoding of
            one coordinate fills each stream by its own, in the order of the streams.
        window: tokens that a query sees, itself included, in training, evaluation and with a cache; None is
            all before it. For causal models; see `windows` for what it counts and costs.

    Raises:
        TypeError: streams, an encoding or a count of another type.
        ValueError: whatever of this does not fit together, with the nearest that would.
    """

    streams: Streams
    n_layers: int
    n_heads: int
    encoding: str | Encoding | tuple[str | Encoding, ...] = "none"
    mode: str = "separated"
    norm: str = "split"
    readout: str = "sem"
    max_length: int = 128
    causal: bool = True
    expansion: int = 4
    activation: str = "gelu"
    norm_kind: str = "layer"
    bias: bool = False
    embedding_std: float = 0.5
    tie_embeddings: bool = False
    query_key: str | None = None
    split: Collection[str] | None = None
    pos_stream: str = "evolving"
    n_kv_heads: int | None = None
    dropout: float = 0.0
    axes: int = 1
    window: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.split, (set, tuple, list)):
            object.__setattr__(self, "split", frozenset(self.split))
        check(self)

    @property
    def encodings(self) -> tuple[Encoding, ...]:
        """The encodings, built."""
        given = self.encoding if isinstance(self.encoding, tuple) else (self.encoding,)
        return tuple(item if isinstance(item, Encoding) else build(item) for item in given)

    @property
    def input_encodings(self) -> tuple[Encoding, ...]:
        """Those that act at the input."""
        return tuple(encoding for encoding in self.encodings if Site.INPUT in encoding.sites)

    @property
    def real_positions(self) -> bool:
        """Whether a position may lie between the integers: never on one axis, where it is an index."""
        return self.axes > 1 and all(encoding.real_positions for encoding in self.encodings)

    def by_coordinate(self, encoding: Encoding) -> bool:
        """Whether each position stream is filled by one coordinate alone, with an encoding for texts."""
        each = self.axes > 1 and self.axes == len(self.position_streams)
        takes = encoding.axes is not None and 1 in encoding.axes and self.axes not in encoding.axes
        return each and takes and Site.INPUT in encoding.sites

    @property
    def position_streams(self) -> tuple[str, ...]:
        """The streams that hold positions: all but `sem`."""
        return tuple(name for name in self.streams.names if name != "sem")

    @property
    def separated(self) -> bool:
        """Whether there is more than one stream."""
        return len(self.streams.names) > 1

    @property
    def head_width(self) -> int:
        return self.streams.d_model // self.n_heads

    @property
    def heads_per_kv(self) -> int:
        """Query heads that share one key and value head."""
        return 1 if self.n_kv_heads is None else self.n_heads // self.n_kv_heads

    @property
    def reading(self) -> str:
        """What makes queries and keys, one of `QUERY_KEY`."""
        return self.query_key or MODES[self.mode]

    @property
    def splits(self) -> frozenset[str]:
        """What is block diagonal, of `SPLIT`."""
        if self.split is not None:
            return frozenset(self.split)
        return frozenset(SPLIT) - (frozenset({"norm"}) if self.norm == "joint" else frozenset())

    @property
    def isolated(self) -> bool:
        """Whether the position streams are functions of the positions alone, whatever the text, and can be
        run on their own: that takes every split. With pos_stream="constant" and a joint map or norm the
        streams do not change with the text either, but what a block makes of them does: this is False."""
        closed = self.reading in ("strict", "untied") or self.pos_stream == "constant"
        return self.separated and closed and self.splits == frozenset(SPLIT)

    @property
    def evolving(self) -> tuple[str, ...]:
        """The streams to which the blocks add."""
        return ("sem",) if self.separated and self.pos_stream == "constant" else self.streams.names

    @property
    def readout_streams(self) -> tuple[str, ...]:
        return ("sem",) if self.readout == "sem" else self.streams.names

    @property
    def last_streams(self) -> tuple[str, ...]:
        """The streams that the read-out and its norm need. A joint norm reads every stream."""
        return self.readout_streams if "norm" in self.splits else self.streams.names

    def attended(self, outputs: tuple[str, ...]) -> tuple[str, ...]:
        """The streams to which the attention of a block must add so that it can compute `outputs`."""
        return outputs if "mlp" in self.splits else self.evolving

    def normalised(self, outputs: tuple[str, ...]) -> tuple[str, ...]:
        """The streams that the attention of a block reads so that it can compute `outputs`."""
        attended = self.attended(outputs)
        needed = set(attended if "value_output" in self.splits else self.streams.names)
        for head in self.heads_of(attended):
            needed |= set(self.reads(head))
        return self.streams.select(needed)

    def inputs_of(self, outputs: tuple[str, ...]) -> tuple[str, ...]:
        """The streams that a block must be given so that it can compute `outputs`."""
        if self.splits != frozenset(SPLIT):
            return self.streams.names
        return self.streams.select({*outputs, *self.normalised(outputs)})

    @property
    def block_outputs(self) -> tuple[tuple[str, ...], ...]:
        """For each block the streams it must compute. What would reach nothing is never built."""
        outputs, needed = [], self.last_streams
        for _ in range(self.n_layers):
            outputs.append(tuple(name for name in needed if name in self.evolving))
            needed = self.streams.select({*needed, *self.inputs_of(outputs[-1])})
        return tuple(reversed(outputs))

    @property
    def live_streams(self) -> tuple[str, ...]:
        """The streams of the input that reach the output."""
        return self.streams.select({*self.last_streams, *self.inputs_of(self.block_outputs[0])})

    def heads_of(self, outputs: tuple[str, ...]) -> list[int]:
        """The heads with columns in `outputs`; all of them where one output map reads them all."""
        if "value_output" not in self.splits:
            return list(range(self.n_heads))
        d, slices = self.head_width, self.streams.slices
        return [
            head
            for head in range(self.n_heads)
            if any(slices[name].start < (head + 1) * d and head * d < slices[name].stop for name in outputs)
        ]

    def reads(self, head: int) -> tuple[str, ...]:
        """The streams from which head `head` makes its queries and keys."""
        if not self.separated or self.reading == "joint":
            return self.streams.names
        if self.reading == "content":
            return ("sem",)
        for name in self.position_streams:
            columns = self.streams.slices[name]
            if columns.start <= head * self.head_width and (head + 1) * self.head_width <= columns.stop:
                return (name,)
        return self.streams.names

    def resolved(self) -> dict[str, Any]:
        """Every field in plain JSON types, for a record.

        The fields after `tie_embeddings` are left out where they have their default. Streams are an object by
        name, or a list of pairs where their order is not that of their names, because a key is taken from
        objects with sorted names.
        """
        own = fields(self)
        first = 1 + [field.name for field in own].index("tie_embeddings")
        given = {field.name: getattr(self, field.name) for field in own}
        resolved = without_defaults(given, **{field.name: field.default for field in own[first:]})
        if "split" in resolved:
            resolved["split"] = sorted(self.splits)
        names = list(self.streams.names)
        by_name = names == sorted(names)
        resolved["streams"] = self.streams.widths if by_name else [list(item) for item in self.streams.items]
        resolved["encoding"] = [item.resolved() for item in self.encodings]
        return resolved
