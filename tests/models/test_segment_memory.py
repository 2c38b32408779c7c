"""Segment memory: what it computes is what the recurrence says, no gradient enters it, and it reaches as far
as its layers carry it."""

import pytest
import torch
from torch import Tensor

from sepnb.encodings import DynamicNTK, Learned
from sepnb.streams import Streams
from sepnb.training.memory import SegmentMemory, in_segments

from ..encodings.cases import NAMES
from .plain import Plain

DENSE, SEPARATED = Streams.dense(16), Streams(pos=8, sem=16)
KINDS = {
    "separated": {},
    "reinjected": {"pos_stream": "reinjected", "readout": "both"},
    "constant": {"pos_stream": "constant"},
    "strict": {"mode": "strict"},
    "untied": {"query_key": "untied"},
    "shared keys": {"streams": Streams(pos=16, sem=16), "n_kv_heads": 2},
    **{name: {"streams": DENSE, "encoding": name} for name in NAMES},
}


def by_definition(plain: Plain, tokens: Tensor, *, length: int, size: int) -> Tensor:
    """Logits of a dense model by the recurrence, segment by segment and layer by layer, on the leaves of
    `plain`."""
    config, d, logits = plain.config, plain.config.head_width, []
    slices = config.streams.slices
    held: list[Tensor | None] = [None] * config.n_layers
    for start in range(0, tokens.shape[1], length):
        piece = tokens[:, start : start + length]
        n = piece.shape[1]
        x = plain.leaves["embedding.weight"][piece]
        for layer in range(config.n_layers):
            prefix = f"transformer.blocks.{layer}"
            whole = x if held[layer] is None else torch.cat([held[layer], x], dim=1)
            held[layer] = whole[:, -size:].detach()
            m = whole.shape[1]
            u = plain.norm(f"{prefix}.attention_norm", whole)
            scores = plain.scores(layer, u, torch.arange(start + n - m, start + n))
            weights = scores.masked_fill(~torch.ones(m, m, dtype=torch.bool).tril(), -torch.inf).softmax(-1)
            w_v, _ = plain.map(f"{prefix}.attention.value.blocks", plain.kv, slices, True)
            w_o, _ = plain.map(f"{prefix}.attention.output.blocks", slices, slices, True)
            z = weights[..., m - n :, :] @ (u @ w_v.T).unflatten(-1, (-1, d)).transpose(1, 2)
            x = x + z.transpose(1, 2).flatten(-2) @ w_o.T
            x = x + plain.mlp(f"{prefix}.mlp", plain.norm(f"{prefix}.mlp_norm", x), True)
        logits.append(plain.norm("norm", x) @ plain.leaves["head.weight"].T)
    return torch.cat(logits, dim=1)


