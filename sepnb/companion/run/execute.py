"""Run a chapter: jupytext makes the notebook, papermill executes it, outputs are kept and errors reported.

The kernel uses the interpreter that runs this module (`kernels`): no kernel of the user is used or changed. A
failing cell ends its own chapter only; the partly executed notebook is kept as `<chapter>.failed.ipynb`, and
nothing older is left to be mistaken for current.
"""

import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sepnb import paths
from sepnb.companion.run import chapters, workers
from sepnb.companion.run.chapters import Chapter
from sepnb.companion.run.runs import store_for
from sepnb.records.numbers import NumbersError, load

INJECTED = "injected-parameters"
# What the executed notebook names, so that it opens anywhere.
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
LAST_LINES = 14


@dataclass(frozen=True)
class Failure:
    """What went wrong, ready for one screen: no ANSI codes, no more than the last frames."""

    cell: str
    error: str
    line: str
    place: str
    trace: str = ""


@dataclass(frozen=True)
class Outcome:
    """How one chapter fared: `status` is `ran`, `cached` or `failed`; `why` says why it had to run."""

    chapter: str
    status: str
    seconds: float
    why: str = ""
    failure: Failure | None = None


@dataclass(frozen=True)
class Job:
    """One chapter to be executed, and with what."""

    chapter: Chapter
    profile: str
    seed: int = 0
    device: str = "cpu"
    threads: int = 1
    fresh: bool = False

    @property
    def parameters(self) -> dict[str, Any]:
        return {"profile": self.profile, "seed": self.seed, "device": self.device}

    @property
    def expected_seconds(self) -> float:
        """As long as it took the last time; of one that never ran, by the length of its source."""
        return chapters.last_seconds(self.chapter, self.profile) or len(self.chapter.text) / 2000

    def why(self) -> str | None:
        """Why it must run; None when what it left is current."""
        return "asked for" if self.fresh else chapters.why_run(self.chapter, self.profile, self.parameters)


def execute_all(
    jobs: Sequence[Job], *, side_by_side: int = 1, on_progress: Callable[[int, int, int], None] | None = None
) -> list[Outcome]:
    """Execute what is not current, and go on when a chapter fails; outcomes in the order of `jobs`.

    `on_progress` is called as `(index of the job, cells done, cells)`.
    """
    outcomes = [Outcome(job.chapter.name, "cached", 0.0) for job in jobs]
    due = [index for index, job in enumerate(jobs) if job.why() is not None]
    alone = side_by_side == 1 or len(due) < 2
    if not alone:  # the longest begin first, so that no core is left with one at the end
        due.sort(key=lambda index: -jobs[index].expected_seconds)

    def relay(position: int, done: int, total: int) -> None:
        if on_progress:
            on_progress(due[position], done, total)

    todo = [jobs[index] for index in due]
    for position, outcome, error in workers.run_jobs(
        execute, todo, workers=0 if alone else side_by_side, on_progress=relay
    ):
        failed = Outcome(todo[position].chapter.name, "failed", 0.0, failure=_outside(error))
        outcomes[due[position]] = outcome or failed
    return outcomes


def execute(job: Job, report: workers.Report = lambda done, total: None) -> Outcome:
    """Execute one chapter if it is not current. A failure is returned, not raised."""
    why = job.why()
    if why is None:
        return Outcome(job.chapter.name, "cached", 0.0)
    made_from = chapters.fingerprint(job.chapter, job.parameters)
    chapters.forget(job.chapter, job.profile)
    began = time.monotonic()
    failure = _run(job, report)
    seconds = time.monotonic() - began
    if failure is None:
        chapters.remember(job.chapter, job.profile, made_from, seconds)
    return Outcome(job.chapter.name, "failed" if failure else "ran", seconds, why, failure)


