"""What the book's Sphinx extension does.

- `{num}` pastes a number into prose, `{chapter-figure}` a figure, `{chapter-panel}` a panel;
- `{verdict}` pastes the word that the ledger has for a claim, with a link to the claim;
- the directives of `PAGES` render the evidence pages, the tables of encodings and the list of the reference;
- markup that was left as text, because it was not recognised, is a located warning;
- an address that a page has left leads to where it is now;
- the pages load only local scripts, and only those they need.

Nothing here imports torch unless a page of evidence has to be made anew.
"""

import contextlib
import importlib.util
import json
import os
import re
from functools import cache
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole
from sphinx.util.fileutil import copy_asset
from sphinx.util.parallel import make_chunks

from sepnb import claims, paths
from sepnb.companion.book import (
    api_pages,
    chapter_figures,
    folds,
    moved,
    not_run,
    number_role,
    numbering,
    once,
    pages,
    phone,
    quoted,
    search,
    tables,
    translated,
)
from sepnb.companion.evidence import ledger_page, scoreboard
from sepnb.records.verdicts import NOT_RUN

logger = logging.getLogger(__name__)

# --- pages that are computed --------------------------------------------------------------------------------

SLOW = ("book/provenance", "notebooks/executed/07_every_encoding", "book/claims")
"""Pages that take seconds to read. Of others the size tells."""
JUDGED = {"book/claims", "book/source_map"} | {
    f"notebooks/executed/{name}" for name in ("21_inside", "90_conclusion")
}
FAULTS = (ValueError, TypeError, LookupError, AttributeError, ImportError, OSError, RuntimeError)


def profile() -> str:
    """Whose numbers a build shows."""
    return os.environ.get("SEPNB_PROFILE", "laptop")


@cache
def ledger() -> list:
    """The rows of the ledger, judged once for all pages of a build."""
    return claims.evaluate(table=once.frame)


WORDS = "verdicts.json"
"""Beside what Sphinx keeps of the original: the word of each claim, for the editions."""


def judge_first(app, env, docnames: list[str]) -> None:
    """Before pages are read in parallel: judge the claims once, if a page needs them, and put the slow pages
    first, so that no process is left with them at the end."""
    ledger.cache_clear()
    once.forget()
    if JUDGED & set(docnames):
        with contextlib.suppress(*FAULTS):  # the page says it, at its place
            words = {row.claim.id: row.verdict.word for row in ledger()}
            Path(app.doctreedir, WORDS).write_text(json.dumps(words), encoding="utf-8")
    if app.parallel == 2 and docnames:
        size = {name: Path(env.doc2path(name)).stat().st_size for name in docnames}
        slow = sorted(docnames, key=lambda name: (name not in SLOW, -size[name]))
        both = 2 * len(make_chunks(docnames, 2)[0])  # what the two processes begin with
        docnames[:] = slow[:both:2] + slow[1:both:2] + slow[both:]


def word_of(claim: str, env) -> str:
    """The verdict on a claim. An edition has those of the original, which it is built beside."""
    judged = Path(env.config.sepnb_original, WORDS)
    if env.config.sepnb_original and judged.is_file():
        return json.loads(judged.read_text(encoding="utf-8")).get(claim, NOT_RUN)
    return next((row.verdict.word for row in ledger() if row.claim.id == claim), NOT_RUN)


RULES = (
    *(f"sepnb/{room}/*.py" for room in ("claims", "companion/evidence", "experiments")),
    "sepnb/claims/pinned.json",
    "book/source_map.yml",
)
PARTS = tuple(f"sepnb/{part}*.py" for part in ("", "encodings/", "extrapolators/", "models/", "seqpe/"))
PAGES = {
    "claims": (lambda: ledger_page.page(ledger()), RULES),
    "source-map": (lambda: ledger_page.source_map_page(ledger()), RULES),
    "scoreboard": (lambda: scoreboard.scoreboard(ledger()), RULES),
    "verdict-table": (scoreboard.methods, RULES),
    "provenance": (pages.provenance, RULES),
    "reproduction": (pages.reproduction, RULES),
    "quoted-numbers": (lambda: quoted.page(profile()), (*RULES, *quoted.SOURCES)),
    "not-run": (not_run.page, RULES),
    "inventory": (pages.inventory, PARTS),
    "properties": (pages.properties, PARTS),
    "reference": (api_pages.index, ("sepnb/**/*.py",)),
}
"""Name of a directive, what makes its text, and the files that it is made from: records too, beside `RULES`.
`sepnb build` sees the files that are new."""


def note(env, made_from: tuple[str, ...]) -> None:
    """The page that is read is made from these files."""
    files = [file for pattern in made_from for file in paths.root().glob(pattern)]
    for file in [*files, *(paths.results().rglob("*.json") if set(RULES) <= set(made_from) else ())]:
        env.note_dependency(str(file))


