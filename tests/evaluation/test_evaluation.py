"""Bits per byte: known values, and sums that agree however they are cut."""

import math
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from sepnb.evaluation import AtDrawnPositions, Losses, as_trained, evaluate, sliding
from sepnb.evaluation.losses import DRAWN_FROM
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams
from sepnb.training.positions import RandomOffset, RandomPositions

from ..shared import refused


class Constant(nn.Module):
    """The same logits whatever it reads."""

    def __init__(self, logits: torch.Tensor) -> None:
        super().__init__()
        self.logits = logits

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.logits.expand(*tokens.shape, -1)


def random_windows(n: int = 7, length: int = 16) -> np.ndarray:
    return np.random.default_rng(0).integers(256, size=(n, length + 1))


def language_model(encoding: str = "sinusoidal", **changes) -> LanguageModel:
    torch.manual_seed(0)
    return LanguageModel(TransformerConfig(Streams(pos=8, sem=24), 1, 4, encoding, **changes))


def bits_of_last(model: LanguageModel, read: np.ndarray, target: int) -> float:
    """What one byte costs, given exactly the bytes `read`, at positions from 0 on, all in float64."""
    with torch.no_grad():
        logits = model.double()(torch.from_numpy(read)[None], torch.arange(len(read)))
    return -logits[0, -1].log_softmax(-1)[target].item() / math.log(2)


def test_a_known_distribution_pays_its_cross_entropy():
    p = np.array([0.5, 0.25, 0.125, 0.125])
    windows = np.array([[3, 0, 1, 2], [0, 0, 0, 3]])  # the first byte is context only
    losses = evaluate(Constant(torch.from_numpy(p).log().float()), windows)
    assert losses.bits == pytest.approx(np.array([[1, 2, 3], [1, 1, 3]]), abs=1e-6)


def test_bits_of_a_position_are_those_of_the_byte_after_it_given_the_ones_before():
    model, windows = language_model(), random_windows(3)
    losses = evaluate(model, windows)
    with torch.no_grad():
        p = model(torch.from_numpy(windows[:, :-1])).double().log_softmax(-1)
    for row in range(3):
        for place in range(16):
            expected = -p[row, place, windows[row, place + 1]].item() / math.log(2)
            assert losses.bits[row, place] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("batch_size", [1, 3, 7, 100])
def test_the_batch_size_does_not_matter(batch_size):
    model, windows = language_model(), random_windows()
    whole, parts = evaluate(model, windows), evaluate(model, windows, batch_size=batch_size)
    assert parts.bits == pytest.approx(whole.bits, abs=1e-5)


def test_windows_may_be_read_only_or_of_any_integer_type():
    windows = random_windows().astype(np.uint8)
    windows.flags.writeable = False
    model = language_model()
    assert evaluate(model, windows).bits == pytest.approx(evaluate(model, random_windows()).bits, abs=0)


def test_it_evaluates_without_gradients_and_without_changing_a_parameter():
    model = language_model().train()
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    evaluate(model, random_windows())
    assert not model.training
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(parameter, before[name]) for name, parameter in model.named_parameters())


def test_bfloat16_is_close_to_float32_and_not_the_same():
    model, windows = language_model(), random_windows()
    exact, rounded = (evaluate(model, windows, precision=p) for p in ("float32", "bfloat16"))
    assert rounded.bits_per_byte == pytest.approx(exact.bits_per_byte, abs=0.02)
    assert not np.array_equal(rounded.bits, exact.bits)


