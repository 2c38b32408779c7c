"""A cache changes the time of a forward pass and nothing else."""

import pytest
import torch

from sepnb import encodings
from sepnb.models import KVCache
from sepnb.streams import Streams

LENGTH = 11
OFFSET = torch.arange(LENGTH) + 20
GAPS = torch.tensor([0, 2, 3, 9, 10, 11, 30, 31, 40, 41, 60])
ROWS = torch.stack([torch.arange(LENGTH), torch.arange(LENGTH) * 3 + 5])


def with_input(name: str) -> str | tuple[str, str]:
    at_input = encodings.Site.INPUT in encodings.build(name).sites
    return name if at_input else ("sinusoidal", name)


CASES = [
    *((Streams.dense(32), {"encoding": name}) for name in encodings.names()),
    *((Streams(pos=8, sem=24), {"encoding": with_input(name)}) for name in encodings.names()),
    *(
        (Streams(pos=8, sem=24), {"encoding": with_input(name), "mode": "strict"})
        for name in ("rope", "alibi")
    ),
    (Streams(pos=12, sem=20), {"encoding": ("learned", "alibi")}),
    (Streams(pos=12, sem=20), {"norm": "joint", "readout": "both"}),
]


def in_chunks(model, tokens, chunks, positions=None) -> torch.Tensor:
    cache, start, pieces = model.make_cache(tokens.shape[0]), 0, []
    for size in chunks:
        here = None if positions is None else positions[..., start : start + size]
        pieces.append(model(tokens[:, start : start + size], here, cache))
        start += size
        assert len(cache) == start
    return torch.cat(pieces, dim=1)


@pytest.mark.parametrize(("streams", "fields"), CASES, ids=str)
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_prefill_and_token_by_token_is_one_full_pass(built, text, streams, fields, dtype, bound):
    model, tokens = built(streams, dtype=dtype, **fields), text(2, LENGTH)
    with torch.no_grad():
        if dtype == torch.float32:
            for parameter in model.parameters():  # float32 promises 1e-5 of numbers about 1
                parameter.mul_(0.7)
        full = model(tokens)
        for chunks in ([5] + 6 * [1], LENGTH * [1], [3, 1, 4, 2, 1], [LENGTH]):
            torch.testing.assert_close(in_chunks(model, tokens, chunks), full, rtol=bound, atol=bound)


@pytest.mark.parametrize(("streams", "fields"), CASES, ids=str)
@pytest.mark.parametrize("positions", [OFFSET, GAPS, ROWS], ids=["offset", "gaps", "rows"])
def test_given_positions_are_kept_in_the_cache(built, text, streams, fields, positions):
    model, tokens = built(streams, **fields), text(2, LENGTH)
    with torch.no_grad():
        full = model(tokens, positions)
        cached = in_chunks(model, tokens, [4, 1, 1, 3, 2], positions)
    torch.testing.assert_close(cached, full, rtol=0, atol=1e-10)
    if fields.get("encoding") != "none":  # positions are read at all
        moved = model(tokens, torch.cat([positions[..., :-1], positions[..., -1:] + 2], dim=-1))
        assert (moved - full).abs().max() > 1e-6


@pytest.mark.parametrize("name", encodings.names())
def test_shared_positions_and_positions_of_each_row_mix(built, text, name):
    """A shared prefix, then rows that go on differently, then a shared step."""
    model, tokens = built(Streams(pos=8, sem=24), encoding=with_input(name)), text(2, 6)
    pieces = [torch.tensor([0, 1]), torch.tensor([[2, 3], [7, 9]]), torch.tensor([12, 13])]
    cache = model.make_cache(2)
    with torch.no_grad():
        cached = torch.cat(
            [model(tokens[:, 2 * n : 2 * n + 2], piece, cache) for n, piece in enumerate(pieces)], dim=1
        )
        full = model(tokens, torch.cat([piece.expand(2, 2) for piece in pieces], dim=-1))
    torch.testing.assert_close(cached, full, rtol=0, atol=1e-10)


def test_without_positions_a_call_goes_on_after_the_largest_position_held():
    cache = KVCache(2, 1)
    assert cache.next_positions(3, torch.device("cpu")).tolist() == [0, 1, 2]
    cache.extend_positions(torch.tensor([5, 9]))
    assert cache.next_positions(2, torch.device("cpu")).tolist() == [10, 11]
    cache.extend_positions(torch.tensor([[10, 11], [3, 4]]))
    assert cache.next_positions(2, torch.device("cpu")).tolist() == [[12, 13], [10, 11]]


def test_two_caches_of_a_model_do_not_know_of_each_other(built, text):
    model, tokens = built(Streams.dense(16)), text(1, 4)
    one, other = model.make_cache(1), model.make_cache(1)
    model(tokens, cache=one)
    torch.testing.assert_close(model(tokens, cache=other), model(tokens), rtol=0, atol=1e-12)
    assert len(one) == len(other) == 4


def test_a_cache_that_does_not_fit_is_refused_and_left_alone(built, text):
    model = built(Streams.dense(16))
    cache = model.make_cache(2)
    with pytest.raises(ValueError, match="the cache holds 2 sequences, the input has 3; make a new cache"):
        model(text(3, 4), cache=cache)
    with pytest.raises(ValueError, match="the cache is of a model of 2 layers, this one has 3"):
        built(Streams.dense(16), n_layers=3)(text(2, 4), cache=cache)
    with pytest.raises(ValueError, match="a cache needs a causal model"):
        built(Streams.dense(16), causal=False)(text(2, 4), cache=cache)
    with pytest.raises(ValueError, match="position -1 is negative"):
        model(text(2, 1), torch.tensor([-1]), cache)
    assert len(cache) == 0
    with pytest.raises(ValueError, match="batch_size is 0; a cache needs at least 1 sequence"):
        model.make_cache(0)
