"""One way to see or replace an attention pattern: the hook is asked in every layer and decides."""

import pytest
import torch

from sepnb.models import attention_hook, frozen_attention
from sepnb.streams import Streams

DENSE, SEPARATED = Streams.dense(32), Streams(pos=12, sem=20)
N = 6


@pytest.mark.parametrize("encoding", ["none", "rope", "alibi", "shaw", "phase", "distance-aware"])
def test_a_hook_that_gives_what_it_is_offered_changes_nothing_and_hears_every_layer_and_head(
    built, text, encoding
):
    model, heard = built(DENSE, encoding=encoding), []

    def hook(layer, heads, compute):
        weights = compute()
        heard.append((layer, heads))
        assert weights.shape == (2, len(heads), N, N)
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
        return weights

    expected = model(text(2, N))
    with attention_hook(model, hook) as n_layers:
        found = model(text(2, N))
    assert n_layers == 2 and heard == [(0, (0, 1, 2, 3)), (1, (0, 1, 2, 3))]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    found.sum().backward()  # gradients go through what the hook was offered
    assert model.transformer.blocks[0].attention.query_key[0].weight.grad.abs().max() > 0


def test_what_the_hook_gives_is_what_the_values_are_averaged_with(built, text):
    """Every head attends to itself alone: a layer is then its map of values and of outputs."""
    model = built(DENSE, encoding="sinusoidal", n_layers=1)
    with attention_hook(model, lambda layer, heads, compute: torch.eye(N, dtype=torch.float64)):
        found = model.transformer(model.embedding(text(2, N)))["sem"]
    x = model.transformer.input_state(model.embedding(text(2, N)), torch.arange(N))["sem"]
    (block,) = model.transformer.blocks
    x = x + block.attention.output(block.attention.value(block.attention_norm(x)))
    torch.testing.assert_close(found, x + block.mlp(block.mlp_norm(x)), rtol=0, atol=1e-10)


def test_a_head_can_be_taken_out_by_its_number_also_where_the_heads_are_cut_into_spans(built, text):
    model = built(SEPARATED, n_layers=1, n_heads=4, readout="both")
    (block,) = model.transformer.blocks

    def without(number):
        def hook(layer, heads, compute):
            keep = torch.tensor([head != number for head in heads])
            return compute() * keep[:, None, None]

        return hook

    with attention_hook(model, without(2)):
        found = model(text(2, N))
    with torch.no_grad():  # heads of width 8: the third has columns 16 to 23, all of the sem stream
        block.attention.value.blocks["sem"].weight[4:12] = 0
    torch.testing.assert_close(found, model(text(2, N)), rtol=0, atol=1e-10)


def test_hooks_nest_and_the_outer_one_is_back_after_an_error(built, text):
    model, order = built(DENSE, encoding="none", n_layers=1), []

    def named(name):
        return lambda layer, heads, compute: order.append(name) or compute()

    with attention_hook(model, named("outer")):
        model(text(1, N))
        with pytest.raises(RuntimeError, match="stop"), attention_hook(model, named("inner")):
            model(text(1, N))
            raise RuntimeError("stop")
        model(text(1, N))
        with frozen_attention(model) as patterns:
            model(text(1, N))
        assert patterns[0].weights.shape == (1, 4, N, N)
    model(text(1, N))
    assert order == ["outer", "inner", "outer"]


def test_frozen_attention_replays_what_it_recorded_and_lets_go_afterwards(built, text):
    model, tokens, others = built(Streams(pos=8, sem=24)), text(1, 5), text(1, 5, seed=1)
    before = model(tokens)
    with pytest.raises(RuntimeError, match="stop"), frozen_attention(model) as patterns:
        torch.testing.assert_close(model(tokens), before, rtol=0, atol=1e-12)
        assert not any(pattern.weights.requires_grad for pattern in patterns)
        recorded = [pattern.weights.clone() for pattern in patterns]
        model(others)
        assert all(torch.equal(pattern.weights, was) for pattern, was in zip(patterns, recorded, strict=True))
        shapes = [weights.shape for weights in recorded]
        assert shapes == [(1, 4, 5, 5), (1, 3, 5, 5)]  # the last layer has no pos head
        for weights in recorded:
            torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1], dtype=torch.float64))
            assert weights.triu(1).abs().max() == 0
        raise RuntimeError("stop")
    assert not torch.equal(model(others), before)
    assert torch.equal(model(tokens), before)
