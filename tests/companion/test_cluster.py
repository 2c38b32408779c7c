"""Grids on a cluster, as far as one needs no cluster: what is refused, submitted, waited for and said.

Submitit is in no lock and may be missing, so its place is taken by a stand-in that does a task when it is
submitted. The real one, without and with a real Slurm, has the tests in `tests/cluster`.
"""

import contextlib
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from sepnb.companion.run import cluster
from sepnb.companion.run.runs import GridRun
from sepnb.data import registry
from sepnb.records.store import Store

SLURM = ("run", "fake", "--cluster", "slurm")


class Job:
    """What submitit gives for a task; `lost` is one whose process was killed."""

    lost = False

    def __init__(self, folder: Path, job_id: str) -> None:
        result = SimpleNamespace(exists=lambda: not self.lost)
        self.job_id = job_id
        self.paths = SimpleNamespace(folder=folder, stderr=folder / f"{job_id}.err", result_pickle=result)
        self.value: float | None = None
        self.error: str | None = None

    def exception(self) -> Exception | None:
        line = "-" * 22
        return None if self.error is None else RuntimeError(f"failed:\n{line}\n{self.error}\n{line}\nlogs")

    def result(self) -> float | None:
        return self.value


class Executor:
    """Does its tasks when a batch ends, and remembers every batch with its parameters."""

    batches: list[tuple[dict[str, Any], list[GridRun]]] = []  # noqa: RUF012

    def __init__(self, folder: Path, python: str) -> None:
        self.folder, self.runs, self.parameters = folder, [], {"python": python}

    def update_parameters(self, **parameters: Any) -> None:
        self.parameters |= parameters

    @contextlib.contextmanager
    def batch(self) -> Iterator[None]:
        yield
        self.batches.append((self.parameters, self.runs))

    def submit(self, task: Any, run: GridRun) -> Job:
        job = Job(self.folder, f"7_{len(self.runs)}")
        self.runs.append(run)
        try:
            job.value = task(run)
        except Exception:
            job.error = traceback.format_exc()
        return job


