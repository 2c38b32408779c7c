"""The runs of a grid as one job array, one run a task, through submitit.

A task does what a worker of `sepnb run` does: it claims its record, computes, and stores it whole. So nothing
has to be collected. After a task, a node, the scheduler or the waiting command has failed, the same command
submits what is neither stored nor in the queue, and waits for all of it.

A task is requeued by Slurm when it is preempted or its node fails, by submitit on a signal, and by the job's
own script, twice at most, when its process was killed.
"""

import json
import math
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from sepnb import paths
from sepnb.companion.run.runs import Ended, GridRun, TaskError, compute, written
from sepnb.companion.run.workers import THREAD_VARIABLES, at_most_every
from sepnb.records.provenance import code_tree, running_tree

RESTARTS = 2
"""How often a task whose process was killed is started again."""
TIME_LEFT = 60
"""Seconds before the end of its time at which a task is told."""
SLOWEST = 15.0
"""Seconds between two looks at the queue, after a while."""


@dataclass
class Cluster:
    """Where the runs of a grid go.

    Args:
        partition: of Slurm; None is the cluster's default.
        parallel: how many tasks at a time.
        gpus: of each task, 0 or 1.
        minutes: after which Slurm ends a task; None: four times what the longest is expected to take, and at
            least half an hour.
        threads: what each task may use.
        say: called with a line on what was submitted and how to look at it.
    """

    partition: str | None = None
    parallel: int = 1
    gpus: int = 0
    minutes: int | None = None
    threads: int = 1
    say: Callable[[str], None] = print
    jobs: list[str] = field(default_factory=list)
    """The job arrays that are waited for."""

    def check(self) -> None:
        """ValueError where nothing could be submitted, with the remedy."""
        _submitit()
        for command in ("sbatch", "squeue"):
            if shutil.which(command) is None:
                raise ValueError(
                    f"--cluster slurm needs the command {command}, which is not here; run it where jobs are "
                    f"submitted, or leave --cluster away"
                )

    def device(self, asked: str | None, profile: str) -> str:
        """The device of the tasks: cuda where they have a GPU, unless the CPU is asked for."""
        cuda = asked == "cuda" or (asked is None and profile == "gpu")
        if cuda and not self.gpus:
            what = "--device cuda" if asked == "cuda" else "the gpu profile"
            raise ValueError(f"{what} needs a GPU of each task: give --gpus 1, or --device cpu")
        return "cuda" if self.gpus and asked != "cpu" else "cpu"

    def run_jobs(self, todo: Sequence[GridRun]) -> Ended:
        """Submit what is not in the queue, wait, and yield how each run ended, as `workers.run_jobs` does.

        Ended early, it leaves the tasks as they are.
        """
        place = _folder() / f"{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 10**6:06d}"
        under_way, quiet, pause = self._submitted(todo), set(), 0.5
        if under_way:
            self._tell(f"{len(under_way)} runs are in the queue already", under_way.values())
        if waiting := [index for index in range(len(todo)) if index not in under_way]:
            jobs = self._submit([todo[index] for index in waiting], place)
            under_way |= zip(waiting, jobs, strict=True)
        while under_way:
            time.sleep(pause)
            pause = min(1.2 * pause, SLOWEST)
            gone = self._gone(under_way)
            # After an outage the controller may list a finished task as running. Results from another
            # machine may come late: without one, a task has ended once two queries in a row miss it.
            reported = {index for index, job in under_way.items() if _reported(job)}
            done = {index for index in reported - gone if under_way[index].exception() is None}
            ended = sorted(done | (gone & reported) | (gone & quiet))
            quiet = gone.difference(ended)
            for index in ended:
                yield index, *self._outcome(todo[index], under_way.pop(index))

    def left_running(self) -> str:
        """After an interruption: what goes on, and how to see and to end it."""
        if not self.jobs:
            return ""
        ids = ",".join(self.jobs)
        return (
            f"the jobs go on without this command: `squeue --jobs {ids}` shows them, "
            f"`scancel {ids.replace(',', ' ')}` ends them; the same command waits for them again"
        )

    def _submit(self, chunk: Sequence[GridRun], place: Path) -> list[Any]:
        """Submit runs as one array and return its jobs; `place` takes their logs and a note of their ids."""
        submitit = _submitit()
        threads = [f"{name}={self.threads}" for name in THREAD_VARIABLES]
        python = f"env {' '.join(threads)} {shlex.quote(sys.executable)}"
        from sepnb.experiments.expected import of_run

        longest = max(of_run(run.experiment, run.config).alone for run in chunk)
        minutes = self.minutes or max(30, math.ceil(4 * longest / 60))
        executor = submitit.SlurmExecutor(folder=place, python=python)
        executor.update_parameters(**self._asked(chunk, minutes))
        try:
            with executor.batch():
                jobs = [executor.submit(Task(code_tree()), run) for run in chunk]
        except RuntimeError as error:
            raise ValueError(f"slurm took no job: {str(error).strip().splitlines()[-1]}") from None
        noted = {str(run.path): job.job_id for run, job in zip(chunk, jobs, strict=True)}
        paths.write_atomically(place / "runs.json", json.dumps(noted, indent=1))
        self._tell(f"submitted {len(jobs)} runs, {self.parallel} at a time, {minutes} min each", jobs)
        return jobs

    def _asked(self, chunk: Sequence[GridRun], minutes: int) -> dict[str, Any]:
        again = f'[ "$code" != 137 ] || [ "${{SLURM_RESTART_COUNT:-0}}" -ge {RESTARTS} ]'
        asked = {
            "job_name": f"sepnb-{chunk[0].experiment.name}",
            "partition": self.partition,
            "time": minutes,
            "array_parallelism": self.parallel,
            "cpus_per_task": self.threads,
            "srun_args": [f"--cpus-per-task={self.threads}"],  # which srun does not take from the job
            "gpus_per_node": self.gpus or None,
            "exclusive": any(run.experiment.alone for run in chunk) or None,
            "signal_delay_s": TIME_LEFT,
            "additional_parameters": {"requeue": True},
            "teardown": ["code=$?", f'{again} || scontrol requeue "$SLURM_JOB_ID"', 'exit "$code"'],
        }
        return {name: value for name, value in asked.items() if value is not None}

    def _submitted(self, todo: Sequence[GridRun]) -> dict[int, Any]:
        """The runs that earlier commands submitted and that are in the queue still, by index in `todo`."""
        notes = sorted(_folder().glob("*/runs.json"))
        queue = _queue() if notes else set()
        if queue is None:
            raise ValueError("squeue does not answer, and runs may be in the queue; try again when it does")
        held = {}
        for note in notes:
            for path, job in json.loads(note.read_text(encoding="utf-8")).items():
                if job in queue:
                    held[path] = (note.parent, job)
        job_of = _submitit().SlurmJob
        return {
            index: job_of(folder=held[path][0], job_id=held[path][1])
            for index, path in enumerate(str(run.path) for run in todo)
            if path in held
        }

    def _tell(self, what: str, jobs: Sequence[Any]) -> None:
        self.jobs += dict.fromkeys(job.job_id.split("_")[0] for job in jobs)
        folders = dict.fromkeys(str(job.paths.folder) for job in jobs)
        self.say(f"{what}: job {', '.join(self.jobs)}; logs in {', '.join(folders)}")

    def _gone(self, under_way: dict[int, Any]) -> set[int]:
        """Which of these are in no queue and in no process; none of them where the scheduler is silent."""
        queue = _queue()
        return set() if queue is None else {i for i, job in under_way.items() if job.job_id not in queue}

    def _outcome(self, run: GridRun, job: Any) -> tuple[float | None, BaseException | None]:
        """What `compute` returned in a task that is gone, or why it failed."""
        log = job.paths.stderr
        if not _reported(job):
            if written(run.path) not in (None, run.written):
                return 0.0, None  # it ended between its record and its last word
            how = "it was cancelled, or its process was killed (out of memory, out of time?)"
            return None, TaskError(f"{how}; log: {log}")
        error = job.exception()
        if error is None:
            return job.result(), None
        trace = re.search(r"-{20,}\n(.*?)\n-{20,}", str(error), re.DOTALL)
        why = (trace[1] if trace else str(error)).strip().splitlines()[-1]
        if "timed-out" in why:
            why = "it ran out of its time; give more with --minutes"
        return None, TaskError(f"{why}; log: {log}")


