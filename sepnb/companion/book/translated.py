"""Pages in another language: what the book's extension adds to Sphinx's own translation by gettext.

Sphinx replaces paragraphs, titles and captions by their translations in the catalogs of `book/locale`. The
numbers stay roles, so that both languages quote the same records. This module does what Sphinx cannot: labels
of folded code, links to pages without a translation, the format of numbers, and texts inside figures, each a
message. Words inside HTML and equations are not translated. Each page keeps a list of the messages
that it looked up, from which `sepnb.companion.book.catalogs` refreshes the catalogs.

In the build of the original, `sepnb_original` is empty and only the language switch acts.
"""

import gettext
import json
import os
import pickle
import posixpath
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util import docname_join
from sphinx.util.nodes import extract_messages

from sepnb.companion.book import phone
from sepnb.companion.book.languages import ORIGINAL, READ, translations

NAMES = {"en": "English", "fr": "Français"}
"""What each language calls itself."""
WORDS = "words"
"""The catalog of what is said on any page: verdicts, names of methods, labels of tables."""
MESSAGES = "messages.json"
"""Beside the pages: what each of them asked for, in its order."""
_ASKED, _SAID = "sepnb_messages", "sepnb_said"
_NARROW = "\N{NARROW NO-BREAK SPACE}"

# --- words --------------------------------------------------------------------------------------------------

_MARKUP = re.compile(
    r"\$[^$]+\$"  # an equation
    r"|\{(?!term|doc)[\w:]+\}`[^`]+`"  # a role that shows no words
    r"|\{[\w:]+\}`(?=[^`]*<)|<[^<>`]*>`"  # the rest of a role that has words of its own
    r"|`[^`]+`|\{[.#][^}]*\}"  # code, and attributes
)


def worded(message: str) -> bool:
    """Whether there is anything to translate: a word that is neither mathematics, code nor a target."""
    return re.search(r"[^\W\d_]{2}", _MARKUP.sub(" ", message)) is not None


def decimal(text: str, language: str) -> str:
    """A number that was formatted for English, as `language` writes it; French: 1 106 and 0,25 and 34 %."""
    if language != "fr":
        return text
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", _NARROW, text)
    return re.sub(r"(?<=\d) ?%", f"{_NARROW}%", re.sub(r"(?<=\d)\.(?=\d)", ",", text))


def said(text: str, env: BuildEnvironment) -> str:
    """A word or a number that was computed, such as the verdict on a claim, in the language of the page."""
    if not env.config.sepnb_original or not text.strip():
        return text  # gettext translates "" to the header of the catalog
    translation = _gettext(env, WORDS)(text)
    return decimal(text, env.config.language) if translation == text else translation


def ask(message: str, env: BuildEnvironment) -> str:
    """The translation of a message of the page that is read; the original where there is none."""
    if not env.config.sepnb_original or not worded(message):
        return message
    env.temp_data.setdefault(_ASKED, []).append(message)
    translation = _gettext(env, env.docname)(message)
    if translation == message:
        translation = _gettext(env, WORDS)(message)
    env.temp_data.setdefault(_SAID, set()).add(translation)
    return translation


def table(text: str, env: BuildEnvironment) -> str:
    """A table in MyST that was computed, cell by cell, with its badges."""

    def cell(words: str) -> str:
        badge = re.fullmatch(r"\[(.*?)\](\{.*?\})(.*)", words.strip())
        return (
            f"[{said(badge[1], env)}]{badge[2]}{said(badge[3], env)}" if badge else said(words.strip(), env)
        )

    lines = text.splitlines()
    rows = [i for i, line in enumerate(lines) if line.startswith("|") and not re.fullmatch(r"[|:\s-]+", line)]
    for i in rows:
        lines[i] = f"| {' | '.join(map(cell, lines[i].strip().strip('|').split('|')))} |"
    return "\n".join(lines)


