"""The experiment of chapter 6: one trained model a seed, taken through every extension in the same way."""

import dataclasses

import pytest
import torch

from sepnb import experiments
from sepnb.analysis.timing import one_thread
from sepnb.evaluation.protocols import Protocol
from sepnb.experiments import context_extension as ce
from sepnb.experiments import run as runs
from sepnb.experiments.long_windows import read
from sepnb.experiments.run import Run, trained
from sepnb.models import LanguageModel
from sepnb.training import Diverged

from .smoke_runs import texts_of, with_measure

EXPERIMENT = experiments.get("context_extension")
pytestmark = pytest.mark.usefixtures("one_thread")


def run_of(method: str, seed: int = 1) -> Run:
    """A smoke run with a shortened training and two tunings of two steps."""
    config = EXPERIMENT.config("smoke", method, seed)
    less = dataclasses.replace(config.training, steps=6)
    texts = config.of(ce.Extended).texts
    config = with_measure(
        config,
        texts=dataclasses.replace(texts, beyond=dataclasses.replace(texts.beyond, documents=1)),
        tunings=tuple(dataclasses.replace(one, steps=2) for one in extended(config).tunings[:2]),
    )
    base = dataclasses.replace(config.base, training=less)
    return dataclasses.replace(config, training=less, base=base)


def extended(config: Run) -> ce.Extended:
    return config.of(ce.Extended)


def trained_once(config: Run):
    return runs.trained_once(config.base)


@pytest.fixture
def checkpoints_in(tmp_path, monkeypatch):
    """A clean tree of a commit, and a folder of its own for what is built."""
    monkeypatch.setenv("SEPNB_BUILD", str(tmp_path / "build"))
    monkeypatch.setattr(runs, "code_state", lambda: ("a" * 40, False))
    return tmp_path / "build" / "checkpoints"


# --- the grid


@pytest.mark.parametrize("profile", experiments.PROFILES)
def test_methods_of_a_seed_share_the_training_of_in_window_and_the_tunings(profile):
    runs = [EXPERIMENT.config(profile, method, 3) for method in ce.METHODS]
    first = runs[0]
    for config in runs:
        assert config.base == first.base and extended(config).tunings == extended(first).tunings
        assert texts_of(config).beyond == texts_of(first).beyond and config.model == first.model
    assert len({(extended(c).extension, extended(c).far) for c in runs}) == len(runs)
    assert {c.method for c in runs if extended(c).far is None} == {"raised-base", "rope"}
    inside = experiments.get("in_window").config(profile, "rope", 3)
    assert dataclasses.replace(first.base, experiment=inside.experiment, measures=inside.measures) == inside


# --- a run


@pytest.fixture(scope="module")
def record():
    with one_thread():  # fixtures of a module come before those of its tests
        return EXPERIMENT.run(run_of("yarn"))


def test_fingerprints_tell_extensions_and_seeds_apart(record):
    assert EXPERIMENT.fingerprint(run_of("yarn")) == record.fingerprint
    other = EXPERIMENT.fingerprint(run_of("rope"))
    assert other["first_losses"] == record.fingerprint["first_losses"]
    assert other["extended_bits_per_byte"] != record.fingerprint["extended_bits_per_byte"]
    assert other["tuning_losses"] != record.fingerprint["tuning_losses"]
    assert EXPERIMENT.fingerprint(run_of("yarn", seed=2)) != record.fingerprint


