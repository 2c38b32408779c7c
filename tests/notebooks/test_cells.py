"""How the code of chapters is cut, for those who read it on the page."""

import jupytext
import pytest

from sepnb.companion import chapters

MOST_LINES = 30
"""Of code in one cell that a page shows unfolded: what a laptop's screen holds beside some prose."""

WIDEST_LINE = 88
"""Characters of code that a page on a desktop shows without scrolling sideways."""

HIDDEN = {"hide-input", "hide-cell", "remove-input"}


@pytest.mark.parametrize("chapter", chapters.discover(), ids=lambda chapter: chapter.name)
def test_no_code_that_a_page_shows_is_longer_than_a_screen(chapter: chapters.Chapter) -> None:
    long = {}
    for cell in jupytext.read(chapter.path).cells:
        if cell.cell_type == "code" and not HIDDEN & set(cell.metadata.get("tags", [])):
            lines = [line for line in cell.source.splitlines() if line.strip()]
            if len(lines) > MOST_LINES:
                long[lines[0]] = len(lines)
    assert not long, f"split these cells, or fold them: {long}"


@pytest.mark.parametrize("chapter", chapters.discover(), ids=lambda chapter: chapter.name)
def test_no_line_of_code_is_wider_than_its_column(chapter: chapters.Chapter) -> None:
    wide = [
        line
        for cell in jupytext.read(chapter.path).cells
        if cell.cell_type == "code"
        for line in cell.source.splitlines()
        if len(line) > WIDEST_LINE
    ]
    assert not wide, f"break these lines at {WIDEST_LINE} characters: {wide}"
