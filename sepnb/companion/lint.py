"""The prose lint: a decimal or a percentage in prose is a result that somebody typed.

Results reach prose through `{num}` only, so a number that looks measured must come from there, or say on
its own line why it is given: `<!-- given: reason -->` (a setting, a version, a number of someone else).
A mark on a line of its own just above a table covers the table.

Looked at: `book/*.md` and the markdown cells of `notebooks/*.py`. Not looked at: code, math, roles, link
targets, directive options, directive arguments that are files, comments, markup.

    python -m sepnb.companion.lint [FILE ...]
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sepnb import paths

MEASURED = re.compile(
    r"(?<![\w.])[-+\u2212]?(?:\d+(?:\.\d+)+|\.\d+|\d+e[-+\u2212]?\d+)(?:\s*%|\s+per\s*cent)?"
    r"|(?<![\w.])\d+(?:\s*%|\s+per\s*cent\b)",
    re.IGNORECASE,
)
MARK = re.compile(r"<!--\s*given:(.*?)-->", re.DOTALL)

# Directives whose body is not prose, and those whose argument is a file or a name.
CODE_DIRECTIVES = {
    "code",
    "code-block",
    "code-cell",
    "eval-rst",
    "literalinclude",
    "math",
    "mermaid",
    "raw",
    "toctree",
}
FILE_DIRECTIVES = {"bibliography", "figure", "image", "include"}

_FENCE = re.compile(
    r"(?P<indent>\s*)(?P<fence>`{3,}|~{3,}|:{3,})\s*(?:\{(?P<directive>[^}]+)\})?(?P<argument>.*)"
)
# What is blanked before the search, in this order; each keeps its line breaks, so that lines stay countable.
_SKIPPED = [
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"<(style|script)\b.*?</\1>", re.DOTALL | re.IGNORECASE),
    re.compile(r"(?:\{[\w:.-]+\})?(?P<ticks>`+)(?!`)(?:.|\n(?!\s*\n))+?(?<!`)(?P=ticks)(?!`)"),
    re.compile(r"(?<!\\)\$\$.+?(?<!\\)\$\$", re.DOTALL),
    re.compile(r"\\begin\{(\w+\*?)\}.+?\\end\{\1\}", re.DOTALL),
    re.compile(r"(?<!\\)\$(?!\s)(?:[^$\n]|\n(?!\n))+?(?<![\s\\])\$(?!\d)"),
    re.compile(r"\]\([^)\n]*\)"),
    re.compile(r"\[-?@[^\]\n]*\]"),
    re.compile(r"<?https?://[^\s>)]+>?"),
    re.compile(r"</?[a-zA-Z][^<>]*>", re.DOTALL),
    re.compile(r"^\([^)\n]+\)=\s*$", re.MULTILINE),
    re.compile(r"^%.*$", re.MULTILINE),
]


@dataclass(frozen=True)
class Problem:
    """One typed number: where it is, the line's text, and what to do about it."""

    path: str
    line: int
    text: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.why}\n    {self.text}"


def lint(source: Path | str, *, notebook: bool | None = None) -> list[Problem]:
    """The typed numbers of a file (`Path`) or of a text (`str`).

    Args:
        source: a Markdown page or a percent script.
        notebook: whether it is a percent script; by default, whether the path ends in `.py`.
    """
    path = str(source) if isinstance(source, Path) else "<text>"
    text = source.read_text(encoding="utf-8") if isinstance(source, Path) else source
    if notebook is None:
        notebook = path.endswith(".py")
    page = _markdown_cells(text) if notebook else text
    lines = text.splitlines()
    given = _given(page)
    problems = []
    for number, prose in enumerate(_prose(page).split("\n"), start=1):
        reason = given.get(number)
        if reason == "":
            why = "the mark gives no reason; write <!-- given: reason -->"
            problems.append(Problem(path, number, lines[number - 1].strip(), why))
        elif reason is None:
            for found in MEASURED.finditer(prose):
                why = (
                    f"{found.group().strip()!r} is typed; quote it with {{num}}`chapter/key:format`, "
                    "or say on this line why it is given: <!-- given: reason -->"
                )
                problems.append(Problem(path, number, lines[number - 1].strip(), why))
    return problems


def sources(root: Path | None = None) -> list[Path]:
    """The project's prose: the book's pages and the chapters."""
    root = root or paths.root()
    return [*sorted(root.glob("book/*.md")), *sorted(root.glob("notebooks/*.py"))]


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
    """Line number -> reason, for every line that a mark covers."""
    lines, given = page.split("\n"), {}
    for mark in MARK.finditer(page):
        first = page.count("\n", 0, mark.start()) + 1
        last = page.count("\n", 0, mark.end()) + 1
        reason = mark.group(1).strip()
        given.update(dict.fromkeys(range(first, last + 1), reason))
        if not MARK.sub("", "\n".join(lines[first - 1 : last])).strip():  # alone: it covers the table below
            row = last
            while row < len(lines) and not lines[row].strip():
                row += 1
            while row < len(lines) and lines[row].lstrip().startswith("|"):
                given[row + 1] = reason
                row += 1
    return given


def _prose(page: str) -> str:
    text = "\n".join(_without_code(page.split("\n")))
    for pattern in _SKIPPED:
        text = pattern.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    return text


def _without_code(lines: list[str]) -> Iterator[str]:
    """The lines with code, front matter and directive options blanked; bodies of prose directives stay."""
    open_fences: list[tuple[str, bool]] = []  # the fence's characters, and whether its body is code
    options: str | None = None  # None, "colon" (:key: value lines) or "yaml" (between two --- lines)
    front_matter = bool(lines) and lines[0].strip() == "---"
    for number, line in enumerate(lines):
        bare = line.strip()
        if front_matter:
            front_matter = number == 0 or bare not in ("---", "...")
            yield ""
            continue
        if (
            open_fences
            and bare
            and set(bare) == {open_fences[-1][0][0]}
            and len(bare) >= len(open_fences[-1][0])
        ):
            open_fences.pop()
            options = None
            yield ""
            continue
        in_code = bool(open_fences) and open_fences[-1][1]
        if in_code:
            yield ""
            continue
        if options == "start":
            options = "yaml" if bare == "---" else "colon"
            if options == "yaml":
                yield ""
                continue
        if options == "yaml":
            options = None if bare == "---" else "yaml"
            yield ""
            continue
        if options == "colon":
            if re.match(r":[\w-]+:", bare):
                yield ""
                continue
            options = None
        opening = _FENCE.fullmatch(line)
        if opening and (opening["fence"][0] != ":" or opening["directive"]):
            name = (opening["directive"] or "").strip()
            open_fences.append((opening["fence"], not name or name in CODE_DIRECTIVES))
            options = "start" if name else None
            yield "" if name in FILE_DIRECTIVES | CODE_DIRECTIVES or not name else opening["argument"]
            continue
        yield line


def main(arguments: list[str]) -> int:
    """Lint the given files, or the project's prose; print every problem and return 1 when there is one."""
    problems = [problem for path in map(Path, arguments) for problem in lint(path)] if arguments else []
    if not arguments:
        problems = [problem for path in sources() for problem in lint(path)]
    for problem in problems:
        print(problem)
    print(f"{len(problems)} typed numbers" if problems else "no typed numbers")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
