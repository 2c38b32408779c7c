"""The experiment `shaw_clip` and its claims: models differ in the clip alone; far keys are asked about."""

import dataclasses

import pytest
import torch

from sepnb import experiments
from sepnb.experiments import language_modelling as lm
from sepnb.experiments import shaw_clip as clips
from sepnb.experiments.run import Run
from sepnb.models import LanguageModel
from sepnb.records.store import Store

from .smoke_runs import shortened, with_measure

EXPERIMENT = experiments.get("shaw_clip")
PUBLISHED = ("laptop", "gpu")


def short_run(method: str) -> Run:
    """A smoke run of any method, with a shortened schedule and texts."""
    return shortened(EXPERIMENT.config("smoke", method, 1), steps=3)


# --- the grid


@pytest.mark.parametrize("profile", PUBLISHED)
def test_the_claims_have_six_seeds_and_the_others_three(profile):
    seeds: dict[str, list[int]] = {}
    for config in EXPERIMENT.grid(profile):
        seeds.setdefault(config.method, []).append(config.seed)
    assert set(seeds) == set(clips.METHODS) > set(clips.JUDGED)
    for method, own in seeds.items():
        assert own == list(range(1, 7 if method in clips.JUDGED else 4))


@pytest.mark.parametrize("profile", experiments.PROFILES)
def test_runs_of_a_seed_differ_in_the_clip_and_in_the_vectors_of_values_alone(profile):
    runs = [EXPERIMENT.config(profile, method, 1) for method in clips.METHODS]
    length = runs[0].training.length
    clip_of = {run.method: run.model.encodings[0].clip for run in runs}
    assert [clip_of[f"keys-{clip}"] for clip in clips.CLIPS] == list(clips.CLIPS)
    assert clip_of[clips.UNCLIPPED] == clip_of["keys-values-unclipped"] == length > max(clips.CLIPS)
    with_values = {run.method for run in runs if run.model.encodings[0].values}
    assert with_values == {"keys-values-8", "keys-values-unclipped"}
    for run in runs:
        bare = dataclasses.replace(run.model, encoding="none")
        assert dataclasses.replace(run, method="", model=bare) == dataclasses.replace(
            runs[0], method="", model=dataclasses.replace(runs[0].model, encoding="none")
        )
    assert len({run.key for run in runs}) == len(runs)


@pytest.mark.parametrize("profile", experiments.PROFILES)
def test_size_schedule_and_text_are_those_of_the_ablation(profile):
    ours = EXPERIMENT.config(profile, "keys-8", 2)
    theirs = experiments.get("ablation").config(profile, "rope", 2)
    assert dataclasses.replace(ours.model, encoding="rope") == theirs.model
    assert (ours.training, ours.data) == (theirs.training, theirs.data)


def test_the_windows_and_sinks_are_part_of_what_a_run_is():
    config = EXPERIMENT.config("smoke", "keys-8", 1)
    assert (config.resolved()["windows"], config.resolved()["sinks"]) == (list(clips.CLIPS), 4)
    assert with_measure(config, windows=(1,)).key != config.key
    assert with_measure(config, sinks=1).key != config.key


# --- the runs


def test_a_window_hides_the_keys_that_the_clip_of_its_size_takes_for_equally_far(tmp_path):
    config = short_run("keys-8")
    record = EXPERIMENT.run(config)
    assert Store(tmp_path).read(Store(tmp_path).write(record)) == record
    asked = [f"val_bits_window_{window}{kept}" for window in clips.CLIPS for kept in ("", "_sinks")]
    assert set(asked) <= record.metrics.keys() and len({record.metrics[name] for name in asked}) == len(asked)
    torch.manual_seed(0)
    model = LanguageModel(config.model)

    def look(**changes):
        return dataclasses.replace(config.of(clips.Windows), **changes)(config, model)[0]

    found = look(windows=(8, 64))
    whole = lm.score(config, model, "validation", "cpu").bits_per_byte
    assert found["val_bits_window_64"] == pytest.approx(whole, abs=1e-6)  # nothing is hidden
    assert abs(found["val_bits_window_8"] - whole) > 1e-4
    first_in_sight = look(windows=(8,), sinks=64)
    assert first_in_sight["val_bits_window_8"] == found["val_bits_window_8"]
    assert first_in_sight["val_bits_window_8_sinks"] == pytest.approx(whole, abs=1e-6)  # all are first ones
