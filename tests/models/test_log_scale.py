"""Logits that grow with the logarithm of the number of visible keys: a rule of evaluation."""

import math

import pytest
import torch

from sepnb.models import TransformerConfig, frozen_attention
from sepnb.models.language import LanguageModel
from sepnb.streams import Streams

from ..shared import refused

LENGTH = 4
DENSE = ("rope", "alibi", "shaw", "transformer-xl", "distance-aware", "cope")
SHAPES = [(Streams(pos=8, sem=24), "sinusoidal"), *((Streams.dense(32), name) for name in DENSE)]


@pytest.mark.parametrize(("streams", "encoding"), SHAPES, ids=repr)
@pytest.mark.parametrize("window", [None, 6])
def test_the_logits_of_a_query_are_multiplied_by_ln_n_over_ln_l_and_biases_are_not(
    built, text, streams, encoding, window
):
    model, tokens = built(streams, encoding=encoding, max_length=LENGTH), text(2, 11)
    rules = {"window": window, "sinks": 1 if window else 0}
    plain, scaled = (model.extended(**rules, log_scale=on) for on in (False, True))
    with frozen_attention(plain) as before, frozen_attention(scaled) as after, torch.no_grad():
        plain(tokens), scaled(tokens)
    bias = plain.transformer.score_encodings[0](*2 * [torch.arange(11)]) if encoding == "alibi" else 0
    for i in range(11):
        seen = before[0].weights[0, :, i] > 0
        n = int(seen[0].sum())
        assert n == (i + 1 if window is None else min(i + 1, window + 1))
        factor = max(1.0, math.log(n) / math.log(LENGTH))
        offset = bias[:, i] if encoding == "alibi" else 0
        scores = (before[0].weights[0, :, i].log() - offset) * factor + offset
        expected = scores.masked_fill(~seen, -torch.inf).softmax(-1)
        torch.testing.assert_close(after[0].weights[0, :, i], expected, rtol=0, atol=1e-7)


def test_without_a_mask_every_query_sees_every_key(built, text):
    model, tokens = built(Streams.dense(32), encoding="rope", max_length=LENGTH, causal=False), text(1, 9)
    with frozen_attention(model) as before, torch.no_grad():
        model(tokens)
    scaled = model.extended(log_scale=True)
    with frozen_attention(scaled) as after, torch.no_grad():
        scaled(tokens)
    expected = (before[0].weights.log() * math.log(9) / math.log(LENGTH)).softmax(-1)
    torch.testing.assert_close(after[0].weights, expected, rtol=0, atol=1e-10)


def test_a_trained_length_of_one_has_no_logarithm_to_divide_by():
    model = LanguageModel(TransformerConfig(Streams.dense(8), 1, 1, max_length=1), 5)
    refused("divides by ln L, and L is 1; train on at least 2", model.extended, log_scale=True)
