"""A grid on a real Slurm: whatever is killed, nothing is lost, half written or computed again once stored."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from sepnb.records.store import Store

from .conftest import ROOT
from .one_node import PARTITION, wait_until

pytestmark = pytest.mark.cluster
SLURM = ("--cluster", "slurm", "--partition", PARTITION)
ALL = ["a-seed1", "a-seed2", "b-seed1", "b-seed2", "c-seed1", "c-seed2"]


def tasks_of(number: int | None) -> list[int]:
    """The process ids of the tasks of this number of any array, or of a job without one, that run now."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            what, where = (place / "cmdline").read_bytes(), (place / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        own = b"submitit.core._submit" in what and b"srun" not in what and b"env\0" not in what
        if own and (number is None or b"SLURM_ARRAY_TASK_ID=%d" % number in where):
            found.append(int(place.name))
    return found


def begun(grid, key: str, times: int = 1) -> bool:
    return grid.begun().count(key) >= times


def test_a_smoke_grid_through_slurm_gives_the_records_of_the_plain_run(one_node, tmp_path) -> None:
    stores = {}
    for name, options in {"plain": (), "slurm": (*SLURM, "--parallel", "2")}.items():
        stores[name] = Store(tmp_path / name)
        command = [sys.executable, "-m", "sepnb.cli", "run", "mqar", "--profile", "smoke", *options]
        environment = os.environ | one_node.environment | {"SEPNB_BUILD": str(tmp_path / "build")}
        subprocess.run([*command, "--store", stores[name].root], env=environment, cwd=ROOT, check=True)
    plain, slurm = (stores[name].load("smoke", "mqar") for name in ("plain", "slurm"))
    assert len(plain) == 3 and slurm.keys() == plain.keys()
    for key, record in plain.items():
        other = slurm[key]
        assert (other.config, other.rows, other.fingerprint) == (
            record.config,
            record.rows,
            record.fingerprint,
        )
        timed = {name for name in record.metrics if name.endswith("_s")}
        assert {n: v for n, v in other.metrics.items() if n not in timed} == {
            n: v for n, v in record.metrics.items() if n not in timed
        }


def test_one_array_runs_the_grid_and_a_failed_task_is_listed_with_its_log(slurm_grid) -> None:
    command = slurm_grid.command(0.1, *SLURM, "--parallel", "2", methods="a,broken")
    status, said = slurm_grid.said(command)
    assert status == 1 and said.count("submitted 4 runs, 2 at a time") == 1
    assert slurm_grid.stored() == ["a-seed1", "a-seed2"]
    lines = [line for line in said.splitlines() if "RuntimeError: no such layer; log: " in line]
    assert len(lines) == 2
    log = Path(lines[0].rpartition("log: ")[2])
    assert "no such layer" in log.read_text(encoding="utf-8")
    assert Counter(slurm_grid.begun()) == Counter(["a-seed1", "broken-seed1", "a-seed2", "broken-seed2"])


def test_tasks_that_are_killed_requeued_or_preempted_run_again_and_the_others_do_not(
    slurm_grid, one_node
) -> None:
    command = slurm_grid.command(10, *SLURM, "--parallel", "2")  # longer than a requeued task is left to end
    wait_until(lambda: begun(slurm_grid, "a-seed1") and begun(slurm_grid, "b-seed1"), "two tasks have begun")
    (killed,) = tasks_of(0)
    os.kill(killed, signal.SIGKILL)
    array = min(one_node.queue()).split("_")[0]
    one_node.said("scontrol", "requeue", f"{array}_1")
    wait_until(lambda: begun(slurm_grid, "c-seed1"), "the third task has begun")
    (preempted,) = tasks_of(2)
    os.kill(preempted, signal.SIGUSR2)  # what a scheduler sends that wants its node back
    status, said = slurm_grid.said(command)
    assert status == 0, said
    assert slurm_grid.stored() == ALL and not slurm_grid.drafts()
    twice = {"a-seed1": 2, "b-seed1": 2, "c-seed1": 2}
    assert Counter(slurm_grid.begun()) == Counter(dict.fromkeys(ALL, 1) | twice)


