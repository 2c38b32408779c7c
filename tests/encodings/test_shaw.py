"""Shaw's relative representations: what bfloat16 keeps of a sum, and which stream hears them."""

import pytest
import torch
from torch import Tensor

from sepnb.encodings import Heads, Shaw
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams

from .drawn import F64, random


def test_the_sum_over_many_small_weights_does_not_stop_growing_in_bfloat16():
    values = Shaw(1).at_value(Heads(1, 1)).to(torch.bfloat16)
    with torch.no_grad():
        values.table.fill_(1.0)
    n, keys = 4096, torch.arange(4096)
    weights = torch.full((1, 1, 1, n), 1 / n, dtype=torch.bfloat16)
    added = values(weights, values.prepare(keys[-1:], keys), slice(0, 1))
    assert added.item() == pytest.approx(1.0, abs=1e-2)


# --- in a model


def states(mode: str, streams: Streams, table: float) -> dict[str, Tensor]:
    """What one layer of attention gives to each stream, the table of the values filled with one number."""
    torch.manual_seed(0)
    config = TransformerConfig(streams, 1, 4, ("sinusoidal", Shaw(clip=2)), mode=mode, readout="both")
    transformer = LanguageModel(config, 11).double().transformer
    attention, content = transformer.blocks[0].attention, random(2, 6, streams.widths["sem"])
    with torch.no_grad():
        attention.averaging.added.table.fill_(table)
    at = torch.arange(6)
    state = transformer.input_state(content, at)
    context = transformer.attention_context(at, at, F64)
    return attention(transformer.blocks[0].attention_norm.parts(state), context)


@pytest.mark.parametrize(
    ("mode", "streams"),
    [
        ("separated", Streams(pos=8, sem=8)),
        ("strict", Streams(pos=8, sem=8)),
        ("separated", Streams(pos=6, sem=10)),  # the second head has 2 columns of each
    ],
    ids=str,
)
def test_vectors_of_values_reach_the_position_streams_and_never_the_content(mode, streams):
    without, with_vectors = (states(mode, streams, fill) for fill in (0.0, 1.0))
    assert torch.equal(with_vectors["sem"], without["sem"])
    assert (with_vectors["pos"] - without["pos"]).abs().min() > 1e-6


def test_where_nothing_could_hear_them_there_are_no_vectors_of_values():
    def tables(**fields) -> list[bool]:
        config = TransformerConfig(Streams(pos=8, sem=8), 2, 4, ("sinusoidal", Shaw()), **fields)
        blocks = LanguageModel(config, 11).transformer.blocks
        return [block.attention.averaging.added is not None for block in blocks]

    assert tables() == [True, False]  # the last block adds to the sem stream alone
    assert tables(readout="both") == [True, True]
    assert tables(pos_stream="constant") == [False, False]
