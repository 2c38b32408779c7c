"""Folded code: neighbouring cells whose code is folded are one fold, with one bar to open.

A chapter computes in one cell and draws in the next; a reader sees one bar above the figure, and the code of
both under it, in order. What a cell shows ends a fold: nothing moves past it. A bar says what lies under it:
the code of a figure or of a table, a check, the solution of an exercise, or a table that is folded with its
code.
"""

import html
import re

from docutils import nodes

_CHECKS = re.compile(r"^\s*(assert\b|with pytest\.raises|[\w.]*assert_\w+\()", re.M)
_CAPTION = re.compile(r"<caption>(.*?)</caption>", re.S)


def merge(app, doctree: nodes.document) -> None:
    """Put the folded code of a cell that shows nothing into the fold of the next, if that is folded too."""
    for cell in list(doctree.findall(_folded)):
        before = cell.parent[cell.parent.index(cell) - 1] if cell.parent.index(cell) else None
        if before is not None and _folded(before) and all(map(_source, before.children)):
            cell[0][:0] = [block for source in before.children for block in source.children]
            before.parent.remove(before)
    for cell in doctree.findall(_folded):
        if said := _says(cell):
            cell["prompt_show"] = said


def _says(cell: nodes.container) -> str | None:
    """The label of a fold's bar; None to keep the one that the configuration sets."""
    shown = [node for part in cell.children if not _source(part) for node in part.findall()]
    raws = " ".join(node.astext() for node in shown if isinstance(node, nodes.raw))
    captions = [html.unescape(re.sub(r"<[^>]+>", "", found)) for found in _CAPTION.findall(raws)]
    source = cell[0].astext().lstrip()
    if source.startswith("# Solution"):
        return "Solution"
    if source.startswith("chapter_numbers.publish("):
        return "The numbers of this page"
    if captions and cell["hide_mode"] == "all":
        return "Table: " + re.split(r"(?<=[^.]{3})[.:](?=\s|$)", " ".join(captions[0].split()))[0]
    if any(isinstance(node, nodes.image) for node in shown) or "sepnb-interactive" in raws:
        return "Figure code"
    if "<table" in raws:
        return "Table code"
    return "Check" if _CHECKS.search(source) else None


def name_bars(app, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """Drop the `aria-label` that MyST-NB gives every bar: screen readers then read the bar's own text."""
    if body := context.get("body"):
        context["body"] = body.replace('<summary aria-label="Toggle hidden content">', "<summary>")


def _folded(node: nodes.Node) -> bool:
    return (
        isinstance(node, nodes.container)
        and node.get("nb_element") == "cell_code"
        and node.get("hide_mode") in ("input", "all")
        and bool(node.children)
        and _source(node[0])
    )


def _source(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code_source"


def setup(app) -> None:
    """Cells are merged as they are read, before MyST-NB wraps them for the format that is written."""
    app.connect("doctree-read", merge)
    app.connect("html-page-context", name_bars)
