"""How many parameters a block has, counted by hand for every factor that changes it."""

import itertools

import pytest

from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams

from . import shapes

STREAMS = [Streams.dense(16), Streams(pos=8, sem=8), Streams(row=4, col=4, sem=8), Streams(pos=4, sem=12)]
"""Heads of width 4."""


def by_hand(streams: Streams, query_key: str, split: frozenset, shared: int, gated: bool, bias: bool) -> int:
    """One block that computes every stream, norms of kind layer."""
    width, d_sem = streams.d_model, streams.widths["sem"]
    square = sum(w**2 for w in streams.widths.values())
    if query_key == "joint" or len(streams.names) == 1:
        queries = width**2
    elif query_key == "content":
        queries = d_sem * width
    else:  # a position head reads its stream, a sem head everything
        queries = sum(w**2 for name, w in streams.items if name != "sem") + d_sem * width
    values = square if "value_output" in split else width**2
    mlp = (12 if gated else 8) * (square if "mlp" in split else width**2)
    count = queries + queries // shared + values // shared + values + mlp + 4 * width
    if bias:
        count += width + width // shared + width // shared + width + (9 if gated else 5) * width
    return count


def legal(streams: Streams, n_kv_heads: int) -> bool:
    """Whole value heads in every stream."""
    return len(streams.names) == 1 or all(w % (16 // n_kv_heads) == 0 for w in streams.widths.values())


@pytest.mark.parametrize(
    ("streams", "n_kv_heads"),
    [case for case in itertools.product(STREAMS, (4, 2, 1)) if legal(*case)],
    ids=str,
)
@pytest.mark.parametrize("query_key", ["joint", "strict", "content", "untied"])
def test_a_block_has_the_parameters_that_its_factors_give_it(streams, query_key, n_kv_heads):
    shared, more = 4 // n_kv_heads, itertools.cycle(itertools.product(("gelu", "swiglu"), (False, True)))
    for split, (activation, bias) in zip(shapes.SPLITS, more, strict=False):
        fields = {"query_key": query_key, "split": split, "activation": activation, "bias": bias}
        config = TransformerConfig(
            streams, 1, 4, "sinusoidal", readout="both", n_kv_heads=n_kv_heads, **fields
        )
        expected = by_hand(streams, query_key, split, shared, activation == "swiglu", bias)
        assert LanguageModel(config, 5).parameter_counts()["blocks"] == expected
