"""A figure of a chapter on another page, with its own words: the book never draws one thing twice.

    ```{chapter-figure} 12_extrapolators/fig-extrapolators-beyond
    ```
    ```{chapter-panel} 13_slow_down/moving-recall
    ```

The second form is for interactive figures (`sepnb.plots.moving`). The picture, its alternative text and its
caption come from the chapter's executed notebook, so that they have the profile of the build. The caption
ends with a link to the chapter. Nothing here imports matplotlib.
"""

import base64
import json
import os
import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from sepnb.companion.book import phone, translated

logger = logging.getLogger(__name__)

SUFFIXES = {"image/svg+xml": ".svg", "image/png": ".png"}


def find(notebook: Path, name: str) -> tuple[bytes, str, dict[str, str]]:
    """The figure of this name in an executed notebook: its file's content and suffix, and what
    `figures.show` says of it. The ValueError on an unknown name lists the known ones."""
    outputs = _outputs(notebook)
    named = {about["name"]: output for output in outputs if (about := _meta(output)).get("name")}
    if name not in named:
        known = ", ".join(named) or "none with a name"
        raise ValueError(f"{notebook.name} shows no figure {name!r}; it shows {known}")
    data = named[name]["data"]
    mime = next(kind for kind in SUFFIXES if kind in data)
    text = "".join(data[mime])
    content = base64.b64decode(text) if mime == "image/png" else text.encode()
    return content, SUFFIXES[mime], _meta(named[name])


def find_panel(notebook: Path, name: str) -> str:
    """The HTML that `moving.show` displayed by this name. The ValueError on an unknown one lists them all."""
    pages = ["".join(output.get("data", {}).get("text/html", "")) for output in _outputs(notebook)]
    named = {known[1]: page for page in pages if (known := _PANEL.search(page))}
    if name not in named:
        raise ValueError(f"{notebook.name} has no panel {name!r}; it has {', '.join(named) or 'none'}")
    return named[name]


_PANEL = re.compile(r'<div id="([^"]+)" class="sepnb-moving"')


def _outputs(notebook: Path) -> list[dict]:
    if not notebook.is_file():
        raise ValueError(f"there is no executed chapter {notebook.name}; sepnb run executes it")
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [output for cell in cells for output in cell.get("outputs", [])]


def _meta(output: dict) -> dict[str, str]:
    return output.get("metadata", {}).get("sepnb") or {}


class ShownAgain(nodes.figure):
    """A figure without a number of its own: Sphinx numbers the class itself, and no class made of it."""


class OfChapter(SphinxDirective):
    """`{chapter-figure} <chapter>/<figure>` or `{chapter-panel} <chapter>/<name>`. What cannot be shown is
    one located warning: `-W` fails."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        chapter, _, name = self.arguments[0].partition("/")
        notebook = Path(self.env.srcdir, f"notebooks/executed/{chapter}.ipynb")
        self.env.note_dependency(str(notebook))
        try:
            if self.name == "chapter-panel":
                return [nodes.raw("", find_panel(notebook, name), format="html")]
            return [self.figure(chapter, name, *find(notebook, name))]
        except ValueError as problem:
            logger.warning("%s", problem, location=self.get_location(), type="sepnb", subtype="figure")
            return [nodes.warning("", nodes.paragraph("", str(problem)))]

    def figure(
        self, chapter: str, name: str, content: bytes, suffix: str, about: dict[str, str]
    ) -> nodes.figure:
        # A file beside the doctrees, from where Sphinx takes it as it takes any other picture.
        file = Path(self.env.app.doctreedir, "chapter_figures", f"{chapter}-{name}{suffix}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        uri = Path(os.path.relpath(file, Path(self.env.doc2path(self.env.docname)).parent)).as_posix()
        classes = ["dark-light", *([f"{phone.CLASS}{about['narrow']}"] if about.get("narrow") else [])]
        alt, caption = (translated.ask(about[part], self.env) for part in ("alt", "caption"))
        figure = ShownAgain("", nodes.image(uri=uri, alt=alt, classes=classes), align="center")
        words, _ = self.parse_inline(f"{caption} ")
        link = nodes.inline("", f"({name})")
        if translated.known(f"notebooks/executed/{chapter}", self.env):
            target = {"refdomain": "std", "reftype": "numref", "reftarget": name, "refdoc": self.env.docname}
            shown = nodes.inline("", "Figure %s")
            link = addnodes.pending_xref("", shown, refexplicit=True, refwarn=True, **target)
        figure += nodes.caption("", "", *words, link)
        return figure


def setup(app) -> None:
    """Register the directives and the node of figures, which is written as any figure is."""
    app.add_node(
        ShownAgain,
        html=(lambda page, node: page.visit_figure(node), lambda page, node: page.depart_figure(node)),
    )
    for name in ("chapter-figure", "chapter-panel"):
        app.add_directive(name, OfChapter)
