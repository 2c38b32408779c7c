"""The prose lint: a decimal or a percentage in prose is a result that somebody typed.

Results reach prose through `{num}` only, so a number that looks measured must come from there, or say on
its own line why it is given: `<!-- given: reason -->` (a setting, a version, a number of someone else).
A mark on a line of its own just above a table covers the table.

Pages are read by the parser of the book. Looked at: the text of `book/*.md` and of the markdown cells of
`notebooks/*.py`; not code, math, roles, link targets, options of directives, comments and markup.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser

from sepnb import paths

MEASURED = re.compile(
    r"(?<![\w.])[-+\u2212]?(?:\d+(?:\.\d+)+|\.\d+|\d+e[-+\u2212]?\d+)(?:\s*%|\s+per\s*cent)?"
    r"|(?<![\w.])\d+(?:\s*%|\s+per\s*cent\b)",
    re.IGNORECASE,
)
MARK = re.compile(r"<!--\s*given:((?:(?!-->)[\s\S])*)-->")
ABOVE_TABLE = re.compile(rf"^[ \t]*{MARK.pattern}[ \t]*(?:\n[ \t]*)*(?:\n[ \t]*\|.*)+", re.MULTILINE)
EXTENSIONS = {"amsmath", "attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"}

# Directives whose body is not prose, and those whose argument is a file.
_CODE = re.compile(r"code(-block|-cell)?|eval-rst|literalinclude|math|mermaid|raw|toctree")
_FILE = re.compile(r"bibliography|figure|image|include")
_DIRECTIVE = re.compile(r"\{(?P<name>[^}]+)\}(?P<argument>.*)")
_OPTIONS = re.compile(r"\A(\s*:[\w-]+:.*\n?)+")
_MARKUP = re.compile(r"<!--.*?-->|<(style|script)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_REFERENCE = re.compile(r"https?://\S+|\[-?@[^\]]*\]")


@dataclass(frozen=True)
class Problem:
    """One typed number: where it is, the line's text, and what to do about it."""

    path: str
    line: int
    text: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.why}\n    {self.text}"


def lint(source: Path | str) -> list[Problem]:
    """The typed numbers of a file, a Markdown page or a percent script (`.py`), or of a Markdown text
    (`str`)."""
    path = str(source) if isinstance(source, Path) else "<text>"
    text = source.read_text(encoding="utf-8") if isinstance(source, Path) else source
    page = _markdown_cells(text) if path.endswith(".py") else text
    given, lines, problems = _given(page), text.splitlines(), []

    def tell(line: int, why: str) -> None:
        problems.append(Problem(path, line, lines[line - 1].strip(), why))

    for line in (line for line, reason in given.items() if not reason):
        tell(line, "the mark gives no reason; write <!-- given: reason -->")
    for first, prose in _prose(page):
        for number in MEASURED.finditer(_REFERENCE.sub(_blank, prose)):
            line = first + prose.count("\n", 0, number.start())
            if line not in given:
                why = (
                    f"{number.group().strip()!r} is typed; quote it with {{num}}`chapter/key:format`, "
                    "or say on this line why it is given: <!-- given: reason -->"
                )
                tell(line, why)
    return problems


def typed(text: str) -> list[str]:
    """Lines of a source of the paper that contain a typed decimal or percentage and no `// given: reason`."""
    from sepnb.companion.book.paper import COMMENT  # brings the ledger, which the lint of pages does not need

    # Comments, math, code between backticks, labels and citations, the text of a string.
    silent = r'|\$[^$]*\$|`[^`]*`|<[\w-]+>|@[\w-]+|"[^"]*"|\b(?:share|first): [\d.]+(?:%|fr)'
    prose = re.sub(COMMENT.pattern + silent, _blank, text, flags=re.M).splitlines()
    lines = zip(text.splitlines(), prose, strict=True)
    found = [line for line, said in lines if MEASURED.search(said)]
    return [line.strip() for line in found if not re.search(r"// given: \S.*$", line)]


def sources() -> list[Path]:
    """The project's prose: the book's pages and the chapters."""
    return [path for of in ("book/*.md", "notebooks/*.py") for path in sorted(paths.root().glob(of))]


def _markdown_cells(script: str) -> str:
    """The markdown cells of a percent script, uncommented, every other line empty."""
    kept, inside = [], False
    for line in script.split("\n"):
        if line.startswith("# %%"):
            inside = bool(re.search(r"\[(markdown|md)\]", line))
            kept.append("")
        else:
            kept.append(re.sub(r"^# ?", "", line) if inside else "")
    return "\n".join(kept)


def _given(page: str) -> dict[int, str]:
    """Line number -> reason, for every line that a mark covers: its own, or the table below it."""
    given: dict[int, str] = {}
    for mark in (*MARK.finditer(page), *ABOVE_TABLE.finditer(page)):
        first, last = (page.count("\n", 0, at) + 1 for at in mark.span())
        given |= dict.fromkeys(range(first, last + 1), mark[1].strip())
    return given


@cache
def _parser() -> MarkdownIt:
    return create_md_parser(MdParserConfig(enable_extensions=EXTENSIONS), RendererHTML)


def _prose(page: str, first: int = 1) -> Iterator[tuple[int, str]]:
    """The pieces of prose of a page whose first line has the number `first`, each with its own number."""
    lines = page.split("\n")
    for token in _parser().parse(page):
        start, end = token.map or (0, 0)
        if token.type == "inline":
            yield from _texts(token.children or [], "\n".join(lines[start:end]), first + start)
        elif token.type == "html_block":
            yield first + start, _MARKUP.sub(_blank, token.content)
        elif token.type in ("fence", "colon_fence") and (opened := _DIRECTIVE.match(token.info.strip())):
            if _CODE.fullmatch(opened["name"]):
                continue
            if not _FILE.fullmatch(opened["name"]):
                yield from _prose(opened["argument"].strip(), first + start)
            yield from _prose(_OPTIONS.sub(_blank, token.content), first + start + 1)


def _texts(children: list[Token], block: str, first: int) -> Iterator[tuple[int, str]]:
    """The texts of a block between its code, math, roles and tags, looked up in it for their lines."""
    at = 0
    for child in children:
        at = max(at, block.find(child.content, at))
        if child.type == "text":
            yield first + block.count("\n", 0, at), child.content
        if block.startswith(child.content, at):
            at += len(child.content)


def _blank(found: re.Match) -> str:
    return re.sub(r"[^\n]", " ", found.group())
