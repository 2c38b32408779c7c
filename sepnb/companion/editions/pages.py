"""The pages of the built book as one document, from which its edition on paper is made.

The articles of the pages are joined in the order of the table of contents. A browser without a network
prepares them (`book/_edition/prepare.js`): folded code goes, other folds open, links lead inside, formulas
are set. Nothing else is read: the edition has the numbers, figures and words of the built book, and executes
nothing.
"""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import yaml

from sepnb import paths
from sepnb.companion.run.doctor import CHROMIUM
from sepnb.records.provenance import git_state

TITLE = "Position in its own dimensions"
QUESTION = "What happens when position gets its own dimensions?"
LEFT_OUT = ("book/api",)  # a list of pages that an edition does not have
_ARTICLE = re.compile(r'<article class="bd-article">(.*)</article>', re.S)
_SCRIPT = re.compile(r"<script\b.*?</script>", re.S)
_MATHJAX = re.compile(r"<script>window\.MathJax = .*?</script>", re.S)
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--allow-file-access-from-files",
)


class EditionError(RuntimeError):
    """An edition could not be made; the message says why and what to do."""


@dataclass(frozen=True)
class Page:
    """A page of the book: the part that it stands in, its name, and where its file is."""

    part: str
    name: str
    file: Path


@dataclass(frozen=True)
class About:
    """The state of the sources."""

    authors: tuple[str, ...]
    version: str
    commit: str
    day: str


def pages(site: Path, toc: Path | None = None) -> list[Page]:
    """The pages of a built site in reading order.

    Raises:
        EditionError: one of the table of contents was not built.
    """
    held = yaml.safe_load((toc or paths.root() / "_toc.yml").read_text(encoding="utf-8"))
    names = [("", held["root"])]
    names += [(part["caption"], one["file"]) for part in held["parts"] for one in part["chapters"]]
    found = [Page(part, name, site / f"{name}.html") for part, name in names if name not in LEFT_OUT]
    if missing := [page.name for page in found if not page.file.is_file()]:
        raise EditionError(f"the built book has no page {missing[0]} in {site}; run make book")
    return found


def about() -> About:
    """Who wrote this version, and the commit that is checked out."""
    cited = yaml.safe_load((paths.root() / "CITATION.cff").read_text(encoding="utf-8"))
    authors = tuple(one["name"] for one in cited["authors"])
    commit, changed = git_state()
    state = f"{(commit or 'unknown')[:9]}{' with changes' if changed else ''}"
    log = subprocess.run(
        ["git", "log", "-1", "--format=%cs"], cwd=paths.root(), capture_output=True, text=True
    )
    day = log.stdout.strip() or time.strftime("%Y-%m-%d")
    return About(authors, str(cited["version"]), state, day)


def joined(found: Sequence[Page], site: Path, target: Path) -> None:
    """Write the articles of these pages as one document, which shows the pictures of `site`."""
    first, up = about(), Path(os.path.relpath(site, target.parent)).as_posix()
    sections = []
    for at, page in enumerate(found):
        text = page.file.read_text(encoding="utf-8")
        article = _ARTICLE.search(text)
        if article is None:
            raise EditionError(f"{page.file} holds no article; run make book")
        body = _SCRIPT.sub("", article[1])
        body = re.sub(r'(src|srcset)="(?:\.\./)*(_images/)', rf'\1="{up}/\2', body)
        where = f'id="p{at:02d}" data-page="{page.name}" data-part="{escape(page.part)}"'
        sections.append(f"<section {where}>{body}</section>")
    settings = _MATHJAX.search(found[0].file.read_text(encoding="utf-8"))
    assets = paths.root() / "book" / "_edition"
    facts = (
        f"{', '.join(first.authors)} · version {first.version} · commit {first.commit} · {first.day}",
        "Text and figures: Creative Commons Attribution 4.0 International. Code: Apache License 2.0.",
        "Figures that move, the code of figures, and the tables of all runs are in the web edition.",
    )
    told = "".join(f"<p>{escape(fact)}</p>" for fact in facts)
    target.parent.mkdir(parents=True, exist_ok=True)
    text = f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(TITLE)}</title>
<link rel="stylesheet" href="{up}/_static/pygments.css">
<style>{(assets / "edition.css").read_text(encoding="utf-8")}</style>
{settings[0] if settings else ""}
<script>{(assets / "prepare.js").read_text(encoding="utf-8")}</script></head>
<body><main><div class="edition-title"><h1>{escape(TITLE)}</h1>
<p class="question">{escape(QUESTION)}</p><div class="facts">{told}</div></div>
<nav class="edition-contents"><h1>Contents</h1></nav>
{"".join(sections)}</main></body></html>"""
    paths.write_atomically(target, text)


@contextmanager
def prepared(found: Sequence[Page], site: Path) -> Iterator[tuple[Any, list[dict[str, Any]]]]:
    """The joined pages in a browser, prepared and with their formulas set; with them their contents.

    Raises:
        EditionError: there is no browser, a request left the machine or failed, or a formula cannot be set.
    """
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if path is None:
        raise EditionError(
            "an edition is set by Chromium, and there is none; install it (README.md names how)"
        )
    target = paths.build() / "editions" / "book.html"
    joined(found, site, target)
    problems: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            page = browser.new_page(viewport={"width": 673, "height": 950})
            page.set_default_timeout(600_000)
            page.on("request", lambda one: _local(one.url) or problems.append(f"asks for {one.url}"))
            page.on("requestfailed", lambda one: problems.append(f"cannot load {one.url}"))
            page.on("pageerror", lambda error: problems.append(f"script: {error}"))
            page.emulate_media(media="print")
            page.goto(target.as_uri(), wait_until="load")
            page.evaluate("names => edition.prepare(names)", [one.name for one in found])
            script = (site / "_static" / "mathjax" / "tex-mml-chtml.js").resolve()
            page.add_script_tag(url=script.as_uri())
            page.evaluate("() => MathJax.startup.promise")
            bad = page.locator("mjx-merror, [data-mjx-error]")
            problems += [f"formula: {text[:80]}" for text in bad.all_text_contents()]
            contents = page.evaluate("() => edition.contents()")
            if problems:
                raise EditionError("the book has what an edition cannot show: " + "; ".join(problems[:8]))
            yield page, contents
            if problems:
                raise EditionError("the edition is not whole: " + "; ".join(problems[:8]))
        finally:
            browser.close()


def _local(address: str) -> bool:
    return address.startswith(("file:", "data:", "blob:"))
