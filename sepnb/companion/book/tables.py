"""How tables are set: rows have heads, numbers stand to the right, a `±` is not torn from its numbers, and
the tables of a chapter are numbered ("Table 5.2").

Chapters show their tables as HTML, and pages write theirs in MyST; both are set alike, when a page is read.
"""

import re
from itertools import count

from docutils import nodes

from sepnb.companion.book.numbering import CHAPTER
from sepnb.records.markup import numeric_columns


def unbroken(text: str) -> str:
    """The text with no-break spaces around every `±`."""
    return re.sub(r"(?<=\S)[ \xa0]±[ \xa0](?=\S)", "\xa0±\xa0", text)


def set_page(app, doctree: nodes.document) -> None:
    """All tables of a page, and every `±` in its words."""
    chapter, numbers = CHAPTER.fullmatch(app.env.docname), count(1)

    def number(caption: re.Match) -> str:
        if chapter is None:
            return caption[0]
        return f'{caption[0]}<span class="caption-number">Table {int(chapter[1])}.{next(numbers)} </span>'

    for raw in doctree.findall(nodes.raw):
        if raw.get("format") == "html" and "<table" in raw.astext():
            text = unbroken(re.sub(r"<caption>", number, raw.astext()))
            raw[:] = [nodes.Text(text)]
            raw.rawsource = text
    for table in doctree.findall(nodes.table):
        _set_nodes(table)
    for text in [text for text in doctree.findall(nodes.Text) if "±" in text]:
        if not isinstance(text.parent, nodes.FixedTextElement | nodes.raw | nodes.literal | nodes.math):
            text.parent.replace(text, nodes.Text(unbroken(text)))


def _set_nodes(table: nodes.table) -> None:
    rows = [row.children for body in table.findall(nodes.tbody) for row in body.findall(nodes.row)]
    if any(entry.get("morecols") or entry.get("morerows") for row in rows for entry in row):
        return
    numeric = numeric_columns([[" ".join(entry.astext().split()) for entry in row] for row in rows])
    columns = list(table.findall(nodes.colspec))
    if numeric and not numeric[0] and columns and len(numeric) > 1:
        columns[0]["stub"] = 1
    for row in table.findall(nodes.row):
        for entry, right in zip(row.children, numeric, strict=False):
            if right:
                entry["classes"].append("sepnb-number")


def setup(app) -> None:
    """Before anything reads the page's text."""
    app.connect("doctree-read", set_page)
