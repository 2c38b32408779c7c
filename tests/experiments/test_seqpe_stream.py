"""SeqPE as the position stream: one change a step, starts by their digits, and what every run is asked."""

import math
import re
from dataclasses import replace

import pytest
import torch

from sepnb import experiments
from sepnb.experiments import language_modelling as lm
from sepnb.experiments import methods
from sepnb.experiments import seqpe_stream as stream
from sepnb.experiments.run import Run
from sepnb.experiments.variant_methods import root
from sepnb.models import LanguageModel
from sepnb.seqpe.digits import digits
from sepnb.training.seqpe_losses import encoder_of

from .smoke_runs import differing, shortened, texts_of, unseen

STREAM, SCREEN = experiments.get("seqpe_stream"), experiments.get("seqpe_stream_screen")
METHODS = stream.METHODS
SEQPE = [name for name in METHODS if "seqpe" in name]


def run(name: str, profile: str = "smoke") -> Run:
    return STREAM.config(profile, name, 1)


def read_of(config: Run) -> tuple:
    texts = texts_of(config)
    return config.data, texts.beyond, texts.blocks, texts.split


def test_digit_strings_have_the_heads_and_losses_that_their_columns_ask_for():
    """In the term of the score embeddings are as wide as the encoder, and are cut into fewer heads; losses
    that were told of shift steps are told of none where there are none."""
    for profile in experiments.PROFILES:
        for name, part in (
            ("dense-seqpe-score-contrastive", "training.auxiliary.n_heads"),
            ("separated-seqpe-still", "training.auxiliary.shifts"),
        ):
            runs = (run(one, profile) for one in (name, METHODS[name].base))
            told = {key for key in differing(*runs) if key.startswith("training.auxiliary")}
            assert all(key.startswith(part) for key in told), name
        plain = [run(f"{mode}-seqpe-plain", profile) for mode in stream.MODES]
        rates = [stream.SCREEN.rate(profile, f"{mode}-seqpe") for mode in stream.MODES]
        assert [one.training.learning_rate for one in plain] == rates, "their mode's, swept with losses"


def test_the_whole_chain_of_each_mode_ends_in_both_losses_at_shift_steps():
    for mode, at_root in stream.MODES.items():
        assert root(f"{mode}-seqpe") == root(f"{mode}-sinusoidal-shifts") == at_root
        for profile in experiments.PROFILES:
            ours, sinusoid = (run(f"{mode}-{one}", profile) for one in ("seqpe", "sinusoidal-shifts"))
            training = ours.training
            assert training.positions == sinusoid.training.positions == training.auxiliary.shifts
            assert training.auxiliary.contrastive and training.auxiliary.distillation
            assert training.learning_rate == stream.SCREEN.rate(profile, f"{mode}-seqpe")
            assert sinusoid.training.learning_rate == stream.SCREEN.rate(profile, f"{mode}-sinusoidal-shifts")
            encoder = encoder_of(LanguageModel(ours.model))
            filled = "sem" if mode == "dense" else "pos"
            assert encoder.output.out_features == ours.model.streams.widths[filled]
            assert encoder.output.out_features % training.auxiliary.n_heads == 0


@pytest.mark.parametrize("profile", ["laptop", "gpu"])
def test_what_is_published_has_six_seeds_and_stands_beside_runs_of_recipes(profile):
    """The same model, training, text and blocks for a seed: nothing is trained twice."""
    grid, there = STREAM.grid(profile), experiments.get("recipes").grid(profile)
    assert {(c.method, c.seed) for c in grid} == {(n, s) for n in stream.PUBLISHED for s in range(1, 7)}
    assert set(stream.PUBLISHED) <= set(METHODS) and set(stream.MODES.values()) < set(stream.BESIDE)
    ours, others = ({(c.method, c.seed): c for c in runs} for runs in (grid, there))
    for seed in range(1, 7):
        same = {read_of(c) for c in grid if c.seed == seed}
        same |= {read_of(c) for c in there if c.seed == seed}
        assert len(same) == 1 and all((name, seed) in others for name in stream.BESIDE)
    for mode, base in stream.MODES.items():
        assert {f"{mode}-sinusoidal-shifts", f"{mode}-seqpe"} <= {name for name, _ in ours}
        other = others[base, 1]
        one = methods.run_of("x", profile, base, 1, other.training.learning_rate)
        assert (one.model, one.training) == (other.model, other.training)
        assert {"native", "native-window"} <= {reading.id for reading in texts_of(other).readings}


@pytest.mark.parametrize("profile", ["laptop", "gpu"])
def test_the_sweep_trains_the_whole_methods_over_the_whole_schedule(profile):
    published, tried = {run.method: run for run in STREAM.grid(profile, seeds=[0])}, {}
    for run in SCREEN.grid(profile):
        ours = published[run.method]
        assert run.model == ours.model and run.data.name == ours.data.name
        assert replace(run.training, learning_rate=1.0) == replace(ours.training, learning_rate=1.0)
        tried.setdefault(run.method, []).append(run.training.learning_rate)
    whole = {STREAM.swept(name)[1] for name in stream.PUBLISHED}
    assert tried == {name: SCREEN.tried(profile, name) for name in whole}


# --- where windows begin


@pytest.mark.parametrize("profile", experiments.PROFILES)
def test_starts_are_covered_or_never_seen_and_share_their_low_digits_or_not(profile):
    length = lm.SIZES[profile].length
    found, low = stream.starts(length), len(str(length - 1))
    own = digits(torch.arange(length), width=5)[:, -low:]
    sampler = run("separated-seqpe", profile).training.positions
    for name, start in found.items():
        window = digits(start + torch.arange(length), width=5)
        assert torch.equal(window[:, -low:], own) == ("misaligned" not in name), name
        assert (start + length <= sampler.maximum) == name.startswith("covered"), name
        assert start >= length and start + length <= 10**5
    assert len(set(found.values())) == len(found) == 8


def test_the_sides_that_are_new_at_a_start():
    ours, bare = run("separated-seqpe"), run("separated-seqpe-plain")
    readings = {reading.id: reading for reading in texts_of(ours).readings}
    assert "native-at-1m" not in readings and readings.keys() == {
        reading.id for reading in texts_of(bare).readings
    }
    for name in stream.starts(64):
        reading = readings[f"native-at-{name}"]
        assert unseen(ours, reading) == ("none" if name.startswith("covered") else "index"), name
        assert unseen(bare, reading) == "index"
    assert unseen(ours, readings["native"]) == "length+distance"
    assert unseen(bare, readings["native"]) == "index+length+distance"


# --- a run


@pytest.mark.parametrize("name", ["strict-seqpe", "dense-seqpe-score"])
def test_a_run_trains_and_holds_every_reading_and_repeats_exactly(name, one_thread):
    config = shortened(run(name), steps=3)
    record = STREAM.run(config)
    asked = {reading.id for reading in texts_of(config).readings}
    assert {row["reading"] for row in record.rows if row["kind"] == "reading"} == asked
    for key in [f"native-at-{one}" for one in stream.starts(64)]:
        assert math.isfinite(record.metrics[key]), key
    for key in ("gap/native/8x", "gap/native-window/2x", "gain/8x", "native/1x", "bits_per_byte"):
        assert math.isfinite(record.metrics[key]), key
    assert record.fingerprint == STREAM.fingerprint(config)
    assert re.fullmatch(r"[a-z0-9.-]+", config.key)
