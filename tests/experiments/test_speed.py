"""The speed benchmark: what is timed is what is counted, and what is told is what was timed."""

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from rich.console import Console
from torch.utils.flop_counter import FlopCounterMode
from typer.testing import CliRunner

from sepnb import cli
from sepnb.analysis import flops
from sepnb.companion.run.bench import bench_models
from sepnb.experiments import speed, timed
from sepnb.experiments.speed import SpeedRun, share_reached

SPEED = speed.EXPERIMENT
CELL = {"width": 32, "n_heads": 4, "length": 8, "batch_size": 3, "pos_parts": 4, "n_layers": 2, "repeats": 9}
TINY = SpeedRun(experiment="speed", profile="smoke", variant="separated", **CELL)


# --- the grid


@pytest.mark.parametrize("profile", ["smoke", "laptop", "gpu"])
def test_the_two_models_of_a_cell_differ_in_streams_and_mode_only(profile):
    for cell in SPEED.grid(profile):
        dense, variant = cell.models().values()
        assert list(cell.models()) == ["dense", cell.variant]
        assert replace(variant, streams=dense.streams, mode=dense.mode) == dense
        assert variant.streams.widths == {"pos": cell.pos_width, "sem": cell.width - cell.pos_width}
        assert not dense.separated and variant.isolated == (cell.variant == "strict")


# --- what is timed


@pytest.mark.parametrize("variant", speed.VARIANTS)
def test_a_timed_step_does_the_counted_products_forward_and_twice_as_many_backward(variant):
    """No block is cheaper than the formula, no gradient is saved, and strict shares its position streams."""
    cell = replace(TINY, variant=variant)
    steps = cell.steps("cpu")
    forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    uncounted = {forward: lambda *_, **__: 0}
    assert list(steps) == ["dense", variant, "attention"]
    for name, config in cell.models().items():
        with FlopCounterMode(display=False, custom_mapping=uncounted) as counter:
            steps[name]()
        maps = sum(
            sum(part[kind] for kind in flops.KINDS if kind != "attention") / sequences
            for block in flops.blocks(config, cell.length)
            for part, sequences in ((block.each, 1), (block.once, cell.batch_size))
        )
        expected = 3 * 2 * maps * cell.batch_size * cell.length
        assert counter.get_total_flops() == pytest.approx(expected, rel=1e-12)


def test_attention_is_timed_alone_as_often_as_the_dense_model_does_it():
    """The same kernel on the same shapes: what it does, forward and backward, the dense step does too."""
    steps, called = TINY.steps("cpu"), {}
    for name in ("dense", "attention"):
        with torch.profiler.profile(record_shapes=True) as profiler:
            steps[name]()
        called[name] = Counter(
            (event.name, str(event.input_shapes[:3]))
            for event in profiler.events()
            if "flash_attention_for_cpu" in event.name
        )
    assert called["attention"] == called["dense"]
    assert sum(called["attention"].values()) == 2 * TINY.n_layers


def test_the_limit_at_rates_is_the_exact_one_where_all_products_are_equally_fast():
    for cell in SPEED.grid("laptop"):
        dense = cell.models()["dense"]
        counts = [one.by_kind(cell.batch_size) for one in flops.blocks(dense, cell.length)]
        of_attention = sum(count["attention"] for count in counts)
        share = of_attention / flops.per_token(dense, cell.length, cell.batch_size)
        assert cell.limit_at_rates(share) == pytest.approx(cell.limit, rel=1e-12)
    separated = replace(TINY, width=512, n_heads=8, pos_parts=4, length=256)
    assert separated.limit_at_rates(0.0) == pytest.approx(12 / 8.25)  # 2 + 2 * 5/8 + 8 * 5/8 widths squared
    assert separated.limit_at_rates(1.0) == 1  # attention is left as it is
    strict = replace(separated, variant="strict", batch_size=8)
    assert strict.limit_at_rates(1.0) == pytest.approx(1 / (3 / 4 + 1 / 4 / 8))


@pytest.mark.parametrize("variant", speed.VARIANTS)
def test_every_timed_step_is_the_same_and_reaches_every_parameter(variant, monkeypatch):
    models, cell = [], replace(TINY, variant=variant)
    built = speed.built
    monkeypatch.setattr(speed, "built", lambda *given: models.append(built(*given)) or models[-1])
    steps = cell.steps("cpu")
    for name, model in zip(cell.models(), models, strict=True):
        step = steps[name]
        step()
        first = {key: p.grad.clone() for key, p in model.named_parameters()}
        step()
        for key, p in model.named_parameters():
            assert torch.equal(first[key], p.grad), key  # and not twice the gradient
            assert p.grad.abs().sum() > 0, key


# --- what is told


