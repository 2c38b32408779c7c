"""A cache with room for some tokens is, in a trained model, Transformer-XL's memory: a query hears its own
segment and that many tokens before it, and through the layers further ones."""

import pytest
import torch
from torch import Tensor

from sepnb.models import LanguageModel
from sepnb.streams import Streams

from .plain import Plain

DENSE, SEPARATED = Streams.dense(16), Streams(pos=8, sem=16)


def in_segments(model: LanguageModel, tokens: Tensor, *, length: int, size: int) -> Tensor:
    cache = model.make_cache(len(tokens))
    cache.room = size
    with torch.no_grad():
        return torch.cat([model(piece, cache=cache) for piece in tokens.split(length, dim=1)], dim=1)


def seen_by(n: int, length: int, size: int) -> Tensor:
    """Which keys a query may see: its own segment up to itself, and `size` tokens before: bool `[n, n]`."""
    at = torch.arange(n)
    return (at <= at[:, None]) & (at >= (at // length * length - size)[:, None])


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
    """The recurrence is nothing but who sees whom."""
    fields = dict(fields)
    model, tokens = built(fields.pop("streams"), **fields), text(2, 14)
    expected = Plain(model)(tokens, seen=seen_by(14, 4, size))
    read = in_segments(model, tokens, length=4, size=size)
    with torch.no_grad():
        assert (read - model(tokens)).abs().max() > 1e-3  # a memory of the whole text would differ
    torch.testing.assert_close(read, expected, rtol=0, atol=1e-10)


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
        one, two = (in_segments(model, each, length=length, size=size) for each in (tokens, other))
        heard = (one != two).any(dim=-1)[0].nonzero()[:, 0]
        assert heard.min() == at and heard.max() == min(last, n - 1)
