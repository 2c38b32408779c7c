"""xPos: its function and its module, and the positions whose factors a dtype can hold."""

import math

import pytest
import torch

from sepnb.encodings import Heads, XPos, apply_rope, apply_xpos, rope_frequencies
from sepnb.encodings.rope import LAYOUTS
from sepnb.encodings.xpos import XPosQueryKey
from sepnb.models import KVCache, LanguageModel, TransformerConfig
from sepnb.streams import Streams

from .drawn import F64, random


def scores(module, q, k, queries, keys) -> torch.Tensor:
    for_queries, for_keys = module.prepare(queries, keys)
    return module(q, for_queries) @ module(k, for_keys).mT


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_function_gives_the_scores_of_the_module(layout):
    q, k, at = random(5, 8), random(5, 8, seed=1), torch.tensor([0, 1, 7, 300, 4000])
    module = XPos(layout=layout).at_query_key(Heads(width=8))
    turned = apply_xpos(q, k, at, at, layout=layout)
    expected = scores(module, q[None, None], k[None, None], at, at)[0, 0]
    torch.testing.assert_close((turned[0] @ turned[1].T).tril(), expected.tril(), rtol=0, atol=1e-10)


@pytest.mark.parametrize(("dtype", "bound"), [(F64, 1e-10), (torch.float32, 5e-5)])
@pytest.mark.parametrize("centre", [0, 37, 512, -1000])
def test_the_centre_cancels_in_every_score(dtype, bound, centre):
    q, k, at = random(40, 16).to(dtype), random(40, 16, seed=1).to(dtype), torch.arange(40) * 13
    (q0, k0), (q1, k1) = (apply_xpos(q, k, at, at, centre=c) for c in (200, centre))
    assert q1.dtype == dtype and not torch.allclose(q0, q1)
    difference = ((q0 @ k0.T) - (q1 @ k1.T)).tril()
    assert difference.abs().max() < bound


def test_without_decay_it_is_rope():
    q, k, at, (w, _) = random(4, 8), random(4, 8, seed=1), torch.tensor([0, 3, 90, 1000]), rope_frequencies(8)
    turned = apply_xpos(q, k, at, at, scale_base=math.inf)
    assert torch.equal(turned[0], apply_rope(q, at, w)) and torch.equal(turned[1], apply_rope(k, at, w))
    assert not torch.allclose(apply_xpos(q, k, at, at)[0], turned[0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_positions_whose_factors_are_no_numbers_are_refused_and_a_centre_answers_them(dtype):
    q = torch.ones(3, 8, dtype=dtype)
    at = torch.arange(3) + 10_000
    with pytest.raises(ValueError, match=r"key_positions holds 10000; .* the middle of the keys as centre"):
        apply_xpos(q, q, at, at, scale_base=64.0)
    with pytest.raises(ValueError, match=r"query_positions holds 0; .* the middle of the keys as centre"):
        apply_xpos(q, q, at - 10_000, at, scale_base=64.0, centre=10_001)
    for_queries, for_keys = apply_xpos(q, q, at, at, scale_base=64.0, centre=10_001)
    assert (for_queries @ for_keys.T).isfinite().all()
    with pytest.raises(ValueError, match="gamma is inf"):
        apply_xpos(q, q, at, at, gamma=math.inf)


def test_keys_may_span_what_leaves_room_in_float32_and_no_more():
    module, q = XPos().at_query_key(Heads(width=8)), random(1, 1, 1, 8).float()
    for span in (8192, 65_536, 70_000):
        module.check_span(span, torch.float32)
        at = torch.tensor([0, span])
        near = scores(module, q, torch.cat([q, q], 2), at[1:], at)
        assert near.isfinite().all() and near[0, 0, 0, 1].item() == pytest.approx(q.square().sum().item())
    with pytest.raises(ValueError, match=r"span 73000 positions; from 702\d\d on .* scale_base than 512"):
        module.check_span(73_000, torch.float32)
    XPos(scale_base=1024).at_query_key(Heads(width=8)).check_span(73_000, torch.float32)
    XPos(scale_base=math.inf).at_query_key(Heads(width=8)).check_span(10**9, torch.float16)


def language_model(dtype: torch.dtype, **fields) -> LanguageModel:
    torch.manual_seed(0)
    return LanguageModel(TransformerConfig(Streams.dense(16), 1, 2, "xpos", **fields), 5).eval().to(dtype)


SPANS = {torch.float16: (6_700, 20_000), torch.bfloat16: (70_000, 73_000), torch.float32: (70_000, 73_000)}
"""One that is answered, and one that is not."""


@pytest.mark.parametrize("dtype", SPANS)
def test_a_model_answers_spans_that_its_dtype_can_hold_and_refuses_others(dtype):
    model, tokens = language_model(dtype), torch.tensor([[1, 2]])
    near, far = SPANS[dtype]
    name = str(dtype).removeprefix("torch.")
    with torch.no_grad():
        assert model(tokens, torch.tensor([0, near])).isfinite().all()
        assert model(tokens, torch.tensor([50_000, 50_000 + near])).isfinite().all()
        for at in (torch.tensor([0, far]), torch.tensor([[0, 1], [7, far + 7]])):
            with pytest.raises(ValueError, match=rf"span {far} positions; from .* leave {name}: read"):
                model(tokens.expand(at.dim(), -1), at)
        assert model.double()(tokens, torch.tensor([0, far])).isfinite().all()


def test_autocast_computes_heads_in_another_dtype_than_the_weights_and_the_span_is_of_that():
    model, tokens, far = language_model(torch.float32), torch.tensor([[1, 2]]), torch.tensor([0, 20_000])
    with torch.no_grad():
        assert model(tokens, far).isfinite().all()
        with (
            torch.autocast("cpu", torch.float16),
            pytest.raises(ValueError, match=r"span 20000 .* leave float16"),
        ):
            model(tokens, far)


def test_by_default_no_position_is_read_for_it(monkeypatch):
    """Of positions that a caller gives, the host reads the ends anyway; of its own it knows them."""
    spans = []
    monkeypatch.setattr(XPosQueryKey, "check_span", lambda self, span, dtype: spans.append(span))
    model, cache = language_model(torch.float32), KVCache(1, 1)
    with torch.no_grad(), monkeypatch.context() as patch:
        unread = pytest.fail
        patch.setattr(torch.Tensor, "__int__", lambda self: unread("a position was read"))
        model.transformer(torch.zeros(1, 4, 16))
        model.transformer(torch.zeros(1, 4, 16), cache=cache)
        model.transformer(torch.zeros(1, 1, 16), cache=cache)
    assert spans == [3, 3, 4]