def _gettext(env: BuildEnvironment, domain: str) -> Callable[[str], str]:
    (folder,) = env.config.locale_dirs
    return gettext.translation(domain, folder, [env.config.language], fallback=True).gettext


# --- what Sphinx does not reach -----------------------------------------------------------------------------

_NUMBER = re.compile(r'(<td\b[^>]*class="sepnb-number"[^>]*>)([^<]+)(?=</td>)')
_IDENTIFIER = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)+")


class Reach(SphinxTransform):
    """Before Sphinx translates a page: note all that it asks for."""

    default_priority = 19

    def apply(self, **settings) -> None:
        if not self.config.sepnb_original:
            return
        for node in self.document.findall(lambda node: isinstance(node, nodes.raw | nodes.math_block)):
            node["translatable"] = False  # for Sphinx would read it as prose
        translated = set(self.env.temp_data.pop(_SAID, ()))  # what directives have translated
        for node, message in extract_messages(self.document):
            metadata = isinstance(node.parent, nodes.field | nodes.field_body)  # of a notebook
            if not metadata and message not in translated and not _IDENTIFIER.fullmatch(message.strip()):
                ask(message, self.env)
        for image in self.document.findall(nodes.image):
            draw(image, self.env)
        self.env.temp_data.pop(_SAID, None)
        self.env.metadata[self.env.docname][_ASKED] = list(dict.fromkeys(self.env.temp_data.pop(_ASKED, [])))


def draw(image: nodes.image, env: BuildEnvironment) -> None:
    """Give a figure, and its form for a phone, the words of the edition, in files of the same names."""
    from sepnb.companion.book.labels import relabelled  # matplotlib, which the original does not need

    def translate(message: str) -> str:
        number = "$" not in message and not worded(message)
        return decimal(message, env.config.language) if number else ask(message, env)

    file = Path(env.relfn2path(image["uri"])[1])
    if file.suffix != ".svg" or not file.is_file():
        return
    page = Path(env.doc2path(env.docname)).parent
    image["uri"] = Path(os.path.relpath(phone.own(file.name, env.app), page)).as_posix()
    for drawing in (file, *phone.narrow(image["classes"])):
        target = phone.own(drawing.name, env.app)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(relabelled(drawing.read_text(encoding="utf-8"), translate), encoding="utf-8")


_RECORDS = re.compile('(<details class="sepnb-records"><summary>)([^<]+)')


def set_rest(app, doctree: nodes.document) -> None:
    """What other parts of the extension made of a page: columns of numbers, the count of tables, and what
    the bars of folded code say."""
    if not app.config.sepnb_original:
        return
    for fold in doctree.findall(nodes.container):
        for prompt in ("prompt_show", "prompt_hide"):
            kind, colon, caption = str(fold.get(prompt, "")).partition(": ")
            if kind:
                fold[prompt] = said(kind, app.env) + (f"\N{NO-BREAK SPACE}: {caption}" if colon else "")
    for raw in doctree.findall(nodes.raw):
        if raw.get("format") == "html":
            text = _NUMBER.sub(lambda cell: cell[1] + decimal(cell[2], app.config.language), raw.astext())
            text = _RECORDS.sub(lambda bar: bar[1] + said(bar[2], app.env), text)
            text = text.replace('caption-number">Table ', f'caption-number">{said("Table", app.env)} ')
            text = text.replace(
                '<p class="sepnb-provenance">', f'<p class="sepnb-provenance" lang="{ORIGINAL}">'
            )
            raw[:] = [nodes.Text(text)]


def tell_read(app, env: BuildEnvironment) -> None:
    """All pages of the original are read and kept: its editions can begin."""
    if not app.config.sepnb_original:
        Path(app.doctreedir, READ).touch()


def write_messages(app, exception: Exception | None) -> None:
    """When all pages are written: what they asked for, page by page."""
    if app.config.sepnb_original and exception is None:
        asked = {name: app.env.metadata[name].get(_ASKED, []) for name in sorted(app.env.found_docs)}
        text = json.dumps(asked, indent=1, ensure_ascii=False)
        Path(app.outdir).with_name(MESSAGES).write_text(f"{text}\n", encoding="utf-8")


