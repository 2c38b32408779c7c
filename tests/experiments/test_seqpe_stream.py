"""SeqPE as the position stream: one change a step, starts by their digits, and what every run is asked."""

import math
import re

import pytest
import torch

from sepnb import experiments
from sepnb.experiments import language_modelling as lm
from sepnb.experiments import seqpe_stream as stream
from sepnb.seqpe.digits import digits

from .smoke_runs import smoke, texts_of

STREAM = experiments.get("seqpe_stream")


# --- where windows begin


@pytest.mark.parametrize("profile", experiments.PROFILES)
def test_starts_are_covered_or_never_seen_and_share_their_low_digits_or_not(profile):
    length = lm.SIZES[profile].length
    found, low = stream.starts(length), len(str(length - 1))
    own = digits(torch.arange(length), width=5)[:, -low:]
    sampler = STREAM.config(profile, "separated-seqpe", 1).training.positions
    for name, start in found.items():
        window = digits(start + torch.arange(length), width=5)
        assert torch.equal(window[:, -low:], own) == ("misaligned" not in name), name
        assert (start + length <= sampler.maximum) == name.startswith("covered"), name
        assert start >= length and start + length <= 10**5
    assert len(set(found.values())) == len(found) == 8


# --- a run


@pytest.mark.parametrize("name", ["strict-seqpe", "dense-seqpe-score"])
def test_a_run_trains_and_holds_every_reading_and_repeats_exactly(name, one_thread):
    config = smoke("seqpe_stream", name, steps=3)
    record = STREAM.run(config)
    asked = {reading.id for reading in texts_of(config).readings}
    assert {row["reading"] for row in record.rows if row["kind"] == "reading"} == asked
    for key in [f"native-at-{one}" for one in stream.starts(64)]:
        assert math.isfinite(record.metrics[key]), key
    for key in ("gap/native/8x", "gap/native-window/2x", "gain/8x", "native/1x", "bits_per_byte"):
        assert math.isfinite(record.metrics[key]), key
    assert record.fingerprint == STREAM.fingerprint(config)
    assert re.fullmatch(r"[a-z0-9.-]+", config.key)
