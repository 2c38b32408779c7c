"""The book on paper: A4, with page numbers in its contents and the same contents as bookmarks; `make pdf`.

Chromium knows on which page a heading stands only when all is printed, so the book is printed twice: the
places of the first file are the numbers of the second.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sepnb import paths
from sepnb.companion.editions.pages import EditionError, Page, pages, prepared

_OBJECT = re.compile(rb"(?:^|\n)(\d+) 0 obj\n(.*?)\nendobj", re.S)
_NAMED = re.compile(rb"/([\w.%#-]+) \[(\d+) 0 R /XYZ")


def make(site: Path, found: Sequence[Page] | None = None) -> Path:
    """Print these pages of a built site, by default all, to `book.pdf` in the build folder; its path.

    Raises:
        EditionError: a page, a picture or the browser is missing, or something cannot be shown.
    """
    target = paths.build() / "book.pdf"
    with prepared(pages(site) if found is None else found, site) as (page, contents):
        write(page, contents, target)
    return target


def write(page: Any, contents: list[dict[str, Any]], target: Path) -> None:
    """Print the prepared pages to `target`.

    Raises:
        EditionError: something is too wide to be read on paper, or a chapter is on no page.
    """
    page.evaluate("contents => edition.list(contents)", contents)
    if small := page.evaluate("() => edition.fit()"):
        raise EditionError("too wide for a page of paper: " + "; ".join(small[:8]))
    numbers = places(_printed(page))
    if missing := [chapter["title"] for chapter in contents if chapter["id"] not in numbers]:
        raise EditionError(f"no page of the PDF holds {missing[0]!r}")
    page.evaluate("numbers => edition.number(numbers)", numbers)
    paths.write_atomically(target, _printed(page))


def _printed(page: Any) -> bytes:
    return page.pdf(prefer_css_page_size=True, print_background=True, outline=True, tagged=True)


def places(pdf: bytes) -> dict[str, int]:
    """The page, from 1, of every target of a link in a PDF that Chromium wrote."""
    objects = {int(number): body for number, body in _OBJECT.findall(pdf)}
    order: dict[int, int] = {}

    def walk(number: int) -> None:
        kids = re.search(rb"/Kids \[(.*?)\]", objects[number], re.S)
        if kids is None:
            order[number] = len(order) + 1
        for kid in re.findall(rb"(\d+) 0 R", kids[1]) if kids else ():
            walk(int(kid))

    roots = re.findall(rb"/Type /Catalog\b.*?/Pages (\d+) 0 R", pdf, re.S)
    if not roots:
        raise EditionError("the PDF has no catalogue of pages that could be read")
    walk(int(roots[-1]))
    return {name.decode(): order[int(page)] for name, page in _NAMED.findall(pdf) if int(page) in order}


if __name__ == "__main__":
    try:
        file = make(paths.build() / "html")
    except EditionError as problem:
        sys.exit(str(problem))
    print(f"{file} ({file.stat().st_size / 1e6:.1f} MB)")
