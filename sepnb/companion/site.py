"""What the book's Sphinx extension does.

- `{num}` pastes a chapter's number into prose and links to the chapter that computed it;
- `{claims}`, `{source-map}` and `{provenance}` render the evidence pages, `{inventory}`, `{properties}` and
  `{encoding-speed}` the tables of encodings;
- `{chapter-figure}` shows a figure of a chapter on another page;
- a check of every formula turns unbalanced LaTeX, which Sphinx does not parse, into a located warning;
- the pages load only local scripts, and only those they need.

Nothing here imports torch unless a page of evidence has to be made anew.
"""

import contextlib
import importlib.util
import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.fileutil import copy_asset

from sepnb import paths
from sepnb.companion import chapter_figures, pages
from sepnb.companion.number_role import NumberRole

logger = logging.getLogger(__name__)

# --- pages that are computed --------------------------------------------------------------------------------


@cache
def ledger() -> list:
    """The rows of the ledger, judged once for all pages of a build."""
    from sepnb import claims

    return claims.evaluate()


def judge_first(app, env, docnames: list[str]) -> None:
    """Before the pages are read, some side by side: judge the claims once, where a page will want them, and
    deal out the pages so that neighbours, of which some take long, are not read by the same process."""
    ledger.cache_clear()
    if {"book/claims", "book/source_map"} & set(docnames):
        with contextlib.suppress(*FAULTS):  # the page says it, at its place
            ledger()
    docnames[:] = [name for start in range(SPREAD) for name in docnames[start::SPREAD]]


def _claims_page(_: str) -> str:
    from sepnb import claims

    return claims.page(ledger())


def _source_map_page(_: str) -> str:
    from sepnb import claims

    return claims.source_map_page(ledger())


SPREAD = 5
FAULTS = (ValueError, TypeError, LookupError, AttributeError, ImportError, OSError, RuntimeError)


def evidence() -> list[Path]:
    """What the pages of evidence are made from; `sepnb build` also sees files that are new."""
    root = paths.root()
    rules = [
        *root.glob("sepnb/claims/*.py"),
        root / "sepnb" / "claims" / "pinned.json",
        *root.glob("sepnb/experiments/*.py"),
        root / "book" / "source_map.yml",
    ]
    return [*paths.results().rglob("*.json"), *rules]


def package() -> list[Path]:
    """What the tables of encodings are made from: no record among it."""
    root = paths.root() / "sepnb"
    parts = ("*.py", "encodings/*.py", "extrapolators/*.py", "models/*.py", "seqpe/*.py")
    return [path for part in parts for path in root.glob(part)]


class Page(SphinxDirective):
    """A directive whose content is MyST text, made anew when one of the files it is made from changes."""

    has_content = False
    make: Callable[[str], str]
    made_from: Callable[[], list[Path]] = staticmethod(evidence)

    def run(self) -> list[nodes.Node]:
        for path in type(self).made_from():
            self.env.note_dependency(str(path))
        try:
            text = type(self).make(self.config.sepnb_profile)
        except (
            FAULTS
        ) as problem:  # a fault of a record or a rule names the page instead of ending in a traceback
            reason = f"{self.name}: {type(problem).__name__}: {problem}"
            logger.warning(
                "%s",
                reason,
                location=self.get_location(),
                type="sepnb",
                subtype=self.name,
            )
            return [nodes.warning("", nodes.paragraph("", reason))]
        holder = nodes.container()
        holder.document = self.state.document
        self.state.nested_parse(StringList(text.splitlines(), self.name), 0, holder, match_titles=True)
        return holder.children


class ClaimsPage(Page):
    make = staticmethod(_claims_page)


class SourceMapPage(Page):
    make = staticmethod(_source_map_page)


class ProvenancePage(Page):
    make = staticmethod(pages.provenance)


class InventoryPage(Page):
    make = staticmethod(lambda _: pages.inventory())
    made_from = staticmethod(package)


class EncodingSpeedPage(Page):
    make = staticmethod(lambda _: pages.encoding_speed())


class PropertiesPage(Page):
    make = staticmethod(lambda _: pages.properties())
    made_from = staticmethod(package)


# --- formulas -----------------------------------------------------------------------------------------------

_ENVIRONMENT = re.compile(r"\\(begin|end)\s*\{([^}]*)\}")


def latex_problem(tex: str) -> str | None:
    """What is unbalanced in a formula, in words, or None. Unknown macros are left to MathJax, and to the
    browser test that looks for its errors."""
    tex = re.sub(r"(?<!\\)%.*", "", tex.replace(r"\\", "  "))
    depth = 0
    for brace in re.findall(r"\\[{}]|[{}]", tex):
        depth += {"{": 1, "}": -1}.get(brace, 0)
        if depth < 0:
            return "a closing brace has no opening one"
    if depth:
        return f"{depth} opening brace(s) never closed"
    open_environments = []
    for kind, name in _ENVIRONMENT.findall(tex):
        if kind == "begin":
            open_environments.append(name)
        elif not open_environments or open_environments.pop() != name:
            return rf"\end{{{name}}} does not match the last \begin"
    if open_environments:
        return rf"\begin{{{open_environments[-1]}}} never ended"
    if len(re.findall(r"\\left(?![a-zA-Z])", tex)) != len(re.findall(r"\\right(?![a-zA-Z])", tex)):
        return r"\left and \right do not pair"
    return None


