"""From executed chapters to the site: stage the notebooks, let Jupyter Book build, publish to `build/html`.

Only one build at a time uses a build folder. Jupyter Book ends with the build that started it, however that
ends: otherwise it would keep writing into the folder of the next build.

Sphinx reads pages in two processes, but resolves and writes them in little more than one. So the editions in
other languages begin as soon as the original has been read, and fill the other core.

Sphinx needs ten seconds to find out that there is nothing to do; a hash of everything it reads needs a
fraction of one. Pages that changed are built incrementally; a change of anything that acts on all pages
(configuration, extension, package, records, commit) builds all of them anew.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from sepnb import paths
from sepnb.companion.book import languages, phone
from sepnb.companion.book.dark import both_modes
from sepnb.companion.book.notebooks import with_setup
from sepnb.companion.run import workers
from sepnb.companion.run.chapters import Chapter, digest
from sepnb.companion.run.execute import INJECTED, plain
from sepnb.records.numbers import write_json

# The defaults are dropped; the values that were used stay one click away.
HIDE = {"parameters": "remove-cell", INJECTED: "hide-cell"}
# Pages are read and written side by side, which Jupyter Book's own command line cannot ask for. Garbage is
# collected seldom: the trees of a page live until it is written. When all is written, the process leaves
# without taking apart what it holds, which would take eight seconds.
BOOK = """
import functools, gc, os, sys
gc.set_threshold(100_000, 50, 50)
from jupyter_book import sphinx
from jupyter_book.cli.main import main
sphinx.build_sphinx = functools.partial(sphinx.build_sphinx, jobs=min(2, os.cpu_count() or 1))
try:
    main()
except SystemExit as end:
    if end.code:
        raise
sys.stdout.flush()
sys.stderr.flush()
os._exit(0)
"""


# The build holds the writing end of standard input, see `lifeline`. When it closes, as it does if the build
# dies, the whole process group is killed: Sphinx's own workers write pages as well.
LIFELINE = """
import os, signal, threading
def leave_with_parent():
    os.read(0, 1)
    os.killpg(0, signal.SIGKILL)
threading.Thread(target=leave_with_parent, daemon=True).start()
"""


class BuildError(RuntimeError):
    """The book could not be built; the message says why and where the log is."""


def html() -> Path:
    """Where the finished site lies."""
    return paths.build() / "html"


@contextmanager
def alone(say: Callable[[str], None]) -> Iterator[None]:
    """Wait until no other process builds in this build folder, and keep others waiting."""
    paths.build().mkdir(parents=True, exist_ok=True)
    lock = FileLock(paths.build() / "build.lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        say(f"another build is under way in {paths.build()}; waiting for its end")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def lifeline() -> Iterator[int]:
    """Standard input for processes that shall not outlive this block, or this process, however it ends."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        os.close(writing)
        os.close(reading)


def stage(chapters: Iterable[Chapter], profile: str) -> list[Path]:
    """Copy the executed notebooks of `profile` to where the table of contents expects them; others go.

    What differs between two runs of the same content (cell ids, times, paths of this machine) is left out,
    so that a chapter that ran again without a change does not rebuild its page.
    """
    folder, staged = paths.root() / "notebooks" / "executed", {}
    narrow: dict[str, str] = {}
    for chapter in chapters:
        source = chapter.output(profile)
        if not source.exists():
            raise BuildError(f"{chapter.name} has not run at {profile}; run `sepnb run {chapter.name}`")
        try:
            notebook = with_setup(clean(json.loads(source.read_text(encoding="utf-8")), narrow))
        except ValueError as error:
            raise BuildError(f"{chapter.name}: {error}") from error
        text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
        staged[folder / f"{chapter.name}.ipynb"] = text
    paths.keep_only(folder, "*.ipynb", staged)
    phone.keep(narrow)
    return [*staged]


def clean(notebook: dict[str, Any], narrow: dict[str, str] | None = None) -> dict[str, Any]:
    """An executed notebook as the book shows it: parameter cells hidden, traces of the run removed, words on
    every figure.

    `sepnb.plots.figures.show` describes a figure in the metadata of its output, the only place that running
    code can write to. MyST-NB takes alternative text, caption and name from the metadata of the cell, for all
    that the cell shows: outputs below a figure get a cell of their own. Drawings for a phone move to
    `narrow`, by name.

    Raises:
        ValueError: an image has no alternative text, or a cell shows more than one.
    """
    notebook["metadata"].pop("papermill", None)
    cells = []
    for number, cell in enumerate(notebook["cells"]):
        cells.append(cell)
        metadata = cell["metadata"]
        for trace in ("papermill", "execution"):
            metadata.pop(trace, None)
        tags = metadata.get("tags", [])
        if wanted := [HIDE[tag] for tag in tags if tag in HIDE]:
            metadata["tags"] = list(dict.fromkeys([*tags, *wanted]))
        shown = [out for out in cell.get("outputs", []) if "image/" in " ".join(out.get("data", {}))]
        abouts = [out["metadata"].get("sepnb") or {} for out in shown]
        where = f"cell {number + 1} shows"
        if not all(about.get("alt") for about in abouts):
            raise ValueError(f"{where} an image without alternative text; show it with figures.show")
        if len(abouts) > 1:
            raise ValueError(f"{where} {len(abouts)} figures; give each a cell of its own")
        for out in shown:
            if drawing := out["data"].get("image/svg+xml"):
                out["data"]["image/svg+xml"] = both_modes("".join(drawing))
        for about in abouts:
            # `dark-light` tells the theme that the image suits both modes, so that it is not dimmed.
            classes = "dark-light" + phone.take(about, {} if narrow is None else narrow)
            words = {"image": {"alt": about["alt"], "classes": classes}}
            if figure := {key: about[key] for key in ("name", "caption") if about.get(key)}:
                words["figure"] = figure
            metadata["mystnb"] = metadata.get("mystnb", {}) | words
        if shown and (under := [out for out in cell["outputs"] if "data" in out and out not in shown]):
            cell["outputs"] = [out for out in cell["outputs"] if out not in under]
            source = "".join(cell["source"]).splitlines()[-1]  # MyST-NB drops a cell without any
            bare = {"metadata": {"tags": ["remove-input"]}, "source": source, "execution_count": None}
            cells.append({"cell_type": "code", "outputs": under} | bare)
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    notebook["cells"] = cells
    return notebook


