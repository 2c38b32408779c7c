"""Long texts in pieces of queries, where formulas are compiled: the same function, fewer products, made once.

A piece is made small enough for small models, and what would be compiled is run as it is.
"""

import pytest
import torch

from sepnb import encodings
from sepnb.analysis.flops import products_of
from sepnb.models import LanguageModel, compile_formulas
from sepnb.models.fast import kernels
from sepnb.streams import Streams

from .trained import close, outcome

STREAMS = {"dense": Streams.dense(16), "separated": Streams(pos=8, sem=8)}
ROWS, N = 3, 11  # two pieces of four and one of three
BIASED = [
    name
    for name in encodings.names(axes=1)
    if encodings.build(name).sites & {encodings.Site.SCORE, encodings.Site.VALUE}
]
"""What needs a mask or an explicit softmax; the rest leaves causal attention to the fused kernel as it is."""


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(kernels, "LEAST_ROWS", ROWS)
    monkeypatch.setattr(kernels.Compiler, "compiled", lambda self, formula: formula)


def same(model: LanguageModel, tokens: torch.Tensor, **given) -> None:
    whole = outcome(model, tokens, **given)
    compile_formulas(model, "eager")
    close(whole, outcome(model, tokens, **given), atol=1e-12)


@pytest.mark.parametrize("name", encodings.names(axes=1))
def test_every_encoding_gives_its_logits_and_gradients_in_pieces(built, text, calls, name):
    model = built(STREAMS["dense"], encoding=name, max_length=N)
    same(model, text(2, N))
    pieces = [(4, 4), (4, 8), (3, 11)] if name in BIASED else [(N, N)]
    assert calls == [(N, N)] * 2 + pieces * 2  # two layers


@pytest.mark.parametrize("query_key", ["joint", "strict", "untied"])
@pytest.mark.parametrize("second", ["alibi", "kerple", "distance-aware"])
def test_separated_and_isolated_models_do(built, text, calls, query_key, second):
    model = built(STREAMS["separated"], encoding=("learned", second), query_key=query_key, max_length=N)
    same(model, text(2, N))
    assert (3, 11) in calls


def test_windows_packed_documents_and_given_positions_are_cut_with_the_queries(built, text, calls):
    tokens, documents = text(2, N), torch.tensor([[0] * 4 + [1] * 7, [0] * 8 + [1] * 3])
    same(built(STREAMS["dense"], encoding="rope").extended(window=4, sinks=1), tokens)
    same(built(STREAMS["dense"], encoding="t5"), tokens, documents=documents)
    gaps = torch.arange(N) * 3 + 5
    same(built(STREAMS["dense"], encoding="distance-aware"), tokens, positions=gaps)
    same(built(STREAMS["dense"], encoding="kerple"), tokens, positions=torch.stack([gaps, gaps + 1]))
    same(built(STREAMS["dense"], encoding="alibi").extended(log_scale=True), tokens)
    assert calls.count((3, 11)) == 2 * 5


def test_the_keys_that_a_cache_holds_are_heard_by_every_piece(built, text, calls):
    model = built(STREAMS["dense"], encoding="transformer-xl")
    tokens, found = text(2, 2 * N), []
    for backend in (None, "eager"):
        compile_formulas(model, backend)
        cache = model.make_cache(2)
        cache.room = 5
        with torch.no_grad():
            model(tokens[:, :N], cache=cache)
        found.append(outcome(model, tokens[:, N:], cache=cache))
    close(*found, atol=1e-12)
    assert (4, 9) in calls and (3, 16) in calls


@pytest.mark.parametrize("name", ["t5", "distance-aware", "transformer-xl"])
def test_four_pieces_compute_five_eighths_of_the_square(built, text, name):
    model, tokens = built(STREAMS["dense"], encoding=name, max_length=12), text(1, 12)
    bare = built(STREAMS["dense"], encoding="none", max_length=12)

    def products() -> int:
        return products_of(lambda: model(tokens).sum().backward())

    whole = products()
    compile_formulas(model, "eager")
    far = name == "transformer-xl"
    saved = 3 / 8 * (2 + far) * 12 * 12 * 16 * 3 * 2  # of squares; forward and twice back; two layers
    again = far * (3 + 6 + 9) * 16 * 16 * 2 * 2  # each piece maps its distances by W_r, which has a gradient
    assert whole - products() == saved - again
    assert products_of(lambda: bare(tokens).sum().backward()) < products()


def test_a_text_goes_whole_unless_it_is_long_causal_trained_and_on_a_cpu(built, text, calls, monkeypatch):
    model = built(STREAMS["dense"], encoding="alibi", max_length=N)
    compile_formulas(model, "eager")
    outcome(model, text(1, ROWS))
    assert calls == [(ROWS, ROWS)] * 2
    calls.clear()
    with torch.no_grad():
        model(text(1, N))
    seeing_all = built(STREAMS["dense"], encoding="alibi", max_length=N, causal=False)
    compile_formulas(seeing_all, "eager")
    outcome(seeing_all, text(1, N))
    monkeypatch.setattr(kernels, "on_cpu", lambda x: False)
    outcome(model, text(1, N))
    assert calls == [(N, N)] * 6
