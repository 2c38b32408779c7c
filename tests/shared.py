"""What the workers of one session compute once and share: they split it run by run, behind locks of files."""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import filelock
import pytest


def folder(tmp_path_factory: pytest.TempPathFactory, name: str) -> Path:
    """A folder of this session, the same one in every worker of it."""
    base = tmp_path_factory.getbasetemp()
    place = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    place.mkdir(exist_ok=True)
    return place


@contextmanager
def alone(place: Path, name: str) -> Iterator[None]:
    """One worker at a time, for this folder and name."""
    with filelock.FileLock(place / f"{name}.lock"):
        yield


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
