"""A cache changes the time of a forward pass and nothing else."""

import pytest
import torch

from sepnb import encodings
from sepnb.models import KVCache
from sepnb.streams import Streams

from ..encodings.cases import KINDS, NAMES, TIGHT
from ..shared import refused
from . import shapes
from .trained import in_pieces


def with_input(name: str) -> str | tuple[str, str]:
    at_input = encodings.Site.INPUT in encodings.build(name).sites
    return name if at_input else ("sinusoidal", name)


@pytest.mark.parametrize("shape", shapes.covering(), ids=shapes.name)
def test_a_cache_gives_every_shape_its_full_pass_in_float32_too(text, shape):
    model, tokens = shapes.model(shape), text(2, 7)
    with torch.no_grad():
        torch.testing.assert_close(in_pieces(model, tokens, [3, 1, 2, 1]), model(tokens), **TIGHT)
        for parameter in model.float().parameters():  # float32 promises 1e-5 of numbers about 1
            parameter.mul_(0.7)
        cached = in_pieces(model, tokens, [3, 1, 2, 1])
        torch.testing.assert_close(cached, model(tokens), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        *((name, {"mode": "strict"}) for name in NAMES),
        *((name, {"query_key": "untied"}) for name in KINDS),
        ("rope", {}),
        ("rope", {"pos_stream": "constant"}),
    ],
    ids=str,
)
def test_shared_positions_and_positions_of_each_row_mix(built, text, name, fields):
    """A shared prefix, then rows that go on differently, then a shared step."""
    model, tokens = built(Streams(pos=8, sem=24), encoding=with_input(name), **fields), text(2, 6)
    pieces = [torch.tensor([0, 1]), torch.tensor([[2, 3], [7, 9]]), torch.tensor([12, 13])]
    if encodings.build(name).counts_tokens:
        pieces = [torch.tensor([0, 1]), torch.tensor([[2, 3], [2, 3]]), torch.tensor([4, 5])]
    cache = model.make_cache(2)
    with torch.no_grad():
        cached = torch.cat(
            [model(tokens[:, 2 * n : 2 * n + 2], piece, cache) for n, piece in enumerate(pieces)], dim=1
        )
        full = model(tokens, torch.cat([piece.expand(2, 2) for piece in pieces], dim=-1))
    torch.testing.assert_close(cached, full, **TIGHT)


@pytest.mark.parametrize("readout", ["sem", "both"])
@pytest.mark.parametrize(("n_kv_heads", "shared"), [(None, 1), (2, 2)])
def test_isolated_streams_are_held_once_and_shared_heads_once_for_their_group(
    built, text, readout, n_kv_heads, shared
):
    """Per layer and token: keys and values of every head of a sequence, less what all sequences share."""
    layers, batch, length, d_pos, d_sem = 2, 5, 7, 16, 16
    # Read from the sem stream alone, the last layer has no position heads.
    with_pos = layers if readout == "both" else layers - 1

    def held(**fields) -> int:
        streams = fields.pop("streams", Streams(pos=d_pos, sem=d_sem))
        model = built(streams, readout=readout, n_kv_heads=n_kv_heads, **fields)
        cache = model.make_cache(batch)
        for piece in text(batch, length).split([4, 1, 2], dim=1):
            model(piece, cache=cache)
        return cache.numel()

    each = 2 * length / shared  # keys and values of one column of the width
    sem, pos = layers * d_sem * batch * each, with_pos * d_pos * each
    assert held(streams=Streams.dense(32)) == layers * 32 * batch * each
    assert held() == sem + pos * batch
    assert held(mode="strict") == sem + pos
    assert held(mode="strict", pos_stream="reinjected") == sem + pos
    assert held(pos_stream="constant") == sem
    assert held() - held(mode="strict") == (batch - 1) * pos


def test_rows_with_positions_of_their_own_end_the_sharing(built, text):
    model, tokens = built(Streams(pos=8, sem=24), mode="strict", readout="both"), text(3, 2)
    cache = model.make_cache(3)
    model(tokens, cache=cache)
    assert cache.numel() == 2 * 2 * 2 * (3 * 24 + 8)
    model(tokens, torch.tensor([[2, 3], [4, 5], [9, 11]]), cache)
    assert cache.numel() == 2 * 2 * 4 * (3 * 24 + 3 * 8)


@pytest.mark.parametrize("window", [None, 1, 2])
def test_without_positions_a_call_goes_on_after_the_largest_read_also_where_that_is_held_no_more(window):
    cache = KVCache(2, 1, window=window)
    assert cache.next_positions(3, torch.device("cpu")).tolist() == [0, 1, 2]
    cache.extend_positions(torch.tensor([5, 90, 7]))
    assert cache.next_positions(2, torch.device("cpu")).tolist() == [91, 92]
    cache.extend_positions(torch.tensor([[91, 92], [3, 4]]))
    assert cache.next_positions(2, torch.device("cpu")).tolist() == [[93, 94], [91, 92]]


def test_a_cache_that_does_not_fit_is_refused_and_left_alone(built, text):
    model = built(Streams.dense(16))
    cache = model.make_cache(2)
    refused("the cache holds 2 sequences, the input has 3; make a new cache", model, text(3, 4), cache=cache)
    with pytest.raises(ValueError, match="the cache is of a model of 2 layers, this one has 3"):
        built(Streams.dense(16), n_layers=3)(text(2, 4), cache=cache)
    refused("a cache needs a causal model", built(Streams.dense(16), causal=False), text(2, 4), cache=cache)
    assert len(cache) == 0


@pytest.mark.parametrize("mode", ["separated", "strict"])
def test_a_position_that_an_encoding_refuses_leaves_the_cache_as_it_was(built, text, mode):
    """`interpolate` squeezes 100 positions into the table and has none for more."""
    model = built(Streams(pos=8, sem=24), encoding="learned", mode=mode, max_length=16)
    model = model.extended("interpolate", length=100)
    cache, tokens = model.make_cache(2), text(2, 6)
    with torch.no_grad():
        model(tokens[:, :4], cache=cache)
        held = cache.numel()
        refused("100", model, tokens[:, 4:], torch.tensor([4, 100]), cache)
        assert len(cache) == 4 and cache.numel() == held
        torch.testing.assert_close(model(tokens[:, 4:], cache=cache), model(tokens)[:, 4:], **TIGHT)