def _run(job: Job, report: workers.Report) -> Failure | None:
    from papermill.exceptions import PapermillExecutionError

    chapter = job.chapter
    running = chapter.output(job.profile, "running.ipynb")
    try:
        _papermill(job, running, report)
        load(chapter.name, job.profile)
        os.replace(running, chapter.output(job.profile))
        return None
    except PapermillExecutionError as error:
        failure = explain(chapter, json.loads(running.read_text(encoding="utf-8")), error)
    except NumbersError as error:
        message = f"the chapter published no numbers: {error}"
        failure = Failure("after the last cell", message, "", _show(chapter.path))
    except Exception as error:
        failure = _outside(error, _show(chapter.path))
    except BaseException:
        running.unlink(missing_ok=True)
        raise
    chapter.output(job.profile, "json").unlink(missing_ok=True)
    if running.exists():
        os.replace(running, chapter.output(job.profile, "failed.ipynb"))
    return failure


def _papermill(job: Job, running: Path, report: workers.Report) -> None:
    """Execute the chapter's notebook in the file `running`, in a kernel of this interpreter."""
    import jupytext
    import nbformat
    import papermill

    from sepnb.companion.run import kernels

    unknown = set(job.parameters) - set(job.chapter.parameters)
    if unknown:
        raise ValueError(f"{job.chapter.path}: the parameters cell lacks {', '.join(sorted(unknown))}")
    notebook = jupytext.read(job.chapter.path, fmt="py:percent")
    notebook.metadata.setdefault("kernelspec", KERNEL)
    running.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, running)
    environment = dict.fromkeys(workers.THREAD_VARIABLES, str(job.threads)) | {
        "SEPNB_READ_LOG": str(job.chapter.output(job.profile, "reads")),
        "SEPNB_RESULTS": str(store_for(job.profile).root.resolve()),
        "PYTHONHASHSEED": "0",
    }
    papermill.execute_notebook(
        running,
        running,
        parameters=job.parameters,
        progress_bar=False,
        engine_name=kernels.SAVED_ONCE,
        kernel_manager_class=kernels.manager(environment, job.device),
        on_cell_executed=lambda cell, cell_index, **_: report(cell_index + 1, len(notebook.cells) + 1),
        resources={"metadata": {"path": str(paths.root())}},
    )


def explain(chapter: Chapter, notebook: Mapping[str, Any], error: Any) -> Failure:
    """Cell number, error and source line of papermill's error, in terms of the script that people edit."""
    trace = "\n".join(map(plain, error.traceback)).rstrip()
    added = {INJECTED, "papermill-error-cell-tag"}
    own = [cell for cell in notebook["cells"] if not added & set(cell["metadata"].get("tags", []))]
    code = [cell for cell in own if cell["cell_type"] == "code"]
    failed = (n for n, cell in enumerate(code, 1) if cell["metadata"].get("papermill", {}).get("exception"))
    position = next(failed, None)
    where = f"code cell {position} of {len(code)}" if position else "the injected parameters"
    within = [int(n) for n in re.findall(rf"Cell In\[{error.exec_count}\], line (\d+)", trace)]
    lines = error.source.splitlines()
    line = lines[within[-1] - 1].strip() if within and within[-1] <= len(lines) else ""
    place = _show(chapter.path)
    start = chapter.text.find(error.source)
    if within and start >= 0:
        place += f":{chapter.text.count(chr(10), 0, start) + within[-1]}"
    frames = trace.splitlines()
    kept = "\n".join((["…"] if len(frames) > LAST_LINES else []) + frames[-LAST_LINES:])
    return Failure(where, f"{error.ename}: {plain(error.evalue)}", line, place, kept)


def _outside(error: BaseException | None, place: str = "") -> Failure:
    return Failure("before or outside a cell", f"{type(error).__name__}: {plain(str(error))}", "", place)


def plain(text: str) -> str:
    """Without the codes that colour a terminal."""
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)


def _show(path: Path) -> str:
    return str(path.relative_to(paths.root())) if path.is_relative_to(paths.root()) else str(path)
