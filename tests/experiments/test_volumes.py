"""The experiment `volumes`: arrangements whose answers are right, read in larger cubes."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch

from sepnb.data.draws import generator_of
from sepnb.experiments import volumes as vol
from sepnb.experiments.classification import score
from sepnb.experiments.points import PointClassifier, TwoThings
from sepnb.experiments.run import Run
from sepnb.models import TransformerConfig
from sepnb.streams import Streams
from sepnb.training import train


def smoke(name: str = "axial-rope", steps: int = 6) -> Run:
    config = vol.run_of("volumes", "smoke", name, 1, 2e-3)
    return dataclasses.replace(config, training=dataclasses.replace(config.training, steps=steps))


@pytest.mark.parametrize("axes", [1, 3])
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
    canvas = task.draw(generator_of(0, "pictures"), 4_000, within=3)
    spread = task.draw(generator_of(0, "pictures"), 4_000)
    for (cells, answers), widest in ((canvas, 2), (spread, 7)):
        assert cells.min() == 1 and cells.max() == 8
        assert np.abs(cells[:, 1] - cells[:, 0]).max() == widest
        assert np.array_equal(task.answers(cells), answers)


@pytest.mark.parametrize("axes", [1, 3])
def test_the_model_depends_on_every_coordinate_of_both_things_and_only_through_places(axes):
    def made(encoding) -> PointClassifier:
        torch.manual_seed(0)
        config = TransformerConfig(Streams.dense(24), 2, 2, encoding, max_length=3, causal=False, axes=axes)
        return PointClassifier(config, 2 * axes).double()

    things, cells = torch.tensor([[1, 2]]), torch.full((1, 2, axes), 3)
    for encoding, depends in ((dataclasses.replace(vol.EMBEDDING, dims=axes), True), ("none", False)):
        model = made(encoding)
        with torch.no_grad():
            home = model(things, cells)
            assert home.shape == (1, 2 * axes)
            for thing, axis in itertools.product(range(2), range(axes)):
                moved = cells.clone()
                moved[0, thing, axis] += 2
                change = (model(things, moved) - home).abs().max()
                assert (change > 1e-9) == depends


def test_methods_read_the_same_arrangements_moved_alike_in_shift_steps():
    plain, shifts, seqpe = (
        list(smoke(name, steps=40).batches()) for name in ("axial-rope", "sinusoidal-shifts", "seqpe")
    )
    moves = list(smoke("seqpe").training.positions.drawn(seed=1, steps=40))
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
        ("seqpe", "none", "distance"),
    ],
)
def test_every_view_says_which_of_its_sides_are_new(name, canvas, spread):
    run = vol.run_of("volumes", "laptop", name, 1, 1e-3)
    told = [run.data.unseen_at(run, change, 12) for change in vol.CHANGES]
    assert told == [canvas, spread]


def test_without_places_the_answer_is_a_guess_and_places_of_others_are_no_help(one_thread):
    blind = smoke("none")
    model, points = blind.build(), blind.data.held_out("test")
    counts = np.bincount(points.answers, minlength=6) / len(points.answers)
    assert score(blind, model, points, "cpu")["accuracy"] in counts  # one answer for all
    config = smoke("axial-rope", steps=250)
    trained = config.build()
    train(trained, config.batches(), config.training)
    plain = score(config, trained, points, "cpu")["accuracy"]
    mixed = next(view for view in config.data.views(config, trained) if view.column == "shuffled_accuracy")
    assert plain > 0.5 and score(config, trained, mixed.asked, "cpu")["accuracy"] < 0.35