@settings(max_examples=40)
@given(
    n=st.integers(1, 9),
    length=st.integers(1, 12),
    cuts=st.sets(st.integers(1, 11)),
    documents=st.integers(1, 4),
)
def test_every_cut_adds_up_to_the_mean(n, length, cuts, documents):
    generator = np.random.default_rng(n * 100 + length)
    losses = Losses(generator.random((n, length)) * 9, generator.integers(documents, size=n) * 10)
    edges = [0, *sorted(cut for cut in cuts if cut < length), length]
    rows = losses.by_position(edges)
    assert [(row["start"], row["stop"]) for row in rows] == list(pairwise(edges))
    weighted = sum(row["bits_per_byte"] * (row["stop"] - row["start"]) for row in rows) / length
    assert weighted == pytest.approx(losses.bits_per_byte)

    each = losses.by_document()
    assert [row["document"] for row in each] == sorted(set(losses.documents.tolist()))
    assert sum(row["bytes"] for row in each) == losses.bits.size
    assert sum(row["bits"] for row in each) / losses.bits.size == pytest.approx(losses.bits_per_byte)


def test_positions_and_documents_are_not_mixed_up():
    bits = np.array([[1.0, 2.0, 4.0], [10.0, 20.0, 40.0], [100.0, 200.0, 400.0]])
    losses = Losses(bits, np.array([5, 2, 5]))
    assert losses.by_position([1, 3]) == [{"start": 1, "stop": 3, "bits_per_byte": pytest.approx(666 / 6)}]
    assert losses.by_document() == [
        {"document": 2, "bytes": 3, "bits": 70.0},
        {"document": 5, "bytes": 6, "bits": 707.0},
    ]


@settings(max_examples=40)
@given(
    n=st.integers(1, 6),
    length=st.integers(1, 10),
    cuts=st.sets(st.integers(1, 9)),
    share=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
)
def test_marked_bytes_and_the_rest_are_the_sums_of_a_loop_over_bytes(n, length, cuts, share):
    generator = np.random.default_rng(n * 100 + length)
    losses = Losses(generator.random((n, length)) * 9, np.zeros(n, dtype=int))
    marked = generator.random((n, length)) < share
    edges = [0, *sorted(cut for cut in cuts if cut < length), length]
    rows = losses.by_position(edges, marked)
    for row, plain in zip(rows, losses.by_position(edges), strict=True):
        bits = {True: [], False: []}
        for window in range(n):
            for place in range(row["start"], row["stop"]):
                bits[bool(marked[window, place])].append(losses.bits[window, place])
        size = n * (row["stop"] - row["start"])
        assert row["marked_share"] == pytest.approx(len(bits[True]) / size)
        for name, paid in (("marked", bits[True]), ("rest", bits[False])):
            assert row[name] == (pytest.approx(sum(paid) / len(paid)) if paid else None)
        parts = row["marked_share"] * (row["marked"] or 0) + (1 - row["marked_share"]) * (row["rest"] or 0)
        assert parts == pytest.approx(row["bits_per_byte"])
        assert {name: row[name] for name in plain} == plain


def test_edges_that_do_not_rise_and_marks_that_do_not_fit_the_bytes_are_refused():
    by_position = Losses(np.ones((2, 3)), np.zeros(2, dtype=int)).by_position
    for edges in ([], [0], [0, 4], [-1, 2], [2, 1], [0, 0, 3]):
        refused("edges .* must be two or more, rising, from 0 up and to at most 3", by_position, edges)
    short, numbers = np.ones((2, 4), dtype=bool), np.ones((2, 3), dtype=np.int64)
    refused(r"marks of shape \[2, 4\] do not fit bits of shape \[2, 3\]", by_position, [0, 3], short)
    refused("int64, which would be read as indices; give bool", by_position, [0, 3], numbers, error=TypeError)


def test_nothing_to_score_and_labels_or_positions_that_do_not_fit_are_refused():
    model, empty, short = Constant(torch.zeros(256)), np.zeros((0, 9), dtype=int), np.zeros((3, 1), dtype=int)
    refused("there are no windows to score", evaluate, model, empty)
    refused(r"windows of shape \[3, 1\] predict nothing; give \[n, L\+1\]", evaluate, model, short)
    refused("7 windows have 6 document", evaluate, model, random_windows(), np.zeros(6, dtype=int))
    for shape in ((15,), (17,), (3, 16), ()):
        how = {"positions": np.zeros(shape, dtype=int)}
        refused(r"windows that read 16 bytes; give \[16\]", evaluate, model, random_windows(3), **how)