_UNREAD = {
    "a dollar sign left in prose (an unclosed formula?)": re.compile(r"\$"),
    # A line of ``` with another backtick in it, as a title with {num} has, opens no directive.
    "a directive that was not recognised (open it with ~~~)": re.compile(r"(```|:::)\{"),
}
_VERBATIM = nodes.FixedTextElement | nodes.literal | nodes.math | nodes.raw | nodes.comment


def check_text(app, doctree) -> None:
    """Warn of unbalanced formulas, and of markup that was left as text because it was not recognised."""
    for node in doctree.findall(lambda n: isinstance(n, nodes.math | nodes.math_block)):
        if problem := latex_problem(node.astext()):
            what = "LaTeX: %s in %r"
            logger.warning(what, problem, node.astext()[:80], location=node, type="sepnb", subtype="math")
    for text in doctree.findall(nodes.Text):
        kinds = set(_ancestors(text))
        if any(issubclass(kind, _VERBATIM) for kind in kinds):
            continue
        for problem, pattern in _UNREAD.items():
            if pattern.search(text):
                logger.warning(
                    "%s: %r", problem, str(text)[:80], location=text.parent, type="sepnb", subtype="markup"
                )


def _ancestors(node: nodes.Node) -> Iterator[type]:
    while (node := node.parent) is not None:
        yield type(node)


# --- scripts and styles -------------------------------------------------------------------------------------

# What the pages and MathJax's own menu can ask for; the whole package weighs four times as much.
_MATHJAX = (
    "tex-mml-chtml.js",
    "output/chtml/fonts",
    "input/tex/extensions",
    "a11y",
    "sre",
)


def _package_folder(name: str, *inside: str) -> Path:
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(
            f"the book needs the package {name}; install the locked dependencies (make book)"
        )
    return Path(found.submodule_search_locations[0]).joinpath(*inside)


def copy_mathjax(app) -> None:
    """Put MathJax beside the pages, before they are written: its checksum becomes part of its address."""
    if app.builder.format != "html":
        return
    source, target = (
        _package_folder("sphinx-mathjax-offline", "static", "mathjax"),
        Path(app.outdir, "_static", "mathjax"),
    )
    for part in _MATHJAX:
        folder = (target / part) if (source / part).is_dir() else (target / part).parent
        folder.mkdir(parents=True, exist_ok=True)
        copy_asset(source / part, folder)


def load_plotly(app, pagename, templatename, context, doctree) -> None:
    """Load plotly's script, from this site, only where a plotly figure is: it weighs almost 5 MB."""
    if doctree is None or not any("plotly-graph-div" in raw.astext() for raw in doctree.findall(nodes.raw)):
        return
    copy_asset(
        _package_folder("plotly", "package_data", "plotly.min.js"),
        Path(app.outdir, "_static"),
    )
    app.add_js_file("plotly.min.js", priority=100)


def drop_thebe(app, pagename, templatename, context, doctree) -> None:
    """Live kernels are not used; the theme would load thebe from the network, twice, with a console error."""

    def wanted(script) -> bool:
        body, source = script.attributes.get("body") or "", str(script.filename or "")
        return "THEBE_JS_URL" not in body and "sphinx-thebe" not in source

    for kind in ("script_files", "css_files"):
        kept = []
        for asset in context.get(kind, []):
            if wanted(asset) and asset not in kept:
                kept.append(asset)
        context[kind] = kept
    block = re.compile(
        r'\s*<script type="text/x-thebe-config">.*?</script>(\s*<script>kernelName = .*?</script>)?',
        re.S,
    )
    context["body"] = block.sub("", context.get("body") or "")


def buttons(app, config) -> None:
    """Repository, issue and launch buttons follow one setting, `repository.url` of _config.yml."""
    options = config.html_theme_options
    if options.get("repository_url"):
        options.update(use_repository_button=True, use_issues_button=True)
    else:
        for key in (
            "launch_buttons",
            "repository_url",
            "repository_branch",
            "path_to_docs",
        ):
            options.pop(key, None)


# They do not say whether pages may be read side by side. One acts when all are read, the other on LaTeX only.
_SILENT = ("sphinx_multitoc_numbering", "sphinx_jupyterbook_latex")


def side_by_side(app, config) -> None:
    """Let Sphinx read and write pages in several processes: every extension of the book allows it."""
    for name in _SILENT:
        if extension := app.extensions.get(name):
            extension.parallel_read_safe = extension.parallel_write_safe = True


def setup(app) -> dict:
    app.add_config_value("sepnb_profile", os.environ.get("SEPNB_PROFILE", "laptop"), "env", [str])
    app.add_role("num", NumberRole())
    chapter_figures.setup(app)
    app.add_directive("claims", ClaimsPage)
    app.add_directive("source-map", SourceMapPage)
    app.add_directive("provenance", ProvenancePage)
    app.add_directive("inventory", InventoryPage)
    app.add_directive("properties", PropertiesPage)
    app.add_directive("encoding-speed", EncodingSpeedPage)
    app.set_html_assets_policy("always")  # titles with math stand in the sidebar of every page
    app.connect("config-inited", buttons)
    app.connect("config-inited", side_by_side)
    app.connect("builder-inited", copy_mathjax)
    app.connect("env-before-read-docs", judge_first)
    app.connect("doctree-read", check_text)
    app.connect("html-page-context", load_plotly, priority=100)
    app.connect("html-page-context", drop_thebe, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
