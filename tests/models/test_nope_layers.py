"""Layers without position: in every so many nothing acts at queries and keys, scores or values."""

from functools import partial

import pytest
import torch

from sepnb import encodings
from sepnb.analysis import flops
from sepnb.analysis.scores import split_scores
from sepnb.encodings import RoPE, Site, YaRN
from sepnb.models import LanguageModel, TransformerConfig, frozen_attention
from sepnb.streams import Streams

from ..encodings.cases import ON_TEXTS, N, heard, model, one_full_pass, tokens
from ..encodings.references import EXACT, Written
from ..shared import refused
from .plain import Plain

DENSE = Streams.dense(16)
GAPS = torch.tensor([0, 1, 3, 4, 20, 21, 22, 60, 61])
ACTING = [
    name
    for name, case in ON_TEXTS.items()
    if case.sites - {Site.INPUT} and not (case.name == "seqpe" and case.per_layer)
    if name == case.name or "per_layer" in name
]
"""Each encoding, and what a layer may have of its own or not."""


@pytest.mark.parametrize("name", ACTING)
def test_the_second_of_two_layers_is_that_of_a_model_without_encoding_in_output_and_every_gradient(name):
    made, at = model(ON_TEXTS[name], nope_every=2), heard(ON_TEXTS[name], GAPS)
    Written(made).check(made, tokens(), at, bound=EXACT)


@pytest.mark.parametrize("name", ACTING)
def test_with_a_cache_a_tape_few_rows_at_a_time_and_behind_a_window_it_is_one_full_pass(name, monkeypatch):
    made, gaps = model(ON_TEXTS[name], nope_every=2), heard(ON_TEXTS[name], GAPS)
    windowed = made.extended(window=4, sinks=1, log_scale=True)
    with torch.no_grad():
        for reader, positions in ((made, None), (made, gaps), (windowed, gaps)):
            one_full_pass(reader, tokens(), positions, monkeypatch)


@pytest.mark.parametrize("every", [2, 3, 4])
@pytest.mark.parametrize("fields", [{}, {"mode": "strict"}, {"query_key": "untied"}], ids=str)
def test_it_is_every_so_many_layers_in_every_kind_of_model(built, text, every, fields):
    streams = Streams(pos=8, sem=16) if fields else DENSE
    encoding = ("sinusoidal", "rope", "alibi") if fields else ("rope", "alibi")
    made, at = built(streams, encoding=encoding, n_layers=4, nope_every=every, **fields), text(2, N)
    with torch.no_grad():
        logits = made(at, GAPS)
        torch.testing.assert_close(logits, Plain(made)(at, GAPS), rtol=0, atol=1e-10)
        for scores in split_scores(made, at):
            bare = (scores.layer + 1) % every == 0
            assert ("encoding" in scores.terms) is not bare
    assert (
        made.transformer.layout == built(streams, encoding=encoding, n_layers=4, **fields).transformer.layout
    )


def test_a_context_extension_acts_where_rope_does(built, text):
    """On the layers with position alone: a text read at slowed positions is that of the twin written out."""
    made, slow = built(DENSE, encoding="rope", nope_every=2), YaRN(4.0, 64)
    trained = built(DENSE, encoding=RoPE(extension=slow), nope_every=2)
    trained.load_state_dict(made.state_dict())
    stretched = made.extended(extension=slow)
    with torch.no_grad():
        assert torch.equal(stretched(text(1, N)), trained(text(1, N)))
        assert (made(text(1, N)) - trained(text(1, N))).abs().max() > 1e-4
    at = torch.zeros(1, N, dtype=torch.int64)  # of one token again and again: the second layer is uniform
    with torch.no_grad(), frozen_attention(stretched) as slowed, frozen_attention(made) as plain:
        stretched(at), made(at)
    uniform = torch.ones(N, N, dtype=torch.float64).tril() / torch.arange(1, N + 1)[:, None]
    for patterns in (slowed, plain):
        torch.testing.assert_close(patterns[1].weights, uniform.expand(1, 2, -1, -1), rtol=0, atol=1e-12)
    assert (slowed[0].weights - plain[0].weights).abs().max() > 1e-4


def test_a_layer_without_position_has_no_parameters_and_no_cost_of_it():
    for name in ("shaw", "kerple", "forgetting", "transformer-xl"):
        half, whole = (
            LanguageModel(TransformerConfig(DENSE, 2, 2, name, nope_every=every), 5) for every in (2, None)
        )
        none = LanguageModel(TransformerConfig(DENSE, 2, 2, "none"), 5)
        of = [sum(p.numel() for p in one.parameters()) for one in (none, half, whole)]
        assert of[1] - of[0] == of[2] - of[1] > 0
        assert {n for n, _ in half.named_parameters()} < {n for n, _ in whole.named_parameters()}
    shared = RoPE(partial=0.5, shared=True)
    first, second = flops.blocks(TransformerConfig(DENSE, 2, 2, shared, nope_every=2), 8)
    assert second.each["query_key"] - first.each["query_key"] == 16 * 4  # one head's share of W_K


def test_what_leaves_nothing_out_is_refused():
    make, per_layer = partial(TransformerConfig, DENSE, 2, 2), encodings.build("seqpe", per_layer=True)
    refused("nope_every is 3; it must be at most 2", make, "rope", nope_every=3)
    refused("makes maps for every layer; use per_layer=False", make, per_layer, nope_every=2)
    refused("nope_every must be an int, got True", make, "rope", nope_every=True, error=TypeError)
