"""Grids: nothing finished is lost or repeated, whatever ends the command."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sepnb.companion.run import runs, workers
from sepnb.records.store import Store

from ..shared import alive, git, refused, wait_until

HERE = Path(__file__).parent
GRID = """
import signal
import sys
from pathlib import Path
from fake_experiments import Fake
from sepnb.companion.run import runs

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background inherits none
    log = Path(sys.argv[1])
    grid = Fake(methods=("a", "b", "c"), slow=float(sys.argv[2]), log=log)
    todo, tallies = runs.plan([grid], "laptop", store=runs.Store(log.parent / "store"))
    print([(tally.ran, tally.skipped) for tally in runs.run(todo, tallies, side_by_side=2)])
"""


def test_what_is_there_is_skipped_and_what_fails_ends_only_itself(fake, checkout) -> None:
    store = Store(checkout / "private")
    first = fake(methods=("a",), log=checkout / "log")
    tallies = runs.run(*runs.plan([first], "laptop", store=store))
    assert [(t.ran, t.skipped, t.complete) for t in tallies] == [(2, 0, True)]

    ended, steps = [], set()
    grid = fake(methods=("a", "broken", "b"), log=checkout / "log")
    todo, tallies = runs.plan([grid], "laptop", store=store)
    assert [run.config.key for run in todo] == ["broken-seed1", "b-seed1", "broken-seed2", "b-seed2"]
    (tally,) = runs.run(
        todo,
        tallies,
        on_progress=lambda index, done, total: steps.add((index, done, total)),
        on_end=lambda index, error: ended.append((todo[index].config.key, error is None)),
    )
    assert (tally.ran, tally.skipped, tally.left, tally.complete) == (2, 2, 0, False)
    assert tally.failed[0] == "broken (broken-seed1): RuntimeError: no such layer"
    assert dict(ended) == {run.config.key: run.config.method == "b" for run in todo}
    assert {(1, 10, 10), (3, 10, 10)} <= steps
    assert (checkout / "log").read_text().split().count("a-seed1") == 1
    assert sorted(store.load("laptop", "fake")) == ["a-seed1", "a-seed2", "b-seed1", "b-seed2"]


def test_a_grid_can_be_run_for_some_of_its_methods(fake, checkout) -> None:
    store = Store(checkout / "private")
    todo, (tally,) = runs.plan([fake()], "laptop", methods=["b"], store=store)
    assert [run.config.key for run in todo] == ["b-seed1", "b-seed2"] and tally.left == 2
    refused("unknown method 'c'", runs.plan, [fake()], "laptop", methods=["c"], store=store)


def test_stale_records_and_fresh_grids_run_again(fake, checkout) -> None:
    store = Store(checkout / "private")
    grid = fake()
    runs.run(*runs.plan([grid], "laptop", store=store))
    assert runs.plan([grid], "laptop", store=store)[0] == []
    assert len(runs.plan([grid], "laptop", store=store, fresh=True)[0]) == 4
    assert [run.config.seed for run in runs.plan([grid], "laptop", seeds=[2, 7], store=store)[0]] == [7, 7]
    held = store.load("laptop", "fake")["a-seed1"]
    store.write(replace(held, config={"method": "a", "steps": 10**9}))
    assert [run.config.key for run in runs.plan([grid], "laptop", store=store)[0]] == ["a-seed1"]
    store.write(held)
    store.mark_stale("laptop", "fake", "b-seed2", "init changed")
    assert [run.config.key for run in runs.plan([grid], "laptop", store=store)[0]] == ["b-seed2"]


@pytest.mark.attack("a grid that is interrupted or killed, with its workers")
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_grid_loses_no_finished_run_and_leaves_no_process(checkout, tries, sign: int) -> None:
    for number in range(tries(1, 4)):
        folder = checkout / f"try{number}"
        folder.mkdir()
        _interrupt_and_resume(folder, sign)


def _interrupt_and_resume(checkout: Path, sign: int) -> None:
    script, log = checkout / "grid.py", checkout / "log"
    script.write_text(GRID, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[1])])}
    held = Store(checkout / "store")
    with subprocess.Popen(
        [sys.executable, script, log, "0.8"], env=environment, stderr=subprocess.DEVNULL
    ) as first:
        wait_until(lambda: len(held.load("laptop", "fake")) >= 2)
        workers_of_first = children(first.pid)
        first.send_signal(sign)
        first.wait(timeout=20)
    finished = sorted(held.load("laptop", "fake"))
    assert first.returncode != 0
    assert 2 <= len(finished) < 6
    assert len(workers_of_first) >= 2
    wait_until(lambda: not alive(*workers_of_first))
    assert sorted(held.load("laptop", "fake")) == finished  # nothing went on in the dark
    assert not [file for file in held.root.rglob("*") if file.is_file() and file.suffix != ".json"]

    log.unlink()
    done = subprocess.run(
        [sys.executable, script, log, "0"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert done.stdout.strip() == f"[({6 - len(finished)}, {len(finished)})]"
    assert not set(log.read_text().split()) & set(finished)
    assert len(held.load("laptop", "fake")) == 6


@pytest.mark.attack("two commands on one store")
def test_two_commands_on_one_store_share_a_grid_and_compute_nothing_twice(fake, checkout) -> None:
    store, log = Store(checkout / "private"), checkout / "log"
    grid = fake(log=log)
    todo, tallies = runs.plan([grid], "laptop", store=store)
    with store.claim("laptop", "fake", "a-seed1") as mine:
        assert mine
        store.write(grid.run(todo[1].config))
        ended = []
        (tally,) = runs.run(todo, tallies, on_end=lambda index, why: ended.append((index, why)))
    assert (tally.skipped, tally.ran, tally.left, tally.complete) == (1, 2, 1, False)
    assert (0, runs.ELSEWHERE) in ended and (1, None) in ended
    assert sorted(log.read_text().split()) == ["a-seed2", "b-seed1", "b-seed2"]
    (tally,) = runs.run(*runs.plan([grid], "laptop", store=store))
    assert (tally.skipped, tally.ran, tally.complete) == (3, 1, True)


def test_what_the_other_command_computed_meanwhile_is_there_in_the_end(fake, checkout) -> None:
    store, grid = Store(checkout / "private"), fake()
    todo, tallies = runs.plan([grid], "laptop", store=store)

    def other(index: int, why: str | None) -> None:
        if why == runs.ELSEWHERE:
            store.write(grid.run(todo[index].config))

    with store.claim("laptop", "fake", "a-seed1"):
        (tally,) = runs.run(todo, tallies, on_end=other)
    assert (tally.skipped, tally.ran, tally.left, tally.complete) == (1, 3, 0, True)


def test_runs_that_wait_for_a_sweep_are_refused_before_any_run_starts(fake, checkout, monkeypatch) -> None:
    """And the steps and the ends of the others are told by their places in the whole."""

    def refuse(_: object, config: object) -> None:
        if config.method == "a":
            raise ValueError("no record gives 'a' a rate")

    monkeypatch.setattr(fake, "refuse", refuse)
    store, log, ended, steps = Store(checkout / "private"), checkout / "log", [], set()
    told = {"on_end": lambda *end: ended.append(end), "on_progress": lambda index, *_: steps.add(index)}
    planned = runs.plan([fake(log=log)], "laptop", store=store)
    (tally,) = runs.run(*planned, **told)
    waits = [(index, f"a (a-seed{seed}): no record gives 'a' a rate") for index, seed in ((0, 1), (2, 2))]
    assert ended[:2] == waits and sorted(ended[2:]) == [(1, None), (3, None)] and steps == {1, 3}
    assert (tally.failed, tally.ran, tally.left) == ([why for _, why in waits], 2, 0)
    assert sorted(log.read_text().split()) == ["b-seed1", "b-seed2"]
    monkeypatch.setattr(runs.workers, "run_jobs", None)  # no worker is started where nothing is ready
    (tally,) = runs.run(*runs.plan([fake(methods=("a",))], "laptop", store=store))
    assert len(tally.failed) == 2


@pytest.mark.attack("a worker that is killed in the middle of a grid")
def test_a_killed_worker_fails_its_own_run_and_no_other(fake, checkout) -> None:
    jobs = [0, 2, 1, 4, 6, 8]
    endings = list(workers.run_jobs(fake.killed_if_odd, jobs, workers=2))
    assert sorted(index for index, *_ in endings) == list(range(len(jobs)))
    assert sorted(result for *_, result, error in endings if error is None) == [0, 2, 4, 6, 8]
    ((index, error),) = [(index, error) for index, _, error in endings if error is not None]
    assert jobs[index] == 1 and "killed while no other ran" in runs._in_words(error)


@pytest.mark.attack("a worker that has lost its GPU")
def test_a_worker_that_cannot_use_its_gpu_any_more_fails_its_own_run_and_no_other(fake, checkout) -> None:
    jobs = [0, 1, 2, 4, 6, 8]
    endings = list(workers.run_jobs(fake.poisoned_if_odd, jobs, workers=1))
    assert sorted(index for index, *_ in endings) == list(range(len(jobs)))
    assert [index for index, _, error in endings if error is not None] == [1]
    assert len({process for _, process, error in endings if error is None}) == 2  # before and after it


def test_every_gpu_has_as_many_workers_and_each_worker_sees_one(fake, tmp_path) -> None:
    endings = list(workers.run_jobs(fake.met_by_four, [tmp_path] * 4, workers=2, gpus=["GPU-a", "GPU-b"]))
    assert sorted(gpu for _, gpu, _ in endings) == ["GPU-a", "GPU-a", "GPU-b", "GPU-b"]


def test_memory_that_ran_out_and_errors_of_ours_leave_a_worker_as_it_is() -> None:
    import torch

    assert workers.poisoned(RuntimeError("CUDA error: an illegal memory access was encountered"))
    fine = (None, RuntimeError("shape"), ValueError("CUDA error"), torch.OutOfMemoryError("CUDA error"))
    assert not any(map(workers.poisoned, fine))


def test_shards_share_a_grid_without_asking_one_another(fake, checkout) -> None:
    store, grid = Store(checkout / "private"), fake(methods=("a", "b", "c"))
    whole, _ = runs.plan([grid], "laptop", store=store)
    parts = []
    for number in (1, 2, 3, 4):
        todo, (tally,) = runs.plan([grid], "laptop", store=store, shard=(number, 4))
        runs.run(todo[:1], [tally], side_by_side=0)  # what is there turns no share
        parts += [run.config.key for run in todo]
    assert sorted(parts) == sorted(run.config.key for run in whole) and len(whole) == 6


@pytest.mark.attack("a full disk before a grid runs")
def test_a_disk_that_is_full_is_found_out_before_a_run_computes(fake, checkout, monkeypatch) -> None:
    store, log = Store(checkout / "private"), checkout / "log"

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    todo, tallies = runs.plan([fake(log=log)], "laptop", store=store)
    monkeypatch.setattr(os, "fsync", full)
    (tally,) = runs.run(todo, tallies, side_by_side=0)
    assert len(tally.failed) == 4 and not log.exists()
    folder = store.root / "laptop" / "fake"
    assert f"{folder}: no record can be written here (No space left on device)" in tally.failed[0]
    assert not list(folder.iterdir())


@pytest.mark.attack("code that changes while a grid runs")
def test_a_published_store_takes_no_record_of_a_changed_tree(fake, checkout) -> None:
    (tally,) = runs.run(*runs.plan([fake(methods=("a",), dirty=True)], "laptop", store=Store()))
    assert len(tally.failed) == 2 and "the tree was changed while the grid ran" in tally.failed[0]
    assert Store().load("laptop", "fake") == {}


def test_a_published_grid_needs_a_clean_checkout(checkout) -> None:
    private = Store(checkout / "private")
    runs.check_clean(private)
    refused("no git checkout", runs.check_clean, Store())
    git(checkout, "init", "-q")
    git(checkout, "add", "requirements.lock")
    git(checkout, "commit", "-q", "-m", "start")
    runs.check_clean(Store())
    (checkout / "requirements.lock").write_text("torch==2.12.0\n", encoding="utf-8")
    refused(r"uncommitted changes.*--store DIR", runs.check_clean, Store())
    runs.check_clean(private)


def children(parent: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True)
    return [int(process) for process in listed.stdout.split()]
