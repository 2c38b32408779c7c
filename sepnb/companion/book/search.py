"""What the search page shows of each page it finds: a piece of its text that holds the word.

Sphinx's own script fetches every page that was found, which a browser refuses where the book is read from a
folder. So the texts of all pages are written beside its index as one script, loaded by the search page alone;
`search.js` ranks with Sphinx and cuts the pieces. Pages of the reference are left out: their names are found,
below everything else.
"""

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

FILE = "searchtexts.js"
_TAGS = re.compile(r"<(style|script)\b.*?</\1>|<[^>]+>", re.S)


def passages(doctree: nodes.document) -> list[list[str]]:
    """The sections of a page, each `[id, text]`: the prose of all, then what else has words, such as code."""
    prose: dict[str, list[str]] = {}
    other: dict[str, list[str]] = {}
    for section, text, is_prose in _texts(doctree, ""):
        (prose if is_prose else other).setdefault(section, []).append(text)
    joined = (
        [section, " ".join("".join(texts).split())]
        for kind in (prose, other)
        for section, texts in kind.items()
    )
    return [passage for passage in joined if passage[1]]


def _texts(node: nodes.Node, section: str) -> Iterator[tuple[str, str, bool]]:
    if isinstance(node, nodes.comment | addnodes.toctree | nodes.title) and not isinstance(
        node.parent, nodes.Admonition
    ):
        return
    if isinstance(node, nodes.Text):
        yield section, str(node), True
    elif isinstance(node, nodes.raw):
        if "html" in node.get("format", ""):
            yield section, f" {html.unescape(_TAGS.sub(' ', node.astext()))} ", False
    elif isinstance(node, nodes.literal_block | nodes.math_block | nodes.doctest_block):
        yield section, f" {node.astext()} ", False
    else:
        if isinstance(node, nodes.section):
            section = node["ids"][0]
        for child in node.children:
            yield from _texts(child, section)
        if not isinstance(node, nodes.Inline):
            yield section, " ", True


def keep(app, doctree: nodes.document, docname: str) -> None:
    """Keep the text of a page that is written, unless the search is told to leave it out."""
    if app.builder.format == "html" and "nosearch" not in app.env.metadata.get(docname, {}):
        app.builder.__dict__.setdefault("sepnb_texts", {})[docname] = passages(doctree)


def write(app, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """With the search page, the last of all, write the texts; of pages that did not change they are there."""
    if pagename != "search":
        return
    file = Path(app.outdir, "_static", FILE)
    texts = dict(app.builder.__dict__.get("sepnb_texts", {}))
    if file.exists():
        texts = json.loads(file.read_text(encoding="utf-8").partition("=")[2].rstrip(";\n")) | texts
    texts = {name: texts[name] for name in sorted(texts) if name in app.env.all_docs}
    held = json.dumps(texts, ensure_ascii=False, separators=(",", ":"))
    file.write_text(f"const searchTexts={held};\n", encoding="utf-8")
    for script in (FILE, "search.js"):
        app.add_js_file(script, loading_method="defer", priority=900)


def setup(app) -> None:
    """Pages are resolved in the process that writes the search page, also where others write them out."""
    app.connect("doctree-resolved", keep)
    app.connect("html-page-context", write)
