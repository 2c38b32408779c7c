"""Forget gates: the two columns that their sum is, what bfloat16 keeps, and how they are slowed down."""

import math

import pytest
import torch

from sepnb.encodings import Forgetting, Heads, PositionInterpolation, YaRN, forgetting_bias
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams

from ..models.trained import in_pieces
from .drawn import random


def test_in_bfloat16_a_bias_far_into_a_text_is_as_right_as_near_its_beginning():
    """A count of 1400 and one of 1400.7 are one number in bfloat16: so they are sums of three."""
    module = Forgetting().at_query_key(Heads(1, 16, content_width=4, reading=1)).to(torch.bfloat16)
    for parameter in module.parameters():  # every gate is one half
        torch.nn.init.zeros_(parameter)
    q, k = (x.float() for x in module(torch.zeros(1, 2048, 4, dtype=torch.bfloat16), None))
    bias = (q[0, 0, -8:] @ k[0, 0, -8:].T / 4).tril()
    at = torch.arange(8)
    expected = (-math.log(2) * (at[:, None] - at)).tril()
    torch.testing.assert_close(bias, expected, rtol=0, atol=2e-3)


def test_the_columns_give_the_bias_of_the_function_and_slowed_down_by_eight_an_eighth_of_it():
    content = random(1, 9, 4)
    module = Forgetting().at_query_key(Heads(2, 16, content_width=4, reading=2)).double()
    expected = forgetting_bias(module.kept(content)[..., 0]) / 8
    assert not expected.triu(1).any()
    module.extend(PositionInterpolation(8.0))
    q, k = module(content, None)
    torch.testing.assert_close((q @ k.mT / 16**0.5).tril(), expected, rtol=0, atol=1e-12)
    module.extend(None)
    q, k = module(content, None)
    torch.testing.assert_close((q @ k.mT / 16**0.5).tril(), 8 * expected, rtol=0, atol=1e-12)


def test_a_slowed_model_gives_with_a_cache_what_it_gives_without_and_leaves_the_trained_one_alone():
    torch.manual_seed(0)
    config = TransformerConfig(Streams.dense(16), n_layers=2, n_heads=2, encoding="forgetting", max_length=8)
    model = LanguageModel(config, vocab_size=20).double().eval()
    tokens = torch.randint(20, (2, 32))
    before, slowed = model(tokens), model.extended(extension=PositionInterpolation(4.0), log_scale=True)
    whole = slowed(tokens)
    torch.testing.assert_close(in_pieces(slowed, tokens, [20, 1, 11]), whole, rtol=0, atol=1e-12)
    assert (whole - before).abs().max() > 1e-3
    assert torch.equal(model(tokens), before)


def test_an_extension_that_tells_waves_apart_is_refused():
    config = TransformerConfig(Streams.dense(16), n_layers=1, n_heads=2, encoding="forgetting")
    with pytest.raises(ValueError, match=r"YaRN.*forget gates have none.*PositionInterpolation"):
        LanguageModel(config).extended(extension=YaRN(8.0, 64))
