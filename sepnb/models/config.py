"""What a model is: one frozen description for dense and separated, so that two models differ in one field.

It is checked once, where it is made. What follows from it is in `layout`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import gcd
from typing import Any

from .. import validation
from ..encodings import Encoding, Site, build, how_on_axes, names
from ..streams import ACTIVATIONS, Streams
from ..validation import WIDEST
from . import resolving, windows

MODES = {"separated": "joint", "strict": "strict"}
"""Each mode, and what its heads read: see `QUERY_KEY`."""

QUERY_KEY = ("joint", "strict", "content", "untied")
"""What makes queries and keys: `joint`, every stream for every head; `strict`, the position heads, whose
columns lie in a position stream, read that stream only; `content`, every head reads the sem stream only;
`untied`, as strict, but a sem head's score is one term of content with content and one of position with
position, without the two cross terms (Ke et al. 2021, TUPE)."""

SPLIT = ("norm", "value_output", "mlp")
"""What the separation makes block diagonal."""

POS_STREAM = ("evolving", "constant", "reinjected")
"""What becomes of the position embedding: it evolves through the layers as the sem stream does (`evolving`);
is handed to every layer as it is (`constant`); or is added again before every layer but the first
(`reinjected`; a model with one stream then adds its input encoding in every layer)."""

COUNTS = {"n_layers": 4096, "n_heads": WIDEST, "max_length": 2**40, "expansion": 1024, "axes": 16}
"""Every count and the largest that is taken; more is a slip, and would be built for hours."""


@dataclass(frozen=True)
class TransformerConfig:
    """A pre-norm, residual transformer on one or more streams.

    The stream `sem` carries the content; every other one is a *position stream*, filled by an encoding at the
    input. With the sem stream alone the model is the dense one.

    Args:
        streams: how the width is divided; `Streams.dense(D)` gives the dense baseline.
        n_layers, n_heads: blocks, and heads, which must divide the model width.
        encoding: a name of `sepnb.encodings.names()`, a built encoding, or a tuple of them. One that acts at
            the input is added to the content of a one-stream model and fills the position streams of a
            separated one, which needs exactly one such.
        mode: "separated" or "strict", a preset of `query_key`; without effect on a single stream. A strict
            model computes positions once for all sequences that share positions and mask; positions `[B, N]`
            and documents cost a position branch per sequence, so pad a causal model on the right.
        norm: "split", one norm per stream; "joint", one over the whole width; or "content", one of the sem
            stream alone, so that position streams keep their magnitude. A preset of `split`.
        readout: "sem" or "both": the streams from which the output is computed.
        max_length: positions trained on; the number of rows of a learned table.
        causal: each query sees keys up to itself; False gives a bidirectional encoder.
        expansion, activation, norm_kind: as in `StreamMLP`, `StreamNorm`.
        bias: biases on all maps of the blocks, also on those of the keys, which a softmax takes out again:
            models that differ in their encoding then differ in nothing else.
        embedding_std: of the token embedding when it is drawn. Half puts a token beside a sinusoid, whose
            root mean square is 0.71; at 0.02, the value of large models, an added sinusoid drowns the token.
        tie_embeddings: the output layer shares the weights of the token embedding; needs readout="sem".
        query_key: one of `QUERY_KEY`; None takes the mode's.
        split: which of `SPLIT` are block diagonal; None takes all, minus the norm where `norm` is "joint".
        pos_stream: one of `POS_STREAM`.
        n_kv_heads: key and value heads, each shared by n_heads / n_kv_heads query heads (Ainslie et al.
            2023); must divide n_heads. None gives every query head its own.
        dropout: share of what enters the stack, and of what each sublayer adds to it, that is zeroed in
            training. What isolated position streams compute once for the batch has one mask.
        axes: coordinates of a position: 1 for a text, 2 for the rows and columns of an image. Every encoding
            must take so many; but where there is a position stream for each coordinate, an input encoding of
            one coordinate fills each stream by its own, in the order of the streams.
        window: tokens that a query sees, itself included, in training, evaluation and with a cache; None is
            all before it. For causal models; see `windows`.
        nope_every: in the last of every so many layers no encoding acts at queries and keys, scores or
            values; encodings at the input are not affected (4 as in Llama 4 and SmolLM3). At least 2 and at
            most `n_layers`; None leaves no layer without.

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
    nope_every: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.split, (set, tuple, list)):
            object.__setattr__(self, "split", frozenset(self.split))
        _check_fields(self)
        _check_heads(self)
        _check_streams(self)
        _check_encodings(self)
        _check_nope(self)
        windows.check(self.window, self.causal)

    @property
    def encodings(self) -> tuple[Encoding, ...]:
        """The encodings, built."""
        given = self.encoding if isinstance(self.encoding, tuple) else (self.encoding,)
        return tuple(item if isinstance(item, Encoding) else build(item) for item in given)

    @property
    def input_encodings(self) -> tuple[Encoding, ...]:
        """Those that act at the input."""
        return tuple(encoding for encoding in self.encodings if Site.INPUT in encoding.sites)

    def without_position(self, layer: int) -> bool:
        """Whether a layer, counted from 0, is one of `nope_every`."""
        return self.nope_every is not None and (layer + 1) % self.nope_every == 0

    def encodings_of(self, layer: int) -> tuple[Encoding, ...]:
        """Those that act in a layer, counted from 0."""
        return () if self.without_position(layer) else self.encodings

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
            return self.split
        return frozenset(SPLIT) - (frozenset({"norm"}) if self.norm == "joint" else frozenset())

    @property
    def plain(self) -> tuple[str, ...]:
        """The streams that no norm touches."""
        return self.position_streams if self.norm == "content" else ()

    @property
    def isolated(self) -> bool:
        """Whether what blocks make of the position streams is a function of the positions alone, so that
        these can be run on their own: that takes every split."""
        closed = self.reading in ("strict", "untied") or self.pos_stream == "constant"
        return self.separated and closed and self.splits == frozenset(SPLIT)

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

    def parts(self, head: int) -> list[tuple[str, ...]]:
        """The same as the streams are projected: in an untied model one for content, one for positions."""
        reads = self.reads(head)
        positions = tuple(name for name in reads if name != "sem")
        untied = self.reading == "untied" and positions and "sem" in reads
        return [("sem",), positions] if untied else [reads]

    def __eq__(self, other: object) -> bool:
        """Whether both describe the same model: an encoding by its name is the one that is built of it."""
        return self._described == other._described if isinstance(other, TransformerConfig) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._described)

    @property
    def _described(self) -> tuple[Any, ...]:
        return tuple((vars(self) | {"encoding": self.encodings}).values())

    def resolved(self) -> dict[str, Any]:
        """Every field in plain JSON types, for a record or a file; see `resolving`."""
        return resolving.resolved(self)

    @classmethod
    def from_resolved(cls, resolved: Mapping[str, Any]) -> "TransformerConfig":
        """The config that `resolved` told, also after JSON. TypeError, ValueError: a field or an encoding is
        not known here, or missing, and what no config takes."""
        return cls(**resolving.given(cls, resolved))