@pytest.fixture
def batches(monkeypatch) -> list[tuple[dict[str, Any], list[GridRun]]]:
    """What was submitted to the stand-in, on a machine that has Slurm's commands and an empty queue."""
    stand_in = ModuleType("submitit")
    stand_in.SlurmExecutor, stand_in.SlurmJob = Executor, Job
    monkeypatch.setitem(sys.modules, "submitit", stand_in)
    monkeypatch.setattr(cluster.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(cluster, "_queue", set)
    monkeypatch.setattr(cluster.time, "sleep", lambda _: None)
    monkeypatch.setattr(Executor, "batches", [])
    return Executor.batches


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "fake", "--parallel", "2"), "--parallel goes with --cluster slurm"),
        ((*SLURM, "--jobs", "2"), "with --cluster give --parallel"),
        (("run", "01_order", "--cluster", "slurm"), "--cluster runs experiments; run 01_order without it"),
        ((*SLURM, "--profile", "gpu"), "the gpu profile needs a GPU of each task: give --gpus 1"),
        ((*SLURM, "--methods", "z"), "unknown method 'z'"),
        (SLURM, "no git checkout"),
        ((*SLURM, "--store", "STORE"), "run `sepnb data eltec-eng`"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_submitted(
    sepnb, checkout, write_chapter, fake, registered, batches, monkeypatch, arguments, message
) -> None:
    write_chapter("01_order")
    registered(fake(needs=("eltec-eng",)))
    monkeypatch.setattr(registry, "get", lambda name: SimpleNamespace(status=lambda: "missing"))
    status, output = sepnb(*[str(checkout / "mine") if part == "STORE" else part for part in arguments])
    assert status == 2 and message in output and "Traceback" not in output
    assert not batches


def test_a_run_whose_settings_no_sweep_has_chosen_is_refused_and_not_submitted(
    sepnb, checkout, batches
) -> None:
    store = str(checkout / "mine")
    status, output = sepnb("run", "mqar", "--cluster", "slurm", "--store", store, "--seeds", "1")
    assert status == 1 and "run `sepnb run mqar_sweep --profile laptop` and commit" in output
    assert not batches


def test_without_submitit_or_slurm_the_remedy_is_said(
    sepnb, checkout, fake, registered, batches, monkeypatch
) -> None:
    registered(fake())
    monkeypatch.setattr(cluster.shutil, "which", lambda name: None)
    assert "run it where jobs are submitted, or leave --cluster away" in sepnb(*SLURM)[1]
    monkeypatch.setitem(sys.modules, "submitit", None)
    status, output = sepnb(*SLURM)
    assert status == 2 and "pip install 'submitit>=1.5,<2'" in output and not batches


def test_what_is_missing_is_one_array_and_what_fails_is_listed_with_its_log(
    sepnb, checkout, fake, registered, batches
) -> None:
    store = Store(checkout / "mine")
    grid = fake(methods=("a", "broken", "b"), log=checkout / "log")
    registered(grid)
    store.write(grid.run(grid.grid("laptop", [1])[0]))
    options = ("--parallel", "3", "--partition", "p", "--gpus", "0", "--minutes", "9", "--threads", "4")
    status, output = sepnb(*SLURM, "--store", str(store.root), *options)
    assert status == 1
    ((parameters, submitted),) = batches
    assert [run.config.key for run in submitted] == [
        *("broken-seed1", "b-seed1"),
        *("a-seed2", "broken-seed2", "b-seed2"),
    ]
    asked = {"partition": "p", "array_parallelism": 3, "time": 9, "cpus_per_task": 4}
    assert asked.items() <= parameters.items() and "gpus_per_node" not in parameters
    assert "OMP_NUM_THREADS=4" in parameters["python"]
    assert "submitted 5 runs, 3 at a time, 9 min each: job 7; logs in " in output
    logs = [line.rpartition("log: ")[2] for line in output.splitlines() if "no such layer; log: " in line]
    assert [Path(log).name for log in logs] == ["7_0.err", "7_3.err"]
    assert sorted(store.load("laptop", "fake")) == ["a-seed1", "a-seed2", "b-seed1", "b-seed2"]


def test_what_is_in_the_queue_is_waited_for_and_not_submitted_again(
    sepnb, checkout, fake, registered, batches, monkeypatch
) -> None:
    store = Store(checkout / "mine")
    registered(fake(log=checkout / "log"))
    arguments = (*SLURM, "--store", str(store.root))
    assert sepnb(*arguments)[0] == 0
    for file in ("a-seed1", "b-seed2"):
        store.path("laptop", "fake", file).unlink()
    queue = iter([{"7_0"}])
    monkeypatch.setattr(cluster, "_queue", lambda: next(queue, set()))
    output = sepnb(*arguments)[1]
    assert "1 runs are in the queue already: job 7" in output and "submitted 1 runs" in output
    assert [run.config.key for run in batches[1][1]] == ["b-seed2"]


def test_a_task_that_says_it_is_done_is_done_though_the_queue_says_it_runs(
    sepnb, checkout, fake, registered, batches, monkeypatch
) -> None:
    queue = iter([{"7_0", "7_1"}, {"7_1"}])
    monkeypatch.setattr(cluster, "_queue", lambda: next(queue, set()))
    registered(fake(methods=("a", "broken")))
    status, output = sepnb(*SLURM, "--store", str(checkout / "mine"), "--seeds", "1")
    lines = [line for line in output.splitlines() if line.startswith("fake: ")]
    assert status == 1 and ["stored" in line for line in lines] == [True, False]
    assert next(queue, None) is None, "a failed task may be started again until it is out of the queue"


def test_a_task_that_left_no_word_counts_as_done_where_its_record_is_there(
    sepnb, checkout, fake, registered, batches, monkeypatch
) -> None:
    monkeypatch.setattr(Job, "lost", True)
    registered(fake(methods=("a", "broken")))
    status, output = sepnb(*SLURM, "--store", str(checkout / "mine"))
    assert status == 1 and output.count("it was cancelled, or its process was killed") == 2
    assert output.count("stored") == 2


def test_a_task_of_other_code_than_was_submitted_computes_nothing(fake, checkout, monkeypatch) -> None:
    grid = fake(log=checkout / "log")
    run = GridRun(grid, grid.grid("laptop")[0], "cpu", checkout / "mine")
    with pytest.raises(RuntimeError, match="was changed after the submission"):
        cluster.Task("another tree")(run)
    assert not (checkout / "log").exists()
