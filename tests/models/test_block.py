"""The kernel against the formula of attention, and a stack without blocks."""

import pytest
import torch

from sepnb import encodings
from sepnb.models import attention, attention_weights
from sepnb.streams import Streams

from ..encodings.cases import heard
from .trained import close, outcome

ENCODINGS = {name: encodings.build(name) for name in encodings.names(axes=1)}


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("streams", [Streams.dense(32), Streams(pos=12, sem=20)], ids=repr)
def test_the_fused_kernel_is_the_plain_formula_in_output_and_every_gradient(
    built, text, monkeypatch, name, streams, causal
):
    """Called where no encoding makes the scores, and with its own causal mask where none biases them."""
    if ENCODINGS[name].causal_only and not causal:
        return
    at_input = encodings.Site.INPUT in ENCODINGS[name].sites
    encoding = name if at_input or streams == Streams.dense(32) else ("sinusoidal", name)
    positions = heard(ENCODINGS[name], torch.tensor([[0, 1, 2, 3, 4, 5], [7, 3, 9, 1, 30, 2]]))
    model, calls = built(streams, encoding=encoding, causal=causal), []

    def plain(q, k, v, attn_mask=None, is_causal=False, scale=None):
        calls.append(is_causal)
        return attention_weights(q, k, attn_mask, causal=is_causal, scale=scale) @ v

    fused = outcome(model, text(2, 6), positions)
    monkeypatch.setattr(attention.F, "scaled_dot_product_attention", plain)
    close(fused, outcome(model, text(2, 6), positions))
    score = ENCODINGS[name].at_score(encodings.Heads(4, 8, 32))
    explicit, biased = (isinstance(score, kind) for kind in (encodings.PairModule, encodings.ScoreModule))
    assert calls == ([] if explicit else 2 * [causal and not biased])


def test_attention_weights_are_the_softmax_over_the_keys_a_query_may_see():
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(n, 4, dtype=torch.float64, generator=generator) for n in (2, 5))
    weights = attention_weights(q[None, None], k[None, None], None, causal=True)[0, 0]
    for row in range(2):  # queries are the last 2 of the 5 keys
        scores = [(q[row] @ key / 2).exp() for key in k[: 4 + row]]
        expected = torch.stack([score / sum(scores) for score in scores] + (1 - row) * [0 * scores[0]])
        torch.testing.assert_close(weights[row], expected, rtol=0, atol=1e-12)


def test_a_stack_whose_blocks_are_taken_away_gives_its_input(built):
    made = built(Streams(pos=8, sem=24), encoding=("sinusoidal", "kerple"), readout="both")
    stack, at = made.transformer, torch.arange(4)
    stack.blocks = torch.nn.ModuleList()
    state = stack.input_state(torch.ones(1, 4, 24, dtype=torch.float64), at)
    ends = stack.run_blocks(state, {}, at, lambda layer, block, x: 1 / 0)
    assert all(torch.equal(ends[name], x) for name, x in state.items())
