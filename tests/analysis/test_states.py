"""The states that are recorded are those that the model computes, whatever its streams and its path."""

import pytest
import torch

from sepnb.analysis import attention_maps, held_attention_states, residual_states, stream_state
from sepnb.analysis.states import BATCH, inputs_of
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.models.layout import readout as readout_of
from sepnb.streams import Streams

DENSE, SPLIT = Streams.dense(32), Streams(pos=8, sem=24)
KINDS = {
    "dense": {"streams": DENSE, "encoding": "learned"},
    "none": {"streams": DENSE, "encoding": "none"},
    "rope": {"streams": DENSE, "encoding": "rope"},
    "separated": {"streams": SPLIT},
    "both": {"streams": SPLIT, "encoding": "learned", "readout": "both"},
    "strict": {"streams": SPLIT, "mode": "strict"},
    "reinjected": {"streams": SPLIT, "mode": "strict", "pos_stream": "reinjected"},
    "straddling": {"streams": Streams(pos=12, sem=20), "readout": "both"},
}


def built(kind: str, **changes) -> LanguageModel:
    torch.manual_seed(0)
    settings = {"n_layers": 3, "n_heads": 4, "max_length": 24, "encoding": "sinusoidal"}
    settings |= KINDS[kind] | changes
    return LanguageModel(TransformerConfig(**settings), vocab_size=11).double()


def text(n: int, b: int = 3, seed: int = 0) -> torch.Tensor:
    return torch.randint(11, (b, n), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("kind", KINDS)
def test_the_states_begin_with_the_input_and_end_with_what_is_read_out(kind):
    model, tokens = built(kind), text(7)
    states = residual_states(model, tokens)
    assert len(states) == 4
    streams = model.config.streams
    sizes = {name: (3, 7, width) for name, width in streams.items}
    for depth, state in enumerate(states):
        expected = sizes if depth < 3 or model.config.readout == "both" else {"sem": sizes["sem"]}
        assert {name: tuple(x.shape) for name, x in state.items()} == expected

    positions = torch.arange(7)
    content = model.embedding(tokens)
    torch.testing.assert_close(states[0], dict(model.transformer.input_state(content, positions)))
    readout = {name: states[-1][name] for name in readout_of(model.config)}
    logits = model.head(streams.join(model.norm.parts(readout)))
    torch.testing.assert_close(logits, model(tokens), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["dense", "separated", "strict"])
def test_each_state_is_what_its_block_makes_of_the_one_before(kind):
    model, tokens = built(kind), text(6)
    states, positions = residual_states(model, tokens), torch.arange(6)
    context = model.transformer.attention_context(positions, positions, torch.float64)
    for before, block, after in zip(states, model.transformer.blocks, states[1:], strict=False):
        for name, x in block(before, context).items():
            torch.testing.assert_close(after[name], x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["separated", "strict", "rope"])
def test_positions_batches_and_earlier_calls_do_not_change_what_is_recorded(kind):
    model, tokens = built(kind), text(5, b=2 * BATCH + 3)
    with torch.no_grad():
        model.eval()(tokens)
    whole = residual_states(model, tokens)
    part = residual_states(model, tokens[-2:], torch.arange(5))
    for state, again in zip(whole, part, strict=True):
        for name in state:
            torch.testing.assert_close(state[name][-2:], again[name], rtol=1e-12, atol=1e-12)
    elsewhere = residual_states(model, tokens[:2], torch.arange(9, 14))
    for name in model.config.position_streams:
        assert not torch.allclose(elsewhere[0][name], whole[0][name][:2])


def test_hooks_are_gone_afterwards_and_a_training_model_is_put_into_evaluation():
    model = built("separated", dropout=0.5).train()
    one, two = (residual_states(model, text(5)) for _ in range(2))
    torch.testing.assert_close(one, two, rtol=0, atol=0)
    assert all(not block._forward_hooks for block in model.transformer.blocks)


@pytest.mark.parametrize("kind", ["separated", "strict", "straddling"])
def test_with_held_attention_the_sem_stream_of_a_separated_model_does_not_move_at_all(kind):
    model, tokens = built(kind).float(), text(6)
    there, elsewhere = torch.arange(6), torch.arange(6) + 100
    held = held_attention_states(model, tokens, elsewhere)
    reference = held_attention_states(model, tokens, there)
    live = residual_states(model, tokens, elsewhere)
    for depth in range(4):
        assert torch.equal(held[depth]["sem"], reference[depth]["sem"])
    assert not torch.allclose(live[-1]["sem"], reference[-1]["sem"], atol=1e-3)


def test_held_where_they_are_the_states_are_the_live_ones_and_elsewhere_an_added_embedding_moves_them():
    for kind in ("dense", "separated", "strict"):
        model, tokens = built(kind), text(6)
        held = held_attention_states(model, tokens, torch.arange(6))
        torch.testing.assert_close(held, residual_states(model, tokens), rtol=1e-10, atol=1e-12)
    model = built("dense", encoding="sinusoidal")
    held = held_attention_states(model, tokens, torch.arange(6) + 100)
    assert not torch.allclose(held[-1]["sem"], residual_states(model, tokens)[-1]["sem"], atol=1e-2)


def test_attention_maps_are_causal_distributions_sorted_by_what_heads_write_to():
    maps = attention_maps(built("both"), text(6))
    assert [{owner: w.shape[1] for owner, w in layer.items()} for layer in maps] == 3 * [{"pos": 1, "sem": 3}]
    for layer in maps:
        for weights in layer.values():
            torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1], dtype=weights.dtype))
            assert not weights.triu(1).any()
    for kind, heads in (("straddling", {"pos": 1, "both": 1, "sem": 2}), ("dense", {"sem": 4})):
        assert {owner: w.shape[1] for owner, w in attention_maps(built(kind), text(6))[0].items()} == heads
    # The position head of a last block that nobody reads has no map.
    last = [list(layer) for layer in attention_maps(built("separated"), text(6))]
    assert last == [["pos", "sem"], ["pos", "sem"], ["sem"]]


def test_joint_is_all_streams_and_absent_where_one_is():
    model = built("separated")
    states = residual_states(model, text(4))
    assert stream_state(model, states[1], "joint").shape == (3, 4, 32)
    assert stream_state(model, states[-1], "joint") is None
    assert stream_state(model, states[-1], "pos") is None
    assert torch.equal(stream_state(model, states[1], "sem"), states[1]["sem"])
    dense = built("dense")
    state = residual_states(dense, text(4))[1]
    assert torch.equal(stream_state(dense, state, "joint"), state["sem"])
    with pytest.raises(ValueError, match="unknown stream 'row'; this model has pos, sem and joint"):
        stream_state(model, states[0], "row")


def test_the_inputs_of_modules_are_those_of_their_calls_and_only_inside():
    model, tokens = built("rope"), text(7)
    layers = [block.attention for block in model.transformer.blocks]
    with inputs_of(layers) as found, torch.no_grad():
        model(tokens)
    assert len(found) == len(layers)
    states = residual_states(model, tokens)
    for (given, *_), block, state in zip(found, model.transformer.blocks, states[:-1], strict=True):
        torch.testing.assert_close(given["sem"], block.attention_norm.parts(state)["sem"])
    with torch.no_grad():
        model(tokens)
    assert len(found) == len(layers)
