"""The words inside a figure, drawn anew in another language.

matplotlib draws text as outlines, and writes the text itself as a comment before them. So each text of an SVG
can be found, translated, and drawn with the same font, size and colour in the place of the old one. Words in
a legend begin where they began, titles of an axis keep their middle, labels of ticks stay beside their tick.
Other words in a panel keep the edge, or the middle, that they share with the panel or with more words there;
words that share nothing keep their middle.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from html import escape, unescape
from typing import NamedTuple

from matplotlib.font_manager import FontProperties, fontManager
from matplotlib.ft2font import FT2Font
from matplotlib.textpath import TextPath

LEFT, MIDDLE, RIGHT = 0.0, 0.5, 1.0
NEAR = 1.0  # points: edges that are closer are the same edge

_TEXT = re.compile(r'^( *)<g id="text_\d+">\n.*?^\1</g>', re.M | re.S)
_LINE = re.compile(r"^( *)<!-- (.*?) -->\n\1(<g\b[^>]*>)\n(.*?)^\1</g>", re.M | re.S)
_PLACE = re.compile(r"translate\((\S+) \S+\)( rotate\(\S+\))? scale\((\S+)")
_PANEL = re.compile(r'<g id="axes_\d+">\s*<g id="patch_\d+">\s*<path d="M (\S+) \S+\s+L (\S+)')


class Line(NamedTuple):
    """A line of text as it is drawn, in points, and the left and right edges of its panel."""

    words: str
    font: FontProperties
    around: str
    """What it belongs to: `xtick`, `ytick`, `matplotlib` (an axis), `legend`, `axes`; `turned` for any."""
    panel: tuple[float, ...]
    start: float
    width: float

    def at(self, part: float) -> float:
        return self.start + part * self.width


def relabelled(svg: str, translate: Callable[[str], str]) -> str:
    """The drawing with every text replaced by its translation. A text of several lines is one message, whose
    translation has as many lines; an unchanged text stays."""
    texts = {found.start(): list(_lines(svg, found)) for found in _TEXT.finditer(svg)}
    every = [line for lines in texts.values() for line in lines]

    def text(found: re.Match) -> str:
        lines = texts[found.start()]
        message = "\n".join(line.words for line in lines)
        if (new := translate(message)) == message:
            return found[0]
        pairs = iter(list(zip(lines, new.split("\n"), strict=True)))
        return _LINE.sub(lambda drawn: _drawn(drawn, *next(pairs), every), found[0])

    return _TEXT.sub(text, svg)


def _lines(svg: str, text: re.Match) -> Iterator[Line]:
    before = svg[: text.start()]
    around = re.findall(rf'^ {{{len(text[1]) - 1}}}<g id="([a-z]+)', before, re.M)[-1]
    panel = tuple(map(float, (_PANEL.findall(before) or [(0, 0)])[-1]))
    for _, words, opened, body in _LINE.findall(text[0]):
        (start, turned, size), words = _PLACE.search(opened).groups(), unescape(words)
        fonts = re.findall(r'href="#(.+)-[0-9a-f]+"', body)
        font = _font(max(fonts, key=fonts.count, default=""))
        width = float(size) * outline(words, font).get_extents().x1
        yield Line(words, font, "turned" if turned else around, panel, float(start), width)


def _drawn(drawn: re.Match, line: Line, words: str, every: list[Line]) -> str:
    """The group of a line with other words. The glyphs that it defines stay: later texts use them, too."""
    indent, _, opened, body = drawn.groups()
    path, part = outline(words, line.font), anchor(line, every)
    was, now = outline(line.words, line.font).get_extents().x1, path.get_extents().x1
    # A label of the y axis that is too long for the picture is set narrower.
    fit = min(1, was / now * (line.at(RIGHT) - NEAR) / line.width) if part == RIGHT else 1
    place = f"translate({part * (was - fit * now):.1f} 0) scale({fit:.3g} 1)"
    letters = {path.MOVETO: "M", path.LINETO: "L", path.CURVE3: "Q", path.CURVE4: "C"}
    steps = " ".join(
        f"{letters[code]} {' '.join(f'{at:.1f}' for at in points)}" if code in letters else "Z"
        for points, code in path.iter_segments(simplify=False)
    )
    kept = "".join(re.findall(r"^ *<defs>\n.*?</defs>\n", body, re.M | re.S))
    glyphs = f'{kept}{indent} <path d="{steps}" transform="{place}"/>'
    return f"{indent}<!-- {escape(words, quote=False)} -->\n{indent}{opened}\n{glyphs}\n{indent}</g>"


def anchor(line: Line, every: list[Line]) -> float:
    """The part of a line's width that stays where it is."""
    if line.around == "legend":
        return LEFT
    if line.around == "ytick":
        return RIGHT if line.start < line.panel[0] else LEFT
    if line.around == "axes":
        here = [one for one in every if (one.around, one.panel) == ("axes", line.panel)]
        others = [one for one in here if abs(one.width - line.width) > NEAR]
        for part, edge in ((LEFT, line.panel[0]), (MIDDLE, sum(line.panel) / 2), (RIGHT, line.panel[1])):
            if any(abs(line.at(part) - place) < NEAR for place in (edge, *(one.at(part) for one in others))):
                return part
    return MIDDLE


@cache
def outline(words: str, font: FontProperties) -> TextPath:
    """The outline of words in the size, 100 points, that matplotlib draws before it scales a text."""
    return TextPath((0, 0), words, size=100, prop=font)


@cache
def _font(name: str) -> FontProperties:
    """The font of a PostScript name, by which matplotlib names glyphs; its usual one where none is found."""
    files = (one.fname for one in fontManager.ttflist)
    named = (FontProperties(fname=file) for file in files if FT2Font(file).postscript_name == name)
    return next(named, FontProperties())
