"""A window of the config: what it means, that pieces of queries are the mask, and what a cache keeps.

The mask of all keys is held against a model that is written out in `test_extended`. Here it is what the
pieces are held against, made so small that short texts have several.
"""

import dataclasses

import pytest
import torch

from sepnb import encodings
from sepnb.analysis.memory import MemoryWatch
from sepnb.encodings import Site, fire
from sepnb.models import LanguageModel, TransformerConfig, compile_formulas, windows
from sepnb.models.context import AttentionContext
from sepnb.models.fast import kernels
from sepnb.streams import Streams

from ..encodings.cases import CASES, IN_SHAPES, KINDS, STREAMS, TIGHT, N, heard, model, tokens
from ..shared import refused
from .trained import close, outcome

W = 3
GAPS = torch.tensor([0, 2, 3, 9, 10, 11, 30, 31, 40])
ROWS = torch.stack([GAPS, GAPS.flip(0) + 1])
PLAIN = encodings.names()
DOCUMENTS = torch.tensor([[0] * 4 + [1] * 5, [0, 1, 1, 1, 1, 1, 1, 2, 2]])


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(windows, "LEAST_ROWS", 2)


@pytest.fixture
def behind_a_mask(monkeypatch):
    """`behind_a_mask(function)`: what it gives where the mask is one of all keys."""

    def called(function):
        with monkeypatch.context() as patch:
            patch.setattr(AttentionContext, "banded", False)
            return function()

    return called


def of_shape(name: str, shape: str = "dense", window: int | None = W, **fields) -> LanguageModel:
    return model(CASES[name], shape, window=window, **fields)


# --- what it means


@pytest.mark.parametrize("name", PLAIN)
def test_trained_behind_it_a_model_computes_what_the_window_of_evaluation_gives_the_same_weights(name):
    made, plain = of_shape(name), of_shape(name, window=None)
    at = heard(CASES[name], torch.arange(N))
    theirs = plain.extended(window=W)
    close(outcome(made, tokens(), at), outcome(theirs, tokens(), at))
    with torch.no_grad():
        assert torch.equal(made.eval()(tokens(), at), theirs(tokens(), at))
        assert (made(tokens(), at) - plain.eval()(tokens(), at)).abs().max() > 1e-3


@pytest.mark.parametrize(("name", "shape"), IN_SHAPES)
def test_a_window_of_the_whole_text_changes_no_bit(name, shape):
    plain = of_shape(name, shape, window=None)
    expected = outcome(plain, tokens())
    for window in (N, N + 1, 1000):
        ours = outcome(of_shape(name, shape, window=window), tokens())
        assert all(torch.equal(one, other) for one, other in zip(ours, expected, strict=True))


@pytest.mark.parametrize(("name", "shape"), IN_SHAPES)
def test_behind_a_window_of_one_token_it_is_a_document_of_its_own(name, shape):
    made, at = of_shape(name, shape, window=1), torch.arange(N)
    alone = of_shape(name, shape, window=None)(tokens(), at, documents=at.expand(2, N))
    torch.testing.assert_close(made(tokens(), at), alone, **TIGHT)


@pytest.mark.parametrize("shape", STREAMS)
@pytest.mark.parametrize("window", [1, 2, 4])
def test_a_token_is_heard_for_as_many_windows_as_there_are_layers_and_no_longer(window, shape):
    layers, length, place = 3, 20, 4
    streams, fields = STREAMS[shape]
    encoding = ("sinusoidal", "kerple")
    config = TransformerConfig(streams, layers, 4, encoding, window=window, **fields)
    torch.manual_seed(0)
    made, text = LanguageModel(config, 11).double(), tokens(1, length)
    other = text.clone()
    other[0, place] = (text[0, place] + 1) % 11
    end = place + layers * (window - 1)
    for grad in (False, True):
        with torch.set_grad_enabled(grad):
            changed = (made(text) != made(other)).any(dim=-1)[0]
        assert changed.nonzero().flatten().tolist() == list(range(place, end + 1))


# --- pieces


@pytest.mark.parametrize("name", PLAIN)
def test_pieces_give_the_logits_and_gradients_of_the_mask(name, behind_a_mask, calls):
    made, case = of_shape(name), CASES[name]
    given = [{"positions": heard(case, at)} for at in (torch.arange(N), GAPS, ROWS)]
    given.append({"positions": heard(case, torch.arange(N)), "documents": DOCUMENTS})
    for how in given:
        calls.clear()
        ours = outcome(made, tokens(), **how)
        assert calls == [(2, 2), (2, 4), (2, 4), (2, 4), (1, 3)] * 2
        close(ours, behind_a_mask(lambda how=how: outcome(made, tokens(), **how)))
        assert calls[10:] == [(N, N)] * 2


@pytest.mark.parametrize("shape", list(STREAMS)[1:])
@pytest.mark.parametrize("name", KINDS)
def test_they_do_in_models_of_two_streams(name, shape, behind_a_mask, calls):
    made = of_shape(name, shape)
    close(outcome(made, tokens()), behind_a_mask(lambda: outcome(made, tokens())))
    packed = {"documents": DOCUMENTS}
    close(outcome(made, tokens(), **packed), behind_a_mask(lambda: outcome(made, tokens(), **packed)))
    assert (2, 4) in calls


@pytest.mark.parametrize(("name", "shape"), IN_SHAPES)
def test_they_do_without_gradients_also_where_little_is_held_at_once(
    name, shape, behind_a_mask, calls, monkeypatch
):
    made = of_shape(name, shape).eval().extended(log_scale=True, window=2)
    with torch.no_grad():
        for at in (None, heard(CASES[name], ROWS)):
            expected = behind_a_mask(lambda at=at: made(tokens(), at))
            torch.testing.assert_close(made(tokens(), at), expected, **TIGHT)
            with monkeypatch.context() as patch:
                patch.setattr("sepnb.models.fast.pieces.AT_ONCE", 12)
                torch.testing.assert_close(made(tokens(), at), expected, **TIGHT)