def _check_fields(config: TransformerConfig) -> None:
    validation.instance("streams", config.streams, Streams, "Streams.dense(128)")
    validation.whole("the model width", config.streams.d_model, 1, WIDEST)
    for field, allowed in (
        ("mode", tuple(MODES)),
        ("norm", ("split", "joint", "content")),
        ("readout", ("sem", "both")),
        ("activation", tuple(ACTIVATIONS)),
        ("norm_kind", ("layer", "rms")),
        ("query_key", (*QUERY_KEY, None)),
        ("pos_stream", POS_STREAM),
    ):
        validation.one_of(field, getattr(config, field), allowed)
    for field, most in COUNTS.items():
        validation.whole(field, getattr(config, field), 1, most)
    if config.n_kv_heads is not None:
        validation.whole("n_kv_heads", config.n_kv_heads)
    for field in ("causal", "bias", "tie_embeddings"):
        validation.flag(field, getattr(config, field))
    validation.above_zero("embedding_std", config.embedding_std)
    validation.share("dropout", config.dropout)
    if config.split is not None:
        if not isinstance(config.split, frozenset):
            raise TypeError(f"split must be a set of names from {', '.join(SPLIT)}, got {config.split!r}")
        if unknown := sorted(set(map(str, config.split)) - set(SPLIT)):
            raise ValueError(f"split names {unknown[0]!r}; it takes any of {', '.join(SPLIT)}")
        if config.norm == "joint" and "norm" in config.split:
            raise ValueError("norm='joint' contradicts a split that holds 'norm'; leave one of them out")
        if config.norm == "content" and "norm" not in config.split:
            raise ValueError("norm='content' contradicts a split without 'norm'; leave one of them out")


def _check_heads(config: TransformerConfig) -> None:
    width, heads = config.streams.d_model, config.n_heads
    if width % heads:
        nearest = min((n for n in range(1, width + 1) if width % n == 0), key=lambda n: abs(n - heads))
        raise ValueError(f"{heads} heads do not divide the model width {width}; {nearest} would")
    if config.n_kv_heads is not None and heads % config.n_kv_heads:
        fitting = [n for n in range(1, heads + 1) if heads % n == 0]
        raise ValueError(
            f"{validation.shown(config.n_kv_heads)} key and value heads do not divide {heads} heads; "
            f"use one of {', '.join(map(str, fitting))}"
        )


