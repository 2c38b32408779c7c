"""Position streams that never hear the content are run once for the batch, and that changes no number."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sepnb.models import LanguageModel, TransformerConfig
from sepnb.models.position_tables import position_branch
from sepnb.streams import Streams

from .conftest import VOCABULARY

F64 = torch.float64
LENGTH = 6
POSITIONS = torch.tensor([0, 2, 3, 7, 8, 11])
STREAMS = Streams(pos=8, sem=24)


def position_batches(model: LanguageModel, tokens: Tensor) -> list[Tensor]:
    """The pos stream after every block that computes it."""
    found: list[Tensor] = []

    def keep(block, inputs, output) -> None:
        found.extend([output["pos"]] if "pos" in output else [])

    hooks = [block.register_forward_hook(keep) for block in model.transformer.blocks]
    model(tokens)
    for hook in hooks:
        hook.remove()
    return found


@pytest.mark.parametrize("pos_stream", ["evolving", "reinjected"])
def test_dropout_of_the_pos_stream_is_drawn_once_for_all_sequences_and_that_of_the_content_is_not(
    built, text, pos_stream
):
    model = built(STREAMS, mode="strict", readout="both", dropout=0.4, pos_stream=pos_stream).train()
    same = text(1, LENGTH).expand(3, -1)
    one, other = position_batches(model, same), position_batches(model, same)
    assert [state.shape for state in one] == 2 * [(1, LENGTH, 8)]
    assert not torch.equal(one[0], other[0])  # it is drawn
    states = model.transformer(model.embedding(same))
    assert torch.equal(states["pos"], states["pos"][:1].expand(3, -1, -1))
    assert not torch.allclose(states["sem"][0], states["sem"][1])
    rest = built(STREAMS, mode="strict", readout="both", dropout=0.4, pos_stream=pos_stream).eval()
    without = built(STREAMS, mode="strict", readout="both", pos_stream=pos_stream)
    assert torch.equal(rest(same), without(same))


def test_positions_of_each_row_draw_the_dropout_of_the_pos_stream_for_each_sequence(built, text):
    model = built(STREAMS, mode="strict", readout="both", dropout=0.4).train()
    content = model.embedding(text(1, LENGTH).expand(3, -1))
    states = model.transformer(content, torch.arange(LENGTH).expand(3, -1))
    assert not torch.equal(states["pos"][0], states["pos"][1])


def test_dropout_zeroes_its_share_of_what_enters_and_keeps_the_mean(built):
    model = built(STREAMS, mode="strict", dropout=0.25, max_length=4096).train()
    content, entered = torch.ones(1, 4096, 24, dtype=F64), {}

    def keep(block, inputs) -> None:
        entered.update(inputs[0])

    model.transformer.blocks[0].register_forward_pre_hook(keep)
    model.transformer(content)
    assert (entered["sem"] == 0).double().mean().item() == pytest.approx(0.25, abs=0.01)
    assert entered["sem"].mean().item() == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("streams", [STREAMS, Streams(pos=16, sem=16), Streams(sem=24, pos=8)], ids=repr)
@pytest.mark.parametrize("dtype", [F64, torch.float32, torch.bfloat16])
def test_the_pos_stream_of_a_strict_model_is_bitwise_the_same_for_every_text_and_batch(built, streams, dtype):
    model = built(streams, mode="strict", dtype=dtype, readout="both")
    content = torch.randn(2, 3, streams.widths["sem"], generator=torch.Generator().manual_seed(0)).to(dtype)
    with torch.no_grad():
        one, other = (model.transformer(text)["pos"] for text in content.split(1))
        both, poisoned = model.transformer(content), model.transformer(content[:1] * torch.nan)
    assert torch.equal(one, other) and torch.equal(both["pos"], one.expand_as(both["pos"]))
    # No number of the content is ever multiplied in, not even by zero: that would spread the NaN.
    assert poisoned["sem"].isnan().all() and torch.equal(poisoned["pos"], one)


# --- what an isolated model is


def sem_weights(model: LanguageModel) -> dict[str, Tensor]:
    """What a dense model of the width of the sem stream has of this one, by the names it has there."""
    state, others = model.state_dict(), {"query_key", *model.config.position_streams}
    kept = {name: value for name, value in state.items() if not others & set(name.split("."))}
    for layer, block in enumerate(model.transformer.blocks):
        for index, group in enumerate(block.attention.groups):
            if "sem" in group.reads:
                prefix = f"transformer.blocks.{layer}.attention.query_key"
                kept[f"{prefix}.0.weight"] = state[f"{prefix}.{index}.weight"][:, group.reads["sem"]]
    return kept


def dense_of(model: LanguageModel) -> LanguageModel:
    """A dense model without positions, with the weights that `model` has for its sem stream."""
    config = model.config
    dense = TransformerConfig(
        Streams.dense(config.streams.widths["sem"]),
        config.n_layers,
        config.streams.widths["sem"] // config.head_width,
        activation=config.activation,
        norm_kind=config.norm_kind,
    )
    made = LanguageModel(dense, VOCABULARY).double()
    made.load_state_dict(sem_weights(model))
    return made


@pytest.mark.parametrize(
    "streams", [STREAMS, Streams(sem=24, pos=8), Streams(row=8, col=8, sem=16)], ids=repr
)
@pytest.mark.parametrize("pos_stream", ["evolving", "constant", "reinjected"])
@pytest.mark.parametrize("activation", ["gelu", "swiglu"])
def test_content_alone_in_queries_and_keys_is_a_model_of_the_sem_width_without_positions(
    built, text, streams, pos_stream, activation
):
    """Nothing of the position streams is built, and what is left is NoPE."""
    model = built(streams, query_key="content", pos_stream=pos_stream, activation=activation)
    assert model.transformer.layout.live == ("sem",)
    assert len(model.transformer.input_encodings) == 0
    dense, tokens = dense_of(model), text(2, 9)
    assert dense.parameter_counts() == model.parameter_counts()
    torch.testing.assert_close(model(tokens), dense(tokens), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "streams", [STREAMS, Streams(sem=24, pos=8), Streams(row=8, col=8, sem=16)], ids=repr
)
@pytest.mark.parametrize("pos_stream", ["evolving", "constant", "reinjected"])
def test_a_strict_model_is_a_dense_one_of_the_sem_width_with_a_table_added_to_queries_and_keys(
    built, text, streams, pos_stream
):
    model, tokens = built(streams, mode="strict", pos_stream=pos_stream), text(3, LENGTH)
    transformer, n_heads = model.transformer, streams.widths["sem"] // 8
    context = transformer.attention_context(POSITIONS, POSITIONS, F64)
    tables = position_branch(transformer, transformer.embeddings(POSITIONS, F64), context).tables
    assert [table.shape for table in tables] == 2 * [(1, LENGTH, 2 * n_heads * 8)]

    dense = dense_of(model)
    x = dense.embedding(tokens)
    for block, table in zip(dense.transformer.blocks, tables, strict=True):
        u = block.attention_norm(x)
        made = block.attention.query_key[0](u) + table
        q, k = (part.unflatten(-1, (n_heads, 8)).transpose(1, 2) for part in made.chunk(2, dim=-1))
        v = block.attention.value(u).unflatten(-1, (n_heads, 8)).transpose(1, 2)
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(-2)
        x = x + block.attention.output(z)
        x = x + block.mlp(block.mlp_norm(x))
    expected = dense.head(dense.norm(x))
    torch.testing.assert_close(model(tokens, POSITIONS), expected, rtol=0, atol=1e-10)
    assert (dense(tokens) - expected).abs().max() > 1e-3  # the tables are all it knows of positions