class VerdictRole(SphinxRole):
    """``{verdict}`claim: word` ``, the badge of the claim with a link to it; the word is for a test, see
    `evidence.headlines`. What is no claim is printed as `??` with one located warning, so `-W` fails."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        note(self.env, RULES)
        name = self.text.partition(":")[0]
        try:
            word = word_of(claims.get(name).id, self.env)
        except FAULTS as problem:
            logger.warning("%s", problem, location=self.get_location(), type="sepnb", subtype="verdict")
            return [nodes.inline(self.rawtext, "??", classes=["sepnb-missing"])], []
        target = {"refdomain": "std", "reftype": "ref", "reftarget": f"claim-{name}"}
        shown = nodes.inline("", translated.said(word, self.env))
        link = addnodes.pending_xref("", shown, refexplicit=True, refdoc=self.env.docname, **target)
        classes = ["sepnb-badge", f"sepnb-{word.replace(' ', '-')}"]
        return [nodes.inline("", "", link, classes=classes)], []


class Page(SphinxDirective):
    """A directive whose content is MyST text, made anew when one of the files it is made from changes."""

    def run(self) -> list[nodes.Node]:
        make, made_from = PAGES[self.name]
        note(self.env, made_from)
        try:
            text = make()
        except FAULTS as problem:  # of a record or a rule: it names the page instead of ending in a traceback
            reason = f"{self.name}: {type(problem).__name__}: {problem}"
            logger.warning("%s", reason, location=self.get_location(), type="sepnb", subtype=self.name)
            return [nodes.warning("", nodes.paragraph("", reason))]
        if self.config.sepnb_original:
            text = translated.table(text, self.env)
        holder = nodes.container()
        holder.document = self.state.document
        self.state.nested_parse(StringList(text.splitlines(), self.name), 0, holder, match_titles=True)
        for paragraph in holder.findall(nodes.paragraph):
            paragraph["translatable"] = False  # what is computed is translated as it is made
        return holder.children


# --- markup -------------------------------------------------------------------------------------------------

_UNREAD = {
    "a dollar sign left in prose (an unclosed formula?)": re.compile(r"\$"),
    # A line of ``` with another backtick in it, as a title with {num} has, opens no directive.
    "a directive that was not recognised (open it with ~~~)": re.compile(r"(```|:::)\{"),
}
_VERBATIM = nodes.FixedTextElement | nodes.literal | nodes.math | nodes.raw | nodes.comment


def check_text(app, doctree) -> None:
    """Warn of markup that was left as text because it was not recognised."""
    for text in doctree.findall(nodes.Text):
        parent = text.parent
        while parent is not None and not isinstance(parent, _VERBATIM):
            parent = parent.parent
        for problem, pattern in _UNREAD.items() if parent is None else ():
            if pattern.search(text):
                said = str(text)[:80]
                logger.warning("%s: %r", problem, said, location=text.parent, type="sepnb", subtype="markup")


# --- scripts and styles -------------------------------------------------------------------------------------

# What the pages and MathJax's own menu can ask for; the whole package weighs four times as much.
_MATHJAX = ("tex-mml-chtml.js", "output/chtml/fonts", "input/tex/extensions", "a11y", "sre")


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
    source = _package_folder("sphinx-mathjax-offline", "static", "mathjax")
    target = Path(app.outdir, "_static", "mathjax")
    for part in _MATHJAX:
        folder = (target / part) if (source / part).is_dir() else (target / part).parent
        folder.mkdir(parents=True, exist_ok=True)
        copy_asset(source / part, folder)


_NEEDED = re.compile(r'data-scripts="([^"]+)"')


def load_scripts(app, pagename, templatename, context, doctree) -> None:
    """Load the scripts that the figures of a page name (`sepnb.plots.moving`), on that page alone."""
    raws = () if doctree is None else doctree.findall(nodes.raw)
    needed = [name for raw in raws for found in _NEEDED.findall(raw.astext()) for name in found.split()]
    for place, name in enumerate(dict.fromkeys(needed)):
        app.add_js_file(name, priority=200 + place)


_THEBE = re.compile(
    r'\s*<script type="text/x-thebe-config">.*?</script>(\s*<script>kernelName = .*?</script>)?', re.S
)


def drop_thebe(app, pagename, templatename, context, doctree) -> None:
    """Live kernels are not used; the theme would load thebe from the network, twice, with a console error."""

    def wanted(script) -> bool:
        body, source = script.attributes.get("body") or "", str(script.filename or "")
        return "THEBE_JS_URL" not in body and "sphinx-thebe" not in source

    for kind in ("script_files", "css_files"):
        context[kind] = [asset for asset in dict.fromkeys(context.get(kind, [])) if wanted(asset)]
    context["body"] = _THEBE.sub("", context.get("body") or "")


def buttons(app, config) -> None:
    """Repository, issue and launch buttons follow one setting, `repository.url` of _config.yml."""
    options = config.html_theme_options
    if options.get("repository_url"):
        options.update(use_repository_button=True, use_issues_button=True)
    else:
        for key in ("launch_buttons", "repository_url", "repository_branch", "path_to_docs"):
            options.pop(key, None)


# They do not say whether pages may be read side by side. One acts when all are read, the other on LaTeX only.
_SILENT = ("sphinx_multitoc_numbering", "sphinx_jupyterbook_latex")


def side_by_side(app, config) -> None:
    """Let Sphinx read and write pages in several processes: every extension of the book allows it."""
    for name in _SILENT:
        if extension := app.extensions.get(name):
            extension.parallel_read_safe = extension.parallel_write_safe = True


def setup(app) -> dict:
    app.add_config_value("sepnb_profile", profile(), "env", [str])
    app.add_role("num", number_role.NumberRole())
    app.add_role("verdict", VerdictRole())
    for part in (
        api_pages,
        chapter_figures,
        folds,
        moved,
        numbering,
        phone,
        quoted,
        search,
        tables,
        translated,
    ):
        part.setup(app)
    for name in PAGES:
        app.add_directive(name, Page)
    app.set_html_assets_policy("always")  # titles with math stand in the sidebar of every page
    app.connect("config-inited", buttons)
    app.connect("config-inited", side_by_side)
    app.connect("builder-inited", copy_mathjax)
    app.connect("env-before-read-docs", judge_first)
    app.connect("doctree-read", check_text)
    app.connect("html-page-context", load_scripts, priority=100)
    app.connect("html-page-context", drop_thebe, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
