"""What all timed experiments share: rounds and their quartiles, a fingerprint that tells a computation."""

from dataclasses import replace

import numpy as np
import pytest

from sepnb import experiments
from sepnb.experiments import timed
from sepnb.experiments.encoding_speed import EncodingSpeedRun
from sepnb.experiments.speed import SpeedRun
from sepnb.models.fast.kernels import CompilerMissing

SIZES = {"profile": "smoke", "length": 16, "batch_size": 2, "n_heads": 2, "repeats": 9}
CELLS = {
    "speed": SpeedRun(experiment="speed", variant="strict", width=16, pos_parts=2, n_layers=1, **SIZES),
    "encoding_speed": EncodingSpeedRun(experiment="encoding_speed", method="t5", head_width=4, **SIZES),
    "seqpe_cost": replace(experiments.get("seqpe_cost").grid("smoke")[0], every=1),
}
RATIOS = {
    "speed": {"ratio": ("dense", "variant")},
    "encoding_speed": {"eager": ("fused", "eager"), "route": ("fused", "route")},
    "seqpe_cost": {"share": ("positions", "whole"), "longer": ("whole", "bare")},
}
"""Columns, and the steps whose times are divided."""


@pytest.mark.parametrize("name", CELLS)
def test_a_record_holds_the_rounds_and_what_they_come_to_and_can_be_replayed(name):
    experiment, cell, told = experiments.get(name), CELLS[name], []
    record = experiment.run(cell, progress=lambda done, total: told.append((done, total)))
    assert told == [(done, 9) for done in range(1, 10)]
    assert record.config == cell.resolved() and record.key == cell.key
    assert {"device_name", "torch", "cpu_s"} <= record.provenance.keys()
    rounds = [row for row in record.rows if "repeat" in row]
    assert [row["repeat"] for row in rounds] == list(range(9))
    for column, (above, below) in RATIOS[name].items():
        ratios = [row[f"{above}_s"] / row[f"{below}_s"] for row in rounds]
        quartiles = [record.metrics[f"{column}{end}"] for end in ("_lower", "", "_upper")]
        assert quartiles == pytest.approx(list(np.quantile(ratios, [0.25, 0.5, 0.75]))) and min(ratios) > 0
    assert record.fingerprint == experiment.fingerprint(cell)
    other = replace(cell, seed=1)
    assert experiment.fingerprint(other) != record.fingerprint and other.key != cell.key


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_of_no_known_precision_or_without_length_is_refused(name):
    with pytest.raises(ValueError, match="unknown precision 'float8'; use one of float32, bfloat16"):
        replace(CELLS[name], precision="float8")
    with pytest.raises(ValueError, match=r"length is 0 and batch_size \d; both are at least 1"):
        replace(CELLS[name], length=0)


@pytest.mark.parametrize("name", ["speed", "encoding_speed"])
def test_a_missing_compiler_is_named_before_anything_is_timed(name, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler -O3")
    monkeypatch.setattr(timed, "interleaved", lambda *_, **__: pytest.fail("something was timed"))
    with pytest.raises(CompilerMissing, match="needs the C\\+\\+ compiler no-such-compiler, which is"):
        experiments.get(name).run(replace(CELLS[name], compiler="inductor"))
