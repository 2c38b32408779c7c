"""Records of the gpu profile are replayed on a CPU by a fingerprint that takes it seconds."""

import sys

import pytest

from sepnb import experiments
from sepnb.companion.check import published
from sepnb.companion.run import fingerprints, runs
from sepnb.records.store import Store

from ..experiments.smoke_runs import grid_of

WITHOUT_BATCHES = {"seqpe_geometry", "seqpe_distances", "reading_cost"}
"""Of the last the timed texts are single ones."""


@pytest.fixture
def on_gpu(fake) -> type:
    """The class of fake experiments whose runs are of the gpu profile."""
    return sys.modules[fake.__module__].OnGpu


def test_a_record_of_a_gpu_is_replayed_whole_there_and_by_its_small_fingerprint_on_a_cpu(on_gpu, checkout):
    grid = on_gpu(rounding=1e-3)
    runs.run(*runs.plan([grid], "gpu", device="cuda", store=Store()), side_by_side=0)
    record = Store().load("gpu", "fake")["a-seed1"]
    assert {name: len(values) for name, values in record.fingerprint.items()} == {
        "first_losses": 5,
        "small_first_losses": fingerprints.STEPS,
    }
    for device, drift, status in (
        ("cpu", 0.0, "equal"),
        ("cuda", 1e-3, "equal"),
        ("cpu", 1e-2, "stale"),
        ("cuda", 2e-3, "stale"),
    ):
        replays = published.check([on_gpu(drift=drift)], device=device, mark=False)
        assert {one.status for one in replays} == {status}, device


def test_a_record_of_a_laptop_has_one_fingerprint(fake, checkout):
    runs.run(*runs.plan([fake()], "laptop", store=Store()), side_by_side=0)
    assert set(Store().load("laptop", "fake")["a-seed1"].fingerprint) == {"first_losses"}


@pytest.mark.parametrize("name", experiments.names())
def test_the_small_fingerprint_of_every_run_differs_in_batches_and_compiler_only(name):
    config = grid_of(name, "gpu")[0]
    small = fingerprints.small(config)
    assert (small is None) == (name in WITHOUT_BATCHES)
    if small is not None:
        now, before = small.resolved(), config.resolved()
        assert now != before and _others(now) == _others(before)
        assert min(_batches(before)) > fingerprints.BATCH and set(_batches(now)) == {fingerprints.BATCH}


def _others(settings):
    if isinstance(settings, dict):
        left = settings.keys() - {"batch_size", "compiler"}
        return {name: _others(settings[name]) for name in left}
    return [_others(one) for one in settings] if isinstance(settings, list) else settings


def _batches(settings) -> list[int]:
    if isinstance(settings, dict):
        own = [settings["batch_size"]] if "batch_size" in settings else []
        return own + [found for one in settings.values() for found in _batches(one)]
    return [found for one in settings for found in _batches(one)] if isinstance(settings, list) else []
