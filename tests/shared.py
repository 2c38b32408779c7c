"""What the workers of one session compute once and share: they split it run by run, behind locks of files."""

import json
import os
import re
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import filelock
import pytest

MADE = {
    "started": "2026-11-21T10:00:00+00:00",
    "cpu_s": 61.2,
    "torch": "2.13.0",
    "device_name": "a processor",
}
"""What every record must tell of its making, beside its seed."""


def refused(
    says: str, call: Callable, /, *given: Any, error: type[Exception] = ValueError, **how: Any
) -> None:
    """A call with these arguments is refused with a message in which this pattern is found."""
    with pytest.raises(error, match=says):
        call(*given, **how)


def withdrawn() -> dict[str, tuple[str, str]]:
    """The claims that `book/withdrawn.md` lists: of each its last verdict and the reason."""
    page = (Path(__file__).parents[1] / "book" / "withdrawn.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .+ \(`([\w-]+)`\) \| (.+) \| (.+) \|$", page, re.MULTILINE)
    return {claim: (verdict, reason) for claim, verdict, reason in rows}


def folder(tmp_path_factory: pytest.TempPathFactory, name: str) -> Path:
    """A folder of this session, the same one in every worker of it."""
    base = tmp_path_factory.getbasetemp()
    place = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    place.mkdir(exist_ok=True)
    return place


def split(place: Path, jobs: dict[str, Callable[[], Any]]) -> None:
    """Do all jobs that no worker of this session has done: what another one has under way is left to it.

    A job that fails raises here, and again in every worker that asks for it.
    """
    waiting = deque(jobs.items())
    passed = 0
    while waiting:
        name, job = waiting.popleft()
        done = place / f"{name}.done"
        lock = filelock.FileLock(place / f"{name}.lock")
        try:
            with lock.acquire(blocking=False):
                if not done.exists():
                    job()
                    done.touch()
            passed = 0
        except filelock.Timeout:
            waiting.append((name, job))
            passed += 1
            if passed >= len(waiting):  # all that is left is under way elsewhere
                time.sleep(0.1)


def wait_until(true: Callable[[], object]) -> None:
    """Look again and again until it is true; for two minutes, because a busy machine is slow, not wrong."""
    end = time.monotonic() + 120
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def alive(*processes: int) -> bool:
    """Whether one of them has not ended; one that has ended and that nobody has asked about has."""
    listed = subprocess.run(
        ["ps", "-o", "stat=", "-p", ",".join(map(str, processes))], capture_output=True, text=True
    )
    return any(not state.startswith("Z") for state in listed.stdout.split())


def git(folder: Path, *arguments: str) -> str:
    """What git prints, under a name of its own."""
    who = ["-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    command = ["git", *who, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def told_by(tmp_path_factory: pytest.TempPathFactory, script: str) -> dict[str, Any]:
    """The JSON that a script prints: run once in a session, without the hook that checks shapes."""
    place = folder(tmp_path_factory, "told")
    told = place / f"{Path(script).stem}.json"

    def run() -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "JAXTYPING_DISABLE": "1"}
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr[-3000:]
        told.write_text(done.stdout, encoding="utf-8")

    split(place, {told.stem: run})
    return json.loads(told.read_text(encoding="utf-8"))
