"""The factors of a model's config, and which settings fit together."""

from math import gcd
from typing import TYPE_CHECKING

from ..encodings import how_on_axes, names
from ..encodings.rope import RoPE
from ..streams import ACTIVATIONS, Streams
from . import windows

if TYPE_CHECKING:
    from .config import TransformerConfig

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
"""What becomes of the code of a position: it `evolving` through the layers as the sem stream does; handed
`constant` to every layer; or added again before every layer but the first (`reinjected`; a model with one
stream then adds its input encoding in every layer)."""


def check(config: "TransformerConfig") -> None:
    """Refuse a config that does not fit together.

    Raises:
        TypeError, ValueError: see `TransformerConfig`.
    """
    _types_and_names(config)
    _heads(config)
    _streams(config)
    _whole_heads(config)
    _rotations(config)
    _axes(config)
    windows.check(config.window, config.causal)
    for encoding in config.encodings:
        if encoding.causal_only and not config.causal:
            raise ValueError(
                f"{encoding.name} is for causal models only; use causal=True, or another encoding"
            )


def _types_and_names(config: "TransformerConfig") -> None:
    if not isinstance(config.streams, Streams):
        raise TypeError(f"streams must be Streams, such as Streams.dense(128), got {config.streams!r}")
    for field, allowed in (
        ("mode", tuple(MODES)),
        ("norm", ("split", "joint")),
        ("readout", ("sem", "both")),
        ("activation", tuple(ACTIVATIONS)),
        ("norm_kind", ("layer", "rms")),
        ("query_key", (*QUERY_KEY, None)),
        ("pos_stream", POS_STREAM),
    ):
        if (value := getattr(config, field)) not in allowed:
            listed = ", ".join(str(name) for name in allowed)
            raise ValueError(f"{field}={value!r} is unknown; use one of {listed}")
    for field in ("n_layers", "n_heads", "max_length", "expansion", "n_kv_heads", "axes"):
        value = getattr(config, field)
        if value is None and field == "n_kv_heads":
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{field} must be an int, got {value!r}")
        if value < 1:
            raise ValueError(f"{field} is {value}; it must be at least 1")
    if not config.embedding_std > 0:
        raise ValueError(f"embedding_std is {config.embedding_std}; it must be above 0")
    if not 0 <= config.dropout < 1:
        raise ValueError(f"dropout is {config.dropout}; it must be at least 0 and below 1")
    if config.split is not None:
        if not isinstance(config.split, frozenset):
            raise TypeError(f"split must be a set of names from {', '.join(SPLIT)}, got {config.split!r}")
        if unknown := sorted(set(config.split) - set(SPLIT)):
            raise ValueError(f"split names {unknown[0]!r}; it takes any of {', '.join(SPLIT)}")
        if config.norm == "joint" and "norm" in config.split:
            raise ValueError("norm='joint' contradicts a split that holds 'norm'; leave one of them out")


def _heads(config: "TransformerConfig") -> None:
    width, heads = config.streams.d_model, config.n_heads
    if width % heads:
        near = [n for n in range(1, width + 1) if width % n == 0]
        nearest = min(near, key=lambda n: abs(n - heads))
        raise ValueError(f"{heads} heads do not divide the model width {width}; {nearest} would")
    if config.n_kv_heads is not None and heads % config.n_kv_heads:
        fitting = [n for n in range(1, heads + 1) if heads % n == 0]
        raise ValueError(
            f"{config.n_kv_heads} key and value heads do not divide {heads} heads; "
            f"use one of {', '.join(map(str, fitting))}"
        )


def _streams(config: "TransformerConfig") -> None:
    if "sem" not in config.streams.names:
        raise ValueError(f"a transformer needs a stream named sem for its content, got {config.streams!r}")
    if config.tie_embeddings and config.readout != "sem":
        raise ValueError(
            "tie_embeddings needs readout='sem': the embedding has no columns for the other streams"
        )
    for name, width in config.streams.items:
        if width == 1 and config.norm_kind == "layer" and "norm" in config.splits:
            raise ValueError(
                f"d_{name}=1: a LayerNorm over one column is 0 whatever stands there; give {name} at least 2 "
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
    if config.pos_stream != "evolving" and any(one.per_layer for one in config.input_encodings):
        raise ValueError(
            f"pos_stream={config.pos_stream!r} gives every layer the same code, per_layer one of its own; "
            f"leave one of them out"
        )
    if config.pos_stream == "reinjected" and not at_input:
        raise ValueError("pos_stream='reinjected' needs an encoding at the input, e.g. 'sinusoidal'")


def _whole_heads(config: "TransformerConfig") -> None:
    """Where a head, or the heads that share a key and value head, must not straddle a border of streams."""
    if not config.separated:
        return
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


def _rotations(config: "TransformerConfig") -> None:
    """An encoding that rotates some streams only needs queries and keys that are made from these alone."""
    made_from = {part for head in range(config.n_heads) for part in _parts(config, config.reads(head))}
    for encoding in config.encodings:
        if isinstance(encoding, RoPE) and encoding.streams is not None:
            chosen = config.streams.select(encoding.streams)
            if not any(set(part) <= set(chosen) for part in made_from):
                remedy = "'untied' or 'content'" if chosen == ("sem",) else "'strict' or 'untied'"
                raise ValueError(
                    f"rope on {', '.join(chosen)} only: every head of this model reads other streams too; "
                    f"use query_key={remedy}"
                )


def _axes(config: "TransformerConfig") -> None:
    """Every encoding must take positions of so many coordinates, or one of them for each position stream."""
    for encoding in config.encodings:
        if encoding.axes is None or config.axes in encoding.axes or config.by_coordinate(encoding):
            continue
        takes = " or ".join(map(str, encoding.axes))
        fitting = [told for name in names() if (told := how_on_axes(name, config.axes)) is not None]
        raise ValueError(
            f"{encoding.name} takes positions of {takes} coordinate{'s' * (takes != '1')}, and axes is "
            f"{config.axes}; use one of {', '.join(fitting)}"
        )


def _parts(config: "TransformerConfig", reads: tuple[str, ...]) -> list[tuple[str, ...]]:
    """What a head makes its queries and keys from: in an untied model content and positions apart."""
    positions = tuple(name for name in reads if name != "sem")
    if config.reading == "untied" and positions and "sem" in reads:
        return [("sem",), positions]
    return [reads]


def _nearest(config: "TransformerConfig", name: str, unit: int) -> str:
    """The multiples of `unit` around the width of a stream, as a remedy."""
    width = config.streams.widths[name]
    below = width // unit * unit
    if width == below:
        return f"; put {name} before the streams whose widths are none"
    above = below + unit
    # at width 0 there is no such stream, and at the whole width nothing is left for the sem stream
    fitting = [str(n) for n in (below, above) if 0 < n < config.streams.d_model]
    if not fitting:
        return f", and none is below the model width {config.streams.d_model}; use more and narrower heads"
    verb = "that are" if len(fitting) > 1 else "that is"
    return f"; the nearest {verb}: {' and '.join(fitting)}"


def what_opens(config: "TransformerConfig") -> str:
    """What keeps a model from being isolated, with the remedy."""
    if not config.separated:
        return "it has one stream; give Streams(pos=..., sem=...)"
    missing = [name for name in SPLIT if name not in config.splits]
    if missing:
        return f"{', '.join(missing)} not split; leave out split= and norm=, which split everything"
    return (
        f"with query_key={config.reading!r} the position streams hear the text; use query_key='strict' "
        f"or 'untied', or pos_stream='constant'"
    )
