"""Drawings for a dark page: an SVG brings a rule of its own for the mode of the page that shows it.

Its ground becomes that of the page, its ink light, and a method's colour as much lighter as it must be to be
seen; maps of values keep theirs. A browser tells an image in which mode its page is, so that one file serves
both.
"""

import re
from functools import cache

from sepnb.plots.looks import FAINT, GROUND, INK, METHODS, MIXED, POS, SEM

PAGE, LIGHT = "#121212", "#e3e4e6"
"""The ground of the theme's dark pages, and what is written on it."""
CONTRAST = 4.0  # of a line with its ground, at least
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
    named = {method.colour for method in METHODS.values()} | {POS, SEM, MIXED, FAINT}
    changed = {GROUND: PAGE, INK: LIGHT, "#000000": LIGHT} | {one: seen(one) for one in sorted(named)}
    rules = [
        f'[style*="{what}: {old}"]{{{what}:{new} !important}}'
        for old, new in changed.items()
        for what in ("fill", "stroke")
        if old != new
    ]
    # What is the ground and nothing else shows the page; a marker that is filled with it hides its line.
    return "".join(["svg{fill:" + LIGHT + "}", *rules, f'[style="fill: {GROUND}"]{{fill:none !important}}'])


def seen(colour: str) -> str:
    """The colour that was chosen for it, or this one with as much white as its contrast with a dark page
    asks for."""
    if colour in CHOSEN:
        return CHOSEN[colour]
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    for white in range(101):
        mixed = "#" + "".join(
            f"{round(part + (255 - part) * white / 100):02x}" for part in (red, green, blue)
        )
        if contrast(mixed, PAGE) >= CONTRAST:
            return mixed
    raise ValueError(f"{colour!r} cannot be seen on {PAGE}; give a colour as #rrggbb")


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, from 1 to 21 (Web Content Accessibility Guidelines 2.1)."""
    lighter, darker = sorted(map(_luminance, (one, other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
