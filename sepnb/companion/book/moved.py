"""Pages that have moved: at each old address a short page leads to the new one."""

import posixpath
from html import escape
from pathlib import Path

_CHAPTERS = {
    "07_two_streams": "08_two_streams",
    "08_split_mlp_norm": "09_split_mlp_norm",
    "09_strict": "10_strict",
    "10_language_model": "11_language_model",
    "11_extrapolators": "12_extrapolators",
    "11_extrapolators_in_detail": "92_extrapolators_in_detail",
    "12_what_works": "13_slow_down",
    "13_digits": "15_digits",
    "14_two_losses": "16_two_losses",
    "15_two_dimensions": "17_two_dimensions",
    "16_seqpe_stream": "18_seqpe_stream",
    "17_perplexity": "12_extrapolators#does-more-training-help",
    "18_far_text": "19_far_text",
    "18_needle": "19_far_text#needle-in-a-haystack",
    "19_what_and_where": "19_far_text#recall-and-the-latest-value",
    "20_questions": "19_far_text#questions-about-a-story",
    "21_cost_and_speed": "20_cost_and_speed",
    "22_inside": "21_inside",
    "23_scoreboard": "90_conclusion",
    "24_probe": "91_probe",
    "25_every_encoding": "07_every_encoding",
    "26_in_the_page": "21_inside#a-model-that-breaks-and-heals",
}
MOVED = {
    "book/attacks": "book/provenance#check-it-yourself",
    **{f"notebooks/executed/{old}": f"notebooks/executed/{new}" for old, new in _CHAPTERS.items()},
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