# --- links --------------------------------------------------------------------------------------------------


@cache
def original(doctrees: str) -> BuildEnvironment:
    """What Sphinx knows of the original: its titles, terms, figures and equations."""
    return pickle.loads(Path(doctrees, "environment.pickle").read_bytes())


def known(page: str, env: BuildEnvironment) -> bool:
    """Whether a page can be linked to, in this language or in the original."""
    doctrees = env.config.sepnb_original
    return page in env.found_docs or bool(doctrees and page in original(doctrees).titles)


def elsewhere(
    app, env: BuildEnvironment, node: addnodes.pending_xref, words: nodes.Node
) -> nodes.Node | None:
    """A link to what only the original has: a page, a number, a term, a figure or an equation."""
    if not app.config.sepnb_original:
        return None
    book, kind, target = original(app.config.sepnb_original), node["reftype"], node["reftarget"]
    page, anchor = None, ""
    if kind == "doc":
        page = docname_join(node["refdoc"], target)
        if page in book.titles and not node.get("refexplicit"):
            words = nodes.inline("", book.titles[page].astext())
    elif kind == "number":
        page, anchor = target, node["anchor"]
    elif kind == "term":
        page, anchor = book.domaindata["std"]["objects"].get(("term", target), (None, ""))
    elif kind in ("ref", "numref"):
        page, anchor = book.domaindata["std"]["anonlabels"].get(target, (None, ""))
        if page and kind == "numref":
            words = nodes.inline("", f"Figure {_count(book, page, 'figure', anchor)}")
    elif kind == "eq":
        page, anchor = book.domaindata["math"]["objects"].get(target, (None, ""))[0], f"equation-{target}"
        if page:
            words = nodes.inline("", f"({_count(book, page, 'displaymath', anchor)})")
    if page not in book.titles:
        return None
    address = posixpath.relpath(f"{page}.html", posixpath.join(app.config.language, _folder(node["refdoc"])))
    title = said("in English", env)
    link = nodes.reference("", "", words, internal=True, refuri=address + (f"#{anchor}" if anchor else ""))
    link["reftitle"] = title
    return link


def _count(book: BuildEnvironment, page: str, kind: str, target: str) -> str:
    return ".".join(map(str, book.toc_fignumbers[page][kind][target]))


def _folder(page: str) -> str:
    return posixpath.dirname(page) or "."


# --- the switch of languages --------------------------------------------------------------------------------


def switch(app, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """Tell a page in which languages it is; the theme's header shows the links (`book/_templates`)."""
    here, there = app.config.language, translations(Path(app.srcdir))
    languages = [ORIGINAL, *(code for code, pages in there.items() if pagename in pages)]
    if doctree is None or len(languages) == 1:
        return
    place = _folder(pagename) if here == ORIGINAL else posixpath.join(here, _folder(pagename))

    def address(code: str) -> str:
        return posixpath.relpath(f"{'' if code == ORIGINAL else f'{code}/'}{pagename}.html", place)

    links = [f'<link rel="alternate" hreflang="{code}" href="{address(code)}">' for code in languages]
    context["metatags"] = "\n".join([context.get("metatags") or "", *links])
    others = [code for code in languages if code != here]
    context["sepnb_languages"] = [(code, NAMES[code], address(code)) for code in others]


def setup(app) -> None:
    """Read in the process that reads a page, so that pages may be read side by side."""
    app.add_config_value("sepnb_original", "", "env", [str])
    app.add_transform(Reach)
    app.connect("doctree-read", set_rest, priority=600)
    app.connect("env-check-consistency", tell_read)
    app.connect("missing-reference", elsewhere)
    app.connect("html-page-context", switch)
    app.connect("build-finished", write_messages)