def _check_streams(config: TransformerConfig) -> None:
    if "sem" not in config.streams.names:
        raise ValueError(f"a transformer needs a stream named sem for its content, got {config.streams!r}")
    if config.tie_embeddings and config.readout != "sem":
        raise ValueError("tie_embeddings needs readout='sem': the embedding has no columns for other streams")
    for name, width in config.streams.items:
        if width == 1 and config.norm_kind == "layer" and "norm" in config.splits:
            raise ValueError(
                f"d_{name}=1: a LayerNorm over one column is always 0; give {name} at least 2 "
                f"columns, or use norm_kind='rms'"
            )
    at_input = [encoding.name for encoding in config.input_encodings]
    if config.separated and len(at_input) != 1:
        remedy = "keep one of them" if at_input else "add e.g. 'sinusoidal' or 'learned'"
        raise ValueError(
            f"a separated model needs exactly one encoding at the input to fill its position streams, got "
            f"{len(at_input)} ({', '.join(at_input) or 'none'}); {remedy}"
        )
    if not config.separated and config.pos_stream == "constant":
        raise ValueError("pos_stream='constant' needs a position stream; give Streams(pos=..., sem=...)")
    if config.pos_stream != "evolving" and any(one.each_layer(Site.INPUT) for one in config.input_encodings):
        raise ValueError(
            f"pos_stream={config.pos_stream!r} gives every layer the same embeddings, per_layer its own; "
            f"leave one of them out"
        )
    if config.pos_stream == "reinjected" and not at_input:
        raise ValueError("pos_stream='reinjected' needs an encoding at the input, e.g. 'sinusoidal'")
    # Where a head, or the heads that share a key and value head, must not straddle a border of streams:
    d, shared = config.head_width, config.heads_per_kv
    for name in config.position_streams:
        columns = config.streams.slices[name]
        if config.reading in ("strict", "untied") and gcd(columns.start, columns.stop) % d:
            raise ValueError(
                f"{config.reading} needs whole position heads: d_{name}={config.streams.widths[name]} is no "
                f"multiple of the head width {d}{_nearest(config, name, d)}"
            )
        if shared > 1 and gcd(columns.start, columns.stop) % (shared * d):
            raise ValueError(
                f"d_{name}={config.streams.widths[name]} cuts through the {shared} heads of width {d} that "
                f"share one value head: each of them would bring the same columns, part {name} and part "
                f"sem, to the output, where the cut at column {columns.stop} mixes them. Whole value heads "
                f"must belong to one stream, d_{name} be a multiple of {shared * d}"
                f"{_nearest(config, name, shared * d)}"
            )


def _nearest(config: TransformerConfig, name: str, unit: int) -> str:
    """The multiples of `unit` around the width of a stream, as a remedy."""
    width = config.streams.widths[name]
    if width % unit == 0:
        return f"; put {name} before the streams whose widths are none"
    below = width // unit * unit
    # at width 0 there is no such stream, and at the whole width nothing is left for the sem stream
    fitting = [str(n) for n in (below, below + unit) if 0 < n < config.streams.d_model]
    if not fitting:
        return f", and none is below the model width {config.streams.d_model}; use more and narrower heads"
    return f"; the nearest that {'are' if len(fitting) > 1 else 'is'}: {' and '.join(fitting)}"


def _check_encodings(config: TransformerConfig) -> None:
    made_from = {part for head in range(config.n_heads) for part in config.parts(head)}
    for encoding in config.encodings:
        chosen = config.streams.select(encoding.streams)
        if encoding.streams is not None and not any(set(part) <= set(chosen) for part in made_from):
            remedy = "'untied' or 'content'" if chosen == ("sem",) else "'strict' or 'untied'"
            raise ValueError(
                f"{encoding.name} on {', '.join(chosen)} only: every head of this model reads other streams "
                f"too; use query_key={remedy}"
            )
        if not (encoding.axes is None or config.axes in encoding.axes or config.by_coordinate(encoding)):
            takes = " or ".join(map(str, encoding.axes))
            fitting = [how for name in names() if (how := how_on_axes(name, config.axes)) is not None]
            raise ValueError(
                f"{encoding.name} takes positions of {takes} coordinate{'s' * (takes != '1')}, and axes is "
                f"{config.axes}; use one of {', '.join(fitting)}"
            )
        if encoding.causal_only and not config.causal:
            raise ValueError(
                f"{encoding.name} is for causal models only; use causal=True, or another encoding"
            )


def _check_nope(config: TransformerConfig) -> None:
    every = config.nope_every
    if every is None:
        return
    needs = "the first of so many layers has position; give at least 2"
    validation.whole("nope_every", every, 2, config.n_layers, needs=needs)
    for encoding in config.encodings:
        at = Site.QUERY_KEY
        if encoding.per_layer and at in encoding.sites and not encoding.each_layer(at):
            raise ValueError(
                f"nope_every={every}, and {encoding.name} makes maps for every layer; use per_layer=False"
            )
