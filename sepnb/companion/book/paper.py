"""The paper, `make paper`: typst sets `book/paper/paper.typ` as `build/paper.pdf`.

The source types no result. It names numbers, verdicts and figures as the roles `{num}` and `{verdict}` and
`{chapter-figure}` do. They are looked up by the same code and laid beside a copy of the source, where typst
reads them. So the paper and the book cannot say different things.
"""

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import yaml

from sepnb import claims, paths
from sepnb.companion.book import chapter_figures
from sepnb.companion.book.number_role import number
from sepnb.plots.looks import GROUND
from sepnb.records.provenance import git_state

MOST_PAGES = 8
PROFILE = "laptop"  # of the numbers and figures
NUMBER = re.compile(r'\bnum\("([^"]*)"\)')
VERDICT = re.compile(r'\bverdict\("([^"]*)"\)')
FIGURE = re.compile(r'\bchapter-figure\("([^"]*)"')
COMMENT = re.compile(r"(?<!:)//.*$", re.M)


class PaperError(RuntimeError):
    """The paper could not be set; the message says why and what to do."""


def source() -> Path:
    """The folder of the paper's source."""
    return paths.root() / "book" / "paper"


def looked_up(text: str) -> dict[str, dict]:
    """What this source names: numbers as the book shows them, and verdicts, each with whether its rule is
    younger than records that it judges.

    Raises:
        PaperError: unknown names, and verdicts that have changed since their sentences were written; all
            are listed.
    """
    text, numbers, verdicts, problems = COMMENT.sub("", text), {}, {}, []
    for name in dict.fromkeys(NUMBER.findall(text)):
        try:
            numbers[name] = number(name, PROFILE)
        except ValueError as problem:
            problems.append(str(problem))
    quoted = dict.fromkeys(VERDICT.findall(text))
    rows = {row.claim.id: row for row in claims.evaluate()} if quoted else {}
    for quote in quoted:
        name, _, word = quote.partition(": ")
        if name not in rows:
            problems.append(f"{quote!r}: no claim {name!r} in the ledger")
        elif rows[name].verdict.word != word:
            problems.append(
                f"{quote!r}: the ledger says {rows[name].verdict.word!r}; write the sentence anew"
            )
        else:
            verdicts[quote] = {"word": word, "late": rows[name].precedes is False}
    if problems:
        raise PaperError("\n".join(problems))
    return {"numbers": numbers, "verdicts": verdicts}


def stage(folder: Path) -> Path:
    """Lay the source, its numbers and its figures into a folder; the file that typst sets.

    Raises:
        PaperError: something that the source names is not there.
    """
    text = (source() / "paper.typ").read_text(encoding="utf-8")
    data = looked_up(text) | {"figures": {}}
    folder.mkdir(parents=True, exist_ok=True)
    for name in FIGURE.findall(text):
        chapter, _, figure = name.partition("/")
        try:
            content, suffix, meta = chapter_figures.find(paths.build() / PROFILE / f"{chapter}.ipynb", figure)
        except ValueError as problem:
            raise PaperError(f"{name}: {problem}") from None
        # Paper is white, unlike the ground of the book's figures.
        (folder / f"{figure}{suffix}").write_bytes(content.replace(GROUND.encode(), b"#ffffff"))
        data["figures"][name] = {"file": f"{figure}{suffix}", "alt": meta["alt"]}
    cited = yaml.safe_load((paths.root() / "CITATION.cff").read_text(encoding="utf-8"))
    commit, changed = git_state()
    log = ["git", "log", "-1", "--format=%cs"]
    day = subprocess.run(log, cwd=paths.root(), capture_output=True, text=True).stdout.strip()
    state = f"commit {(commit or 'unknown')[:9]}{' with changes' if changed else ''}"
    data["authors"] = [one["name"] for one in cited["authors"]]
    data["state"] = f"sepnb {cited['version']} · {state} · {day or time.strftime('%Y-%m-%d')}"
    (folder / "numbers.json").write_text(json.dumps(data, indent=1, ensure_ascii=False), encoding="utf-8")
    shutil.copy(paths.root() / "book" / "references.bib", folder)
    shutil.copy(source() / "layout.typ", folder)
    return Path(shutil.copy(source() / "paper.typ", folder))


def typeset(file: Path, target: Path) -> int:
    """Set a staged source as PDF, with the fonts that typst brings, and return how many pages it has.

    Raises:
        PaperError: typst is missing or refuses the source, or the paper is too long.
    """
    try:
        import typst
    except ImportError:
        raise PaperError("typst is not installed; make paper brings it") from None
    options = {"root": str(file.parent), "ignore_system_fonts": True}
    try:
        pages = typst.compile(str(file), format="svg", **options)
        pages = len(pages) if isinstance(pages, list) else 1
        typst.compile(str(file), output=str(target), format="pdf", **options)
    except RuntimeError as problem:
        raise PaperError(f"typst refuses {file.name}: {problem}") from None
    if pages > MOST_PAGES:
        raise PaperError(f"the paper has {pages} pages, more than {MOST_PAGES}")
    return pages


if __name__ == "__main__":
    try:
        target = paths.build() / "paper.pdf"
        pages = typeset(stage(paths.build() / "paper"), target)
        print(f"{target} ({pages} pages)")
    except PaperError as problem:
        sys.exit(str(problem))
