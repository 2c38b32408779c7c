"""The decoupled key: columns that turn and are one for all heads, beside columns that each head has.

A model that shares them is held against one that does not, with the same rows of W_K in every head.
"""

import pytest
import torch
from torch import Tensor

from sepnb.encodings import DynamicNTK, RoPE, YaRN
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams

from ..models.trained import in_pieces
from .drawn import F64, TIGHT, loud

SHARE, WIDTH, HEADS, N = 0.5, 32, 4, 9
SHAPES = {
    "dense": (Streams.dense(WIDTH), {}),
    "shared keys and values": (Streams.dense(WIDTH), {"n_kv_heads": 2}),
    "one key for all": (Streams.dense(WIDTH), {"n_kv_heads": 1, "bias": True}),
    "straddling": (Streams(pos=12, sem=20), {"readout": "both"}),
    "strict": (Streams(pos=8, sem=24), {"mode": "strict", "readout": "both"}),
    "untied": (Streams(pos=8, sem=24), {"query_key": "untied"}),
    "a layer without": (Streams.dense(WIDTH), {"nope_every": 2}),
    "window": (Streams.dense(WIDTH), {"window": 3}),
}


def model(shape: str, **options) -> LanguageModel:
    streams, fields = SHAPES[shape]
    rope = RoPE(partial=SHARE, **options)
    encoding = rope if len(streams.names) == 1 else ("sinusoidal", rope)
    torch.manual_seed(0)
    config = TransformerConfig(streams, 2, HEADS, encoding, max_length=16, **fields)
    return loud(LanguageModel(config, 11).to(F64))


def twin(shape: str) -> tuple[LanguageModel, LanguageModel]:
    """The model that shares, and one of which every head has those rows for itself."""
    ours, theirs = model(shape, shared=True), model(shape)
    weights = dict(ours.state_dict())
    for layer, block in enumerate(ours.transformer.blocks):
        attention = block.attention
        if not attention.common:
            continue
        d, own = attention.head_width, attention.head_width - attention.common
        for index, group in enumerate(attention.groups):
            for what in ("weight", "bias"):
                name = f"transformer.blocks.{layer}.attention.query_key.{index}.{what}"
                if name not in weights:
                    continue
                keys = group.n_heads // attention.shared
                q, k, common = weights[name].split([group.n_heads * d, keys * own, attention.common])
                each = [torch.cat([common, head]) for head in k.split(own)]
                weights[name] = torch.cat([q, *each])
    theirs.load_state_dict(weights)
    return ours.eval(), theirs.eval()


def tokens() -> Tensor:
    return torch.randint(11, (2, N), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_rope_on_a_share_of_the_columns_with_the_same_key_rows_in_every_head(shape):
    """At any positions, with a cache, behind a window, and under context extensions."""
    ours, theirs = twin(shape)
    rows = torch.stack([torch.arange(N) + 5, torch.tensor([4, 2, 9, 1, 0, 70, 8, 3, 6])])
    rules = [{}, {"window": 3}, {"extension": YaRN(4.0, 16)}]
    rules += [] if ours.config.separated else [{"extension": DynamicNTK(4.0, 4)}]  # no sinusoid follows it
    with torch.no_grad():
        for rule in rules:
            one, other = (m.extended(**rule) if rule else m for m in (ours, theirs))
            for at in (torch.arange(N), rows):
                torch.testing.assert_close(one(tokens(), at), other(tokens(), at), **TIGHT)
            pieces = in_pieces(one, tokens(), [4, 1, 4], N if "extension" in rule else None)
            torch.testing.assert_close(pieces, other(tokens(), torch.arange(N)), **TIGHT)
