"""Context extensions in a model: read with, trained with, and one token at a time."""

import pytest
import torch

from sepnb.encodings import (
    DynamicNTK,
    Llama3,
    LongRoPE,
    NTKAware,
    NTKByParts,
    PositionInterpolation,
    RaisedBase,
    RoPE,
    YaRN,
)
from sepnb.streams import Streams

from ..encodings.drawn import TIGHT
from .trained import in_pieces

L, LENGTH = 8, 16
EXTENSIONS = [
    PositionInterpolation(3.0),
    RaisedBase(500_000.0),
    NTKAware(3.0),
    DynamicNTK(3.0, L),
    NTKByParts(3.0, L, alpha=0.1, beta=1),
    YaRN(3.0, L, beta_slow=0.1, beta_fast=1),
    YaRN(3.0, L, ramp="rotations"),
    Llama3(3.0, L, low_freq_factor=0.1, high_freq_factor=1),
    LongRoPE((1.0, 1.5, 2.0, 2.0), (1.0, 2.0, 3.0, 4.0), 3.0, L),
]
FOLLOWING = [extension for extension in EXTENSIONS if extension.by_length]
MODELS = {
    "dense": {"streams": Streams.dense(32)},
    "strict": {"streams": Streams(pos=8, sem=24), "mode": "strict", "readout": "both"},
}


def make(built, kind: str = "dense", **options):
    fields = dict(MODELS[kind])
    rope = RoPE(**options)
    encoding = rope if kind == "dense" else ("learned", rope)  # a table has no frequencies
    return built(fields.pop("streams"), encoding=encoding, **fields).eval()


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("extension", EXTENSIONS, ids=str)
def test_a_model_that_is_read_with_an_extension_is_one_that_was_built_with_it(built, text, kind, extension):
    model, tokens = make(built, kind), text(2, LENGTH)
    other = model.extended(extension=extension)
    with torch.no_grad():
        expected = make(built, kind, extension=extension)(tokens)
        torch.testing.assert_close(other(tokens), expected, **TIGHT)
        assert (model(tokens) - expected).abs().max() > 1e-3
        # Read with another one, the first is forgotten and not applied twice.
        again = model.extended(extension=PositionInterpolation(7.0)).extended(extension=extension)
        torch.testing.assert_close(again(tokens), expected, **TIGHT)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("extension", EXTENSIONS, ids=str)
def test_prefill_and_token_by_token_is_one_full_pass(built, text, kind, extension):
    model, tokens = make(built, kind, extension=extension), text(2, LENGTH)
    with torch.no_grad():
        full = model(tokens)
        for chunks in (1, 5, LENGTH):
            torch.testing.assert_close(in_pieces(model, tokens, chunks, LENGTH), full, **TIGHT)


@pytest.mark.parametrize("extension", FOLLOWING, ids=str)
def test_a_text_that_goes_on_is_read_under_the_length_it_will_have(built, text, extension):
    """What a longer pass says of the first tokens, a cache for that length says before the others are there;
    a pass over these tokens alone says something else."""
    model, tokens = make(built, extension=extension), text(2, LENGTH)
    with torch.no_grad():
        full, first = model(tokens), tokens[:, : L + 1]
        begun = model(first, cache=model.make_cache(2, length=LENGTH))
        torch.testing.assert_close(begun, full[:, : L + 1], **TIGHT)
        if isinstance(extension, DynamicNTK):
            assert (model(first) - full[:, : L + 1]).abs().max() > 1e-4


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("extension", FOLLOWING, ids=str)
def test_each_sequence_has_a_length_of_its_own(built, text, kind, extension):
    model, tokens = make(built, kind, extension=extension), text(3, 5)
    rows = torch.tensor([[0, 1, 2, 3, 4], [9, 4, 6, 1, 20], [7, 7, 8, 8, 9]])
    with torch.no_grad():
        together = model(tokens, rows)
        for row in range(3):
            alone = model(tokens[row : row + 1], rows[row])
            torch.testing.assert_close(together[row : row + 1], alone, **TIGHT)


@pytest.mark.parametrize("extension", FOLLOWING, ids=str)
def test_a_cache_must_be_told_the_length_and_cannot_pass_it(built, text, extension):
    model, tokens = make(built, extension=extension), text(2, 6)
    cache = model.make_cache(2)
    with pytest.raises(ValueError, match=r"say it beforehand: make_cache\(batch_size, length=\.\.\.\)"):
        model(tokens, cache=cache)
    assert len(cache) == 0
    cache = model.make_cache(2, length=6)
    model(tokens[:, :4], cache=cache)
    with pytest.raises(ValueError, match=r"position 6 is past the 6 positions .* a length of at least 7"):
        model(tokens[:, :3], cache=cache)
    assert len(cache) == 4
    model(tokens[:, 4:], cache=cache)
    with pytest.raises(ValueError, match="length is 0; a text has at least 1 position"):
        model.make_cache(2, length=0)