# --- positions of one's own


def test_positions_are_given_to_the_model():
    model, windows = language_model(), random_windows(3)
    far = np.arange(1000, 1016)
    with torch.no_grad():
        tokens = torch.from_numpy(windows)
        p = model(tokens[:, :-1], torch.from_numpy(far)).double().log_softmax(-1)
    expected = -p.gather(-1, tokens[:, 1:, None])[..., 0].numpy() / math.log(2)
    assert evaluate(model, windows, positions=far).bits == pytest.approx(expected, abs=1e-5)
    assert evaluate(model, windows).bits != pytest.approx(expected, abs=1e-2)


# --- the sliding window


@pytest.mark.parametrize("encoding", ["sinusoidal", "learned"])
def test_stride_one_gives_every_byte_exactly_the_last_window(encoding):
    """Against the definition, byte by byte; the table has no row past the window to fall back on."""
    model = language_model(encoding, max_length=6).double()
    windows = random_windows(3, 14)
    losses = sliding(model, windows, np.array([4, 4, 7]), window=6, stride=1)
    assert losses.bits.shape == (3, 14) and list(losses.documents) == [4, 4, 7]
    for row in range(3):
        for place in range(14):
            read = windows[row, max(0, place + 1 - 6) : place + 1]
            expected = bits_of_last(model, read, windows[row, place + 1])
            assert losses.bits[row, place] == pytest.approx(expected, abs=2e-6)


@settings(max_examples=30)
@given(window=st.integers(1, 7), stride=st.integers(1, 7), sinks=st.integers(0, 6), length=st.integers(1, 20))
def test_each_byte_is_read_with_the_context_that_the_stride_promises(window, stride, sinks, length):
    """A model whose loss tells what it was given: position and token of every byte it reads."""
    sinks = min(sinks, window - 1)
    stride = min(stride, window - sinks)
    text = np.arange(length + 1)[None]  # each byte is its own place in the text
    passes = []

    class Spy(nn.Module):
        def forward(self, tokens):
            passes.extend(tokens.tolist())
            return torch.zeros(*tokens.shape, 256)

    losses = sliding(Spy(), text, window=window, stride=stride, sinks=sinks)
    assert losses.bits == pytest.approx(np.full((1, length), 8.0), abs=1e-5)
    assert passes[0] == list(range(min(window, length)))
    scored = min(window, length)
    for read in passes[1:]:
        assert len(read) == window
        assert read[:sinks] == list(range(sinks))
        recent = read[sinks:]
        assert recent == list(range(recent[0], recent[-1] + 1))
        scored += stride
        assert recent[-1] == min(scored, length) - 1
    assert scored >= length > scored - stride or length <= window


