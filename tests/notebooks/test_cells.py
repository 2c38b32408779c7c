"""How the code of chapters is cut, for those who read it on the page."""

import ast
import re
from functools import cache
from types import SimpleNamespace

import jupytext
import pytest
from sphinx.directives.code import LiteralIncludeReader

from sepnb import paths
from sepnb.companion.run import chapters

MOST_LINES = 30
"""Of code in one cell that a page shows unfolded: what a laptop's screen holds beside some prose."""

WIDEST_LINE = 88
"""Characters of code that a page on a desktop shows without scrolling sideways."""

HIDDEN = {"hide-input", "hide-cell", "remove-input"}


@cache
def code(chapter: chapters.Chapter) -> list:
    return [cell for cell in jupytext.read(chapter.path).cells if cell.cell_type == "code"]


@pytest.mark.parametrize("chapter", chapters.discover(), ids=lambda chapter: chapter.name)
def test_no_code_that_a_page_shows_is_longer_than_a_screen_or_wider_than_its_column(
    chapter: chapters.Chapter,
) -> None:
    long, wide = {}, []
    for cell in code(chapter):
        lines = [line for line in cell.source.splitlines() if line.strip()]
        wide += [line for line in lines if len(line) > WIDEST_LINE]
        if len(lines) > MOST_LINES and not HIDDEN & set(cell.metadata.get("tags", [])):
            long[lines[0]] = len(lines)
    assert not long, f"split these cells, or fold them: {long}"
    assert not wide, f"break these lines at {WIDEST_LINE} characters: {wide}"


@pytest.mark.parametrize("chapter", chapters.discover(), ids=lambda chapter: chapter.name)
def test_a_chapter_that_reads_records_ends_with_where_they_come_from(chapter: chapters.Chapter) -> None:
    asked = [ast.unparse(ast.parse(cell.source)).count("figures.provenance(") for cell in code(chapter)]
    assert asked[:-1] == [0] * (len(asked) - 1)
    assert asked[-1] == (".table(profile)" in chapter.text)
    if asked[-1]:  # a notebook shows the last expression of a cell
        last = ast.parse(code(chapter)[-1].source).body[-1]
        assert ast.unparse(last).startswith("figures.provenance(")


@pytest.mark.parametrize("chapter", chapters.discover(), ids=lambda chapter: chapter.name)
def test_no_caption_names_a_colour_that_a_dark_page_changes(chapter: chapters.Chapter) -> None:
    told = [
        word.value
        for cell in code(chapter)
        for call in ast.walk(ast.parse(cell.source))
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "figures.show"
        for about in call.keywords
        if about.arg == "caption"
        for word in ast.walk(about.value)
        if isinstance(word, ast.Constant) and isinstance(word.value, str)
    ]
    wrong = [text for text in told if re.search(r"\b(?:black|brown)\b", text, re.I)]
    assert not wrong, f"name the shape: {wrong}"


@pytest.mark.parametrize("chapter", chapters.discover(), ids=lambda chapter: chapter.name)
def test_every_line_of_the_package_that_a_page_includes_is_there(chapter: chapters.Chapter) -> None:
    """A private function that a chapter shows may be renamed; the book would not build."""
    text = re.sub(r"^# ?", "", chapter.path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for file, options in re.findall(r"^```\{literalinclude\} (\S+)\n((?::.*\n)*)```$", text, re.MULTILINE):
        told = dict(re.findall(r"^:([\w-]+): *(.*)$", options, re.MULTILINE)) | {"dedent": None}
        source = paths.root() / "notebooks" / "executed" / file
        reader = LiteralIncludeReader(str(source.resolve()), told, SimpleNamespace(source_encoding="utf-8"))
        assert reader.read()[1], f"{file} {told}"
