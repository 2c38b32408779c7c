"""Where a number comes from: the commit of this code and no other, and every fact that a record must hold."""

import hashlib
import json
import platform
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import torch

import sepnb
from sepnb.records import provenance
from sepnb.records.provenance import Clock, code_state, git_state, peak_memory_mb, processor_name

from ..shared import git

FACTS = {
    *("device", "device_name", "driver", "torch", "numpy", "python", "platform", "lock_sha256"),
    *("commit", "dirty", "seed", "data", "bytes_seen", "wall_s", "cpu_s", "peak_memory_mb", "threads"),
    *("started", "sepnb", "tree"),
}


@pytest.fixture(autouse=True)
def no_memory() -> Iterator[None]:
    """Each test is a process of its own, as far as the code's commit goes."""
    for known in (code_state, provenance.code_tree):
        known.cache_clear()
    yield
    for known in (code_state, provenance.code_tree):
        known.cache_clear()


@pytest.fixture
def checkout(tmp_path, monkeypatch) -> Path:
    """A checkout with one commit, which `sepnb` takes for its own."""
    for variable in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(variable, raising=False)
    root = tmp_path / "checkout"
    files = {
        "code.py": "one = 1\n",
        "sepnb/a.py": "a = 1\n",
        "sepnb/deep/b.tsv": "b\t1\n",
        "sepnb/deep.py": "",
    }
    files |= {"requirements.lock": "torch==2.13.0\n", ".gitignore": "build/\n__pycache__/\n"}
    for name, text in (files | {"results/a.json": "{}"}).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "one")
    monkeypatch.setenv("SEPNB_ROOT", str(root))
    monkeypatch.setattr(provenance, "PACKAGE", root / "sepnb")
    return root


def test_a_clean_checkout_is_its_commit_and_a_changed_a_staged_and_a_new_file_are_dirty(checkout):
    commit = git(checkout, "rev-parse", "HEAD")
    assert git_state() == git_state(checkout) == (commit, False)
    (checkout / "code.py").write_text("one = 2\n")
    assert git_state() == (commit, True)
    git(checkout, "add", "code.py")
    assert git_state() == (commit, True)
    git(checkout, "commit", "-q", "-m", "two")
    assert git_state() == (git(checkout, "rev-parse", "HEAD"), False) != (commit, False)
    (checkout / "new.py").write_text("")
    assert git_state()[1] is True


def test_records_and_ignored_files_do_not_make_a_tree_dirty(checkout):
    (checkout / "results" / "a.json").write_text("changed")
    for folder in ("results/laptop", "build"):
        (checkout / folder).mkdir()
        (checkout / folder / "new.json").write_text("{}")
    assert git_state()[1] is False
    (checkout / "results_of_others.py").write_text("")
    assert git_state()[1] is True


