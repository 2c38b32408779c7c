"""Run a chapter: jupytext makes the notebook, papermill executes it, what comes out is kept or said.

The kernel is the interpreter that runs this module, through a kernel specification of its own under the
build folder: no kernel of the user is needed or touched. A failing cell ends its own chapter only; the
partly executed notebook is kept as `<chapter>.failed.ipynb`, and nothing older is left to be mistaken for
current.
"""

import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sepnb import paths
from sepnb.companion import chapters, workers
from sepnb.companion.chapters import Chapter
from sepnb.companion.runs import store_for
from sepnb.records.numbers import NumbersError, load

Report = Callable[[int, int], None]
INJECTED = "injected-parameters"
# What the executed notebook names, so that it opens anywhere; it ran in a kernel of its own.
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


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

    def why(self) -> str | None:
        """Why it must run; None when what it left is current."""
        return "asked for" if self.fresh else chapters.why_run(self.chapter, self.profile, self.parameters)


def execute_all(
    jobs: Sequence[Job], *, side_by_side: int = 1, on_progress: Callable[[int, int, int], None] | None = None
) -> list[Outcome]:
    """Execute what is not current, each chapter whatever befalls the others; outcomes in the order of `jobs`.

    Side by side the longest begin first, so that no core is left with one at the end.
    `on_progress` is called as `(index of the job, cells done, cells)`.
    """
    outcomes: dict[int, Outcome] = {}
    due = []
    for index, job in enumerate(jobs):
        if job.why() is None:
            outcomes[index] = Outcome(job.chapter.name, "cached", 0.0)
        else:
            due.append(index)
    if side_by_side > 1 and len(due) > 1:

        def relay(position: int, done: int, total: int) -> None:
            if on_progress:
                on_progress(due[position], done, total)

        due.sort(key=lambda index: -_expected_seconds(jobs[index]))
        todo = [jobs[index] for index in due]
        for position, outcome, error in workers.run_jobs(
            execute, todo, workers=side_by_side, on_progress=relay
        ):
            name = jobs[due[position]].chapter.name
            outcomes[due[position]] = outcome or Outcome(name, "failed", 0.0, failure=_unexpected(error))
    else:
        for index in due:
            outcomes[index] = execute(
                jobs[index], lambda done, total, i=index: on_progress and on_progress(i, done, total)
            )
    return [outcomes[index] for index in range(len(jobs))]


def _expected_seconds(job: Job) -> float:
    """As long as it took the last time; of one that never ran, by the length of its source."""
    known = chapters.last_seconds(job.chapter, job.profile)
    return len(job.chapter.text) / 2000 if known is None else known


def execute(job: Job, report: Report = lambda done, total: None) -> Outcome:
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


def _run(job: Job, report: Report) -> Failure | None:
    import jupytext
    import nbformat
    import papermill
    from papermill.exceptions import PapermillExecutionError

    chapter = job.chapter
    running = chapter.output(job.profile, "running.ipynb")
    failed = chapter.output(job.profile, "failed.ipynb")
    running.parent.mkdir(parents=True, exist_ok=True)
    _register_engine()
    failure = None
    try:
        unknown = set(job.parameters) - set(chapter.parameters)
        if unknown:
            raise ValueError(f"{chapter.path}: the parameters cell lacks {', '.join(sorted(unknown))}")
        notebook = jupytext.read(chapter.path, fmt="py:percent")
        notebook.metadata.setdefault("kernelspec", KERNEL)
        source = paths.build() / "kernels" / f"{chapter.name}.ipynb"
        kernel = _kernel(job)
        nbformat.write(notebook, source)
        papermill.execute_notebook(
            source,
            running,
            parameters=job.parameters,
            engine_name="sepnb",
            kernel_name=kernel,
            progress_bar=False,
            report=report,
            resources={"metadata": {"path": str(paths.root())}},
        )
        load(chapter.name, job.profile)
    except PapermillExecutionError as error:
        failure = explain(chapter, json.loads(running.read_text(encoding="utf-8")), error)
    except NumbersError as error:
        failure = Failure(
            "after the last cell", f"the chapter published no numbers: {error}", "", _show(chapter.path)
        )
    except Exception as error:
        failure = _unexpected(error, _show(chapter.path))
    except BaseException:
        running.unlink(missing_ok=True)
        raise
    if failure is None:
        os.replace(running, chapter.output(job.profile))
        return None
    chapter.output(job.profile, "json").unlink(missing_ok=True)
    if running.exists():
        os.replace(running, failed)
    return failure


