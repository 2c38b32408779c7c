"""The experiment `shaw_clip` and its claims: models differ in the clip alone; far keys are asked about."""

import dataclasses

import pytest

from sepnb import experiments
from sepnb.experiments import language_modelling as lm
from sepnb.experiments import shaw_clip as clips

from .smoke_runs import smoke, untrained

EXPERIMENT = experiments.get("shaw_clip")


def test_a_window_hides_the_keys_that_the_clip_of_its_size_takes_for_equally_far():
    config = smoke("shaw_clip", "keys-8", steps=3)
    record = EXPERIMENT.run(config)
    asked = [f"val_bits_window_{window}{kept}" for window in clips.CLIPS for kept in ("", "_sinks")]
    assert set(asked) <= record.metrics.keys() and len({record.metrics[name] for name in asked}) == len(asked)
    model = untrained(config)

    def look(**changes):
        return dataclasses.replace(config.of(clips.Windows), **changes)(config, model)[0]

    found = look(windows=(8, 64))
    whole = lm.score(config, model, "validation", "cpu").bits_per_byte
    assert found["val_bits_window_64"] == pytest.approx(whole, abs=1e-6)  # nothing is hidden
    assert abs(found["val_bits_window_8"] - whole) > 1e-4
    first_in_sight = look(windows=(8,), sinks=64)
    assert first_in_sight["val_bits_window_8"] == found["val_bits_window_8"]
    assert first_in_sight["val_bits_window_8_sinks"] == pytest.approx(whole, abs=1e-6)  # all are first ones
