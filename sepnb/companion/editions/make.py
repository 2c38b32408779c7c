"""Editions of the whole book, from its built pages: `pdf` is for paper, `epub` for reading devices.

`python -m sepnb.companion.editions.make pdf epub` is `make pdf` and `make epub`.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from sepnb import paths
from sepnb.companion.editions import epub, pdf
from sepnb.companion.editions.pages import EditionError, Page, about, pages, prepared


def make(kinds: Sequence[str], site: Path, found: Sequence[Page] | None = None) -> list[Path]:
    """Make these editions of a built site, `pdf` and `epub`, in the build folder; their files.

    Raises:
        EditionError: a page, a picture or the browser is missing, or something cannot be shown.
        ValueError: an unknown kind.
    """
    makers = {"pdf": pdf.write, "epub": epub.write}
    if unknown := [kind for kind in kinds if kind not in makers]:
        raise ValueError(f"no edition {unknown[0]!r}; there are {', '.join(makers)}")
    first, found = about(), pages(site) if found is None else found
    written = []
    with prepared(found, site, first) as (page, contents):
        for kind in sorted(kinds):  # what is set for paper comes last
            target = paths.build() / f"book.{kind}"
            makers[kind](page, contents, first, target)
            written.append(target)
    return written


if __name__ == "__main__":
    began = time.monotonic()
    try:
        for file in make(sys.argv[1:] or ["pdf"], paths.build() / "html"):
            print(f"{file} ({file.stat().st_size / 1e6:.1f} MB)")
    except (EditionError, ValueError) as problem:
        sys.exit(str(problem))
    print(f"{time.monotonic() - began:.0f} s")
