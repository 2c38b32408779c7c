"""Staging and skipping; the real book is built by tests/book."""

import json
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import pytest

from sepnb import paths
from sepnb.companion.book import build as book
from sepnb.companion.run.chapters import Chapter
from sepnb.records import numbers

from ..shared import wait_until


def notebook(started: str, cell_id: str) -> dict:
    """An executed notebook as papermill leaves it."""

    def cell(kind: str, source: str, *tags: str) -> dict:
        found = {"cell_type": kind, "id": cell_id, "source": source, "metadata": {"tags": list(tags)}}
        found["metadata"]["papermill"] = {"start_time": started, "status": "completed"}
        return found | ({"outputs": [], "execution_count": 1} if kind == "code" else {})

    cells = [
        cell("markdown", "# Order"),
        cell("code", 'profile = "smoke"', "parameters"),
        cell("code", 'profile = "laptop"', "injected-parameters"),
        cell("code", "1 + 1", "mine"),
    ]
    metadata = {"papermill": {"input_path": "/somewhere/on/this/machine.ipynb", "start_time": started}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture
def executed(write_chapter: Callable[..., Chapter], checkout: Path) -> Chapter:
    chapter = write_chapter("01_order")
    execute(chapter, "10:00", "abc")
    (checkout / "_config.yml").write_text("title: Test\n", encoding="utf-8")
    (checkout / "book").mkdir()
    (checkout / "book" / "index.md").write_text("# Hello\n", encoding="utf-8")
    return chapter


def execute(chapter: Chapter, started: str, cell_id: str) -> None:
    numbers.publish(chapter.name, {"answer": 42}, profile="laptop")
    chapter.output("laptop").write_text(json.dumps(notebook(started, cell_id)), encoding="utf-8")


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Jupyter Book replaced; for each call, whether it was told to build every page."""
    calls: list[bool] = []

    def jupyter_book(options, environment, log, say, end):
        options = list(options)
        assert "-W" in options and "-n" in options
        assert environment["SEPNB_PROFILE"] == "laptop" and environment["OMP_NUM_THREADS"] == "1"
        calls.append("--all" in options)
        page = Path(options[options.index("--path-output") + 1]) / "_build" / "html" / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"build {len(calls)}", encoding="utf-8")
        return 0, deque()

    monkeypatch.setattr(book, "_jupyter_book", jupyter_book)
    return calls


def test_staged_notebooks_hide_parameters_and_tell_nothing_of_the_run(executed, checkout) -> None:
    (staged,) = book.stage([executed], "laptop")
    assert staged == checkout / "notebooks" / "executed" / "01_order.ipynb"
    before, written = staged.read_text(encoding="utf-8"), staged.stat().st_mtime_ns
    hidden = [["parameters", "remove-cell"], ["injected-parameters", "hide-cell"]]
    tags = [cell["metadata"].get("tags") for cell in json.loads(before)["cells"]]
    assert tags == [["remove-cell"], [], *hidden, ["mine"]]
    assert "papermill" not in before and "somewhere" not in before
    execute(executed, "11:00", "xyz")  # the same content at another time: not even written
    book.stage([executed], "laptop")
    assert (staged.read_text(encoding="utf-8"), staged.stat().st_mtime_ns) == (before, written)


def test_what_has_no_chapter_is_removed_and_what_has_not_run_is_said(
    executed, write_chapter, checkout
) -> None:
    old = checkout / "notebooks" / "executed" / "00_gone.ipynb"
    old.parent.mkdir()
    old.write_text("{}", encoding="utf-8")
    book.stage([executed], "laptop")
    assert not old.exists()
    with pytest.raises(book.BuildError, match="02_new has not run at laptop"):
        book.stage([executed, write_chapter("02_new")], "laptop")


def test_nothing_changed_builds_nothing(executed, builds, checkout) -> None:
    book.stage([executed], "laptop")
    assert [book.build("laptop"), book.build("laptop")] == [True, False]
    assert builds == [True]
    assert (book.html() / "index.html").read_text(encoding="utf-8") == "build 1"
    (book.html() / "index.html").unlink()
    assert book.build("laptop") is True


@pytest.mark.parametrize(
    ("file", "every_page"),
    [
        ("book/index.md", False),
        ("notebooks/executed/01_order.ipynb", False),
        ("build/laptop/01_order.json", False),
        ("_config.yml", True),
        ("results/laptop/in_window/a.json", True),
    ],
)
def test_each_input_of_the_site_counts(executed, builds, checkout, file: str, every_page: bool) -> None:
    book.stage([executed], "laptop")
    book.build("laptop")
    path = checkout / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("changed", encoding="utf-8")
    assert book.build("laptop") is True
    assert builds == [True, every_page]
    assert (book.html() / "index.html").read_text(encoding="utf-8") == "build 2"


@pytest.fixture
def edition(executed, checkout) -> Path:
    """A French edition of the landing page."""
    folder = checkout / "book" / "locale" / "fr"
    (folder / "LC_MESSAGES").mkdir(parents=True)
    (folder / "_toc.yml").write_text("format: jb-book\nroot: book/index\n", encoding="utf-8")
    (folder / "_config.yml").write_text("title: Essai\n", encoding="utf-8")
    settings = "title: Test\nsphinx:\n  local_extensions: {ours: book/_ext}\n  config: {language: en}\n"
    (checkout / "_config.yml").write_text(settings, encoding="utf-8")
    return folder


def test_an_edition_follows_the_original_and_a_changed_catalog_builds_it_alone(
    executed, builds, checkout, edition
) -> None:
    book.stage([executed], "laptop")
    assert [book.build("laptop"), book.build("laptop")] == [True, False]
    shown = [book.html() / "index.html", book.html() / "fr" / "index.html"]
    assert [page.read_text(encoding="utf-8") for page in shown] == ["build 1", "build 2"]
    (edition / "LC_MESSAGES" / "words.po").write_text('msgid "yes"\nmsgstr "oui"\n', encoding="utf-8")
    assert book.build("laptop") is True
    assert builds == [True, True, False]
    assert [page.read_text(encoding="utf-8") for page in shown] == ["build 1", "build 3"]
    settings = (paths.build() / "book-work" / "fr" / "_config.yml").read_text(encoding="utf-8")
    assert "title: Essai" in settings and f"ours: {checkout}/book/_ext" in settings


def test_a_translation_that_does_not_build_leaves_the_old_site_and_the_new_original(
    executed, builds, edition, monkeypatch
) -> None:
    book.stage([executed], "laptop")
    working = book._jupyter_book

    def broken(options, environment, log, say, end):
        return (1, deque()) if log.name == "fr.log" else working(options, environment, log, say, end)

    monkeypatch.setattr(book, "_jupyter_book", broken)
    with pytest.raises(book.BuildError, match=r"fr\.log"):
        book.build("laptop")
    assert not book.html().exists()
    monkeypatch.setattr(book, "_jupyter_book", working)
    assert book.build("laptop") is True and builds == [True, True]


def test_a_build_that_failed_is_not_taken_for_current(executed, builds, checkout, monkeypatch) -> None:
    book.stage([executed], "laptop")
    book.build("laptop")
    working = book._jupyter_book
    (checkout / "_config.yml").write_text("title: Broken\n", encoding="utf-8")
    monkeypatch.setattr(
        book, "_jupyter_book", lambda *_: (1, deque(["page.md:3: WARNING: no such target\n"]))
    )
    for _ in range(2):
        with pytest.raises(book.BuildError, match=r"exit status 1.*book\.log"):
            book.build("laptop")
    assert (book.html() / "index.html").read_text(encoding="utf-8") == "build 1"
    (checkout / "_config.yml").write_text("title: Test\n", encoding="utf-8")
    monkeypatch.setattr(book, "_jupyter_book", working)
    assert book.build("laptop") is True


WRITES = """
import os, time
which = "worker.txt" if os.fork() == 0 else "book.txt"
while True:
    with open(which, "a") as file:
        file.write("writes ")
    time.sleep(0.02)
"""
BUILD = f"""
from sepnb import paths
from sepnb.companion.book import build as book

book.BOOK = {WRITES!r}
with book.alone(print), book.lifeline() as end:
    book._jupyter_book([], {{}}, paths.build() / "book.log", print, end)
"""


@pytest.mark.attack("a build of the book that is killed")
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL])
def test_jupyter_book_and_its_workers_end_with_a_build_that_is_killed(checkout, by) -> None:
    written = [checkout / "book.txt", checkout / "worker.txt"]
    with subprocess.Popen([sys.executable, "-c", BUILD], cwd=checkout) as build:
        try:
            wait_until(lambda: all(file.exists() for file in written))
        finally:
            build.send_signal(by)
    assert build.returncode == -by

    def quiet() -> bool:
        before = [file.stat().st_size for file in written]
        time.sleep(0.5)
        return [file.stat().st_size for file in written] == before

    wait_until(quiet)
    with book.alone(lambda told: pytest.fail(told)):
        pass  # the lock went with its holder


WAITS = """
from sepnb.companion.book import build as book
with book.alone(lambda told: print(told, flush=True)):
    print("its turn", flush=True)
"""


@pytest.mark.attack("two builds of the book at once")
def test_of_two_builds_one_waits_for_the_other_and_says_so(checkout) -> None:
    with book.alone(lambda told: pytest.fail(told)):
        second = subprocess.Popen([sys.executable, "-c", WAITS], stdout=subprocess.PIPE, text=True)
        said = second.stdout.readline()
        assert said == f"another build is under way in {checkout / 'build'}; waiting for its end\n"
        with pytest.raises(subprocess.TimeoutExpired):
            second.wait(0.3)
    assert second.communicate()[0] == "its turn\n"
