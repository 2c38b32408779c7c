"""Every shape of a model: the product of the config's factors, which of it is legal, and a few for all."""

import itertools
from functools import cache

import numpy as np

from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams

from ..encodings.drawn import loud
from .conftest import VOCABULARY

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


@cache
def every_shape() -> list[tuple]:
    """Every legal shape, as places in the values of `FACTORS`."""
    places = itertools.product(*(range(len(values)) for values in FACTORS.values()))
    return [at for at in places if legal(of(at))]


def of(places: tuple) -> dict:
    """The shape at these places."""
    return {factor: values[n] for (factor, values), n in zip(FACTORS.items(), places, strict=True)}


def covering(**allowed: list) -> list[dict]:
    """Legal shapes, few of them, in which any two values meet that can: the same in every session.

    `allowed` narrows factors, e.g. `split=[WHOLE]`. Each shape is one that adds the most new pairs.
    """
    return [of(at) for at in _covering(tuple((factor, tuple(values)) for factor, values in allowed.items()))]


@cache
def _covering(narrowed: tuple) -> list[tuple]:
    allowed = dict(narrowed)
    shapes = np.array(every_shape())
    for number, (factor, values) in enumerate(FACTORS.items()):
        wanted = [n for n, value in enumerate(values) if value in allowed.get(factor, values)]
        shapes = shapes[np.isin(shapes[:, number], wanted)]
    one, other = np.triu_indices(len(FACTORS), 1)
    pairs = (np.arange(len(one)) * 8 + shapes[:, one]) * 8 + shapes[
        :, other
    ]  # no factor has more than 8 values
    missing = np.isin(np.arange(len(one) * 64), pairs)
    found = []
    while missing.any():
        best = missing[pairs].sum(axis=1).argmax()
        missing[pairs[best]] = False
        found.append(tuple(shapes[best]))
    return found


def fields(shape: dict) -> dict:
    """The fields of a config of this shape."""
    return {**shape, "streams": STREAMS[shape["streams"]], "n_layers": 2, "n_heads": 4, "max_length": 12}


def model(shape: dict, **changes) -> LanguageModel:
    """A model of this shape in float64, every parameter drawn anew."""
    return loud(LanguageModel(TransformerConfig(**fields(shape) | changes), VOCABULARY).double())


def name(shape: dict) -> str:
    """A readable id."""
    split = "+".join(sorted(shape["split"])) or "nothing"
    encoding = "+".join([shape["encoding"]] if isinstance(shape["encoding"], str) else shape["encoding"])
    rest = [str(value) for key, value in shape.items() if key not in ("split", "encoding")]
    return "-".join([*rest, f"split:{split}", encoding])
