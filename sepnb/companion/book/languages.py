"""Editions of some pages in other languages: what they are made from, and their build.

`book/locale/LANGUAGE` holds an edition: `_toc.yml`, the pages that it has; `_config.yml`, what differs from
the book's; and in `LC_MESSAGES` a catalog a page. It is built from the same executed chapters once the
original has been read, to whose pages it links where it has none. Nothing here imports Sphinx: that nothing
changed is found at once.
"""

import shutil
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from sepnb import paths
from sepnb.companion.run.chapters import digest

Run = Callable[[list[str], str], None]
"""Builds with options of Jupyter Book; the second argument names the log."""


ORIGINAL = "en"
READ = "read"
"""The file in `original(work)` that says that all pages of the original have been read."""


def contents(toc: Path) -> list[str]:
    """The pages that a table of contents names."""
    contents = yaml.safe_load(toc.read_text(encoding="utf-8"))
    parts = contents.get("parts", [contents])
    return [contents["root"], *(page["file"] for part in parts for page in part.get("chapters", ()))]


@cache
def translations(root: Path) -> dict[str, list[str]]:
    """The pages of each language beside the original: those of `book/locale/LANGUAGE/_toc.yml`."""
    found = sorted(root.glob("book/locale/*/_toc.yml"))
    return {toc.parent.name: contents(toc) for toc in found}


def locale() -> Path:
    """The folder of all editions."""
    return paths.root() / "book" / "locale"


def inputs() -> str:
    """Hash of the editions and of the pages that they translate."""
    root = paths.root()
    pages = {page for of in translations(root).values() for page in of}
    sources = [root / f"{page}{suffix}" for page in pages for suffix in (".md", ".ipynb")]
    editions = [file for file in locale().rglob("*") if file.suffix in (".po", ".yml")]
    return digest([*editions, *(file for file in sources if file.is_file())], root)


def original(work: Path) -> Path:
    """Where Sphinx keeps what it knows of the original's pages."""
    return work / "_build" / ".doctrees"


def build(work: Path, run: Run, every_page: Iterable[str] = ()) -> dict[str, Path]:
    """Build each edition, whose original has been read in `work`; returns where its pages lie, by language.

    `every_page` is the option by which Sphinx is told to begin anew.
    """
    made = {}
    for language in translations(paths.root()):
        folder, place = locale() / language, work / language
        shutil.rmtree(place / "locale", ignore_errors=True)  # compiled catalogs stay out of the sources
        shutil.copytree(folder / "LC_MESSAGES", place / "locale" / language / "LC_MESSAGES")
        config = place / "_config.yml"
        settings = configuration(language, place / "locale", original(work))
        config.write_text(yaml.safe_dump(settings, allow_unicode=True, sort_keys=False), encoding="utf-8")
        options = ["--config", str(config), "--toc", str(folder / "_toc.yml"), "--path-output", str(place)]
        run([*options, *every_page], language)
        made[language] = place / "_build" / "html"
    return made


def configuration(language: str, catalogs: Path, doctrees: Path) -> dict[str, Any]:
    """The book's configuration, with what the edition changes."""
    root = paths.root()
    book, edition = (
        yaml.safe_load(file.read_text(encoding="utf-8"))
        for file in (root / "_config.yml", locale() / language / "_config.yml")
    )
    settings = merged(book, edition)
    sphinx = settings["sphinx"]
    sphinx["local_extensions"] = {name: str(root / at) for name, at in sphinx["local_extensions"].items()}
    sphinx["config"] |= {
        "locale_dirs": [str(catalogs)],
        "gettext_compact": False,  # a catalog a page
        "sepnb_original": str(doctrees),
    }
    return settings


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """`one`, with what `other` says in its place, at every depth."""
    both = dict(one) | dict(other)
    for key in one.keys() & other.keys():
        if isinstance(one[key], Mapping) and isinstance(other[key], Mapping):
            both[key] = merged(one[key], other[key])
    return both
