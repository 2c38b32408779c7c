"""How tables and folded code are set when a page is read."""

import re

import nbformat

from sepnb.companion.book.tables import unbroken

from .conftest import book_of, notebook, shows


def test_no_line_breaks_at_a_plus_minus() -> None:
    assert unbroken("0.83 ± 0.02, 1 ±\xa02") == "0.83\xa0±\xa00.02, 1\xa0±\xa02"


def test_a_table_of_a_page_is_set_like_one_of_a_chapter(project) -> None:
    rows = "| method | loss |\n|---|---|\n| RoPE | 0.83 ± 0.02 |\n| none | 1.25 |\n"
    text = f"# Book\n\nIt is 0.8 ± 0.1.\n\n{rows}"
    page = project({"index.md": text}).page("index")
    assert "0.8\xa0±\xa00.1" in page
    assert re.search(
        r'<th class="stub"><p>RoPE</p></th>\s*<td class="sepnb-number"><p>0.83\xa0±\xa00.02', page
    )
    assert re.search(r'<th class="head sepnb-number"><p>loss', page)


def cell(source: str, tag: str, shown: str = "") -> nbformat.NotebookNode:
    return shows(source, *[{"data": {"text/html": shown}}] * bool(shown), tags=[tag])


def test_neighbouring_folds_are_one_and_nothing_moves_past_what_a_cell_shows(project) -> None:
    cells = [
        "# Chapter",
        cell("first = 1", "hide-input"),
        cell("second = 2", "hide-input"),
        cell("draw_one()", "hide-input", "<p>one</p>"),
        cell("third = 3", "hide-input"),
        cell("draw_two()", "hide-input", "<p>two</p>"),
        cell("fourth = 4", "hide-input"),
        "Words.",
        cell("draw_three()", "hide-input", "<p>three</p>"),
        nbformat.v4.new_code_cell("open_code = 5"),
    ]
    built = project(book_of({"chapter": notebook(*cells)}))
    assert built.warnings == []
    page = built.page("chapter")
    words = re.sub(r"</?span[^>]*>", "", page)
    found = re.findall(
        r"<details|</details>|<p>(?:one|two|three)</p>|first|second|draw_\w+|third|fourth|open_code", words
    )
    one = ["<details", "first", "second", "draw_one", "</details>", "<p>one</p>"]
    two = ["<details", "third", "draw_two", "</details>", "<p>two</p>", "<details", "fourth", "</details>"]
    assert found == [*one, *two, "<details", "draw_three", "</details>", "<p>three</p>", "open_code"]
    assert "<summary>" in page and 'aria-label="Toggle hidden content"' not in page


def test_a_bar_says_what_lies_under_it(project) -> None:
    table = "<table><caption>By seed. Last, all.</caption><tbody><tr><td>1</td></tr></tbody></table>"
    figure = '<div class="sepnb-interactive">moves</div>'
    cells = [
        "# Chapter",
        cell("draw()", "hide-input", figure),
        "Then.",
        cell("draw(); assert 1", "hide-input", table),
        "Then.",
        cell("prepare()", "hide-input"),
        cell("assert 1 == 1", "hide-cell"),
        "Then.",
        cell("show()", "hide-cell", table),
        "Then.",
        cell("import math", "hide-input"),
        "Then.",
        cell("# Solution. It is one.\nassert 1 == 1", "hide-cell"),
    ]
    built = project(book_of({"chapter": notebook(*cells)}), nb_code_prompt_show="Show the code")
    bars = re.findall(r'<p class="collapsed admonition-title">(.*?)</p>', built.page("chapter"))
    assert bars == ["Figure code", "Table code", "Check", "Table: By seed", "Show the code", "Solution"]
