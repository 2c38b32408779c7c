"""The same grids without a scheduler, in processes that submitit starts on this machine."""

import os
import signal
import subprocess
from collections import Counter

import pytest

from .one_node import wait_until

pytestmark = pytest.mark.cluster
LOCAL = ("--cluster", "local", "--parallel", "2")
ALL = ["a-seed1", "a-seed2", "b-seed1", "b-seed2"]


def tasks_below(process: int) -> list[int]:
    """The tasks of the controllers that a command started."""
    table = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True).stdout
    rows = [line.split(None, 2) for line in table.splitlines()]
    controllers = {pid for pid, parent, _ in rows if int(parent) == process}
    return sorted(int(pid) for pid, parent, what in rows if parent in controllers and "_submit" in what)


def test_a_killed_task_runs_again_and_the_others_do_not(local_grid) -> None:
    command = local_grid.command(4, *LOCAL, methods="a,b")
    wait_until(lambda: len(local_grid.begun()) == 2, "two tasks have begun")
    os.kill(tasks_below(command.pid)[0], signal.SIGKILL)
    status, said = local_grid.said(command)
    assert status == 0, said
    assert local_grid.stored() == ALL and not local_grid.drafts()
    assert sorted(Counter(local_grid.begun()).values()) == [1, 1, 1, 2]


def test_two_commands_compute_nothing_twice(local_grid) -> None:
    commands = [local_grid.command(2, *LOCAL, methods="a,b") for _ in range(2)]
    ended = [local_grid.said(command) for command in commands]
    assert local_grid.stored() == ALL and Counter(local_grid.begun()) == Counter(ALL)
    for status, said in ended:
        assert status == (1 if "another process computes it now" in said else 0), said


def test_an_interrupted_command_ends_its_tasks_and_the_same_one_does_the_rest(local_grid) -> None:
    command = local_grid.command(600, *LOCAL, methods="a,b")
    wait_until(lambda: len(local_grid.begun()) == 2, "two tasks have begun")
    tasks = tasks_below(command.pid)
    command.send_signal(signal.SIGINT)
    assert local_grid.said(command)[0] == 130
    wait_until(lambda: not any(os.path.exists(f"/proc/{task}") for task in tasks), "the tasks are gone")
    assert not local_grid.stored() and not local_grid.drafts()
    status, said = local_grid.said(local_grid.command(0.1, *LOCAL, methods="a,b"))
    assert status == 0 and local_grid.stored() == ALL, said