def test_a_record_holds_the_share_of_attention_and_both_limits():
    cell = replace(TINY, variant="strict")
    record = SPEED.run(cell)
    metrics, pairs = record.metrics, record.rows
    assert all(row["kind"] == "pair" and row["ratio"] == row["dense_s"] / row["variant_s"] for row in pairs)
    shares = [row["attention_s"] / row["dense_s"] for row in pairs]
    assert metrics["attention_share"] == pytest.approx(np.median(shares)) and min(shares) > 0
    assert metrics["limit"] == cell.limit
    assert metrics["limit_at_rates"] == cell.limit_at_rates(metrics["attention_share"])
    assert metrics["share_reached"] == share_reached(metrics["ratio"], metrics["limit"])


def test_the_share_reached_is_of_the_time_that_could_be_saved():
    assert share_reached(1.6, 1.6) == 1 and share_reached(1.0, 1.6) == 0
    assert share_reached(4 / 3, 2.0) == pytest.approx(0.5)  # a quarter saved where a half was promised
    assert share_reached(0.8, 1.6) < 0


@pytest.mark.parametrize("variant", speed.VARIANTS)
def test_another_computation_shows_in_a_fingerprint_and_a_compiler_does_not(variant):
    cell = replace(TINY, variant=variant)
    fingerprint = SPEED.fingerprint(cell)
    assert SPEED.fingerprint(replace(cell, compiler="inductor")) == fingerprint  # never compiled
    for other in (replace(cell, seed=1), replace(cell, n_layers=1), replace(cell, pos_parts=2)):
        changed = SPEED.fingerprint(other)
        assert changed.keys() == fingerprint.keys() == {"dense", variant}
        assert changed[variant] != fingerprint[variant]
    assert [len(values) for values in fingerprint.values()] == [1, 2]


COMPILED = f"""
import json

import torch._dynamo.utils as dynamo

from sepnb.experiments import speed, timed

cell = {CELL | {"n_layers": 1, "compiler": "eager"}}
found = {{}}
for variant in speed.VARIANTS:
    dynamo.counters.clear()
    record = timed.run(speed.SpeedRun(experiment="speed", profile="smoke", variant=variant, **cell))
    found[variant] = [dynamo.counters["stats"]["unique_graphs"], len(dynamo.counters["graph_break"])]
    found[variant].append(record.metrics["compiled"])
print(json.dumps(found))
"""


def test_a_compiled_cell_compiles_each_model_once_and_whole():
    """In a process of its own: the hook that checks shapes in tests cannot be compiled."""
    done = subprocess.run(
        [sys.executable, "-c", COMPILED],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert json.loads(done.stdout) == {"separated": [2, 0, 1], "strict": [2, 0, 1]}


# --- the command


def printed(monkeypatch, *arguments: str) -> tuple[int, str]:
    monkeypatch.setattr(cli, "console", Console(width=200, highlight=False))
    done = CliRunner().invoke(cli.app, ["bench", *arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


@pytest.fixture
def clock(monkeypatch) -> list[int]:
    """Times that are known, and how many rounds were asked for."""
    asked = []

    def interleaved(steps, *, repeats, **_):
        asked.append(repeats)
        dense, variant, attention = steps
        return {dense: [3.0, 3.0, 3.3], variant: [2.0, 2.5, 2.0], attention: [1.5, 1.5, 1.65]}

    monkeypatch.setattr(timed, "interleaved", interleaved)
    return asked


def test_bench_prints_what_is_reached_beside_limits_and_stores_nothing(monkeypatch, tmp_path, clock):
    monkeypatch.setenv("SEPNB_RESULTS", str(tmp_path))
    cells = [{**CELL, "variant": "strict", "batch_size": size} for size in (8, 4)]
    monkeypatch.setattr(speed, "EXPERIMENT", replace(SPEED, crossed=lambda *_: cells))
    status, output = printed(monkeypatch, "strict", "--profile", "laptop", "--repeats", "11")
    assert status == 0 and clock == [11, 11]
    lines, console = output.splitlines()[-2:], Console(width=200, highlight=False, record=True)
    assert bench_models(console, profile="laptop", device="cpu", variants=("separated",))
    assert console.export_text().splitlines()[-1].startswith("of the time"), "no cell of this variant"
    for line, size in zip(lines, (8, 4), strict=True):
        cell = replace(TINY, variant="strict", batch_size=size)
        text = f"{cell.label} ratio 1.500 (1.350 to 1.575) limit {cell.limit:.3f} attention share 0.500 "
        text += f"limit at rates {cell.limit_at_rates(0.5):.3f} "
        text += f"share reached {share_reached(1.5, cell.limit):.3f}"
        assert line.split() == text.split()
    assert not list(tmp_path.iterdir())


def test_bench_times_a_cell_eager_where_there_is_no_compiler(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    cells = [{**CELL, "variant": "separated", "compiler": how} for how in ("inductor", None)]
    monkeypatch.setattr(speed, "EXPERIMENT", replace(SPEED, crossed=lambda *_: cells))
    console = Console(width=200, highlight=False, record=True)
    assert not bench_models(console, profile="laptop", device="cpu", variants=("separated",), repeats=9)
    *_, why, first, second = console.export_text().splitlines()
    assert "not compiled: torch.compile needs the C++ compiler no-such-compiler" in why
    assert all("eager" in line and "limit" in line for line in (first, second))
