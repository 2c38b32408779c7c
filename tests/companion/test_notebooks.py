"""Notebooks that people take away: they install what is missing, and what was edited is kept."""

import json
import subprocess
import sys

import pytest

from sepnb.companion.book import build as book
from sepnb.companion.book import notebooks

URL = "https://example.org/someone/book"


@pytest.fixture
def called(monkeypatch) -> list[list[str]]:
    """What the first cell executes, instead of executing it."""
    calls: list[list[str]] = []
    monkeypatch.setattr(subprocess, "check_call", calls.append)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return calls


def missing(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.chdir(tmp_path)


def test_the_first_cell_does_nothing_where_the_package_is_at_hand(called) -> None:
    for url in (URL, ""):
        exec(notebooks.setup_source(url, "published"), {})
    assert called == [] and notebooks.CLONE not in sys.path


def test_the_first_cell_installs_the_book_where_the_package_is_missing(called, monkeypatch, tmp_path) -> None:
    missing(monkeypatch, tmp_path)
    exec(notebooks.setup_source(URL, "published"), {})
    clone, install = called
    assert clone[:2] == ["git", "clone"] and "--branch=published" in clone
    assert clone[-2:] == [URL, notebooks.CLONE]
    assert install[:4] == [sys.executable, "-m", "pip", "install"] and install[-1] == "./sepnb-book[run]"
    assert sys.path[0] == notebooks.CLONE
    (tmp_path / notebooks.CLONE).mkdir()
    exec(notebooks.setup_source(URL, "published"), {})
    assert len(called) == 3, "what was fetched is not fetched again"


def test_without_an_address_the_first_cell_says_what_to_do(called, monkeypatch, tmp_path) -> None:
    missing(monkeypatch, tmp_path)
    with pytest.raises(ModuleNotFoundError, match=r"in a checkout of its book, pip install -e '\.\[run\]'"):
        exec(notebooks.setup_source("", "published"), {})
    assert called == []


def test_a_staged_chapter_begins_with_it_and_the_page_leaves_it_out(write_chapter, checkout) -> None:
    chapter = write_chapter("01_order")
    (checkout / "_config.yml").write_text(
        f"repository: {{url: '{URL}', branch: published}}\n", encoding="utf-8"
    )
    made = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    chapter.output("laptop").parent.mkdir(parents=True)
    chapter.output("laptop").write_text(json.dumps(made), encoding="utf-8")
    (staged,) = book.stage([chapter], "laptop")
    first = json.loads(staged.read_text(encoding="utf-8"))["cells"][0]
    assert first["metadata"] == {"tags": ["remove-cell"]} and first["outputs"] == []
    assert first["source"] == notebooks.setup_source(URL, "published")


def edit(copy, line: str) -> None:
    notebook = json.loads(copy.read_text(encoding="utf-8"))
    notebook["cells"][-1]["source"] = line
    copy.write_text(json.dumps(notebook), encoding="utf-8")


def test_edits_of_a_copy_are_kept_and_a_changed_chapter_reaches_the_others(write_chapter, checkout) -> None:
    chapters = [write_chapter("01_order"), write_chapter("02_more")]
    mine, other = (chapter.path.with_suffix(".ipynb") for chapter in chapters)
    said: list[str] = []
    assert notebooks.write(chapters, said.append) and said == []
    notebook = json.loads(other.read_text(encoding="utf-8"))
    notebook["cells"][-1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "42"}]
    other.write_text(json.dumps(notebook), encoding="utf-8")
    assert notebooks.write(chapters, said.append) and said == [], "outputs are no edits"
    assert '"42"' in other.read_text(encoding="utf-8"), "and stay"
    edit(mine, "my_own_idea = 1")
    for name in ("01_order", "02_more"):
        write_chapter(name, "\n# %%\nanew = 2\n")
    assert not notebooks.write(chapters, said.append)
    assert "my_own_idea" in mine.read_text(encoding="utf-8") and "anew" not in mine.read_text(
        encoding="utf-8"
    )
    assert "anew" in other.read_text(encoding="utf-8")
    assert len(said) == 1 and said[0].startswith("01_order.ipynb has edits and is left as it is")
    notebooks.clean(checkout / "notebooks", said.append)
    assert mine.exists() and not other.exists() and said[1].startswith("01_order.ipynb has edits and stays")


def test_a_notebook_that_is_none_of_ours_counts_as_edited(write_chapter) -> None:
    chapter = write_chapter("01_order")
    for content in ("{}", "no JSON", '{"metadata": {"sepnb": 1}, "cells": []}'):
        chapter.path.with_suffix(".ipynb").write_text(content, encoding="utf-8")
        assert not notebooks.write([chapter], lambda told: None)
        assert chapter.path.with_suffix(".ipynb").read_text(encoding="utf-8") == content
