"""Values never pass from stream to stream, exactly; what the separated mode lets pass is the routing."""

from contextlib import nullcontext

import pytest
import torch

from sepnb.models import frozen_attention
from sepnb.streams import Streams

WHOLE, STRADDLING = (8, 16), (5, 12)
SHAPES = [Streams(pos=d_pos, sem=32 - d_pos) for d_pos in (*WHOLE, *STRADDLING)]
ALIGNED = [Streams(pos=8, sem=24), Streams(pos=16, sem=16), Streams(sem=24, pos=8)]
TOKENS = 3


def content_for(model, seed: int = 0) -> torch.Tensor:
    dtype = next(model.parameters()).dtype
    width = model.config.streams.widths["sem"]
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(1, TOKENS, width, generator=generator, dtype=torch.float64).to(dtype)


def leak(model, *, frozen: bool, target: str = "pos") -> float:
    """The largest absolute derivative of the final stream `target` by the content, attention frozen or live.

    The whole Jacobian in one backward pass: one copy of the content per output, each asked for its own.
    """
    content = content_for(model)
    with frozen_attention(model) if frozen else nullcontext():
        outputs = model.transformer(content)[target].numel()  # records the weights, when frozen
        copies = content.repeat(outputs, 1, 1).requires_grad_()
        heard = model.transformer(copies)[target].flatten(1).diagonal().sum()
    # The weights of the model have gradients in any case; None says that not one path leads to the content.
    (gradient,) = torch.autograd.grad(heard, copies, allow_unused=True)
    return 0.0 if gradient is None else gradient.abs().max().item()


@pytest.mark.parametrize("streams", SHAPES, ids=repr)
@pytest.mark.parametrize("encoding", ["learned", ("sinusoidal", "rope"), ("sinusoidal", "alibi")])
def test_other_encodings_and_no_mask_do_not_open_a_path(built, streams, encoding):
    assert leak(built(streams, encoding=encoding, readout="both"), frozen=True) == 0.0
    assert leak(built(streams, encoding=encoding, readout="both", causal=False), frozen=True) == 0.0


@pytest.mark.parametrize("streams", ALIGNED, ids=repr)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_strict_pos_stream_is_bitwise_the_same_for_every_text_and_batch(built, streams, dtype):
    model = built(streams, mode="strict", dtype=dtype, readout="both")
    with torch.no_grad():
        one, other = (model.transformer(content_for(model, seed))["pos"] for seed in (0, 1))
        both = model.transformer(torch.cat([content_for(model, 0), content_for(model, 1)]))["pos"]
        poisoned = model.transformer(content_for(model) * torch.nan)
    assert torch.equal(one, other)
    assert torch.equal(both, one.expand_as(both))  # run once for the batch, whatever its size
    # No number of the content is ever multiplied in, not even by zero: that would spread the NaN.
    assert poisoned["sem"].isnan().all() and torch.equal(poisoned["pos"], one)


def test_frozen_attention_replays_what_it_recorded_and_lets_go_afterwards(built, text):
    model = built(SHAPES[0])
    tokens, others = text(1, 5), text(1, 5, seed=1)
    before = model(tokens)
    with pytest.raises(RuntimeError, match="stop"), frozen_attention(model) as tapes:
        torch.testing.assert_close(model(tokens), before, rtol=0, atol=1e-12)
        assert not any(tape.weights.requires_grad for tape in tapes)  # constants, not functions of anything
        recorded = [tape.weights.clone() for tape in tapes]
        model(others)
        assert all(torch.equal(tape.weights, was) for tape, was in zip(tapes, recorded, strict=True))
        assert [weights.shape for weights in recorded] == [
            (1, 4, 5, 5),
            (1, 3, 5, 5),
        ]  # pos head dropped last
        for weights in recorded:
            torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1], dtype=torch.float64))
            assert weights.triu(1).abs().max() == 0
        raise RuntimeError("stop")
    assert not torch.equal(model(others), before)
    assert torch.equal(model(tokens), before)


# --- the read-out, and what it makes superfluous


def without_dead_parameters(full, small):
    """Copy into `small` (readout="sem") what it shares with `full` (readout="both")."""
    ours, theirs = small.state_dict(), full.state_dict()
    sem = full.config.streams.slices["sem"]
    for key in ours:
        if ours[key].shape == theirs.get(key, torch.empty(0)).shape and "query_key" not in key:
            ours[key] = theirs[key]
        elif key == "head.weight":
            ours[key] = theirs[key][:, sem]
    for mine, whole in zip(small.transformer.blocks, full.transformer.blocks, strict=True):
        heads, d = mine.attention.heads, mine.attention.head_width
        for kind in ("weight", "bias"):
            rows = {}  # head -> its rows for queries and for keys, in the full model
            for group, layer in zip(whole.attention.groups, whole.attention.query_key, strict=True):
                count = group.n_heads
                if getattr(layer, kind) is not None:
                    q, k = getattr(layer, kind).detach().unflatten(0, (2, count, d))
                    rows |= {len(rows) + n: (q[n], k[n]) for n in range(count)}
            start = 0
            for group, layer in zip(mine.attention.groups, mine.attention.query_key, strict=True):
                count = group.n_heads
                if getattr(layer, kind) is not None:
                    group = heads[start : start + count]
                    flat = [torch.cat([rows[h][side] for h in group]) for side in (0, 1)]
                    with torch.no_grad():
                        getattr(layer, kind).copy_(torch.cat(flat))
                start += count
    ours |= {key: value for key, value in small.state_dict().items() if "query_key" in key}
    small.load_state_dict(ours)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("encoding", ["learned", ("sinusoidal", "alibi"), ("sinusoidal", "rope")])
@pytest.mark.parametrize(
    ("streams", "mode"),
    [(shape, "separated") for shape in SHAPES] + [(shape, "strict") for shape in ALIGNED],
    ids=str,
)
def test_reading_the_sem_stream_only_drops_what_reached_nothing(built, text, streams, mode, encoding, bias):
    """The smaller model gives the sem stream of the larger, whatever the larger one's last pos stream is."""
    full, small = (
        built(streams, mode=mode, encoding=encoding, bias=bias, readout=readout, seed=seed)
        for readout, seed in (("both", 0), ("sem", 1))
    )
    without_dead_parameters(full, small)
    content = content_for(full)
    state = small.transformer(content)
    assert list(state) == ["sem"]
    torch.testing.assert_close(state["sem"], full.transformer(content)["sem"], rtol=0, atol=1e-12)
    counts = [model.parameter_counts()["total"] for model in (full, small)]
    assert counts[1] < counts[0]

    with torch.no_grad():  # the full model's output, less what its head reads of the pos stream
        full.head.weight[:, streams.slices["pos"]] = 0
    tokens = text(2, 6)
    torch.testing.assert_close(small(tokens), full(tokens), rtol=0, atol=1e-12)
