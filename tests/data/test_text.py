"""Sampling, windows, entropies and marks, on small texts whose every byte is known."""

import hashlib
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sepnb.data.draws import generator_of
from sepnb.data.text import (
    MARKERS,
    Document,
    Text,
    drawn_windows,
    entropies,
    marked,
    marks,
    sample_batches,
    windows,
)


def text(*documents: bytes) -> Text:
    return Text(
        "test/train",
        tuple(Document(str(k), "nobody", np.frombuffer(data, np.uint8)) for k, data in enumerate(documents)),
    )


# 10 + 30 + 61 bytes, no byte twice: a byte says in which document it stands and where.
TELLING = text(bytes(range(10)), bytes(range(100, 130)), bytes(range(180, 241)))


def starts(source: Text, *, length: int, seed: int, draws: int) -> np.ndarray:
    (batch,) = sample_batches(source, batch_size=draws, length=length, seed=seed, steps=1)
    return batch[:, 0]


def digest(source: Text) -> str:
    batches = sample_batches(source, batch_size=5, length=7, seed=3, steps=4)
    return hashlib.sha256(b"".join(batch.astype("<i8").tobytes() for batch in batches)).hexdigest()


def test_a_batch_is_input_and_target_as_int64_and_never_crosses_a_document():
    batches = list(sample_batches(TELLING, batch_size=500, length=8, seed=1, steps=3))
    assert [batch.shape for batch in batches] == [(500, 9)] * 3
    for batch in batches:
        assert batch.dtype == np.int64
        assert (np.diff(batch, axis=1) == 1).all()  # inside a document the bytes count up; borders jump


def test_the_stream_depends_on_the_seed_and_on_nothing_else():
    """The digest was computed in another process; a change of it changes the data order of every record."""
    assert (starts(TELLING, length=8, seed=0, draws=64) != starts(TELLING, length=8, seed=1, draws=64)).any()
    np.random.seed(5)
    assert digest(TELLING) == "ddcf0dcc85ed83d83795d111acc46b80749a0c4b2100d0dbff481b569d1d8a3f"


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.uint32, np.int64])
def test_windows_of_integers_are_drawn_as_those_of_bytes_and_come_as_int64(kind):
    documents, sizes = [one.data.astype(kind) for one in TELLING.documents], {"batch_size": 5, "length": 7}
    found = drawn_windows(documents, "it", **sizes, seed=3, steps=4)
    for one, other in zip(found, sample_batches(TELLING, **sizes, seed=3, steps=4), strict=True):
        assert one.dtype == np.int64 and np.array_equal(one, other)
    (large,) = drawn_windows([np.arange(70_000, 70_020)], "it", batch_size=9, length=7, seed=0, steps=1)
    assert large.min() >= 70_000 and (np.diff(large, axis=1) == 1).all()
    with pytest.raises(ValueError, match=r"no document of it has 10 .*longest has 9\).* below 9"):
        drawn_windows([np.arange(9)], "it", batch_size=1, length=9, seed=0, steps=1)


def test_every_start_is_equally_likely():
    possible = [int(byte) for document in TELLING.documents for byte in document.data[:-4]]
    drawn = starts(TELLING, length=4, seed=11, draws=40_000)
    counts = [int((drawn == start).sum()) for start in possible]
    assert sum(counts) == len(drawn) and stats.chisquare(counts).pvalue > 0.001


def test_documents_too_short_for_a_window_are_skipped():
    assert starts(TELLING, length=29, seed=0, draws=200).min() == 100
    assert starts(TELLING, length=30, seed=0, draws=200).min() >= 180
    with pytest.raises(ValueError, match=r"no document of test/train has 62 bytes \(the longest has 61\)"):
        sample_batches(TELLING, batch_size=1, length=61, seed=0, steps=1)


documents = st.lists(st.binary(max_size=50), min_size=1, max_size=5)
limit = st.none() | st.integers(1, 60)


