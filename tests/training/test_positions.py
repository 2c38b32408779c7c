"""Positions in training: which are drawn, that the bytes stay what they are, and what trains on them."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch

from sepnb.data import text as texts
from sepnb.data.text import Document, Text
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams
from sepnb.training import TrainingConfig, target_losses, train
from sepnb.training.losses import AuxiliaryLoss, BoundLoss
from sepnb.training.positions import DrawnFactors, PositionGap, RandomOffset, RandomPositions, TrueGap
from sepnb.training.shifts import ShiftSteps

from ..shared import refused

L, B = 8, 4
SIZES = {"batch_size": B, "length": L}
ODD = {"batch_size": 1, "length": 7, "seed": 0, "steps": 1}


def document(number: int, length: int) -> Document:
    """Byte i of document k is unique within 256 and tells k by its parity."""
    data = (2 * np.arange(length) % 256 + number % 2).astype(np.uint8)
    return Document(f"d{number}", "a", data)


TEXT = Text("two", (document(0, 900), document(1, 700), document(2, 20)))
FAR = TrueGap(64)


def drawn(sampler, seed: int = 0, steps: int = 200, text: Text = TEXT) -> list:
    return list(sampler.batches(text, seed=seed, steps=steps, **SIZES))


# --- all that draw


@pytest.mark.parametrize("per", ["step", "sequence"])
@pytest.mark.parametrize("kind", [RandomOffset, RandomPositions, PositionGap])
def test_drawn_positions_leave_the_bytes_of_the_seed_and_are_all_where_there_are_no_more(kind, per):
    plain = texts.sample_batches(TEXT, seed=3, steps=20, **SIZES)
    for tokens, batch in itertools.zip_longest(plain, drawn(kind(64, per), 3, 20)):
        assert np.array_equal(batch.inputs, tokens[:, :-1]) and np.array_equal(batch.targets, tokens[:, 1:])
    assert all((batch.positions == np.arange(L)).all() for batch in drawn(kind(L, per), steps=20))


def test_only_random_positions_are_drawn_at_evaluation_too():
    assert RandomPositions(9).at_evaluation
    assert not any(sampler.at_evaluation for sampler in (RandomOffset(9), ShiftSteps(9), FAR, PositionGap(9)))


# --- random offsets


@pytest.mark.parametrize(("per", "shape"), [("step", (L,)), ("sequence", (B, L))])
def test_positions_are_neighbours_below_the_maximum_and_every_offset_is_as_likely(per, shape):
    batches = drawn(RandomOffset(11, per), steps=3000)
    positions = np.stack([batch.positions for batch in batches])
    assert positions.dtype == np.int64 and positions.shape[1:] == shape
    assert (np.diff(positions, axis=-1) == 1).all()
    offsets, counts = np.unique(positions[..., 0], return_counts=True)
    assert offsets.tolist() == [0, 1, 2, 3] and positions.max() == 10
    assert np.allclose(counts / counts.sum(), 0.25, atol=0.03)
    if per == "sequence":
        assert any(len(set(batch.positions[:, 0])) > 1 for batch in batches)


@pytest.mark.parametrize(
    "sampler",
    [
        *(RandomOffset(64), RandomOffset(64, "sequence"), ShiftSteps(64), RandomPositions(64), FAR),
        *(PositionGap(64), DrawnFactors((2, 3), L)),
    ],
    ids=repr,
)
def test_a_seed_repeats_another_differs_and_the_global_generators_are_left_alone(sampler):
    np.random.seed(0), torch.manual_seed(0)
    before = np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    one, again, other = drawn(sampler, 1, 9), drawn(sampler, 1, 9), drawn(sampler, 2, 9)
    same = [all(map(torch.equal, a.tensors()[:3], b.tensors())) for a, b in zip(one, again, strict=True)]
    assert all(same) and not all(
        np.array_equal(a.positions, b.positions) for a, b in zip(one, other, strict=True)
    )
    assert before == (np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())


# --- position gaps


def test_a_gap_opens_once_at_any_place_and_every_gap_is_as_likely():
    positions = np.concatenate([batch.positions for batch in drawn(PositionGap(11), steps=3000)])
    steps = np.diff(positions)
    assert (positions[:, 0] == 0).all() and ((steps > 1).sum(axis=1) <= 1).all()
    gaps, counts = np.unique(positions[:, -1] - (L - 1), return_counts=True)
    assert gaps.tolist() == [0, 1, 2, 3] and np.allclose(counts / counts.sum(), 0.25, atol=0.03)
    cuts, counts = np.unique(np.nonzero(steps > 1)[1], return_counts=True)
    assert cuts.tolist() == list(range(L - 1)) and np.allclose(counts / counts.sum(), 1 / (L - 1), atol=0.02)


# --- drawn factors


def test_every_factor_and_every_start_below_its_end_is_as_likely_and_the_bytes_are_those_of_the_seed():
    sampler, sizes = DrawnFactors((2, 4), 6), {"seed": 3, "steps": 6000}
    draws = np.array(list(sampler.draws(length=L, **sizes)))
    for factor in (2, 4):
        starts = draws[draws[:, 0] == factor, 1]
        assert abs(len(starts) / len(draws) - 0.5) < 0.03
        places, counts = np.unique(starts, return_counts=True)
        assert places.tolist() == list(range(factor * 6 - L + 1))
        assert np.allclose(counts / counts.sum(), 1 / len(places), atol=0.03)
    plain = texts.sample_batches(TEXT, seed=3, steps=20, **SIZES)
    for (_, start), tokens, batch in zip(draws[:20], plain, drawn(sampler, 3, 20), strict=True):
        assert np.array_equal(batch.positions, start + np.arange(L)) and batch.positions.dtype == np.int64
        assert np.array_equal(batch.inputs, tokens[:, :-1]) and np.array_equal(batch.targets, tokens[:, 1:])
    assert all(batch.positions.tolist() == list(range(L)) for batch in drawn(DrawnFactors((1,), L), steps=9))
    assert sampler.resolved() == {"name": "drawn-factors", "factors": [2, 4], "trained": 6}


# --- shift steps


@pytest.mark.parametrize("per", ["step", "sequence"])
def test_shift_steps_are_as_frequent_as_they_should_be_and_are_those_of_random_offsets(per):
    sampler, steps = ShiftSteps(64, per, probability=0.3), 3000
    offsets = drawn(RandomOffset(64, per), 5, steps)
    shifted = 0
    for batch, decision, offset in zip(drawn(sampler, 5, steps), sampler.decisions(5), offsets, strict=False):
        expected = offset.positions if decision else np.broadcast_to(np.arange(L), offset.positions.shape)
        assert np.array_equal(batch.positions, expected)
        assert np.array_equal(batch.inputs, offset.inputs)
        shifted += decision
    assert abs(shifted / steps - 0.3) < 4 * (0.3 * 0.7 / steps) ** 0.5


@pytest.mark.parametrize(("per", "rows"), [("step", 1), ("sequence", B)])
def test_starts_that_are_drawn_once_come_round_in_their_order_in_shift_steps_alone(per, rows):
    """As released: so many offsets of a run, each row of a shift step the next of them."""
    sampler, count = ShiftSteps(1000, per, probability=0.4, starts=7), 60
    found = [batch.positions.reshape(rows, L) for batch in drawn(sampler, 3, count)]
    decisions = list(itertools.islice(sampler.decisions(3), count))
    shifted = [at[:, 0] for at, one in zip(found, decisions, strict=True) if one]
    turns = np.concatenate(shifted)
    assert len(turns) > 14 and len(set(turns[:7])) > 5
    assert np.array_equal(turns, np.resize(turns[:7], len(turns)))
    for at, one in zip(found, decisions, strict=True):
        assert np.array_equal(at, at[:, :1] + np.arange(L)) and (one or not at[:, 0].any())
    assert sampler.resolved()["starts"] == 7 and "starts" not in ShiftSteps(1000).resolved()


# --- random positions


@pytest.mark.parametrize(("per", "shape"), [("step", (L,)), ("sequence", (B, L))])
def test_random_positions_are_sorted_distinct_below_the_maximum_and_uniform(per, shape):
    positions = np.stack([batch.positions for batch in drawn(RandomPositions(20, per), steps=3000)])
    assert positions.dtype == np.int64 and positions.shape[1:] == shape
    assert (np.diff(positions, axis=-1) >= 1).all()
    counts = np.bincount(positions.ravel(), minlength=20)
    assert len(counts) == 20  # nothing at or above the maximum
    assert np.allclose(counts / counts.sum(), 1 / 20, atol=0.004)
    if per == "sequence":
        assert any((batch[0] != batch[1]).any() for batch in positions)


def test_every_choice_of_positions_is_as_likely():
    sampler = RandomPositions(5)
    chosen = [tuple(p) for p in sampler.positions(batch_size=1, length=2, seed=0, steps=8000)]
    shares = [chosen.count(pair) / 8000 for pair in itertools.combinations(range(5), 2)]
    assert sum(shares) == pytest.approx(1) and np.allclose(shares, 0.1, atol=0.015)


# --- true gaps


def test_both_chunks_are_whole_pieces_of_one_document_at_their_true_distance():
    """Byte values name the place in the document, so that positions can be held against the text."""
    gaps = []
    for batch in drawn(FAR):
        assert batch.inputs.shape == batch.targets.shape == batch.positions.shape == (B, L)
        for inputs, targets, positions in zip(batch.inputs, batch.targets, batch.positions, strict=True):
            assert (positions[: L // 2] == np.arange(L // 2)).all()
            assert (inputs % 2 == inputs[0] % 2).all()  # one document
            places = (inputs - inputs[0]) // 2 % 128
            assert (places == positions % 128).all()
            assert ((targets - inputs) % 256 == 2).all()  # each byte's own successor, also at the seam
            gaps.append(positions[L // 2] - L // 2)
    gaps = np.array(gaps)
    assert gaps.min() == 0 and 60 < gaps.max() < 64
    assert (
        abs(np.log1p(gaps).mean() / (np.log(65) / 2) - 1) < 0.1
    )  # log-uniform, less what rounding down takes


def test_false_indices_hide_the_distance_and_change_nothing_else():
    hidden = dataclasses.replace(FAR, indices="contiguous")
    for true, false in zip(drawn(FAR, steps=20), drawn(hidden, steps=20), strict=True):
        assert np.array_equal(true.inputs, false.inputs) and np.array_equal(true.targets, false.targets)
        assert (false.positions == np.arange(L)).all()


def test_a_second_chunk_of_another_document_keeps_the_first_chunk_and_all_positions():
    other = dataclasses.replace(FAR, second="other")
    for same, mixed in zip(drawn(FAR, steps=50), drawn(other, steps=50), strict=True):
        assert np.array_equal(same.positions, mixed.positions)
        assert np.array_equal(same.inputs[:, : L // 2], mixed.inputs[:, : L // 2])
        assert (mixed.inputs[:, 0] % 2 != mixed.inputs[:, L // 2] % 2).all()
        assert ((mixed.targets - mixed.inputs) % 256 == 2).all()


# --- what is refused


@pytest.mark.parametrize(
    ("message", "call", "given"),
    [
        ("maximum is 0; it must be at least 1", RandomOffset, (0,)),
        ("unknown per 'batch'; use one of step, sequence", RandomOffset, (9, "batch")),
        ("it lies between 0 and 1", ShiftSteps, (64, "step", float("nan"))),
        ("maximum is 7, and sequences of 8 tokens have as many positions", drawn, (RandomPositions(7),)),
        ("maximum is 7, and sequences of 8 tokens have as many positions", drawn, (RandomOffset(7),)),
        ("length is 8, and 1 times 6 .* are 6: .* at most 6, .* 2", drawn, (DrawnFactors((4, 1), 6),)),
        ("unknown second 'none'; use one of same, other", lambda: TrueGap(9, second="none"), ()),
        ("0 documents of two have 10008 bytes, .*lower the maximum", drawn, (TrueGap(10_000),)),
        ("1 documents of two have 808 bytes, .*2 needed", drawn, (TrueGap(800, second="other"),)),
        ("length is 7; two chunks of one size", lambda: FAR.batches(TEXT, **ODD), ()),
        ("length is 7; two chunks of one size", lambda: FAR.positions(**ODD), ()),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_value_bound_and_remedy(message, call, given, unhooked):
    refused(message, call, *given)


# --- training on them

CONFIG = TrainingConfig(steps=6, batch_size=B, length=L, learning_rate=1e-2)


def model(mode: str = "separated") -> LanguageModel:
    torch.manual_seed(0)
    config = TransformerConfig(Streams(pos=8, sem=8), 2, 2, "sinusoidal", mode=mode, max_length=L)
    return LanguageModel(config, vocab_size=256)


def test_offsets_of_zero_are_bitwise_the_plain_training():
    plain = train(model(), texts.sample_batches(TEXT, seed=0, steps=6, **SIZES), CONFIG)
    sampler = RandomOffset(L)
    config = dataclasses.replace(CONFIG, positions=sampler)
    assert train(model(), sampler.batches(TEXT, seed=0, steps=6, **SIZES), config) == plain


@pytest.mark.parametrize("sampler", [RandomOffset(64), FAR], ids=repr)
def test_the_loss_of_a_step_is_that_of_its_targets_at_its_positions(sampler):
    first = drawn(sampler, steps=1)[0]
    inputs, targets, positions, _ = first.tensors()
    logits = model()(inputs, positions).double()
    expected = -logits.log_softmax(-1).gather(-1, targets[..., None]).mean(dtype=torch.float64).item()
    losses = train(model(), iter(drawn(sampler, steps=6)), dataclasses.replace(CONFIG, positions=sampler))
    assert losses[0] == pytest.approx(expected, rel=1e-6)
    assert expected != pytest.approx(target_losses(model(), inputs, targets).mean().item(), rel=1e-6)


# --- an auxiliary loss


@dataclasses.dataclass(frozen=True)
class Shrink(AuxiliaryLoss):
    """Half the square of the embedding, times a weight."""

    name = "shrink"

    weight: float

    def bind(self, seed, start=0):
        return BoundLoss(lambda model: self.weight * model.embedding.weight.square().sum() / 2, seed, start)


def test_an_auxiliary_loss_changes_the_gradient_and_not_the_losses_told():
    config = dataclasses.replace(CONFIG, steps=1, clip=1e9, auxiliary=Shrink(3.0))

    def gradient(config, auxiliary):
        m = model()
        batches = texts.sample_batches(TEXT, seed=0, steps=1, **SIZES)
        losses = train(m, batches, config, auxiliary=auxiliary)
        return losses, m.embedding.weight.grad, model().embedding.weight

    plain, without, start = gradient(dataclasses.replace(CONFIG, steps=1, clip=1e9), None)
    told, given, _ = gradient(config, config.auxiliary.bind(0))
    assert told == plain
    torch.testing.assert_close(given, without + 3.0 * start)
    assert config.resolved()["auxiliary"] == {"name": "shrink", "weight": 3.0}


SAMPLERS = [
    RandomOffset(30),
    RandomOffset(400, "sequence"),
    RandomPositions(30),
    RandomPositions(64, "sequence"),
    PositionGap(30),
    DrawnFactors((2, 4), 6),
    FAR,
    TrueGap(64, indices="contiguous"),
    TrueGap(64, second="other"),
]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=repr)
def test_what_is_said_to_be_trained_is_what_occurs(sampler):
    positions = [np.broadcast_to(batch.positions, (B, L)) for batch in drawn(sampler, steps=600)]
    assert max(p.max() for p in positions) == sampler.trained_indices(L) - 1
    assert max((p.max(-1) - p.min(-1)).max() for p in positions) == sampler.trained_distances(L) - 1


@pytest.mark.parametrize("sampler", SAMPLERS, ids=repr)
def test_positions_without_a_text_are_those_of_the_batches(sampler):
    alone = sampler.positions(seed=5, steps=30, **SIZES)
    for positions, batch in itertools.zip_longest(alone, drawn(sampler, 5, 30)):
        assert np.array_equal(positions, batch.positions)


def test_a_document_that_just_holds_the_largest_gap_is_read_from_its_only_start():
    """Its last byte is a target where the gap is the largest, and one byte less is one too few."""
    exact, short = (Text("one", (document(0, length),)) for length in (L + 64, L + 63))
    batches = drawn(FAR, steps=300, text=exact)
    assert all((batch.inputs[:, 0] == 0).all() for batch in batches)
    last = [batch.targets[batch.positions.max(-1) == L + 62, -1] for batch in batches]
    assert set(np.concatenate(last).tolist()) == {int(exact.documents[0].data[-1])}
    with pytest.raises(ValueError, match="0 documents of one have 72 bytes"):
        drawn(FAR, text=short)
