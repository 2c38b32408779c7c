"""A real scheduler for the tests of this folder, and commands that submit to it."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sepnb.records.store import Store

from .one_node import REMEDY, OneNode, missing

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.fixture(scope="session")
def one_node() -> Iterator[OneNode]:
    """A Slurm of one node with two processors, for all tests of a session."""
    if lacking := missing():
        pytest.fail(f"not found: {', '.join(lacking)}. {REMEDY}")
    with tempfile.TemporaryDirectory(prefix="one-node-") as folder, OneNode(Path(folder)) as cluster:
        yield cluster


class Grid:
    """Commands on a grid of fake experiments, two seeds of each method, whose records go to a private store.

    Attributes:
        log: of each run that was begun, its key.
    """

    def __init__(self, place: Path, environment: dict[str, str]) -> None:
        self.place, self.log, self.store = place, place / "log", Store(place / "store")
        self.commands: list[subprocess.Popen] = []
        rooms = os.pathsep.join(
            [str(ROOT), str(ROOT / "tests" / "companion"), os.environ.get("PYTHONPATH", "")]
        )
        self.environment = (
            os.environ | environment | {"PYTHONPATH": rooms, "SEPNB_BUILD": str(place / "build")}
        )

    def command(self, slow: float, *arguments: str, methods: str = "a,b,c") -> subprocess.Popen:
        """`sepnb run fake` with these arguments, started; `said` waits for it."""
        grid = [str(HERE / "grid_of_fakes.py"), str(self.log), str(slow), methods]
        run = ["run", "fake", "--store", str(self.store.root), *arguments]
        started = subprocess.Popen(
            [sys.executable, *grid, *run],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.place,
        )
        self.commands.append(started)
        return started

    def end(self) -> None:
        """A command that a failed test left waiting would wait for ever."""
        for command in self.commands:
            if command.poll() is None:
                command.kill()
                command.wait()

    def said(self, command: subprocess.Popen, seconds: float = 600) -> tuple[int, str]:
        """The exit status of a command and what it wrote."""
        output, _ = command.communicate(timeout=seconds)
        return command.returncode, output

    def begun(self) -> list[str]:
        return self.log.read_text(encoding="utf-8").split() if self.log.exists() else []

    def stored(self) -> list[str]:
        return sorted(self.store.load("laptop", "fake"))

    def drafts(self) -> list[Path]:
        """What is in the store and is no whole record."""
        return [file for file in self.store.root.rglob("*") if file.is_file() and file.suffix != ".json"]


@pytest.fixture
def slurm_grid(one_node: OneNode, tmp_path: Path) -> Iterator[Grid]:
    grid = Grid(tmp_path, one_node.environment)
    yield grid
    grid.end()
    one_node.empty()