@dataclass(frozen=True)
class Task:
    """What a task does with its run: `compute`, by the code that was submitted and no other."""

    tree: str

    def __call__(self, run: GridRun) -> float | None:
        if running_tree() != self.tree:
            raise RuntimeError("the code in sepnb/ was changed after the submission; run the command again")
        if run.device == "cuda":
            import torch

            if not torch.cuda.is_available():
                raise RuntimeError(f"torch {torch.__version__} finds no GPU here; ask for one with --gpus 1")
        return compute(run, at_most_every(30, _log))


def _log(done: int, total: int) -> None:
    print(f"{done} of {total} steps", flush=True)


def _reported(job: Any) -> bool:
    """Whether a task left word of how it ended."""
    return job.paths.result_pickle.exists()


def _queue() -> set[str] | None:
    """The ids of this user's jobs in Slurm's queue, `7_0` for task 0 of array 7; None where it is silent."""
    command = ["squeue", "--me", "--array", "--noheader", "--format=%F %K"]
    listed = subprocess.run(command, capture_output=True, text=True)
    if listed.returncode:
        return None
    return {line.strip().replace(" N/A", "").replace(" ", "_") for line in listed.stdout.splitlines()}


def _folder() -> Path:
    """Where submissions are kept: what was submitted, and the logs."""
    return (paths.build() / "cluster").absolute()


def _submitit() -> Any:
    try:
        return import_module("submitit")
    except ImportError:
        raise ValueError(
            "--cluster needs submitit, which is not installed: pip install 'submitit>=1.5,<2', which is the "
            "extra sepnb[cluster]"
        ) from None
