"""Shift steps of a grid: where the cells stand, how often they move, and what a run has met."""

import itertools
from collections import Counter

import numpy as np
import pytest
import torch

from sepnb.encodings import grid_positions
from sepnb.seqpe.sampling import CandidateSampler, WindowSampler
from sepnb.training import Batch, TrainingConfig, train
from sepnb.training.seqpe_losses import SeqPELosses
from sepnb.training.shifts import GridShiftSteps, ShiftSteps

GRIDS = {
    "line": GridShiftSteps((6,), (40,), 0.3),
    "image": GridShiftSteps((4, 3), (20, 9), 0.3),
    "volume": GridShiftSteps((2, 3, 2), (9, 12, 7), 0.3, first=0),
}


@pytest.mark.parametrize("name", GRIDS)
def test_a_grid_moves_as_a_whole_and_stays_in_range(name):
    shifts = GRIDS[name]
    home = grid_positions(*shifts.grid).numpy() + shifts.first
    assert np.array_equal(shifts.home, home)
    for places in shifts.positions(seed=1, steps=200):
        assert places.dtype == np.int64 and places.shape == (np.prod(shifts.grid), len(shifts.grid))
        move = places - home
        assert (move == move[0]).all() and (places >= shifts.first).all() and (places < shifts.ranges).all()


def test_every_move_is_as_likely_and_the_steps_are_those_of_the_decisions():
    shifts = GridShiftSteps((3, 2), (8, 6), 1.0)
    moves = Counter(tuple(places[0] - 1) for places in shifts.positions(seed=0, steps=8_000))
    assert moves.keys() == set(itertools.product(range(5), range(4)))
    assert max(abs(count - 400) for count in moves.values()) < 100
    some = GRIDS["image"]
    moved = [bool((at != some.home).any()) for at in some.positions(seed=2, steps=300)]
    decided = list(itertools.islice(some.decisions(2), 300))
    assert all(d for m, d in zip(moved, decided, strict=True) if m)
    assert 60 < sum(decided) < 120 and sum(decided) - sum(moved) < 10  # one move in 80 is that by nothing
    # The same decisions as those of a text, whose probability is the same.
    assert decided == list(itertools.islice(ShiftSteps(99, probability=0.3).decisions(2), 300))


def test_a_seed_repeats_its_places_and_another_differs():
    shifts = GRIDS["volume"]
    one, again, other = (np.stack(list(shifts.positions(seed=s, steps=40))) for s in (1, 1, 2))
    assert np.array_equal(one, again) and not np.array_equal(one, other)
    never = GridShiftSteps((4, 3), (20, 9), 0.0)
    assert all(np.array_equal(at, never.home) for at in never.positions(seed=1, steps=50))


def test_coverage_counts_what_a_run_has_met():
    shifts = GRIDS["image"]
    met = np.zeros((20, 9), dtype=bool)
    for places in shifts.positions(seed=4, steps=30):
        for row, column in places:
            met[row, column] = True
    assert not met[0].any() and not met[:, 0].any()
    told = shifts.coverage(seed=4, steps=30)
    assert told["cells"] == met.sum() / (19 * 8)
    assert told["coordinates"] == pytest.approx((met.any(1).sum() / 19 + met.any(0).sum() / 8) / 2)
    still = GridShiftSteps((4, 3), (20, 9), 0.0).coverage(seed=0, steps=5)
    assert still["cells"] == 12 / (19 * 8)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (((4, 3), (20,)), "differ in axes"),
        (((4, 3), (4, 9)), r"does not fit into \(4, 9\); give at least \(5, 4\)"),
        (((4, 0), (20, 9)), r"grid\[1\] is 0"),
        (((4, 3), (20, 9), 1.5), "probability is 1.5"),
        (((4, 3), (20, 9), 0.1, -1), "first is -1"),
    ],
)
def test_what_cannot_move_is_refused(settings, message, unhooked):
    with pytest.raises(ValueError, match=message):
        GridShiftSteps(*settings)


# --- in a training


def losses(shifts=None) -> SeqPELosses:
    candidates = CandidateSampler((20, 9), candidates=5, kinds=(("uniform", 1.0),), window=(4, 4))
    return SeqPELosses(
        candidates, WindowSampler((20, 9), (4, 3), places=6, away=(4, 3), first=1), shifts=shifts
    )


def test_a_record_names_every_setting_and_old_ones_keep_theirs():
    shifts = GRIDS["image"]
    told = TrainingConfig(1, 1, 1, 1e-3, positions=shifts, auxiliary=losses(shifts)).resolved()
    named = {"name": "grid-shift-steps", "grid": [4, 3], "ranges": [20, 9], "probability": 0.3, "first": 1}
    assert told["positions"] == named
    assert told["auxiliary"]["shifts"] == {key: value for key, value in named.items() if key != "name"}
    assert told["auxiliary"]["windows"]["first"] == 1
    text = SeqPELosses(windows=WindowSampler((99,), (16,), places=8)).resolved()
    assert "first" not in text["windows"]
    once = losses(GridShiftSteps((4, 3), (40, 30), 0.3, starts=5)).resolved()
    assert once["shifts"]["starts"] == 5


def test_labelled_inputs_are_read_at_the_places_that_they_bring():
    class Reads(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.map, self.read = torch.nn.Linear(2, 3), []

        def forward(self, inputs, positions=None):
            self.read.append(positions)
            return self.map(inputs)

    model, at = Reads(), GRIDS["image"].home
    inputs, targets = np.zeros((5, 2), np.float32), np.zeros(5, np.int64)
    steps = iter([Batch(inputs, targets, at), Batch(inputs, targets)])
    train(model, steps, TrainingConfig(2, 5, 1, 1e-3))
    assert np.array_equal(model.read[0].numpy(), at) and model.read[1] is None
