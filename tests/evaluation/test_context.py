"""A foreign or shuffled past: what is put there, what stays, and that only a model that looks back pays."""

import numpy as np
import pytest
import torch

from sepnb.evaluation import evaluate
from sepnb.evaluation.context import (
    of_another_document,
    shuffled_words,
    with_replaced_context,
    with_shuffled_context,
)
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams

WINDOWS = np.random.default_rng(0).integers(11, size=(5, 13))
DOCUMENTS = np.array([0, 0, 2, 2, 7])


def model() -> LanguageModel:
    torch.manual_seed(0)
    return LanguageModel(TransformerConfig(Streams.dense(16), 2, 2, "alibi", max_length=4), vocab_size=11)


def test_foreign_windows_are_of_the_next_document_and_of_the_same_number():
    foreign = of_another_document(WINDOWS, DOCUMENTS)
    assert np.array_equal(foreign, WINDOWS[[2, 3, 4, 4, 0]])
    with pytest.raises(ValueError, match="all windows are of one document; text of another one"):
        of_another_document(WINDOWS, np.zeros(5, dtype=int))


@pytest.mark.parametrize(("recent", "stride"), [(4, 1), (4, 3), (1, 5), (6, 6), (3, 100)])
def test_each_byte_is_scored_after_its_own_recent_past_and_a_foreign_older_one(recent, stride):
    """Against one pass for every byte, with the text put together by hand."""
    m, foreign = model(), of_another_document(WINDOWS, DOCUMENTS)
    losses = with_replaced_context(m, WINDOWS, DOCUMENTS, recent=recent, stride=stride, batch_size=2)
    assert losses.bits.shape == (5, 12) and np.array_equal(losses.documents, DOCUMENTS)
    for w in range(5):
        for i in range(12):
            chunk = recent + (i - recent) // stride * stride
            kept = 0 if i < recent else chunk - recent + 1
            text = [*foreign[w, :kept], *WINDOWS[w, kept : i + 2]]
            alone = evaluate(m, np.array([text])).bits[0, -1]
            assert losses.bits[w, i] == pytest.approx(alone, abs=1e-5)


def test_windows_no_longer_than_the_recent_past_are_scored_as_they_are():
    native = evaluate(model(), WINDOWS, DOCUMENTS).bits
    assert np.array_equal(
        with_replaced_context(model(), WINDOWS, DOCUMENTS, recent=12, stride=1).bits, native
    )


@pytest.mark.parametrize("sizes", [{"recent": 0, "stride": 1}, {"recent": 1, "stride": 0}])
def test_sizes_below_one_are_refused(sizes):
    with pytest.raises(ValueError, match="it must be at least 1"):
        with_replaced_context(model(), WINDOWS, DOCUMENTS, **sizes)


# --- its own words in another order

TEXT = np.frombuffer(
    b"it was the best of times it was the worst of times, it was the age of wisdom", np.uint8
)


def test_shuffled_words_are_the_same_words_in_another_order_for_each_row():
    rows = np.stack([TEXT, TEXT, TEXT[::-1]])
    shuffled = shuffled_words(rows)
    assert shuffled.shape == rows.shape and shuffled.dtype == rows.dtype
    told = [bytes(row) for row in shuffled]
    for row, mixed in zip(rows, told, strict=True):
        assert sorted((bytes(row) + b" ").split()) != (mixed + b" ").split()
        assert sorted(bytes(row)) == sorted(mixed)
    assert len(set(told)) == 3
    last = bytes(TEXT).split()[-1]  # has no space after it, so that it may join the word behind it
    assert sorted(told[0].replace(last, last + b" ").split()) == sorted(bytes(TEXT).split())
    assert np.array_equal(shuffled, shuffled_words(rows))
    assert not np.array_equal(shuffled, shuffled_words(rows, seed=1))


def test_a_text_without_spaces_is_one_word():
    assert np.array_equal(shuffled_words(WINDOWS), WINDOWS)


def test_with_a_shuffled_past_each_byte_keeps_its_own_recent_past():
    """Against one pass for every chunk, with the text put together by hand; spaces are byte 32."""
    windows = np.where(WINDOWS > 7, 32, WINDOWS)
    torch.manual_seed(0)
    m = LanguageModel(TransformerConfig(Streams.dense(16), 2, 2, "alibi", max_length=4), vocab_size=33)
    losses = with_shuffled_context(m, windows, DOCUMENTS, recent=4, stride=3, batch_size=2)
    native = evaluate(m, windows).bits
    assert np.array_equal(losses.bits[:, :4], evaluate(m, windows[:, :5]).bits)
    for start in (4, 7, 10):
        kept = start - 4 + 1
        mixed = np.concatenate([shuffled_words(windows[:, :kept]), windows[:, kept : start + 4]], axis=1)
        expected = evaluate(m, mixed).bits[:, start:]
        assert losses.bits[:, start : start + 3] == pytest.approx(expected, abs=1e-5)
    assert (np.abs(losses.bits - native) > 1e-6).any()
