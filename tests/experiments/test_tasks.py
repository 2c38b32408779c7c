"""Tasks: all methods see the same samples, held-out ones are apart, a record tells what was found."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch

from sepnb import experiments
from sepnb.data import registry
from sepnb.evaluation.tasks import grid, questions
from sepnb.experiments import task_grid, task_methods, tasks
from sepnb.experiments.run import Run, fingerprint, record_of, trained
from sepnb.training.positions import PositionGap
from sepnb.training.shifts import ShiftSteps

from .smoke_runs import assert_same, differing

every_task = pytest.mark.parametrize("name", task_grid.TASKS)


def config(name: str = "mqar", method: str = "rope", seed: int = 1, **changes) -> Run:
    run = experiments.get(name).config("smoke", method, seed)
    return dataclasses.replace(run, data=dataclasses.replace(run.data, **changes))


@every_task
def test_two_methods_are_asked_the_same_and_differ_in_model_and_positions_only(name):
    first, *others = experiments.get(name).grid("laptop", [3])
    for other in others:
        changed = {key for key in differing(first, other) - {"method"} if not key.startswith("model.")}
        own = ("training.positions", "training.learning_rate", "training.auxiliary")
        assert all(key.startswith(own) for key in changed)
        assert ("training.auxiliary" in str(changed)) == (other.method == "seqpe")


@every_task
def test_the_samples_of_a_seed_are_those_of_every_method_and_all_new(name):
    runs = config(name), config(name, "separated-randomised"), config(name, seed=2)
    one, same, other = (list(run.batches()) for run in runs)
    for a, b in zip(one, same, strict=True):
        assert np.array_equal(a.inputs, b.inputs) and np.array_equal(a.weights, b.weights)
    seen = np.concatenate([row for batch in one for row in batch.inputs.tolist()], axis=None)
    assert seen.size == runs[0].training.targets
    texts = [row.tobytes() for run in (one, other) for batch in run for row in batch.inputs]
    held_out = runs[0].data.held_out(runs[0].training.length).tokens
    assert len({*texts, *(row.tobytes() for row in held_out)}) == len(texts) + len(held_out)


@every_task
def test_only_a_task_of_stories_tells_of_them_in_its_config(name):
    """The name of a record is a digest of its config: older ones keep theirs."""
    told = config(name).resolved()["asked"]
    fields = {field.name for field in dataclasses.fields(tasks.Asked)}
    stories = {"story", "statements"} if name == "questions" else set()
    assert told.keys() == fields - {"story", "statements"} | stories
    assert config(name).key != config(name, statements=3).key


@pytest.mark.parametrize(
    ("name", "smoke", "laptop"),
    [
        ("mqar", (), ()),
        ("needle", ("sympy",), ("eltec-eng",)),
        ("questions", ("simulated-stories",), ("babi",)),
    ],
)
def test_a_record_names_what_its_texts_are_made_of_by_its_hash(name, smoke, laptop):
    experiment = experiments.get(name)
    assert experiment.data_sets("laptop") == experiment.data_sets("gpu") == laptop
    assert experiment.data_sets("smoke") == experiment.sweep.data_sets("smoke") == smoke
    record = record_of(dataclasses.replace(config(name), measures=()))
    assert record.provenance["data"] == {one: registry.get(one).sha256 for one in smoke}
    assert (record.provenance["bytes_seen"] > 0) == (name == "needle")  # words and drawn tokens are no bytes


def test_stories_are_those_of_the_split_and_as_short_as_the_config_says():
    run = config("questions")
    for split in ("train", "validation", "test"):
        given = {"split": split, "statements": 2, "data_set": "simulated-stories"}
        there, own = run.data.generator(split)(9, 48, seed=3), questions(1, 9, 48, seed=3, **given)
        assert np.array_equal(there.tokens, own.tokens) and np.array_equal(there.targets, own.targets)
    assert {run.data.story for run in experiments.get("questions").grid("laptop")} == {1}


def test_losses_beside_the_task_and_positions_agree_which_steps_are_shifted_in_both_stages():
    run = config("questions", "seqpe", short_steps=5)
    assert isinstance(run.training.positions, ShiftSteps)
    for seed in range(1, 9):
        drawn = dataclasses.replace(run, seed=seed).batches()
        shifted = [bool((batch.positions >= batch.positions.shape[-1]).any()) for batch in drawn]
        decided = itertools.islice(run.training.positions.decisions(seed), run.training.steps)
        assert all(meant or not moved for moved, meant in zip(shifted, decided, strict=True))


def test_positions_without_such_losses_are_drawn_anew_from_the_second_stage_on():
    run = config(method="sinusoidal-offsets", short_steps=5)
    batches, length = list(run.batches()), run.training.length
    sizes = {"batch_size": run.training.batch_size, "length": length, "seed": run.seed, "steps": 7}
    for batch, positions in zip(batches[5:], run.training.positions.positions(**sizes), strict=True):
        assert np.array_equal(batch.positions, positions)


def test_a_run_begins_with_twice_as_many_texts_of_half_the_length():
    run = config(short_steps=5)
    sizes = [batch.inputs.shape for batch in run.batches()]
    batch, length = run.training.batch_size, run.training.length
    assert sizes == 5 * [(2 * batch, length // 2)] + 7 * [(batch, length)]


def test_positions_are_drawn_for_the_length_that_is_read():
    run = config(method="rope-gap")
    for batch in run.batches():
        assert batch.positions.shape == batch.inputs.shape
        assert (np.diff(batch.positions) >= 1).all()
        assert batch.positions.max() < run.training.positions.maximum
    assert isinstance(run.training.positions, PositionGap)


def test_only_answers_count_and_the_text_of_needles_a_tenth_of_them():
    assert {w for batch in config().batches() for w in np.unique(batch.weights)} == {0.0, 1.0}
    weights = np.concatenate([batch.weights.ravel() for batch in config("needle", short_steps=12).batches()])
    answers = weights == 1
    assert weights[~answers].sum() == pytest.approx(0.1 * answers.sum(), rel=1e-5)


def test_a_haystack_is_its_split_without_braces():
    text = tasks.haystack("sympy", "validation")
    documents = tasks.lm.splits_of("sympy").validation.documents
    whole = b"".join(document.data.tobytes() for document in documents)
    assert text.tobytes() == whole.replace(b"{", b"(").replace(b"}", b")")


LONG = ("native", "window")
READERS = {
    "sinusoidal": LONG,
    "separated-randomised": (*LONG, "lower"),
    "alibi": (*LONG, "log-scale"),
    "rope-gap": LONG,
    "rope": (*LONG, "log-scale", "window-sinks", *task_methods.OF_ROPE),
    "separated-learned": (*task_methods.EXTRAPOLATORS, "window"),
}


@pytest.mark.parametrize("method", READERS)
def test_a_longer_text_is_read_in_every_way_of_the_method_and_one_of_the_trained_length_as_trained(method):
    run = config(method=method)
    model, length = run.build().eval(), run.training.length
    tokens = torch.from_numpy(run.data.held_out(2 * length).tokens[:1])

    def read(times):
        named = task_methods.readers(method, model, run.training.positions, times)
        return {name: reader(tokens[:, : times * length]) for name, reader in named}

    assert tuple(read(1)) == ("native",) and tuple(read(2)) == READERS[method]
    if method == "sinusoidal":
        torch.testing.assert_close(read(2)["native"][:, :length], read(1)["native"])
        torch.testing.assert_close(read(2)["window"][:, :length], read(1)["native"])
        changed = tokens.clone()
        changed[0, 0] = (changed[0, 0] + 1) % 5
        window = dict(task_methods.readers(method, model, None, 2))["window"]
        same = (window(changed) == window(tokens)).all(-1)[0]
        layers = run.model.n_layers  # what the first token says reaches as many windows further
        assert not same[: layers * (length - 1) + 1].any() or layers * (length - 1) >= 2 * length - 1


def test_the_lower_positions_of_a_longer_text_stay_below_three_quarters_of_those_of_training():
    run = config(method="rope-randomised")
    largest, seen = run.training.positions.maximum, []
    model = run.build().eval()
    model.register_forward_pre_hook(lambda _, given: seen.append(given[1]))
    readers = dict(task_methods.readers(run.method, model, run.training.positions, 2))
    for name in ("native", "lower"):
        readers[name](torch.zeros(50, 2 * run.training.length, dtype=torch.int64))
    native, lower = (positions.max().item() for positions in seen)
    assert 0.99 * largest < native < largest and 0.74 * largest < lower < 0.75 * largest


def test_the_table_of_what_is_found_is_the_record_of_a_run(one_thread):
    run = config(samples=8, times=(1, 4, 8))
    record = record_of(run)
    model = run.build()
    trained(run, model)
    model.eval()
    asked = {"depths": run.data.depths, "n": 8, "seed": tasks.TEST_SEED}
    table = grid(model, run.data.generator("test"), lengths=[64, 256, 512], **asked)
    rows = [row for row in record.rows if row["kind"] == "depth" and row["reader"] == "native"]
    assert [(row["times"] * 64, row["depth"], row["n"]) for row in rows] == list(
        zip(table["length"], table["depth"], table["n"], strict=True)
    )
    assert [row["accuracy"] for row in rows] == pytest.approx(table["accuracy"].tolist(), abs=1e-5)
    long = table[table["length"] == 512]
    assert record.metrics["accuracy/native/8x"] == pytest.approx(np.average(long.accuracy, weights=long.n))
    far = {
        row["start"]: row["accuracy"]
        for row in record.rows
        if (row["kind"], row.get("reader"), row.get("times")) == ("distance", "native", 8)
    }
    assert set(far) <= {0, 64, 256} and record.metrics["far/native"] == pytest.approx(far[256], abs=1e-5)
    assert {f"chance/{guess}/8x" for guess in ("uniform", "mode in context", "random source")} <= set(
        record.metrics
    )


def test_a_run_repeats_and_its_fingerprint_is_its_beginning(one_thread):
    run = config("latest_value", "separated-randomised")
    one, again = record_of(run), record_of(run)
    assert_same(one, again)
    assert fingerprint(run) == one.fingerprint


def test_steps_to_learn_are_the_first_at_which_the_accuracy_was_reached():
    learning = tasks.Learning(config(), config().build(), "cpu")
    told = ((50, 0.2), (100, 0.91), (150, 0.8), (200, 0.97))
    learning.rows = [{"step": step, "accuracy": accuracy} for step, accuracy in told]
    assert learning.metrics() == {"steps_to_0.9": 100, "steps_to_0.95": 200}
    learning.rows = learning.rows[:1]
    assert learning.metrics() == {}