def test_sinks_stand_before_the_last_bytes_without_a_gap_in_the_positions():
    model = language_model("learned", max_length=6).double()
    windows = random_windows(2, 13)
    for stride in (1, 3):
        losses = sliding(model, windows, window=6, stride=stride, sinks=2)
        assert losses.bits[:, :6] == pytest.approx(evaluate(model, windows[:, :7]).bits, abs=2e-6)
        for row in range(2):
            for place in range(6, 13):
                stop = min(6 + -(-(place + 1 - 6) // stride) * stride, 13)  # the pass that scores this place
                read = np.concatenate([windows[row, :2], windows[row, stop - 4 : place + 1]])
                expected = bits_of_last(model, read, windows[row, place + 1])
                assert losses.bits[row, place] == pytest.approx(expected, abs=2e-6)


def test_a_text_within_the_window_is_read_in_one_pass():
    model, windows = language_model(), random_windows()
    for window in (16, 17, 100):
        losses = sliding(model, windows, window=window, stride=1, sinks=3)
        assert np.array_equal(losses.bits, evaluate(model, windows).bits)


def test_a_coarser_stride_reads_less_and_the_batch_size_does_not_matter():
    model, windows = language_model(), random_windows(3, 40)
    read = []
    model.register_forward_hook(lambda _, given, __: read.append(given[0].numel()))
    fine = sliding(model, windows, window=8, stride=1)
    fine_read = sum(read)
    read.clear()
    coarse = sliding(model, windows, window=8, stride=4)
    assert sum(read) == 3 * (8 + 8 * 8) and fine_read == 3 * (8 + 32 * 8)
    assert not np.allclose(fine.bits[:, 8:], coarse.bits[:, 8:])
    parts = sliding(model, windows, window=8, stride=4, batch_size=5)
    assert parts.bits == pytest.approx(coarse.bits, abs=1e-5)


def test_windows_that_leave_nothing_to_read_or_to_score_are_refused():
    for stride, sinks, message in (
        (9, 0, "stride is 9; give 1 to 8"),
        (5, 4, "stride is 5; give 1 to 4"),
        (1, 8, "sinks is 8; give 0 to 7"),
    ):
        how = {"window": 8, "stride": stride, "sinks": sinks}
        refused(message, sliding, language_model(), random_windows(), **how)


# --- drawn positions


@pytest.mark.parametrize("per", ["step", "sequence"])
def test_each_window_is_read_at_a_draw_of_its_own_however_many_are_read_at_once(per):
    model, windows, sampler = language_model().double(), random_windows(), RandomPositions(200, per)
    found = [evaluate(AtDrawnPositions(model, sampler), windows, batch_size=size).bits for size in (1, 3, 64)]
    draws = sampler.positions(batch_size=1, length=16, seed=DRAWN_FROM, steps=7)
    at = [evaluate(model, windows[k : k + 1], positions=p.reshape(16)).bits for k, p in enumerate(draws)]
    for bits in found:
        assert bits == pytest.approx(np.concatenate(at), abs=1e-9)
    other = evaluate(AtDrawnPositions(model, sampler, draw=1), windows).bits
    assert np.abs(other - found[0]).max() > 1e-3


def test_positions_of_each_length_are_drawn_apart():
    """What is read in between at another length does not move the draws."""
    model, sampler = language_model().double(), RandomPositions(200)
    reader, windows = AtDrawnPositions(model, sampler), random_windows()
    evaluate(reader, windows[:, :9])
    assert np.array_equal(
        evaluate(reader, windows).bits, evaluate(AtDrawnPositions(model, sampler), windows).bits
    )


def test_a_model_is_read_at_drawn_positions_only_if_its_sampler_says_so():
    model = language_model()
    assert as_trained(model, None) is model and as_trained(model, RandomOffset(64)) is model
    reader = as_trained(model, RandomPositions(64))
    assert isinstance(reader, AtDrawnPositions) and reader.model is model


def test_a_text_with_more_tokens_than_random_positions_is_refused():
    with pytest.raises(ValueError, match="maximum is 15, and sequences of 16 tokens have as many positions"):
        evaluate(AtDrawnPositions(language_model(), RandomPositions(15)), random_windows())


def test_what_is_refused_leaves_the_model_as_it_was(unhooked):
    """On the device meta its weights would be gone."""
    model = torch.nn.Embedding(7, 7).train()
    read = np.arange(12).reshape(2, 6) % 7
    for changes, error, message in (
        ({"device": "meta"}, ValueError, "device is 'meta', on which nothing is computed"),
        ({"precision": "int8"}, ValueError, "unknown precision 'int8'; use one of float32, bfloat16"),
        ({"windows": read + 0.7}, TypeError, "windows must be a numpy array of integers.* float64"),
        ({"windows": torch.from_numpy(read)}, TypeError, "windows must be a numpy array of integers"),
    ):
        for score in (evaluate, partial(sliding, window=4, stride=2)):
            refused(message, score, error=error, **{"model": model, "windows": read} | changes)
    assert model.training and model.weight.device.type == "cpu"