def test_a_task_that_is_killed_each_time_is_given_up_after_two_restarts(slurm_grid) -> None:
    command = slurm_grid.command(600, *SLURM, "--seeds", "1", methods="a")
    for count in (1, 2, 3):
        wait_until(lambda count=count: begun(slurm_grid, "a-seed1", count), f"the task begins time {count}")
        (process,) = tasks_of(None)
        os.kill(process, signal.SIGKILL)
    status, said = slurm_grid.said(command)
    assert status == 1 and "it was cancelled, or its process was killed" in said
    assert slurm_grid.begun() == ["a-seed1"] * 3 and not slurm_grid.stored()


def test_without_its_controller_the_grid_goes_on(slurm_grid, one_node) -> None:
    command = slurm_grid.command(12, *SLURM, "--parallel", "2")
    wait_until(lambda: len(slurm_grid.begun()) == 2, "two tasks have begun")
    began, state = time.time(), one_node.folder / "state" / "job_state"
    # Every five seconds. An array that it had not written down it would forget, and the command would say so.
    wait_until(lambda: state.stat().st_mtime > began, "the controller writes down what it knows")
    one_node.kill("slurmctld")
    wait_until(lambda: len(slurm_grid.stored()) == 2, "two records are stored without a controller")
    assert command.poll() is None
    one_node.start("slurmctld")
    wait_until(lambda: one_node.resumed() and command.poll() is not None, "the grid is done", seconds=300)
    status, said = slurm_grid.said(command)
    assert status == 0, said
    assert slurm_grid.stored() == ALL and not slurm_grid.drafts()
    assert Counter(slurm_grid.begun()) == Counter(ALL)


def test_a_cancelled_array_is_finished_by_the_same_command(slurm_grid, one_node) -> None:
    command = slurm_grid.command(3, *SLURM, "--parallel", "2")
    wait_until(lambda: len(slurm_grid.stored()) >= 2, "two records are stored")
    wait_until(lambda: len(slurm_grid.begun()) > 2, "another task has begun")
    one_node.said("scancel", min(one_node.queue()).split("_")[0])
    status, said = slurm_grid.said(command)
    there = slurm_grid.stored()
    assert status == 1 and 2 <= len(there) < 6 and not slurm_grid.drafts()
    assert said.count("it was cancelled, or its process was killed") == 6 - len(there)
    slurm_grid.log.unlink()
    status, said = slurm_grid.said(slurm_grid.command(0.1, *SLURM, "--parallel", "2"))
    assert status == 0, said
    assert f"submitted {6 - len(there)} runs" in said
    assert slurm_grid.stored() == ALL and sorted([*there, *slurm_grid.begun()]) == ALL


def test_an_interrupted_command_leaves_its_jobs_and_the_same_one_waits_for_them(slurm_grid, one_node) -> None:
    command = slurm_grid.command(3, *SLURM, "--parallel", "2")
    wait_until(lambda: begun(slurm_grid, "a-seed1"), "a task has begun")
    one_node.said("scontrol", "update", f"PartitionName={PARTITION}", "State=DOWN")  # no other task begins
    try:
        command.send_signal(signal.SIGINT)
        status, said = slurm_grid.said(command)
        assert status == 130 and "the jobs go on without this command" in said
        array = min(one_node.queue()).split("_")[0]
        assert f"`scancel {array}` ends them" in said
        again = slurm_grid.command(3, *SLURM, "--parallel", "2")
        told = next(line for line in again.stdout if "in the queue already" in line or "submitted" in line)
    finally:
        one_node.said("scontrol", "update", f"PartitionName={PARTITION}", "State=UP")
    assert f"runs are in the queue already: job {array}" in told
    status, said = slurm_grid.said(again)
    assert status == 0 and "submitted" not in said, said
    assert slurm_grid.stored() == ALL and Counter(slurm_grid.begun()) == Counter(ALL)
