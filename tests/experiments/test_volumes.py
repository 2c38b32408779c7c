"""The experiment `volumes`: arrangements whose answers are right, methods that differ in places alone."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch

from sepnb import experiments
from sepnb.data.draws import generator_of
from sepnb.experiments import volumes as vol
from sepnb.experiments.classification import build, score
from sepnb.experiments.points import PointClassifier, TwoThings
from sepnb.models import TransformerConfig
from sepnb.streams import Streams
from sepnb.training import train

from .smoke_runs import differing

EXPERIMENT, SCREEN = experiments.get("volumes"), experiments.get("volume_screen")
PUBLISHED = ("laptop", "gpu")


def smoke(name: str = "axial-rope", seed: int = 1, steps: int = 6) -> vol.VolumeRun:
    run = vol.VolumeRun.of("volumes", "smoke", name, seed, 2e-3)
    return dataclasses.replace(run, training=dataclasses.replace(run.training, steps=steps))


# --- the task


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_every_arrangement_with_one_answer_is_drawn_alike(axes):
    task, side = TwoThings(axes, 3), 3
    cells, answers = task.draw(generator_of(0, "pictures"), 40_000)
    expected = {}
    for pair in itertools.product(itertools.product(range(1, side + 1), repeat=axes), repeat=2):
        away = [b - a for a, b in zip(*pair, strict=True)]
        largest = max(map(abs, away))
        if largest and [abs(d) for d in away].count(largest) == 1:
            axis = [abs(d) for d in away].index(largest)
            expected[pair] = 2 * axis + (away[axis] > 0)
    found = {}
    for pair, answer in zip(cells.tolist(), answers.tolist(), strict=True):
        found.setdefault(tuple(map(tuple, pair)), []).append(answer)
    assert found.keys() == expected.keys()
    assert all(set(told) == {expected[pair]} for pair, told in found.items())
    counts = np.array([len(told) for told in found.values()])
    mean = 40_000 / len(expected)
    assert np.abs(counts - mean).max() < 6 * mean**0.5
    shares = np.bincount(answers, minlength=2 * axes) / len(answers)
    assert np.abs(shares - 1 / (2 * axes)).max() < 0.02


def test_a_canvas_holds_a_trained_cube_somewhere_and_spread_things_are_anywhere():
    task = TwoThings(3, 8)
    canvas = task.draw(generator_of(0, "pictures"), 4_000, within=3).cells
    spread = task.draw(generator_of(0, "pictures"), 4_000).cells
    for cells, widest in ((canvas, 2), (spread, 7)):
        assert cells.min() == 1 and cells.max() == 8
        assert np.abs(cells[:, 1] - cells[:, 0]).max() == widest
    assert np.array_equal(task.answers(canvas), task.draw(generator_of(0, "pictures"), 4_000, 3).answers)


def test_what_cannot_be_arranged_is_refused(unhooked):
    with pytest.raises(ValueError, match="side is 1; it must be at least 2"):
        TwoThings(3, 1)
    with pytest.raises(ValueError, match="within is 9, and a side of the cube has 8 cells"):
        TwoThings(3, 8).draw(generator_of(0, "pictures"), 2, within=9)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_the_model_hears_every_coordinate_of_both_things_and_only_through_places(axes):
    def made(encoding) -> PointClassifier:
        torch.manual_seed(0)
        config = TransformerConfig(Streams.dense(24), 2, 2, encoding, max_length=3, causal=False, axes=axes)
        return PointClassifier(config, 2 * axes).double()

    things, cells = torch.tensor([[1, 2]]), torch.full((1, 2, axes), 3)
    for encoding, hears in ((dataclasses.replace(vol.CODE, dims=axes), True), ("none", False)):
        model = made(encoding)
        with torch.no_grad():
            home = model(things, cells)
            assert home.shape == (1, 2 * axes)
            for thing, axis in itertools.product(range(2), range(axes)):
                moved = cells.clone()
                moved[0, thing, axis] += 2
                change = (model(things, moved) - home).abs().max()
                assert (change > 1e-9) == hears


# --- the grids


def test_every_method_has_six_seeds_and_the_screening_other_ones():
    for profile in PUBLISHED:
        grid = EXPERIMENT.grid(profile)
        assert [run.seed for run in grid] == sorted(run.seed for run in grid)
        for name in vol.METHODS:
            assert [run.seed for run in grid if run.name == name] == [1, 2, 3, 4, 5, 6]
        assert not {run.seed for run in SCREEN.grid(profile)} & {run.seed for run in grid}


@pytest.mark.parametrize("profile", experiments.PROFILES)
def test_two_methods_of_a_seed_differ_in_the_encoding_and_in_what_belongs_to_it(profile):
    runs = [vol.VolumeRun.of("volumes", profile, name, 1, 1e-3) for name in vol.METHODS]
    for one, other in itertools.combinations(runs, 2):
        names, changed = {one.name, other.name}, differing(one, other)
        trained = {key for key in changed if key.startswith("training.")}
        shifted = len(names & {"sinusoidal-shifts", "seqpe"}) == 1
        expected = ["auxiliary"] * ("seqpe" in names) + ["positions"] * shifted
        assert sorted({key.split(".")[1] for key in trained}) == expected
        same = names in ({"seqpe", "seqpe-plain"}, {"sinusoidal", "sinusoidal-shifts"})
        assert changed - trained == {"method"} | (set() if same else {"model.encoding"})
    with pytest.raises(ValueError, match="unknown method 'alibi'; did you mean "):
        vol.VolumeRun.of("volumes", profile, "alibi", 1, 1e-3)


def test_methods_read_the_same_arrangements_moved_alike_in_shift_steps():
    plain, shifts, seqpe = (
        list(smoke(name, steps=40).batches()) for name in ("axial-rope", "sinusoidal-shifts", "seqpe")
    )
    moves = list(smoke("seqpe", steps=40).training.positions.drawn(seed=1, steps=40))
    assert 0 < sum(bool(move.any()) for move in moves) < 40
    for one, two, three, move in zip(plain, shifts, seqpe, moves, strict=True):
        assert np.array_equal(one.targets, two.targets) and np.array_equal(two.positions, three.positions)
        assert np.array_equal(two.positions, one.positions + move)
        assert one.positions.min() >= 1 and one.positions.max() <= 3 and two.positions.max() < 100


@pytest.mark.parametrize(
    ("name", "canvas", "spread"),
    [
        ("none", "none", "none"),
        ("sinusoidal", "index", "index+distance"),
        ("sinusoidal-shifts", "none", "distance"),
        ("axial-rope", "none", "distance"),
        ("seqpe-plain", "index", "index+distance"),
        ("seqpe", "none", "distance"),
    ],
)
def test_every_reading_says_which_of_its_sides_are_new(name, canvas, spread):
    run = vol.VolumeRun.of("volumes", "laptop", name, 1, 1e-3)
    assert (run.unseen_at("canvas", 12), run.unseen_at("spread", 12)) == (canvas, spread)


# --- a run


def test_a_run_repeats_exactly_and_its_rows_are_its_metrics(one_thread):
    config = smoke("seqpe")
    one, again = EXPERIMENT.run(config), EXPERIMENT.run(config)
    assert one.rows == again.rows and one.fingerprint == again.fingerprint == EXPERIMENT.fingerprint(config)
    assert {k: v for k, v in one.metrics.items() if k != "train_cpu_s"} == {
        k: v for k, v in again.metrics.items() if k != "train_cpu_s"
    }
    assert [(row["change"], row["side"]) for row in one.rows] == [("canvas", 5), ("spread", 5)]
    for row in one.rows:
        assert one.metrics[f"{row['change']}-{row['side']}"] == row["accuracy"]
    assert EXPERIMENT.run(smoke("seqpe", seed=2)).fingerprint != one.fingerprint
    assert "accuracy" not in SCREEN.run(smoke("none")).metrics


def test_without_places_the_answer_is_a_guess_and_places_of_others_are_no_help(one_thread):
    blind = smoke("none")
    model, points = build(blind), blind.held_out("test")
    counts = np.bincount(points.answers, minlength=6) / len(points.answers)
    assert score(blind, model, points, "cpu")["accuracy"] in counts  # one answer for all
    config = smoke("axial-rope", steps=250)
    trained = build(config)
    train(trained, config.batches(), config.training)
    plain = score(config, trained, points, "cpu")["accuracy"]
    mixed = next(view for view in config.views(trained) if view.column == "shuffled_accuracy")
    assert plain > 0.5 and score(config, trained, mixed.asked, "cpu")["accuracy"] < 0.35
