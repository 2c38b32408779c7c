"""From no position to all columns: arms that differ in one thing, and what is read of them."""

import dataclasses

import numpy as np
import pytest
import torch

from sepnb import experiments
from sepnb.claims import ladder as rules
from sepnb.evaluation.context import shuffled_words
from sepnb.experiments import ladder, ladder_methods
from sepnb.experiments import language_modelling as lm
from sepnb.experiments.methods import model_config
from sepnb.models import LanguageModel

from .smoke_runs import bits_of, smoke

EXPERIMENT, SWEEP = experiments.get("ladder_text"), experiments.get("ladder_text_sweep")
LEFT_OUT = {"smoke": {"rope-16th", "rope-nope-4"}, "laptop": set(), "gpu": {"rope-16th"}}
"""Heads of 16, 32 and 48 columns; 2, 4 and 6 layers."""


@pytest.mark.parametrize("profile", experiments.PROFILES)
def test_an_arm_is_left_out_where_no_such_model_can_be_built_and_nowhere_else(profile):
    for name in ladder_methods.METHODS:
        assert ladder_methods.fits(name, profile) is (name not in LEFT_OUT[profile])
        try:
            with torch.device("meta"):
                LanguageModel(model_config(name, lm.SIZES[profile]))
        except ValueError:
            assert not ladder_methods.fits(name, profile)
    for one in (EXPERIMENT, SWEEP):
        asked = one.smoke if profile == "smoke" else ladder_methods.METHODS
        assert {run.method for run in one.grid(profile)} == set(asked) - LEFT_OUT[profile]


@pytest.mark.parametrize("profile", ["laptop", "gpu"])
def test_separated_models_are_as_large_as_the_dense_one_and_no_other_is_much_smaller(profile):
    def blocks(name: str) -> int:
        with torch.device("meta"):
            return LanguageModel(model_config(name, lm.SIZES[profile])).parameter_counts()["blocks"]

    for name in filter(lambda name: ladder_methods.fits(name, profile), ladder_methods.METHODS):
        assert blocks(name) == pytest.approx(blocks("rope"), rel=0.05), name
    saved = blocks("rope-partial") - blocks("rope-shared-key")
    size = lm.SIZES[profile]
    turning = size.width // size.n_heads // 4
    assert saved == size.n_layers * size.width * turning * (size.n_heads - 1)


@pytest.mark.parametrize("name", ["rope-8th", "forgetting"])
def test_a_run_is_read_as_trained_slowed_down_where_it_can_be_and_with_its_words_shuffled(name, one_thread):
    run = smoke("ladder_text", name, 2)
    readings = run.of(ladder.Ladder).readings[:2]
    measures = (dataclasses.replace(run.measures[0], readings=readings), lm.INSIDE)
    record = EXPERIMENT.run(dataclasses.replace(run, measures=measures))
    found = record.metrics
    claims = [one for one in rules.CLAIMS.values() if one.experiment == "experiment/ladder_text"]
    asked = {ask.partition(":")[2] for one in claims for pair in one.asks for ask in pair[:2]} - {""}
    slowed = {f"{part}slowed/{k}x" for part in ("", "gap/") for k in (2, 4, 8)}
    assert found.keys() >= (slowed | asked if readings else asked - slowed)
    assert bool(readings) == bool(found.keys() & slowed)
    assert found.keys() >= {f"{part}native/{k}x" for part in ("", "gap/") for k in (1, 2, 4, 8)}
    assert found["bits_per_byte"] == pytest.approx(
        sum(row["bits"] for row in record.rows if row["kind"] == "document") / found["test_bytes"]
    )
    assert {row["stop"] // 64 for row in record.rows if row["kind"] == "shuffled"} == {1, 2, 4, 8}


def test_the_cost_of_another_order_is_the_loss_with_it_less_the_loss_without():
    torch.manual_seed(0)
    model = LanguageModel(model_config("rope")).eval()
    windows = np.frombuffer(b"a b cd e f gh i jk l m no p q rs t u v" * 2, dtype=np.uint8)[None, :25].astype(
        int
    )
    (row,) = ladder.shuffled(model, windows, np.zeros(1, int), [16, 24], recent=8, stride=8)
    mixed = np.concatenate([shuffled_words(windows[:, :9]), windows[:, 9:]], axis=1)
    cost = (bits_of(model, mixed) - bits_of(model, windows))[0, 16:24].mean()
    assert row["bits_per_byte"] == pytest.approx(cost, abs=1e-5) and abs(cost) > 1e-4