def test_metrics_are_the_rows_by_name(record):
    length = texts_of(run_of("yarn")).beyond.length
    rows = [row for row in record.rows if row["kind"] == "reading"]
    assert {row["reading"] for row in rows} == {"frozen", "frozen-16", "tuned", "tuned-oracle"}
    assert {row["scope"] for row in rows if row["reading"] == "tuned-oracle"} == {"tight"}
    for row in rows:
        prefix = {"part": "", "tight": "tight/"}[row["scope"]]
        place = f"{row['stop'] // length}x"
        assert record.metrics[f"{prefix}{row['reading']}/{place}"] == row["bits_per_byte"]
    assert {row["stop"] // length for row in rows} == {1, 2, 4, 8, 16}
    tunings = {r["learning_rate"]: r["val_bits_per_byte"] for r in record.rows if r["kind"] == "tuning"}
    assert len(tunings) == 2 and record.metrics["tuning_rate"] == min(tunings, key=tunings.get)
    assert record.metrics["val_bits_per_byte"] == min(tunings.values())


def test_the_oracle_of_the_tuning_is_the_tuned_model_that_sees_one_trained_length(record):
    got = record.metrics
    assert got["tight/tuned-oracle/1x"] == pytest.approx(got["tight/tuned/1x"], abs=1e-5)
    assert abs(got["tight/tuned-oracle/1x"] - got["tight/frozen/1x"]) > 1e-4, "not of the model before it"
    assert abs(got["tight/tuned-oracle/4x"] - got["tight/tuned/4x"]) > 1e-4, "there it sees less"


def test_frozen_is_the_trained_model_under_the_frequencies_and_nothing_else(record):
    """Against the model trained by the plain loop, without a checkpoint."""
    config = run_of("yarn")
    model, texts = config.base.build(), texts_of(config)
    trained(config.base, model)
    reading, length = Protocol("frozen"), texts.beyond.length
    rows = read(config, texts, model.extended(extension=extended(config).extension), asked=[reading])
    assert ce.metrics_of(rows, length).items() <= record.metrics.items()
    plain = ce.metrics_of(read(config, texts, model, asked=[reading]), length)
    assert plain["frozen/1x"] == pytest.approx(record.metrics["bits_per_byte"], abs=1e-5)
    assert abs(plain["frozen/1x"] - record.metrics["frozen/1x"]) > 1e-4


def test_a_tuning_starts_from_the_trained_weights_and_averages_and_leaves_them_alone():
    config = run_of("ntk-aware")
    start, tune, how = trained_once(config), extended(config).tune, {"device": "cpu"}
    tuning = extended(config).tunings[1]
    assert start.steps == 6 and len(start.losses) == 6
    kept = {name: value.clone() for name, value in start.weights.items()}
    one, losses = tune(config, start, tuning, **how)
    assert isinstance(one, LanguageModel) and one.config == config.model
    _, repeated = tune(config, start, tuning, **how)
    assert losses == repeated
    assert all(torch.equal(kept[name], start.weights[name]) for name in kept)
    forgetful = dataclasses.replace(start, averages={**start.averages, "state": {}})
    _, first = tune(config, forgetful, tuning, **how)
    assert first[0] == losses[0] and first[1] != losses[1], "the averages count from the first update on"
    assert not torch.equal(one.head.weight, torch.as_tensor(kept["head.weight"]))


# --- the checkpoint of a seed


def test_a_seed_is_trained_once_and_the_record_is_the_same(record, checkpoints_in, monkeypatch):
    config = run_of("yarn")
    first = EXPERIMENT.run(config)
    (kept,) = checkpoints_in.iterdir()
    whole, calls = runs.train, []

    def counted(model, batches, training, **how):
        calls.append(training.length)
        return whole(model, batches, training, **how)

    for module in (ce, runs):
        monkeypatch.setattr(module, "train", counted)
    second = EXPERIMENT.run(config)
    long = extended(config).tunings[0].length
    # The fingerprint begins a training and a tuning; then come the two tunings, and no training.
    assert calls == [config.training.length, long, long, long]
    for one in (first, second):
        assert (one.rows, one.fingerprint) == (record.rows, record.fingerprint), "a run repeats exactly"
        timed = {"train_cpu_s", "tune_cpu_s"}
        assert all(one.metrics[name] == record.metrics[name] for name in record.metrics.keys() - timed)
    assert second.metrics["train_cpu_s"] == first.metrics["train_cpu_s"]
    EXPERIMENT.run(run_of("rope"))
    assert list(checkpoints_in.iterdir()) == [kept], "all methods of a seed share one"


def test_a_checkpoint_is_that_of_one_commit_and_one_config_and_code_without_a_name_keeps_none(
    checkpoints_in, monkeypatch
):
    for state in (("a" * 40, True), (None, None)):
        monkeypatch.setattr(runs, "code_state", lambda state=state: state)
        trained_once(run_of("yarn"))
        assert not checkpoints_in.exists()
    for commit, seed, kept in (("a", 1, 1), ("a", 2, 2), ("b", 1, 3)):
        monkeypatch.setattr(runs, "code_state", lambda commit=commit: (commit * 40, False))
        trained_once(run_of("yarn", seed=seed))
        assert len(list(checkpoints_in.iterdir())) == kept


# --- what diverges


def test_rates_that_diverge_are_not_chosen_and_without_one_left_nothing_is_tuned(monkeypatch):
    config, whole = run_of("yarn"), ce.Extended.tune

    def at(bad: set[float]):
        def tune(self, config, start, tuning, **how):
            if tuning.learning_rate in bad and "stop_after" not in how:
                raise Diverged([6.0, float("nan")], tuning.learning_rate)
            return whole(self, config, start, tuning, **how)

        return tune

    low, high = (tuning.learning_rate for tuning in extended(config).tunings)
    monkeypatch.setattr(ce.Extended, "tune", at({low}))
    record = EXPERIMENT.run(config)
    assert record.metrics["tuning_rate"] == high
    assert [row.get("diverged_at_step") for row in record.rows if row["kind"] == "tuning"] == [1, None]
    monkeypatch.setattr(ce.Extended, "tune", at({low, high}))
    record = EXPERIMENT.run(config)
    assert "tuning_rate" not in record.metrics and "frozen/4x" in record.metrics
    assert not any(name.startswith("tuned") for name in record.metrics)
