"""Untied: content scores content, positions score positions, and neither the other."""

import pytest
import torch

from sepnb.encodings import RoPE, apply_rope, rope_frequencies
from sepnb.models import frozen_attention
from sepnb.streams import Streams

STREAMS = [Streams(pos=8, sem=24), Streams(sem=24, pos=8), Streams(row=8, col=8, sem=16)]
SHARED, ROWS = torch.arange(3, 9), torch.tensor([[0, 1, 2, 3, 4, 5], [7, 8, 9, 10, 11, 20]])


def normalised(model, tokens: torch.Tensor, positions: torch.Tensor) -> dict[str, torch.Tensor]:
    """What the first layer of attention reads."""
    transformer = model.transformer
    state = transformer.input_state(model.embedding(tokens), positions)
    return transformer.blocks[0].attention_norm.parts(state)


def heads_of(x: torch.Tensor) -> torch.Tensor:
    return x.unflatten(-1, (-1, 8)).transpose(1, 2)


@pytest.mark.parametrize("streams", STREAMS, ids=repr)
@pytest.mark.parametrize(
    "rope",
    [None, RoPE(), "positions", RoPE(streams=("sem",))],
    ids=["plain", "rope", "rope on positions", "rope on content"],
)
@pytest.mark.parametrize(("positions", "bias"), [(SHARED, False), (ROWS, True)], ids=["shared", "rows"])
def test_a_sem_heads_score_is_one_term_of_content_and_one_of_positions(
    built, text, streams, positions, rope, bias
):
    names = tuple(name for name in streams.names if name != "sem")
    rope = RoPE(streams=names) if rope == "positions" else rope
    encoding = "sinusoidal" if rope is None else ("sinusoidal", rope)
    model, tokens = built(streams, query_key="untied", encoding=encoding, bias=bias, n_heads=4), text(2, 6)
    attention, u = model.transformer.blocks[0].attention, normalised(model, tokens, positions)
    index, group = next((n, g) for n, g in enumerate(attention.groups) if "sem" in g.reads)
    weight, width = attention.query_key[index].weight, group.n_heads * 8
    total = 0
    for part in (("sem",), names):
        made = sum(u[name] @ weight[:, group.reads[name]].T for name in part)
        if bias and part == ("sem",):
            made = made + attention.query_key[index].bias
        q, k = heads_of(made[..., :width]), heads_of(made[..., width:])
        if rope is not None and rope.streams in (None, part):
            at = positions.expand(2, -1)[:, None].expand(-1, group.n_heads, -1)
            q, k = (apply_rope(x, at, rope_frequencies(8)[0]) for x in (q, k))
        total = total + q @ k.transpose(-1, -2)
    seen = torch.ones(6, 6, dtype=torch.bool).tril()
    expected = (total / 8**0.5).masked_fill(~seen, -torch.inf).softmax(-1)
    with frozen_attention(model) as patterns, torch.no_grad():
        model(tokens, positions)
    sem = [n for n, head in enumerate(attention.heads) if "sem" in model.config.reads(head)]
    torch.testing.assert_close(patterns[0].weights[:, sem], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("streams", STREAMS, ids=repr)
def test_it_has_the_parameters_of_strict_and_is_another_function(built, text, streams):
    untied, strict = (built(streams, query_key=kind, n_heads=4) for kind in ("untied", "strict"))
    assert {n: p.shape for n, p in untied.named_parameters()} == {
        n: p.shape for n, p in strict.named_parameters()
    }
    assert all(torch.equal(a, b) for a, b in zip(untied.parameters(), strict.parameters(), strict=True))
    assert (untied(text(2, 6)) - strict(text(2, 6))).abs().max() > 1e-3