@given(documents=documents, length=st.integers(1, 12), per_document=limit, limit_bytes=limit)
def test_windows_score_the_stated_bytes_once_and_in_order(documents, length, per_document, limit_bytes):
    share = math.inf if limit_bytes is None else limit_bytes // len(documents)
    allowed = [min(len(data) - 1, per_document or math.inf, share) for data in documents]
    expected = [
        (k, at) for k, most in enumerate(allowed) for at in range(1, 51) if at <= most // length * length
    ]
    source = text(*documents)
    if not expected:
        with pytest.raises(ValueError, match="no window of"):
            windows(source, length=length, per_document=per_document, limit_bytes=limit_bytes)
        return
    cut = windows(source, length=length, per_document=per_document, limit_bytes=limit_bytes)
    scored = [
        (int(k), int(start) + offset)
        for k, start in zip(cut.document, cut.start, strict=True)
        for offset in range(1, length + 1)
    ]
    assert scored == expected
    assert cut.tokens[:, 1:].size == len(expected)
    assert cut.tokens.dtype == np.int64
    for row, k, start in zip(cut.tokens, cut.document, cut.start, strict=True):
        assert bytes(row.tolist()) == documents[k][start : start + length + 1]


def slow_entropies(train: Text, test: Text) -> tuple[float, float]:
    """The definition, byte by byte."""
    train_bytes = [document.data.tolist() for document in train.documents]
    flat = [byte for data in train_bytes for byte in data]
    pairs = [pair for data in train_bytes for pair in itertools.pairwise(data)]

    def p(b: int) -> float:
        return (flat.count(b) + 1) / (len(flat) + 256)

    def p_after(b: int, a: int) -> float:
        return (pairs.count((a, b)) + p(b)) / (sum(first == a for first, _ in pairs) + 1)

    scored = [pair for document in test.documents for pair in itertools.pairwise(document.data.tolist())]
    unigram = -sum(math.log2(p(b)) for _, b in scored) / len(scored)
    return unigram, -sum(math.log2(p_after(b, a)) for a, b in scored) / len(scored)


def test_entropies_are_those_of_the_definition():
    train, test = text(b"abracadabra", b"a", b"cabbage"), text(b"bad cab", b"dab", b"")
    assert entropies(train, test) == pytest.approx(slow_entropies(train, test), abs=1e-12)
    train, test = text(b"ab" * 500), text(b"ab" * 50)  # they know pairs, and their order
    unigram, bigram = entropies(train, test)
    assert unigram == pytest.approx(-math.log2(501 / 1256))
    assert bigram < 0.02
    with pytest.raises(ValueError, match="no byte with a predecessor"):
        entropies(train, text(b"a"))


def test_marks_are_found_in_full():
    data = np.frombuffer(b"a <unk> 5 @,@ 000 well @-@ known<unk>", np.uint8)
    assert data[marked(data)].tobytes() == b"<unk>@,@@-@<unk>"
    assert data[marked(data, (b"@-@",))].tobytes() == b"@-@"
    assert not marked(data[:5]).any()
    (document,) = marks(text(b"a <unk>")).documents
    assert document.data.tolist() == [0, 0, 1, 1, 1, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        document.data[0] = 1


@given(
    st.lists(st.sampled_from([b"<unk>", b"@-@", b"@", b"-", b" a", b"<", b">"]), max_size=40).map(b"".join),
    st.integers(1, 7),
)
def test_windows_of_the_marks_lie_over_windows_of_the_text_and_see_marks_across_borders(data, length):
    source = text(data, b"before <unk> after")
    cut, mask = windows(source, length=length), windows(marks(source), length=length)
    assert np.array_equal(mask.document, cut.document) and np.array_equal(mask.start, cut.start)
    assert mask.tokens.shape == cut.tokens.shape
    for tokens, document, start in zip(mask.tokens, mask.document, mask.start, strict=True):
        whole = source.documents[document].data.tobytes()
        for place, value in enumerate(tokens):
            at = int(start) + place
            inside = any(
                whole[begin : begin + len(marker)] == marker
                for marker in MARKERS
                for begin in range(max(0, at - len(marker) + 1), at + 1)
            )
            assert value == inside


def test_a_seed_is_a_number():
    """Numpy hashes a list number by number, and one that holds itself until the process dies."""
    itself: list = []
    itself.append(itself)
    novel = Text("a novel", (Document("one", "", np.zeros(20, np.uint8)),))
    for seed in (itself, [1], None, -1):
        with pytest.raises((TypeError, ValueError), match="seed"):
            sample_batches(novel, batch_size=1, length=4, seed=seed, steps=1)
        with pytest.raises((TypeError, ValueError), match="seed"):
            generator_of(seed, "canvas")
