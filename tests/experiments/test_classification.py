"""What classifiers owe: methods that differ in places alone, runs that repeat, sweeps apart."""

import dataclasses
import itertools

import pytest

from sepnb import experiments
from sepnb.experiments import images as im
from sepnb.experiments.classification import Views

from .smoke_runs import assert_same, differing

SHIFTED = ("sinusoidal-shifts", "axial-rope-shifts", "seqpe", "seqpe-multiply")
WITH_LOSSES = ("seqpe", "seqpe-multiply")
SAME = (
    {"sinusoidal", "sinusoidal-shifts"},
    {"axial-rope", "axial-rope-shifts"},
    {"seqpe-plain", "seqpe"},
    {"separated-sinusoidal", "separated-sinusoidal-wide"},
)
"""Methods of one encoding."""


def six_steps(run):
    training = dataclasses.replace(run.training, steps=6)
    return dataclasses.replace(run, training=training, measures=(Views(),))


@pytest.mark.parametrize("profile", experiments.PROFILES)
def test_two_methods_of_a_task_differ_only_in_streams_and_encoding_and_in_what_belongs_to_it(profile):
    for task in im.TASKS:
        runs = [im.run_of("images", profile, f"{name}/{task}", 1, 1e-3) for name in im.METHODS]
        for one, other in itertools.combinations(runs, 2):
            changed = {key for key in differing(one, other) if not key.startswith("model.streams")}
            trained = {key for key in changed if key.startswith("training.")}
            names = {run.method.partition("/")[0] for run in (one, other)}
            shifted, losses = (len(names & set(those)) == 1 for those in (SHIFTED, WITH_LOSSES))
            parts = sorted({key.split(".")[1] for key in trained})
            assert parts == ["auxiliary"] * losses + ["positions"] * shifted
            assert changed - trained == {"method"} | (set() if names in SAME else {"model.encoding"})
    with pytest.raises(ValueError, match="unknown method 'alibi"):
        im.run_of("images", profile, "alibi/class", 1, 1e-3)


@pytest.mark.parametrize("method", ["axial-rope/class", "seqpe/direction"])
def test_a_run_repeats_exactly_and_its_rows_are_its_metrics(few, method):
    experiment = experiments.get("images")
    config = six_steps(im.run_of("images", "smoke", method, 1, 2e-3))
    one, again = experiment.run(config), experiment.run(config)
    assert_same(one, again)
    assert one.fingerprint == experiment.fingerprint(config) and len(one.fingerprint["first_losses"]) == 5
    views = [view for view in config.data.views(config, config.build()) if view.about is not None]
    assert [{**row, **view.about} for row, view in zip(one.rows, views, strict=True)] == one.rows
    assert [one.metrics[view.column] for view in views] == [row["accuracy"] for row in one.rows]
    assert experiment.run(dataclasses.replace(config, seed=2)).fingerprint != one.fingerprint


def test_a_sweep_reads_no_test_input(few, monkeypatch):
    asked, held_out = [], im.ImageTask.held_out
    monkeypatch.setattr(
        im.ImageTask, "held_out", lambda self, split, *a: asked.append(split) or held_out(self, split, *a)
    )
    run = six_steps(im.SCREEN.config("smoke", (im.SCREEN.smoke[0], im.SCREEN.rates[0]), 0))
    record = im.SCREEN.run(dataclasses.replace(run, measures=()))
    assert set(asked) == {"validation"} and "val_nats" in record.metrics and "accuracy" not in record.metrics
