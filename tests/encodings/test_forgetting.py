"""Forget gates: their sum over what lies between, the two columns that it is, and what bfloat16 keeps."""

import math

import pytest
import torch
import torch.nn.functional as F

from sepnb.encodings import Forgetting, Heads, alibi_bias, forgetting_bias
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams

from .drawn import F64, drawn, random


def term(heads: int = 3, width: int = 4, content: int = 6):
    return drawn(Forgetting().at_query_key(Heads(heads, width, content_width=content, reading=heads)))


def test_the_bias_is_the_sum_of_the_logarithms_of_the_gates_between_key_and_query():
    logits = random(1, 2, 5)
    bias = forgetting_bias(logits)
    assert bias.shape == (1, 2, 5, 5)
    for h in range(2):
        for i in range(5):
            for j in range(i + 1):
                gates = [1 / (1 + math.exp(-logits[0, h, t].item())) for t in range(j + 1, i + 1)]
                assert bias[0, h, i, j].item() == pytest.approx(sum(map(math.log, gates)), abs=1e-12)
    assert not bias.triu(1).any()


def test_it_is_the_product_of_two_more_columns_of_queries_and_keys():
    logits = random(2, 3, 9)
    c = F.logsigmoid(logits).cumsum(-1)
    q, k = torch.stack([c, torch.ones_like(c)], -1), torch.stack([torch.ones_like(c), -c], -1)
    bias = forgetting_bias(logits)
    torch.testing.assert_close((q @ k.transpose(-1, -2)).tril(), bias, rtol=0, atol=1e-12)


@pytest.mark.parametrize("queries", [7, 3, 1, 0])
def test_the_columns_of_its_module_give_the_bias_of_the_last_queries_under_the_scale_of_a_head(queries):
    module, content = term(), random(2, 7, 6)
    kept = module.kept(content)
    q, k = module(content[:, 7 - queries :], None, kept)
    assert q.shape == (2, 3, queries, module.more) and k.shape == (2, 3, 7, module.more)
    expected = forgetting_bias(kept[..., 0])[..., 7 - queries :, :]
    seen = torch.ones(queries, 7, dtype=torch.bool).tril(7 - queries)
    products = (q @ k.transpose(-1, -2) / 2).where(seen, 0.0)
    torch.testing.assert_close(products, expected, rtol=0, atol=1e-12)
    if queries == 7:
        assert all(torch.equal(*pair) for pair in zip(module(content, None), (q, k), strict=True))


def test_gates_that_never_change_are_alibi():
    slopes, at = torch.tensor([0.5, 0.01], dtype=F64), torch.arange(6)
    logits = -torch.expm1(slopes).log()  # of the gates exp(-slope)
    bias = forgetting_bias(logits[None, :, None].expand(1, 2, 6))
    expected = alibi_bias(slopes, at, at).tril()
    torch.testing.assert_close(bias[0], expected, rtol=0, atol=1e-12)


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


def test_the_gate_of_a_token_is_heard_by_all_that_comes_after_it_and_by_nothing_before():
    torch.manual_seed(0)
    model = LanguageModel(TransformerConfig(Streams.dense(16), 1, 2, "forgetting"), 11).double()
    tokens = torch.randint(11, (1, 9), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        before = model(tokens)
        model.transformer.blocks[0].attention.terms[0].gates.bias += 1.0
        moved = (model(tokens) - before).abs().amax((0, 2))
    assert moved[0] == 0 and (moved[1:] > 1e-6).all()  # the first token has nothing to forget
    assert model.transformer.blocks[0].attention.terms[0].gates.bias.tolist() == [1.0, 1.0]
