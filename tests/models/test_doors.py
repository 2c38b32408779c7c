"""What a model is given is checked once, at its door: bad input is a ValueError or a TypeError that names it,
within a second, and good input of any integer type is taken."""

import time

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sepnb.models import ImageClassifier, LanguageModel, TransformerConfig
from sepnb.models.transformer import Transformer
from sepnb.streams import Streams

CONFIG = TransformerConfig(Streams(pos=8, sem=24), 1, 4, "learned", mode="strict", max_length=16)
IMAGES = TransformerConfig(Streams.dense(32), 1, 4, "axial-rope", causal=False, axes=2, max_length=16)
NAN, INF, HUGE = float("nan"), float("inf"), 2**62


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    torch.manual_seed(0)
    return LanguageModel(CONFIG, 11).eval()


@pytest.fixture(scope="module")
def classifier() -> ImageClassifier:
    torch.manual_seed(0)
    return ImageClassifier(IMAGES, 3, 2).eval()


def refused(call, *names: str) -> str:
    """The message with which a call is refused, in a second; it says which argument is wrong."""
    started = time.process_time()
    with pytest.raises((ValueError, TypeError)) as told:
        call()
    assert type(told.value) in (ValueError, TypeError), told.type
    assert time.process_time() - started < 1
    message = str(told.value)
    assert message and all(name in message for name in names), message
    return message


@pytest.mark.attack("tokens of every integer type")
@pytest.mark.parametrize("kind", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64], ids=str)
def test_tokens_of_any_integer_type_are_the_same_tokens(model, unhooked, kind):
    tokens = torch.tensor([[0, 3, 10, 7]])
    assert torch.equal(model(tokens.to(kind)), model(tokens))


def test_a_byte_above_127_is_that_byte(unhooked):
    torch.manual_seed(0)
    bytes_model, tokens = LanguageModel(CONFIG), torch.tensor([[0, 128, 255]])
    assert torch.equal(bytes_model(tokens.to(torch.uint8)), bytes_model(tokens))


def test_a_model_wider_than_any_is_refused_before_it_is_looked_at(unhooked):
    refused(lambda: TransformerConfig(Streams(pos=2**20, sem=2**20), 1, 7), "the model width")
    refused(lambda: Streams.dense(HUGE), "the width of stream 'sem'")


def test_tables_are_made_for_a_length(model, unhooked):
    for value in (NAN, 0):
        refused(lambda value=value: model.position_tables(4, length=value), "length")


TOKENS = torch.zeros(2, 4, dtype=torch.int64)
CALLS = {
    "floats": ((TOKENS.float(),), "tokens must be integers, got torch.float32"),
    "one row": ((TOKENS[0],), "tokens have shape [4]; give [batch, length]"),
    "outside": ((TOKENS + 11,), "token 11 is outside the vocabulary 0 to 10"),
    "negative": ((TOKENS.to(torch.int8) - 1,), "token -1"),
    "positions of another length": ((TOKENS, torch.arange(5)), "2 sequences of 4 tokens; give [4] or [2, 4]"),
    "negative positions": ((TOKENS, torch.arange(4) - 1), "position -1 is negative; positions start at 0"),
    "documents of floats": ((TOKENS, None, None, torch.zeros(2, 4)), "documents"),
    "documents of one row": ((TOKENS, None, None, torch.zeros(4).long()), "documents"),
    "documents that fall": ((TOKENS, None, None, torch.tensor([[0, 1, 0, 0]] * 2)), "document 0"),
}


@pytest.mark.attack("bad tokens, positions, caches and documents")
@pytest.mark.parametrize("name", CALLS)
def test_a_call_with_what_is_none_is_refused(model, unhooked, name):
    arguments, named = CALLS[name]
    refused(lambda: model(*arguments), named)


def test_so_is_a_call_of_a_stack_and_of_a_classifier(model, classifier, unhooked):
    for content in (TOKENS, torch.zeros(2, 4), torch.zeros(2, 4, 23), None, torch.zeros(2, 4, 24).bool()):
        refused(lambda content=content: model.transformer(content), "content")
    refused(lambda: classifier(torch.zeros(1, 1, 4, 4), torch.full((4, 2), NAN)), "a position is not finite")
    refused(lambda: classifier(torch.zeros(1, 1, 4, 4), torch.zeros(4)), "positions")
    refused(lambda: classifier.extended(fit=(4, 0)), "fit")
    refused(lambda: classifier.extended(fit=4), "fit")
    refused(lambda: Transformer(None), "config")


SHAPES = st.lists(st.integers(0, 3), max_size=4)
KINDS = st.sampled_from([torch.uint8, torch.int64, torch.float32, torch.bool, torch.complex64, torch.float64])


@pytest.mark.attack("tensors of random shapes and types for tokens and positions")
def test_whatever_tensors_are_given_the_answer_is_logits_or_a_reason(unhooked, model, tries):
    @settings(max_examples=tries(150, 1000))
    @given(SHAPES, KINDS, st.integers(-2, 20), SHAPES, KINDS, st.integers(-2, 20))
    def call(shape, kind, token, at_shape, at_kind, at):
        tokens = torch.full(shape, token % 256).to(kind)
        positions = torch.full(at_shape, at % 256 if at_kind == torch.uint8 else at).to(at_kind)
        try:
            answer = model(tokens, positions)
        except (ValueError, TypeError) as told:
            assert str(told)
        else:
            assert answer.shape == (*tokens.shape, 11) and answer.isfinite().all()

    call()
