"""The built book, a browser to read it with, and small Sphinx projects that go wrong on purpose."""

import io
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
import yaml
from playwright.sync_api import Browser
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from sepnb import paths

from .. import shared
from . import browser as reading

CONFIG = yaml.safe_load((paths.root() / "_config.yml").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real book, built as a reader builds it; one that is current is taken as it is."""

    def build() -> None:
        command = [sys.executable, "-m", "sepnb.cli", "build"]
        done = subprocess.run(command, cwd=paths.root(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"sepnb build failed:\n{done.stdout[-6000:]}\n{done.stderr[-2000:]}"

    shared.split(shared.folder(tmp_path_factory, "book"), {"site": build})
    return paths.build() / "html"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with reading.launched() as browser:
        yield browser


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """Where the book is served."""
    with reading.served(site) as base:
        yield base


def notebook(*cells: str | nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A chapter of these cells; words are Markdown."""
    made = [nbformat.v4.new_markdown_cell(cell) if isinstance(cell, str) else cell for cell in cells]
    python = {"language_info": {"name": "python", "pygments_lexer": "python"}}
    return nbformat.v4.new_notebook(cells=made, metadata=python)


def shows(source: str, *outputs: dict, **metadata: object) -> nbformat.NotebookNode:
    """A cell of code that displays these."""
    shown = [nbformat.v4.new_output("display_data", **output) for output in outputs]
    return nbformat.v4.new_code_cell(source, outputs=shown, metadata=metadata)


def book_of(chapters: Mapping[str, nbformat.NotebookNode], before: str = "") -> dict[str, str]:
    """Files of a book whose index, `before` on it, lists these chapters."""
    index = "\n".join(["# Book\n", f"{before}\n", "```{toctree}", *chapters, "```\n"])
    return {"index.md": index} | {f"{name}.ipynb": nbformat.writes(one) for name, one in chapters.items()}


@dataclass(frozen=True)
class Built:
    """A small project after its build: `html` the folder, `warnings` one text each, without colours."""

    html: Path
    warnings: list[str]

    def page(self, name: str) -> str:
        return (self.html / f"{name}.html").read_text(encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Built]:
    """`project({"index.md": text, ...}, **settings)`: these pages, built with the book's extension and math.

    Called again it builds incrementally. Chapter numbers are looked for in `tmp_path/build`. The pages may
    show `/picture.svg`.
    """
    monkeypatch.setenv("SEPNB_BUILD", str(tmp_path / "build"))
    source, settings = tmp_path / "source", CONFIG["sphinx"]["config"]
    source.mkdir()
    (source / "picture.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30"/>')
    settings = {key: settings[key] for key in ("mathjax_path", "mathjax3_config", "numfig", "numfig_format")}

    def build(pages: Mapping[str, str], **more: object) -> Built:
        for name, text in pages.items():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_text(text, encoding="utf-8")
        log = io.StringIO()
        options = {
            "extensions": ["myst_nb", "sphinx.ext.mathjax", "sepnb.companion.book.site"],
            "myst_enable_extensions": CONFIG["parse"]["myst_enable_extensions"],
            "nb_execution_mode": "off",
            "html_theme": "basic",
            "sepnb_profile": "laptop",
        }
        told = {"confoverrides": options | settings | more, "status": None, "warning": log}
        with warnings.catch_warnings(), patch_docutils(), docutils_namespace():
            warnings.simplefilter("ignore")  # of Sphinx and its parsers, about themselves
            Sphinx(source, None, tmp_path / "html", tmp_path / "doctrees", "html", **told).build()
        text = re.sub(r"\x1b\[[0-9;]*m", "", log.getvalue())
        assert "Traceback" not in text, text
        faults = [line for line in text.splitlines() if "WARNING" in line or "ERROR" in line]
        return Built(tmp_path / "html", faults)

    return build