def test_compiled_formulas_take_them_too(behind_a_mask, calls, monkeypatch):
    monkeypatch.setattr(kernels.Compiler, "compiled", lambda self, formula: formula)
    monkeypatch.setattr(kernels, "on_cuda", lambda x: True)
    for name in ("alibi", "t5", "transformer-xl", "rope"):
        made = of_shape(name, max_length=N)
        expected = behind_a_mask(lambda made=made: outcome(made, tokens()))
        compile_formulas(made, "eager")
        calls.clear()
        close(outcome(made, tokens()), expected)
        assert calls == [(2, 2), (2, 4), (2, 4), (2, 4), (1, 3)] * 2
        assert not kernels.flexible(made)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", [*KINDS, "fire", "transformer-xl"])
def test_no_tensor_grows_faster_than_the_text(name, grad, behind_a_mask, monkeypatch):
    monkeypatch.setattr(fire.FireScore, "at_once", 2**10)  # what it holds in one go whatever the text is
    made = of_shape(name, window=4)

    def largest(length: int) -> int:
        with torch.set_grad_enabled(grad), MemoryWatch() as watch:
            logits = made(tokens(1, length))
            if grad:
                logits.sum().backward()
        return watch.largest

    assert largest(128) <= 2.05 * largest(64)
    if Site.SCORE in CASES[name].sites:  # the mask has heads then, or all scores are held
        assert behind_a_mask(lambda: largest(128)) > 3 * behind_a_mask(lambda: largest(64))


# --- a cache that rolls


@pytest.mark.parametrize(("name", "shape"), IN_SHAPES)
def test_piece_by_piece_is_one_full_pass_and_no_more_is_kept_than_a_later_query_sees(name, shape):
    gaps, rows = (heard(CASES[name], positions) for positions in (GAPS, ROWS))
    for window, at, chunks in (
        (1, None, [1, 6, 2]),
        (4, None, [1] * N),
        (4, gaps, [5, 1, 3]),
        (4, rows, [1, 6, 2]),
    ):
        reader = of_shape(name, shape, window=window).eval()
        with torch.no_grad():
            cache, pieces, start = reader.make_cache(2), [], 0
            for n in chunks:
                own = None if at is None else at[..., start : start + n]
                pieces.append(reader(tokens()[:, start : start + n], own, cache))
                start += n
                assert cache.read == start and len(cache) == min(start, window - 1)
                held = [x.shape[2] for _, pair in cache.items() for x in pair if x.shape[-1]]
                assert held and set(held) == {len(cache)}
            torch.testing.assert_close(torch.cat(pieces, dim=1), reader(tokens(), at), **TIGHT)


def test_the_memory_of_a_cache_does_not_grow_with_the_text():
    made, held = of_shape("rope"), []
    cache = made.make_cache(1)
    with torch.no_grad():
        for token in tokens(1, 3 * N).split(1, dim=1):
            made(token, cache=cache)
            held.append(sum(x.untyped_storage().nbytes() for _, pair in cache.items() for x in pair))
    layers, width, number = 2, 32, 8
    assert set(held[W:]) == {2 * layers * width * (W - 1) * number}  # keys and values, and nothing beside
    plain = of_shape("rope", window=None)
    assert plain.make_cache(1).room is None and plain.extended(window=4).make_cache(1).room == 3
    assert plain.extended(window=4, sinks=1).make_cache(1).room is None  # the first tokens are seen for ever


def test_a_rolling_cache_serves_no_wider_window():
    plain = of_shape("rope", window=None).eval()
    narrow, wide = plain.extended(window=3), plain.extended(window=4)
    for reader, sees in (
        (plain, "all tokens"),
        (wide, "4 tokens and 0 sinks"),
        (plain.extended(window=2, sinks=1), "2 tokens and 1 sinks"),
    ):
        cache = narrow.make_cache(2)
        narrow(tokens(), cache=cache)
        refused(f"3 tokens needs, and this model sees {sees}; make a cache", reader, tokens(), cache=cache)
        assert cache.read == N
    with torch.no_grad():
        for cache in (wide.make_cache(2), plain.make_cache(2)):
            pieces = [narrow(piece, cache=cache) for piece in tokens().split([5, 1, 3], dim=1)]
            torch.testing.assert_close(torch.cat(pieces, dim=1), narrow(tokens()), **TIGHT)


# --- the config


def test_a_window_is_of_a_causal_model(unhooked):
    config = TransformerConfig(Streams.dense(16), 1, 2, causal=False)
    message = "window=4: a window needs a causal model.*use causal=True, or leave it out"
    refused(message, dataclasses.replace, config, window=4)
    refused(message, LanguageModel(config).extended, window=4)


def test_an_evaluation_narrows_the_window_of_a_config_and_does_not_widen_it():
    made = of_shape("rope", window=4).eval()
    narrow = made.extended(window=2)
    with torch.no_grad():
        expected = of_shape("rope", window=None).extended(window=2)(tokens())
        assert torch.equal(narrow(tokens()), expected)
        assert torch.equal(narrow.extended(window=4)(tokens()), made(tokens()))
    for rule in ({"window": 5}, {"window": 3, "sinks": 1}):
        with pytest.raises(ValueError, match=r"has window=4.*give a window of at most 4, without sinks"):
            made.extended(**rule)