def explain(chapter: Chapter, notebook: Mapping[str, Any], error: Any) -> Failure:
    """Cell number, error and source line of papermill's error, in terms of the script that people edit."""
    trace = [plain(frame) for frame in error.traceback]
    own = [
        c
        for c in notebook["cells"]
        if not {INJECTED, "papermill-error-cell-tag"} & set(c["metadata"].get("tags", []))
    ]
    code = [c for c in own if c["cell_type"] == "code"]
    position = next((n for n, c in enumerate(code, 1) if _has_error(c)), None)
    cell = f"code cell {position} of {len(code)}" if position else "the injected parameters"
    within = [int(n) for n in re.findall(rf"Cell In\[{error.exec_count}\], line (\d+)", "\n".join(trace))]
    lines = error.source.splitlines()
    line = lines[within[-1] - 1].strip() if within and within[-1] <= len(lines) else ""
    place = _show(chapter.path)
    start = chapter.text.find(error.source)
    if within and start >= 0:
        place += f":{chapter.text.count(chr(10), 0, start) + within[-1]}"
    return Failure(cell, f"{error.ename}: {plain(error.evalue)}", line, place, _last_lines(trace, 14))


def _unexpected(error: BaseException | None, place: str = "") -> Failure:
    return Failure("before or outside a cell", f"{type(error).__name__}: {plain(str(error))}", "", place)


def _has_error(cell: Mapping[str, Any]) -> bool:
    failed = any(output["output_type"] == "error" for output in cell.get("outputs", []))
    return failed or cell["metadata"].get("papermill", {}).get("exception") is True


def _last_lines(frames: Sequence[str], count: int) -> str:
    lines = "\n".join(frames).rstrip().splitlines()
    return "\n".join((["…"] if len(lines) > count else []) + lines[-count:])


def plain(text: str) -> str:
    """Without the codes that colour a terminal."""
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)


def _show(path: Path) -> str:
    return str(path.relative_to(paths.root())) if path.is_relative_to(paths.root()) else str(path)


def _kernel(job: Job) -> str:
    """Write a kernel specification for this job and make Jupyter look for it; return its name."""
    name = f"sepnb-{job.profile}-{job.chapter.name}".lower()
    folder = paths.build() / "kernels" / "kernels" / name
    folder.mkdir(parents=True, exist_ok=True)
    environment = dict.fromkeys(workers.THREAD_VARIABLES, str(job.threads)) | {
        "SEPNB_READ_LOG": str(job.chapter.output(job.profile, "reads")),
        "SEPNB_RESULTS": str(store_for(job.profile).root.resolve()),
        "PYTHONHASHSEED": "0",
    }
    # The level silences a warning about unencrypted sockets, which ipykernel prints on every start.
    command = [
        sys.executable,
        "-m",
        "ipykernel_launcher",
        "--IPKernelApp.log_level=CRITICAL",
        "-f",
        "{connection_file}",
    ]
    specification = {"argv": command, "display_name": "sepnb", "language": "python", "env": environment}
    (folder / "kernel.json").write_text(json.dumps(specification), encoding="utf-8")
    here, known = str(paths.build() / "kernels"), os.environ.get("JUPYTER_PATH", "")
    if here not in known.split(os.pathsep):
        os.environ["JUPYTER_PATH"] = os.pathsep.join(filter(None, [here, known]))
    return name


def _register_engine() -> None:
    """papermill's own engine, with a call after each cell."""
    from papermill.engines import NBClientEngine, papermill_engines

    class Reporting(NBClientEngine):
        @classmethod
        def execute_managed_notebook(
            cls, nb_man: Any, kernel_name: str, report: Report, **options: Any
        ) -> Any:
            complete, total = nb_man.cell_complete, len(nb_man.nb.cells)

            def completed(cell: Any, cell_index: int | None = None, **more: Any) -> None:
                complete(cell, cell_index=cell_index, **more)
                report((cell_index or 0) + 1, total)

            nb_man.cell_complete = completed
            return super().execute_managed_notebook(nb_man, kernel_name, **options)

    papermill_engines.register("sepnb", Reporting)
