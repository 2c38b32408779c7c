"""Slowed positions within the directions of training: what a run reads, and what it calls that."""

import pytest

from sepnb import experiments
from sepnb.analysis.directions import kept_within
from sepnb.experiments.long_texts import slowed_rows
from sepnb.experiments.readings import read_by
from sepnb.experiments.run import At

from .smoke_runs import untaught

pytestmark = pytest.mark.usefixtures("one_thread")


def test_both_readings_are_told_against_the_same_window():
    config = experiments.get("trained_directions").config("smoke", "sinusoidal", 1)
    model = config.build().eval()
    for parameter in model.parameters():
        parameter.data.mul_(3)  # so that the readings differ
    (measure,) = config.measures
    metrics, rows = measure(config, model, At(start=untaught(config, model)))
    kept = slowed_rows(config, measure, lambda k: kept_within(read_by(model, "yarn", k), model), "cpu")
    levels = {(row["reading"], row["scope"], row["stop"]): row["bits_per_byte"] for row in rows}
    assert len(levels) == len(rows)
    for row in kept:
        place = row["scope"], row["stop"]
        assert levels[row["reading"].replace("slowed", "within"), *place] == row["bits_per_byte"]
        assert levels[row["reading"], *place] != row["bits_per_byte"]
    length = measure.beyond.length
    for way in ("slowed", "within"):
        for k in (2, 8, 16):
            above = levels[f"{way}-{k}", "tight", k * length] - levels["oracle", "tight", k * length]
            assert metrics[f"gap/{way}/{k}x"] == pytest.approx(above)
    assert metrics["directions"] < model.config.streams.d_model and 0.01 < metrics["outside"] < 1
