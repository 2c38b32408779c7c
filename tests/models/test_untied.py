"""Untied: content scores content, positions score positions, and neither the other."""

import pytest
import torch

from sepnb.encodings import RoPE, apply_rope, rope_frequencies
from sepnb.models import TransformerConfig, frozen_attention
from sepnb.streams import Streams

F64 = torch.float64
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
@pytest.mark.parametrize("positions", [SHARED, ROWS], ids=["shared", "each row its own"])
@pytest.mark.parametrize(
    "rope",
    [None, RoPE(), "positions", RoPE(streams=("sem",))],
    ids=["plain", "rope", "rope on positions", "rope on content"],
)
@pytest.mark.parametrize("bias", [False, True])
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


def test_a_cache_keeps_the_keys_of_positions_once_for_all_sequences(built, text):
    model = built(STREAMS[0], query_key="untied", readout="both")
    cache = model.make_cache(5)
    model(text(5, 7), cache=cache)
    position_heads, content, tables = 2 * 8 * 7, 5 * 2 * 24 * 7, 24 * 7
    assert cache.numel() == 2 * (position_heads + content + tables)


def test_what_does_not_fit_is_refused_with_the_remedy(unhooked):
    def config(streams, **fields):
        return TransformerConfig(streams, 2, 4, **{"encoding": "sinusoidal", **fields})

    with pytest.raises(
        ValueError, match="untied needs whole position heads: d_pos=12 is no multiple of the he"
    ):
        config(Streams(pos=12, sem=20), query_key="untied")
    half = {"encoding": ("sinusoidal", RoPE(streams=("pos",)))}
    with pytest.raises(
        ValueError, match=r"rope on pos only: every head .*; use query_key='strict' or 'untied'"
    ):
        config(STREAMS[0], **half)
    with pytest.raises(ValueError, match="unknown stream 'time'"):
        config(STREAMS[0], encoding=("sinusoidal", RoPE(streams=("time",))), query_key="strict")
    with pytest.raises(TypeError, match=r"streams='pos' is one name; give a tuple, \('pos',\)"):
        RoPE(streams="pos")
    assert config(STREAMS[0], query_key="strict", **half).resolved()["encoding"][1] == {
        "name": "rope",
        "base": 10_000.0,
        "layout": "half",
        "streams": ["pos"],
    }
    assert config(STREAMS[0], encoding=("sinusoidal", "rope")).resolved()["encoding"][1].keys() == {
        "name",
        "base",
        "layout",
    }
