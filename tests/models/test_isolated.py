"""Position streams that never hear the content are run once for the batch, and that changes no number."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sepnb.models import LanguageModel, TransformerConfig
from sepnb.models.position_tables import position_branch
from sepnb.streams import Streams

from ..encodings.drawn import loud
from . import shapes
from .conftest import VOCABULARY

F64 = torch.float64
LENGTH = 6
POSITIONS = torch.tensor([0, 2, 3, 7, 8, 11])
STREAMS = Streams(pos=8, sem=24)
ALL_SPLIT = {"split": [shapes.WHOLE], "streams": shapes.SEPARATED}
ISOLATED = [
    *shapes.covering(**ALL_SPLIT, query_key=["strict"]),
    *shapes.covering(**ALL_SPLIT, query_key=["joint"], pos_stream=["constant"]),
]


def shaped(shape: dict, dtype: torch.dtype = F64, **changes) -> LanguageModel:
    model = LanguageModel(TransformerConfig(**{**shapes.fields(shape), **changes}), VOCABULARY)
    loud(model, seed=0)
    return model.to(dtype)


@pytest.mark.parametrize("shape", ISOLATED, ids=shapes.name)
def test_one_pass_for_the_batch_is_the_pass_of_each_sequence_in_output_and_every_gradient(text, shape):
    outcomes = []
    for positions in (
        POSITIONS,
        POSITIONS.expand(3, -1),
    ):  # rows of positions, though equal, are run row by row
        model = shaped(shape)
        assert model.config.isolated
        logits = model(text(3, LENGTH), positions)
        logits.square().mean().backward()
        outcomes.append((logits.detach(), {name: p.grad for name, p in model.named_parameters()}))
    (once, gradients), (each, expected) = outcomes
    torch.testing.assert_close(once, each, rtol=0, atol=1e-10)
    for name, gradient in expected.items():
        torch.testing.assert_close(gradients[name], gradient, rtol=0, atol=1e-10)


@pytest.mark.parametrize("shape", ISOLATED[::3], ids=shapes.name)
@pytest.mark.parametrize(("dtype", "bound"), [(F64, 1e-12), (torch.float32, 1e-6)])
def test_a_batch_is_its_sequences_one_by_one(text, shape, dtype, bound):
    model, tokens = shaped(shape, dtype), text(4, LENGTH)
    with torch.no_grad():
        for parameter in model.parameters():  # float32 promises 1e-6 of numbers about 1
            parameter.mul_(0.5)
        together = model(tokens)
        alone = torch.cat([model(row[None]) for row in tokens])
    torch.testing.assert_close(together, alone, rtol=bound, atol=bound)


@pytest.mark.parametrize("shape", ISOLATED[::3], ids=shapes.name)
def test_rows_with_positions_of_their_own_are_answered_each_for_itself(text, shape):
    model, tokens = shaped(shape), text(3, LENGTH)
    positions = torch.randint(12, (3, LENGTH), generator=torch.Generator().manual_seed(0))
    alone = torch.cat([model(row[None], at) for row, at in zip(tokens, positions, strict=True)])
    torch.testing.assert_close(model(tokens, positions), alone, rtol=0, atol=1e-10)


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


@pytest.mark.parametrize("fields", [{"mode": "strict"}, {"pos_stream": "constant"}], ids=str)
def test_a_text_of_no_or_one_token_and_a_batch_of_none_are_answered(built, text, fields):
    model = built(STREAMS, **fields)
    for batch, length in ((2, 0), (0, 3), (1, 1)):
        assert model(text(batch, length)).shape == (batch, length, VOCABULARY)


def test_streams_that_hear_the_content_have_no_pass_of_their_own(built):
    for streams, fields, message in (
        (STREAMS, {}, "query_key='joint' the position streams read the content; use query_key"),
        (STREAMS, {"mode": "strict", "norm": "joint"}, "tables: norm not split; leave out split= and norm="),
        (
            STREAMS,
            {"pos_stream": "constant", "split": {"norm"}},
            "tables: value_output, mlp not split; leave",
        ),
        (Streams.dense(32), {}, r"it has one stream; give Streams\(pos=\.\.\., sem=\.\.\.\)"),
    ):
        transformer = built(streams, **fields).transformer
        positions = torch.arange(3)
        context = transformer.attention_context(positions, positions, F64)
        with pytest.raises(ValueError, match=message):
            position_branch(transformer, transformer.embeddings(positions, F64), context)


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
