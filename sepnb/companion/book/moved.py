"""Pages that have moved: at each old address a short page leads to the new one."""

import posixpath
from html import escape
from pathlib import Path

MOVED = {
    "book/attacks": "book/provenance#check-it-yourself",
    "notebooks/executed/18_needle": "notebooks/executed/18_far_text#needle-in-a-haystack",
    "notebooks/executed/19_what_and_where": "notebooks/executed/18_far_text#recall-and-the-latest-value",
    "notebooks/executed/20_questions": "notebooks/executed/18_far_text#questions-about-a-story",
    "notebooks/executed/17_perplexity": "notebooks/executed/11_extrapolators#does-more-training-help",
    "notebooks/executed/26_in_the_page": "notebooks/executed/22_inside#a-model-that-breaks-and-heals",
}
"""Old page to new page, both without `.html`, such as `"book/old": "book/new#a-section"`."""

PAGE = """<!DOCTYPE html>
<meta http-equiv="Refresh" content="0; url={address}">
<html lang="en"><head><meta charset="utf-8"><title>Moved</title><link rel="canonical" href="{page}"></head>
<body><p>This page has moved: <a href="{address}">read it there</a>.</p></body></html>
"""


def leave_addresses(app, exception: Exception | None) -> None:
    """Write the page of each old address beside those of a book that has the new one."""
    if exception or app.builder.format != "html":
        return
    for old, new in MOVED.items():
        page, _, section = new.partition("#")
        if page not in app.env.found_docs:
            continue
        there = posixpath.relpath(f"{page}.html", posixpath.dirname(old) or ".")
        address = f"{there}#{section}" if section else there
        file = Path(app.outdir, f"{old}.html")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(PAGE.format(address=escape(address), page=escape(there)), encoding="utf-8")


def setup(app) -> None:
    app.connect("build-finished", leave_addresses)