def inputs(profile: str) -> dict[str, str]:
    """Hashes of what the site is made from: `pages`, which Sphinx follows by itself, and `rest`."""
    from sepnb.records.provenance import git_state

    root, build, results = paths.root(), paths.build(), paths.results()
    pages = [*root.glob("book/*.md"), *root.glob("notebooks/executed/*.ipynb")]  # not those of the reference
    # The ledger of claims takes a chapter's numbers from whichever profile it ran at.
    published = (file for of in ("smoke", "laptop", "gpu") for file in (build / of).glob("*.json"))
    numbers = [file for file in published if ".manifest" not in file.name]
    rest = [root / name for name in ("_config.yml", "_toc.yml", "requirements.lock", "CITATION.cff")]
    rest += [file for file in root.glob("book/**/*") if file.suffix not in (".md", ".pyc")]
    rest = [file for file in rest if not file.is_relative_to(languages.locale())]
    rest = [file for file in [*rest, *root.glob("sepnb/**/*.py")] if file.is_file()]
    records = digest(results.glob("**/*.json"), results)
    return {
        "pages": digest(pages, root) + digest(numbers, build),
        "translations": languages.inputs(),
        "rest": f"{digest(rest, root)} {records} {git_state()[0]} {profile}",
    }


def build(profile: str, *, say: Callable[[str], None] = print, fresh: bool = False) -> bool:
    """Build the site from the staged notebooks; return False if the existing site is current.

    `say` receives Sphinx's warnings and errors, line by line. Any of them raises BuildError: the old site
    stays, but no longer counts as current.
    """
    now, memory = inputs(profile), paths.build() / "book.json"
    before = json.loads(memory.read_text(encoding="utf-8")) if memory.exists() else {}
    if not fresh and before == now and (html() / "index.html").exists():
        return False
    memory.unlink(missing_ok=True)
    work = paths.build() / "book-work"
    all_pages = ["--all"] if fresh or before.get("rest") != now["rest"] else []
    environment = {**dict.fromkeys(workers.THREAD_VARIABLES, "1"), "SEPNB_PROFILE": profile}

    original = {part: now[part] for part in ("pages", "rest")}
    made = (work / "_build" / "html" / "index.html").exists()
    due = fresh or not made or any(before.get(part) != original[part] for part in original)
    read = languages.original(work) / languages.READ
    read.unlink(missing_ok=True)
    # The lifeline is cut first, so that no thread waits for a build that nobody wants any more.
    with ThreadPoolExecutor() as beside, lifeline() as end:

        def run(options: list[str], name: str) -> None:
            log = paths.build() / f"{name}.log"
            status, last = _jupyter_book(["-W", "-n", "--keep-going", *options], environment, log, say, end)
            if status:
                reason = "" if "WARNING" in "".join(last) else "".join(last)
                message = f"the book did not build (exit status {status}); all of it is in {log}"
                raise BuildError(f"{message}\n{reason}".rstrip())

        book = beside.submit(run, ["--path-output", str(work), *all_pages], "book") if due else None
        while book and not (book.done() or read.exists()):
            time.sleep(0.1)
        if book and book.done():
            book.result()
        every_page = all_pages if "translations" in before else ["--all"]
        others = beside.submit(languages.build, work, run, every_page)
        if book:
            book.result()
        # What is wrong in a translation costs no more than its own pages.
        write_json(memory, original)
        editions = others.result()
    _publish(work / "_build" / "html", editions, html())
    write_json(memory, now)
    return True


def _jupyter_book(
    options: Iterable[str], environment: Mapping[str, str], log: Path, say: Callable[[str], None], end: int
) -> tuple[int, deque[str]]:
    """Run it until it ends or `end` closes; output goes to the log, warnings and errors also to `say`.

    Returns:
        Exit status and the last lines.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    last: deque[str] = deque(maxlen=15)
    with (
        log.open("a", encoding="utf-8") as file,
        subprocess.Popen(
            [sys.executable, "-c", LIFELINE + BOOK, "build", str(paths.root()), *options],
            env={**os.environ, **environment, "PYTHONUNBUFFERED": "1"},
            cwd=paths.root(),
            start_new_session=True,  # a group of its own, which the lifeline ends
            stdin=end,
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        ) as process,
    ):
        for line in map(plain, process.stderr or ()):
            file.write(line)
            file.flush()
            if line.strip():
                last.append(line)
                if any(word in line for word in ("WARNING", "ERROR", "CRITICAL")):
                    say(line.rstrip())
    return process.returncode, last


def _publish(made: Path, editions: Mapping[str, Path], target: Path) -> None:
    """Put a finished site, with its editions by language, in place of the old one; a reader never sees half
    of it."""
    new, old = target.with_name(".html.new"), target.with_name(".html.old")
    for leftover in (new, old):
        shutil.rmtree(leftover, ignore_errors=True)
    shutil.copytree(made, new)
    for language, edition in editions.items():
        shutil.rmtree(new / language, ignore_errors=True)
        shutil.copytree(edition, new / language)
    if target.exists():
        target.rename(old)
    new.rename(target)
    shutil.rmtree(old, ignore_errors=True)
