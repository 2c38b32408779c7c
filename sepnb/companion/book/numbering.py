"""Figures and equations are numbered by chapter: "Figure 5.3", "(5.2)".

The name and the title of a chapter hold its number; Sphinx could only add a second one, counted from the
contents. So Sphinx counts figures and equations through the book, and this module renumbers them within each
chapter. On other pages the count runs on from page to page, as a single number without a point.
"""

import re
from collections import Counter
from collections.abc import Mapping

Numbers = dict[str, dict[str, dict[str, tuple[int, ...]]]]
"""By page, kind and target: what Sphinx keeps in `env.toc_fignumbers`."""
CHAPTER = re.compile(r"notebooks/executed/([0-8]\d)_\w+")
"""A numbered chapter. From 90 on they come after the last one and have no number of their own."""


def by_chapter(counted: Mapping[str, Mapping[str, Mapping[str, tuple[int, ...]]]]) -> Numbers:
    """Chapter by chapter, the numbers of what was counted from the first page of a book to its last."""
    order = sorted(
        (number, kind, page, target)
        for page, kinds in counted.items()
        for kind, targets in kinds.items()
        for target, number in targets.items()
    )
    seen: Counter = Counter()
    found: Numbers = {page: {kind: {} for kind in kinds} for page, kinds in counted.items()}
    for _, kind, page, target in order:
        chapter = CHAPTER.fullmatch(page)
        prefix = (int(chapter[1]),) if chapter else ()
        seen[kind, prefix] += 1
        found[page][kind][target] = (*prefix, seen[kind, prefix])
    return found


def give_back(app, env, docnames: list[str]) -> None:
    """Before pages are read again: what Sphinx itself counted, so that it sees what has changed."""
    env.toc_fignumbers = getattr(env, "sepnb_counted", env.toc_fignumbers)


def renumber(app, env) -> list[str]:
    """After all pages are read: number by chapter, and name the pages whose numbers have changed."""
    env.sepnb_counted = env.toc_fignumbers
    env.toc_fignumbers = by_chapter(env.sepnb_counted)
    before, env.sepnb_numbers = getattr(env, "sepnb_numbers", {}), env.toc_fignumbers
    return [page for page, numbers in env.toc_fignumbers.items() if numbers != before.get(page)]


def setup(app) -> None:
    """Sphinx counts in `env-get-updated`; this follows it."""
    app.connect("env-before-read-docs", give_back)
    app.connect("env-get-updated", renumber, priority=900)