def test_outside_a_checkout_and_without_git_nothing_is_known(checkout, tmp_path, monkeypatch):
    """A package that is installed inside another project's checkout does not take its commit."""
    inside = checkout / "build" / "site-packages"
    inside.mkdir(parents=True)
    for place in (tmp_path, tmp_path / "nowhere", inside):
        assert git_state(place) == (None, None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state(checkout) == (None, None)


def test_a_record_is_told_every_fact_in_json_types(checkout):
    facts = Clock().facts(seed=3, data={"sympy": "00ff"}, bytes_seen=4096)
    assert facts.keys() >= FACTS
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert (facts["seed"], facts["data"], facts["bytes_seen"]) == (3, {"sympy": "00ff"}, 4096)
    assert (
        facts["device"] == "cpu" and facts["driver"] == "" and facts["device_name"] == processor_name() != ""
    )
    versions = (torch.__version__, np.__version__, platform.python_version(), sepnb.__version__)
    assert (facts["torch"], facts["numpy"], facts["python"], facts["sepnb"]) == versions
    assert facts["lock_sha256"] == hashlib.sha256(b"torch==2.13.0\n").hexdigest()
    assert (facts["commit"], facts["dirty"]) == (git(checkout, "rev-parse", "HEAD"), False)
    assert facts["threads"] == torch.get_num_threads()
    assert 50 < facts["peak_memory_mb"] < 100_000  # MiB, whatever unit the system counts in
    assert facts["peak_memory_mb"] == pytest.approx(peak_memory_mb("cpu"), rel=0.1)
    started = datetime.fromisoformat(facts["started"])
    assert started.utcoffset() == timedelta(0)
    assert timedelta(seconds=-1) < datetime.now(started.tzinfo) - started < timedelta(minutes=5)


def test_the_state_of_the_code_is_that_of_the_start_not_of_the_end(checkout):
    commit = git(checkout, "rev-parse", "HEAD")
    clock = Clock()
    (checkout / "code.py").write_text("changed meanwhile\n")
    facts = clock.facts(seed=0, data={}, bytes_seen=0)
    assert (facts["commit"], facts["dirty"]) == (commit, False)
    git(checkout, "commit", "-qam", "two")
    assert Clock().commit == commit != git_state()[0]


def test_seconds_of_the_wall_and_of_the_processor_are_told_apart():
    clock = Clock()
    time.sleep(0.2)
    slept = clock.facts(seed=0, data={}, bytes_seen=0)
    assert slept["wall_s"] >= 0.2 and slept["cpu_s"] < slept["wall_s"]
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    assert clock.cpu_s >= slept["cpu_s"] + 0.1 - 1e-3


def test_seconds_of_a_gpu_are_those_between_two_events_on_its_stream(checkout, monkeypatch):
    log = []

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self, stream: str) -> None:
            log.append(stream)

        def synchronize(self) -> None:
            log.append("wait")

        def elapsed_time(self, end: "Event") -> float:
            return 1500.0

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: f"stream of {device}")
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: None)
    assert Clock("cuda:0").gpu_s == {"gpu_s": 1.5} and log == ["stream of cuda:0"] * 2 + ["wait"]
    assert Clock("cpu").gpu_s == {} and "gpu_s" not in Clock("cpu").facts(seed=0, data={}, bytes_seen=0)


def test_without_a_lock_or_a_checkout_a_run_still_tells_the_rest(tmp_path, monkeypatch):
    monkeypatch.setenv("SEPNB_ROOT", str(tmp_path))
    facts = Clock().facts(seed=0, data={}, bytes_seen=0)
    assert facts["lock_sha256"] == "" and facts["commit"] is facts["dirty"] is None


# --- the content of the code that ran


def test_the_digest_of_the_package_is_the_tree_that_git_names_and_survives_another_history(checkout):
    """Folders sort with a slash, caches and empty folders do not count."""
    (checkout / "sepnb" / "__pycache__").mkdir()
    (checkout / "sepnb" / "__pycache__" / "a.pyc").write_bytes(b"cache")
    (checkout / "sepnb" / "empty").mkdir()
    tree, commit = git(checkout, "rev-parse", "HEAD:sepnb"), git(checkout, "rev-parse", "HEAD")
    facts = Clock().facts(seed=0, data={}, bytes_seen=0)
    assert facts["tree"] == tree == provenance.running_tree() and facts["dirty"] is False
    git(checkout, "commit", "-q", "--amend", "-m", "the same with another message")
    assert provenance.running_tree() == tree == provenance.committed_tree()
    assert git(checkout, "rev-parse", "HEAD") != commit


@pytest.mark.attack("another checkout at the root than the code that runs")
def test_another_checkout_at_the_root_does_not_pass_for_the_code_that_runs(checkout, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.py").write_text("a = 2\n")
    monkeypatch.setattr(provenance, "PACKAGE", elsewhere)
    assert git_state() == (git(checkout, "rev-parse", "HEAD"), False)
    assert code_state() == (git(checkout, "rev-parse", "HEAD"), True)


@pytest.mark.attack("changed files that git was told to take for unchanged")
@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_a_file_that_git_was_told_to_take_for_unchanged_is_seen(checkout, flag):
    git(checkout, "update-index", flag, "sepnb/a.py")
    (checkout / "sepnb" / "a.py").write_text("a = 2\n")
    assert git_state()[1] is False
    assert code_state()[1] is True
