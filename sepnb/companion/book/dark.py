"""Drawings for a dark page: an SVG brings a rule of its own for the mode of the page that shows it.

The rule gives a drawing the page's background and light ink, and lightens each method's colour just enough to
be seen; maps of values keep theirs. A browser passes the page's mode to images, so that one file serves both.
"""

import re
from functools import cache

from sepnb.plots.looks import (
    FAINT,
    GROUND,
    INK,
    METHODS,
    MIXED,
    PALETTE,
    POS,
    SEM,
    WORDS,
    contrast,
    legible,
    mixed,
)

PAGE, LIGHT = "#121212", "#e3e4e6"
"""The ground of the theme's dark pages, and what is written on it."""
CHOSEN = {"#6b4500": "#d8b878", "#00558a": "#3b8bd1"}
"""The dark shades of separated models: with white they would become two greys that look alike."""
_OPENED = re.compile(r"<svg\b[^>]*>")


def both_modes(svg: str) -> str:
    """The drawing with its rule; one that has it is given back as it is."""
    if "prefers-color-scheme" in svg or not (opened := _OPENED.search(svg)):
        return svg
    return (
        svg[: opened.end()]
        + f"<style>@media (prefers-color-scheme: dark){{{_rule()}}}</style>"
        + svg[opened.end() :]
    )


@cache
def _rule() -> str:
    named = {method.colour for method in METHODS.values()} | {*PALETTE, POS, SEM, MIXED, FAINT}
    changed = {GROUND: PAGE, INK: LIGHT, "#000000": LIGHT}
    for one in sorted(named):
        changed |= {legible(one): seen(one), one: seen(one)}  # of a name at the end of its line, and the line
    rules = [
        f'[style*="{what}: {old}"]{{{what}:{new} !important}}'
        for old, new in changed.items()
        for what in ("fill", "stroke")
        if old != new
    ]
    # What is the ground and nothing else shows the page; a marker that is filled with it hides its line.
    return "".join(["svg{fill:" + LIGHT + "}", *rules, f'[style="fill: {GROUND}"]{{fill:none !important}}'])


def seen(colour: str) -> str:
    """The colour on a dark page: its entry in `CHOSEN`, or itself with just enough white for the contrast
    that words need."""
    if colour in CHOSEN:
        return CHOSEN[colour]
    return mixed(colour, 255, lambda one: contrast(one, PAGE) >= WORDS)
