"""Folded code: neighbouring cells whose code is folded are one fold, with one bar to open.

A chapter computes in one cell and draws in the next; a reader sees one bar above the figure, and the code of
both under it, in order. What a cell shows ends a fold: nothing moves past it.
"""

from docutils import nodes


def merge(app, doctree: nodes.document) -> None:
    """Put the folded code of a cell that shows nothing into the fold of the next, if that is folded too."""
    for cell in list(doctree.findall(_folded)):
        before = cell.parent[cell.parent.index(cell) - 1] if cell.parent.index(cell) else None
        if before is not None and _folded(before) and all(map(_source, before.children)):
            cell[0][:0] = [block for source in before.children for block in source.children]
            before.parent.remove(before)


def name_bars(app, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """A bar is called what it says: MyST-NB gives all of them one name, for those who hear it."""
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
