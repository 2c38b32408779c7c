"""Figures that move by the book's own scripts: a box with data, which the scripts of `book/_static` fill.

None is the only source of what it shows: a picture shows the same on paper and to readers without scripts.
"""

import json
import re
from collections.abc import Mapping
from html import escape
from typing import Any

from IPython.display import HTML, display

from .. import validation

SMALL = ("moving.js", "formulas.js", "small_figures.js")
SCRIPTS: Mapping[str, tuple[str, ...]] = {
    "model": ("moving.js", "model.js", "model_panel.js"),
    "recall": ("moving.js", "model.js", "recall_panel.js"),
    "grid": ("moving.js", "grid_figure.js"),
    **dict.fromkeys(("phasors", "extensions", "slopes", "odometer", "training"), SMALL),
}
"""Of each kind of figure the scripts that draw it, in the order in which a page loads them."""


def show(kind: str, data: Mapping[str, Any], *, name: str, alt: str, instead: str) -> None:
    """Display a figure of this kind with its data.

    Args:
        kind: one of `SCRIPTS`.
        data: what JSON can hold; every script says what it reads.
        name: of the element on the page, unique there, such as `moving-model`.
        alt: what it shows, for readers who do not see it.
        instead: what shows the same without scripts, such as "the figure above".

    Raises:
        TypeError, ValueError: an unknown kind, a name that no page can have, data that is not JSON (no number
            is infinite or missing there), or no words.
    """
    validation.one_of("kind", kind, SCRIPTS)
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ValueError(f"the name {name!r} must look like 'two-words': lower case, digits, hyphens")
    held = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    display_framed(
        f'<div id="{name}" class="sepnb-moving" data-draw="{kind}" data-scripts="{" ".join(SCRIPTS[kind])}">'
        f'<script type="application/json">{held}</script></div>',
        alt=alt,
        instead=instead,
    )


def display_framed(html: str, *, alt: str, instead: str) -> None:
    """Display what a reader can move, with its words; `alt` and `instead` as of `show`.

    Raises:
        ValueError: no alternative text, or nothing to stand in.
    """
    for what, text in (("alt", alt), ("instead", instead)):
        if not text.strip():
            raise ValueError(f"an interactive figure needs {what}=; without scripts it shows nothing")
    label = escape(" ".join(alt.split()), quote=True)
    note = (
        f"<noscript><p>Without scripts there is nothing to turn here; see {escape(instead)}.</p></noscript>"
    )
    frame = f'class="sepnb-interactive" data-interactive role="figure" aria-label="{label}"'
    display(HTML(f"<div {frame}>{html}{note}</div>"))