def seen_by(n: int, length: int, size: int) -> Tensor:
    """Which keys a query may see: its own segment up to itself, and `size` tokens before: bool `[n, n]`."""
    at = torch.arange(n)
    return (at <= at[:, None]) & (at >= (at // length * length - size)[:, None])


@pytest.mark.parametrize("kind", KINDS)
def test_with_a_memory_that_has_room_for_the_text_a_model_reads_it_as_in_one_pass(built, text, kind):
    fields = {"streams": SEPARATED, **KINDS[kind]}
    model, tokens = built(fields.pop("streams"), **fields).eval(), text(2, 11)
    with torch.no_grad():
        read = in_segments(model, tokens, length=4, size=11)
        torch.testing.assert_close(read, model(tokens), rtol=0, atol=1e-10)


@pytest.mark.parametrize("size", [2, 4, 6])
@pytest.mark.parametrize(
    "fields",
    [
        {"streams": DENSE, "encoding": "rope"},
        {"streams": DENSE, "encoding": "alibi"},
        {"streams": SEPARATED},
        {"streams": SEPARATED, "mode": "strict", "encoding": "learned"},
    ],
    ids=["rope", "alibi", "separated", "strict"],
)
def test_a_short_memory_is_one_pass_behind_the_mask_of_the_definition(built, text, fields, size):
    """Without gradients: there the recurrence is nothing but who sees whom."""
    fields = dict(fields)
    model, tokens = built(fields.pop("streams"), **fields), text(2, 14)
    expected = Plain(model)(tokens, seen=seen_by(14, 4, size))
    with torch.no_grad():
        read = in_segments(model, tokens, length=4, size=size)
        assert (read - model(tokens)).abs().max() > 1e-3  # a memory of the whole text would differ
    torch.testing.assert_close(read, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("size", [3, 4, 8])
def test_logits_and_every_gradient_are_those_of_the_recurrence(built, text, size):
    model, tokens = built(DENSE, encoding="rope"), text(2, 12)
    plain = Plain(model)
    weights = torch.linspace(-1, 1, 12, dtype=torch.float64)[:, None]
    read = in_segments(model, tokens, length=4, size=size)
    expected = by_definition(plain, tokens, length=4, size=size)
    torch.testing.assert_close(read, expected, rtol=0, atol=1e-10)
    (read.square() * weights).sum().backward()
    (expected.square() * weights).sum().backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, plain.leaves[name].grad, rtol=0, atol=1e-9, msg=name)


@pytest.mark.parametrize("n_layers", [1, 2, 3])
@pytest.mark.parametrize("size", [2, 4, 8])
def test_a_byte_is_heard_as_far_as_its_layers_carry_it(built, text, n_layers, size):
    """Layer by layer to the end of the last segment that begins within `size`, and not a token more; with a
    memory of one segment that is as many segments on as there are layers."""
    length, n = 4, 24
    model, tokens = built(DENSE, encoding="rope", n_layers=n_layers), text(1, n)
    for at in (0, 1, 2, 3):
        other, last = tokens.clone(), at
        other[0, at] = (other[0, at] + 1) % model.vocab_size
        for _ in range(n_layers):
            last = (last + size) // length * length + length - 1
        if size == length:
            assert last == (1 + n_layers) * length - 1
        with torch.no_grad():
            one, two = (in_segments(model, each, length=length, size=size) for each in (tokens, other))
        heard = (one != two).any(dim=-1)[0].nonzero()[:, 0]
        assert heard.min() == at and heard.max() == min(last, n - 1)


def test_the_memory_keeps_the_last_tokens_of_every_layer_and_their_positions(built, text):
    model, tokens = built(DENSE, encoding="alibi"), text(2, 10)
    memory = SegmentMemory(model, 2, 6)
    for piece, kept in ((tokens[:, :4], 4), (tokens[:, 4:7], 6), (tokens[:, 7:], 6)):
        memory(piece)
        assert len(memory) == kept and memory.numel() == 2 * 2 * kept * 16
    assert memory.positions.tolist() == [4, 5, 6, 7, 8, 9]
    long = SegmentMemory(model, 2, 6)
    long(tokens)  # a segment longer than the memory
    assert long.positions.tolist() == [4, 5, 6, 7, 8, 9] and long.numel() == memory.numel()
    assert not any(x.requires_grad for state in long._states for x in state.values())


def test_what_a_memory_cannot_serve_is_refused_before_it_changes(built, text):
    tokens = text(2, 8)
    with pytest.raises(ValueError, match="needs a causal model"):
        in_segments(built(DENSE, causal=False), tokens, length=4, size=4)
    with pytest.raises(ValueError, match="adds its embeddings where queries and keys are made"):
        in_segments(built(DENSE, encoding=Learned(site="query_key")), tokens, length=4, size=4)
    following = built(DENSE, encoding="rope").extended(extension=DynamicNTK(3.0, 4))
    with pytest.raises(ValueError, match=r"follow the length of the text, and what a memory.* with a cache"):
        SegmentMemory(following, 2, 4)
    table = built(DENSE, encoding="learned", max_length=6)
    memory = SegmentMemory(table, 2, 4)
    assert len(memory) == memory.numel() == 0
    memory(tokens[:, :4])
    with pytest.raises(ValueError, match="position 7 has no row in the learned table of 6"):
        memory(tokens[:, 4:])
    assert memory.positions.tolist() == [0, 1, 2, 3]
