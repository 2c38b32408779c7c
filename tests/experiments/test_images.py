"""The experiment `images`: pictures whose answers are right, and grids that are read as they say."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from sepnb import experiments
from sepnb.data import images as data
from sepnb.experiments import images as im
from sepnb.experiments.classification import Views, score, shuffled
from sepnb.experiments.image_tasks import Direction, Frame, Pictures, WholeImage
from sepnb.experiments.run import Run
from sepnb.training import train

EXPERIMENT, SCREEN = experiments.get("images"), experiments.get("image_screen")


def smoke(method: str = "axial-rope/direction", steps: int = 6) -> Run:
    config = im.run_of("images", "smoke", method, 1, 2e-3)
    training = dataclasses.replace(config.training, steps=steps)
    return dataclasses.replace(config, training=training, measures=(Views(),))


def on_laptop(name: str, task: str = "class", profile: str = "laptop") -> Run:
    return im.run_of("images", profile, f"{name}/{task}", 1, 1e-3)


# --- the tasks


@pytest.mark.parametrize(("grid", "item"), [(7, 3), (6, 2)])
def test_two_things_never_touch_and_the_four_directions_are_equally_likely(grid, item):
    task = Direction((0, 1), item)
    arranged = task.arrangements(grid)
    assert len({tuple(row) for row in arranged.tolist()}) == len(arranged)
    assert arranged.min() == 0 and arranged.max() == grid - item
    for r1, c1, r2, c2 in arranged.tolist():
        assert abs(r1 - r2) >= item or abs(c1 - c2) >= item
        assert abs(r1 - r2) != abs(c1 - c2)
    counts = np.bincount(task.answers(arranged), minlength=4)
    assert len(counts) == 4 and len(set(counts.tolist())) == 1


@pytest.mark.parametrize(("grid", "item", "canvas"), [(4, 2, None), (5, 2, 7)])
def test_what_one_place_tells_is_what_counting_every_picture_gives(grid, item, canvas):
    task, seen = Direction((0, 1), item), {}
    arranged = task.arrangements(grid)
    room = range((canvas or grid) - grid + 1)
    for (row, column, *_), answer in zip(arranged.tolist(), task.answers(arranged).tolist(), strict=True):
        for place in ((row + down, column + right) for down in room for right in room):
            seen.setdefault(place, []).append(answer)
    right = sum(max(answers.count(one) for one in range(4)) for answers in seen.values())
    assert task.by_one_place(grid, canvas) == pytest.approx(right / (len(arranged) * len(room) ** 2))
    with pytest.raises(ValueError, match=f"canvas is {grid - 1}; it must be at least {grid}"):
        task.by_one_place(grid, grid - 1)


def test_a_picture_shows_what_its_answer_says():
    """Things of pixels 1 and 2 on a black square, found again."""
    pixels = np.concatenate([np.full((3, 8, 8), 8, np.uint8), np.full((3, 8, 8), 16, np.uint8)])
    things = data.Images("things", pixels, np.repeat([0, 1], 3))
    splits = data.ImageSplits("t", things, things, things, 16, ("a", "b"), "")
    task, frame = Direction((0, 1), 2), Frame(2, 4)
    for grid in (None, 7):
        pictures = task.held_out(splits, things, frame, 60, grid)
        assert pictures.images.shape == (60, 1, *2 * [2 * (grid or 4)])
        for picture, answer in zip(pictures.images[:, 0], pictures.labels, strict=True):
            places = [torch.nonzero(picture == value) for value in (0.5, 1.0)]
            assert all(len(place) == 16 for place in places)
            row, column = (places[1].float().mean(0) - places[0].float().mean(0)).tolist()
            direction = (1 if row > 0 else 0) if abs(row) > abs(column) else (3 if column > 0 else 2)
            assert direction == answer  # above, below, left, right
        assert set(pictures.labels.tolist()) == {0, 1, 2, 3}


@pytest.mark.parametrize("task", [WholeImage(), Direction((0, 1), 2)], ids=["class", "direction"])
def test_training_pictures_are_those_of_the_seed_and_never_held_out_ones(task):
    splits, frame = im.splits_of("digits"), Frame(2, 4)

    def drawn(seed: int) -> list[Pictures]:
        return list(task.batches(splits, frame, batch_size=4, seed=seed, steps=3))

    for one, again in zip(drawn(1), drawn(1), strict=True):
        assert torch.equal(one.images, again.images) and np.array_equal(one.labels, again.labels)
    assert not torch.equal(drawn(1)[0].images, drawn(2)[0].images)
    assert drawn(1)[0].images.shape == (4, 1, 8, 8) and drawn(1)[0].labels.dtype == np.int64
    held, again = (task.held_out(splits, splits.test, frame, 12) for _ in range(2))
    assert torch.equal(held.images, again.images)
    assert held.labels.max() < task.n_classes(splits)


# --- the methods


def test_without_places_a_direction_is_a_guess_at_every_rate():
    table = SCREEN.table("laptop")
    guessed = table.loc[table.method.isin(im.GUESSES), "val_nats"]
    assert len(guessed) == 4 and (guessed - math.log(4)).abs().max() < 1e-3, "it learned something"


# --- what is read


def nats(config: Run, model, column: str = "") -> float:
    """Of a view, or as trained."""
    views = {view.column: view for view in config.data.views(config, model)}
    asked = views[column].asked if column else config.data.held_out("test")
    return score(config, model, asked, "cpu")["nats"]


def test_the_score_is_the_share_of_right_answers_and_shuffling_only_moves_places(few):
    config = smoke("axial-rope/class")
    model, asked = config.build(), config.data.held_out("test")
    with torch.no_grad():
        logits = model(asked.inputs)
        right = float((logits.argmax(-1) == asked.answers).double().mean())
    found = score(config, model, asked, "cpu")
    assert found["accuracy"] == pytest.approx(right)
    expected = torch.nn.functional.cross_entropy(logits, asked.answers).item()
    assert found["nats"] == pytest.approx(expected, rel=1e-5)
    order = shuffled(12, 16)
    assert torch.equal(order.sort(dim=1).values, torch.arange(16).expand(12, -1))
    assert nats(config, model, "shuffled_accuracy") != pytest.approx(found["nats"], rel=1e-6)
    blind = smoke("none/class")
    none = blind.build()
    assert nats(blind, none, "shuffled_accuracy") == pytest.approx(nats(blind, none), rel=1e-6)


def test_larger_pictures_are_the_same_pictures(few):
    config = smoke("axial-rope/class")
    plain = config.data.pictures("test")
    upscaled, canvas = (config.data.pictures("test", change, 6) for change in ("upscaled", "canvas"))
    assert torch.equal(upscaled.images, data.upscaled(plain.images, 12))
    assert canvas.images.shape == (12, 1, 12, 12)
    torch.testing.assert_close(canvas.images.sum((1, 2, 3)), plain.images.sum((1, 2, 3)))
    for larger in (upscaled, canvas):
        assert np.array_equal(larger.labels, plain.labels)


def test_the_control_is_read_on_canvases_too_and_no_places_cannot_notice_it(few):
    found = {}
    for name in ("axial-rope", "none"):
        config = smoke(f"{name}/direction")
        metrics, rows = Views()(config, config.build())
        found[name] = metrics
        (row,) = (row for row in rows if row["kind"] == "shuffled")
        assert (row["change"], row["grid"], row["rule"]) == ("canvas", 6, "grow")
        placed = next(r for r in rows if r["kind"] == "view" and r["change"] == "canvas")
        assert (row["nats"] != pytest.approx(placed["nats"], rel=1e-6)) == (name != "none")
    assert found["none"]["canvas-6/shuffled"] == found["none"]["canvas-6/grow"]


def test_a_moved_grid_is_the_same_grid_read_elsewhere(few, monkeypatch):
    monkeypatch.setattr(im, "MOVED", {"nowhere": (0, 0), "away": (40, 3)})
    config = smoke("sinusoidal/class")
    model = config.build()
    assert nats(config, model, "moved-nowhere") == pytest.approx(nats(config, model))
    assert nats(config, model, "moved-away") != pytest.approx(nats(config, model))


@pytest.mark.parametrize(
    ("name", "grow", "fit", "moved"),
    [
        ("none", "length", None, None),
        ("learned", None, "index+length", None),
        ("sinusoidal-shifts", "length+distance", "index+length+distance", "none"),
        ("separated-sinusoidal", "index+length+distance", "index+length+distance", "index"),
        ("seqpe", "length+distance", None, "none"),
    ],
)
def test_every_view_says_which_of_its_sides_are_new(name, grow, fit, moved):
    run = on_laptop(name)
    told = {"grow": grow, "fit": fit}
    assert [rule for rule, sides in told.items() if sides] == list(im.rules_of(run))
    for rule in im.rules_of(run):
        assert run.data.unseen_at(run, 14, rule) == told[rule]
    found = {how: run.data.unseen_at(run, 7, move=move) for how, move in im.moves_of(run).items()}
    reads_index = name not in ("none", "axial-rope")
    far = "index" if reads_index else "none"
    expected = {"covered-aligned": moved, "covered-misaligned": moved}
    expected |= {"never-seen-aligned": far, "never-seen-misaligned": far}
    assert found == (expected if moved else {})
    far = run.data.unseen_at(run, 120)
    assert run.data.unseen_at(run, 7) == "none" and far.startswith("index") == reads_index


# --- shift steps and losses


@pytest.mark.parametrize("profile", experiments.PROFILES)
def test_covered_places_are_covered_and_those_never_seen_are_not(profile):
    run = on_laptop("seqpe", profile=profile)
    side, losses = run.data.side, run.training.auxiliary
    for name, move in im.MOVED.items():
        assert (max(move) + side < losses.trained_indices(1)) == name.startswith("covered")
        assert (min(move) >= losses.trained_indices(1)) == name.startswith("never-seen")
        assert max(move) + side < 100, "two digits"
        assert name.endswith("-aligned") == all(step % 10 == 0 for step in move)


def test_methods_with_shift_steps_see_the_same_pictures_at_the_same_places():
    runs = [smoke(f"{name}/direction", 30) for name in ("sinusoidal", "sinusoidal-shifts", "seqpe")]
    plain, shifts, seqpe = (list(run.batches()) for run in runs)
    for one, two, three in zip(plain, shifts, seqpe, strict=True):
        assert np.array_equal(one.inputs, two.inputs) and np.array_equal(one.targets, three.targets)
        assert one.positions is None and np.array_equal(two.positions, three.positions)
    decided = runs[1].training.positions.decisions(1)
    moved = [bool((step.positions != runs[1].training.positions.home).any()) for step in shifts]
    assert moved == [next(decided) for _ in moved] and any(moved) and not all(moved)


def test_a_step_is_read_at_its_places_and_nothing_is_shifted_in_validation(few, monkeypatch):
    config = smoke("seqpe/direction", steps=3)
    model, at = config.build(), []
    forward, home = model.transformer.forward, config.training.positions.home
    monkeypatch.setattr(model.transformer, "forward", lambda x, to: at.append(to.numpy()) or forward(x, to))
    score(config, model, config.data.held_out("validation"), "cpu")
    assert at and all(np.array_equal(places[..., 1:, :], home) for places in at)
    at.clear()
    steps = [dataclasses.replace(step, positions=step.positions[::-1].copy()) for step in config.batches()]
    train(model, iter(steps), config.training, auxiliary=config.training.bound_auxiliary(1))
    for places, step in zip(at, steps, strict=True):
        assert np.array_equal(places[0], (0, 0)) and np.array_equal(places[1:], step.positions)
    met = config.training.positions.coverage(seed=1, steps=3)
    assert EXPERIMENT.run(config).metrics["covered_cells"] == met["cells"]
