"""Where a number comes from: the commit of this code and no other, and every fact that a record must hold."""

import hashlib
import json
import platform
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import torch

import sepnb
from sepnb.records.provenance import (
    Clock,
    code_state,
    device_facts,
    git_state,
    peak_memory_mb,
    processor_name,
)

FACTS = {
    *("device", "device_name", "driver", "torch", "numpy", "python", "platform", "lock_sha256"),
    *("commit", "dirty", "seed", "data", "bytes_seen", "wall_s", "cpu_s", "peak_memory_mb", "threads"),
    *("started", "sepnb"),
}


def git(root: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(autouse=True)
def no_memory() -> Iterator[None]:
    """Each test is a process of its own, as far as the code's commit goes."""
    code_state.cache_clear()
    yield
    code_state.cache_clear()


@pytest.fixture
def checkout(tmp_path, monkeypatch) -> Path:
    """A checkout with one commit, which `sepnb` takes for its own."""
    for variable in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(variable, raising=False)
    root = tmp_path / "checkout"
    (root / "results").mkdir(parents=True)
    (root / "code.py").write_text("one = 1\n")
    (root / "requirements.lock").write_text("torch==2.13.0\n")
    (root / ".gitignore").write_text("build/\n")
    (root / "results" / "a.json").write_text("{}")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "one")
    monkeypatch.setenv("SEPNB_ROOT", str(root))
    return root


def test_a_clean_checkout_is_its_commit(checkout):
    assert git_state() == git_state(checkout) == (git(checkout, "rev-parse", "HEAD"), False)


def test_a_changed_file_a_new_file_and_a_staged_one_are_dirty(checkout):
    commit = git(checkout, "rev-parse", "HEAD")
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
    (checkout / "results" / "laptop").mkdir()
    (checkout / "results" / "laptop" / "new.json").write_text("{}")
    (checkout / "build").mkdir()
    (checkout / "build" / "made.json").write_text("{}")
    assert git_state()[1] is False
    (checkout / "results_of_others.py").write_text("")
    assert git_state()[1] is True


def test_outside_a_checkout_and_without_git_nothing_is_known(checkout, tmp_path, monkeypatch):
    assert git_state(tmp_path) == (None, None)
    assert git_state(tmp_path / "nowhere") == (None, None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state(checkout) == (None, None)


def test_a_package_installed_inside_another_projects_checkout_does_not_take_its_commit(checkout):
    inside = checkout / "build" / "site-packages"
    inside.mkdir(parents=True)
    assert git_state(inside) == (None, None)


def test_a_run_names_the_code_that_its_process_began_with(checkout):
    began = Clock().commit
    (checkout / "code.py").write_text("one = 2\n")
    git(checkout, "commit", "-qam", "two")
    assert Clock().commit == began != git_state()[0]


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


def test_seconds_of_the_wall_and_of_the_processor_are_told_apart():
    clock = Clock()
    time.sleep(0.2)
    slept = clock.facts(seed=0, data={}, bytes_seen=0)
    assert slept["wall_s"] >= 0.2 and slept["cpu_s"] < slept["wall_s"]
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    assert clock.cpu_s >= slept["cpu_s"] + 0.1 - 1e-3


def test_without_a_lock_or_a_checkout_a_run_still_tells_the_rest(tmp_path, monkeypatch):
    monkeypatch.setenv("SEPNB_ROOT", str(tmp_path))
    facts = Clock().facts(seed=0, data={}, bytes_seen=0)
    assert facts["lock_sha256"] == "" and facts["commit"] is facts["dirty"] is None


def test_a_device_that_is_no_gpu_is_named_after_its_processor():
    assert device_facts("cpu") == {"device": "cpu", "device_name": processor_name(), "driver": ""}
