"""Every shape of a model: the product of the config's factors, which of it is legal, and a fixed sample."""

import itertools
import random

from sepnb.streams import Streams

STREAMS = {
    "dense": Streams.dense(16),
    "whole": Streams(pos=8, sem=8),
    "straddling": Streams(pos=6, sem=10),
    "three": Streams(row=4, col=4, sem=8),
    "turned": Streams(sem=8, pos=8),
}
"""With 4 heads of width 4; two that share a key and value head have width 8."""

SPLITS = [
    frozenset(names) for n in range(4) for names in itertools.combinations(("norm", "value_output", "mlp"), n)
]
WHOLE = SPLITS[-1]
"""Everything is block diagonal."""

SEPARATED = [name for name, streams in STREAMS.items() if len(streams.names) > 1]
FACTORS = {
    "streams": list(STREAMS),
    "encoding": ["sinusoidal", "learned", ("sinusoidal", "rope"), ("learned", "alibi"), "none", "rope"],
    "query_key": ["joint", "strict", "content", "untied"],
    "split": SPLITS,
    "pos_stream": ["evolving", "constant", "reinjected"],
    "readout": ["sem", "both"],
    "n_kv_heads": [None, 2],
    "activation": ["gelu", "swiglu"],
    "norm_kind": ["layer", "rms"],
}


def legal(shape: dict) -> bool:
    """Whether a model of this shape exists."""
    has_input = shape["encoding"] not in ("none", "rope")
    if shape["streams"] == "dense":
        return shape["pos_stream"] == "evolving" or (shape["pos_stream"] == "reinjected" and has_input)
    whole_heads = shape["streams"] != "straddling"
    whole_shared_heads = shape["streams"] in ("whole", "turned")
    return (
        has_input
        and (whole_heads or shape["query_key"] not in ("strict", "untied"))
        and (whole_shared_heads or shape["n_kv_heads"] is None)
    )


def every_shape() -> list[dict]:
    """The product of the factors, legal or not."""
    return [dict(zip(FACTORS, values, strict=True)) for values in itertools.product(*FACTORS.values())]


def pairs(shape: dict) -> set:
    """Every two values that meet in a shape."""
    return set(itertools.combinations(shape.items(), 2))


def sample(count: int, **allowed: list) -> list[dict]:
    """`count` legal shapes in which any two values meet that can, the same in every session.

    `allowed` narrows factors, e.g. `split=[WHOLE]`.
    """
    drawn = [
        shape
        for shape in every_shape()
        if legal(shape) and all(shape[factor] in values for factor, values in allowed.items())
    ]
    random.Random(0).shuffle(drawn)
    met: set = set()
    needed, rest = [], []
    for shape in drawn:
        (rest if pairs(shape) <= met else needed).append(shape)
        met |= pairs(shape)
    if len(needed) > count:
        raise ValueError(f"{len(needed)} shapes are needed for every pair, only {count} were asked for")
    return needed + rest[: count - len(needed)]


def fields(shape: dict) -> dict:
    """The fields of a config of this shape."""
    return {**shape, "streams": STREAMS[shape["streams"]], "n_layers": 2, "n_heads": 4, "max_length": 12}


def name(shape: dict) -> str:
    """A readable id."""
    split = "+".join(sorted(shape["split"])) or "nothing"
    encoding = "+".join([shape["encoding"]] if isinstance(shape["encoding"], str) else shape["encoding"])
    rest = [str(value) for key, value in shape.items() if key not in ("split", "encoding")]
    return "-".join([*rest, f"split:{split}", encoding])
