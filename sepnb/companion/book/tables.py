"""How tables are set: rows have heads, numbers stand to the right, a `±` is not torn from its numbers, and
the tables of a chapter are numbered ("Table 5.2").

Chapters show their tables as HTML, and pages write theirs in MyST; both are set alike, when a page is read.
"""

import html
import re
from collections.abc import Callable

from docutils import nodes

from sepnb.companion.book.numbering import CHAPTER

_VALUE = r"[+\N{MINUS SIGN}-]?[\d.,]+(?:\s?%|\N{MULTIPLICATION SIGN})?"
NUMBER = re.compile(rf"{_VALUE}(?:\s±\s{_VALUE})?|\N{{EN DASH}}|not run")
"""What a cell of a column of numbers holds."""
_ROW = re.compile(r"<tr\b.*?</tr>", re.S)
_CELL = re.compile(r"<(t[dh])\b([^>]*)>(.*?)</\1>", re.S)


def unbroken(text: str) -> str:
    """The text with no-break spaces around every `±`."""
    return re.sub(r"(?<=\S)[ \xa0]±[ \xa0](?=\S)", "\xa0±\xa0", text)


def set_html(table: str) -> str:
    """A table of a chapter: the first cell of a row heads it, unless it is a number; columns of numbers are
    set to the right, with their heads."""
    rows = [[_words(cell[3]) for cell in _CELL.finditer(row)] for row in _ROW.findall(table)]
    body = [row for row, found in zip(rows, _ROW.findall(table), strict=True) if "<td" in found]
    numeric = _numeric(body)

    def row(found: re.Match) -> str:
        cells = _CELL.findall(found[0])
        heads = all(tag == "th" for tag, _, _ in cells)
        shown = []
        for at, (tag, attributes, content) in enumerate(cells):
            right = at < len(numeric) and numeric[at] and (heads or NUMBER.fullmatch(_words(content)))
            if not heads and not at and not (numeric and numeric[0]):
                tag, attributes = "th", attributes if "scope=" in attributes else f'{attributes} scope="row"'
            if right and "class=" not in attributes:
                attributes += ' class="sepnb-number"'
            shown.append(f"<{tag}{attributes}>{content}</{tag}>")
        return found[0][: found[0].index(">") + 1] + "".join(shown) + "</tr>"

    return _ROW.sub(row, table)


def set_page(app, doctree: nodes.document) -> None:
    """All tables of a page, and every `±` in its words."""
    chapter = CHAPTER.fullmatch(app.env.docname)
    number = _counter(f"{int(chapter[1])}." if chapter else None)
    for raw in doctree.findall(nodes.raw):
        if raw.get("format") == "html" and "<table" in raw.astext():
            set_as = re.sub(
                r"<table\b.*?</table>", lambda found: set_html(found[0]), raw.astext(), flags=re.S
            )
            text = unbroken(re.sub(r"<caption>", number, set_as))
            raw[:] = [nodes.Text(text)]
            raw.rawsource = text
    for table in doctree.findall(nodes.table):
        _set_nodes(table)
    for text in [text for text in doctree.findall(nodes.Text) if "±" in text]:
        if not isinstance(text.parent, nodes.FixedTextElement | nodes.raw | nodes.literal | nodes.math):
            text.parent.replace(text, nodes.Text(unbroken(text)))


def _counter(chapter: str | None) -> Callable[[re.Match], str]:
    seen = 0

    def count(caption: re.Match) -> str:
        nonlocal seen
        seen += 1
        return (
            f'{caption[0]}<span class="caption-number">Table {chapter}{seen} </span>'
            if chapter
            else caption[0]
        )

    return count


def _set_nodes(table: nodes.table) -> None:
    rows = [row.children for body in table.findall(nodes.tbody) for row in body.findall(nodes.row)]
    if any(entry.get("morecols") or entry.get("morerows") for row in rows for entry in row):
        return
    numeric = _numeric([[" ".join(entry.astext().split()) for entry in row] for row in rows])
    columns = list(table.findall(nodes.colspec))
    if numeric and not numeric[0] and columns and len(numeric) > 1:
        columns[0]["stub"] = 1
    for row in table.findall(nodes.row):
        for entry, right in zip(row.children, numeric, strict=False):
            if right:
                entry["classes"].append("sepnb-number")


def _numeric(rows: list[list[str]]) -> list[bool]:
    """Whether each column holds only numbers, and at least one."""
    width = max(map(len, rows), default=0)
    columns = [[row[at] for row in rows if at < len(row) and row[at]] for at in range(width)]
    return [
        all(map(NUMBER.fullmatch, column)) and any(re.search(r"\d", text) for text in column)
        for column in columns
    ]


def _words(content: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", content)).split())


def setup(app) -> None:
    """Before anything reads the page's text."""
    app.connect("doctree-read", set_page)
