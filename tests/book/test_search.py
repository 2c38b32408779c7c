"""The search page shows what it found: over HTTP and from a folder, without asking for another page."""

import json

import pytest

from sepnb import paths
from sepnb.companion.book import search

from . import browser as reading

PAGES = {
    "index.md": "# Book\n\nThe landing page.\n\n```{toctree}\nchapter\nrotation\n```\n",
    "chapter.md": "# Order\n\nNothing here.\n\n## Shuffled\n\nA **marmalade** is cooked & $x^2$ stirred.\n\n"
    "```python\nimport marmalade\nquince = 1\n```\n",
    "rotation.md": "# Rotation\n\n"
    + "Many words stand before it. " * 60
    + "Then comes a marmalade of 1 ± 2.\n",
    "book/api/sepnb.jam.md": "---\norphan: true\nnosearch: true\n---\n# sepnb.jam\n\n"
    "```{eval-rst}\n.. py:function:: sepnb.marmalade(x)\n\n   A marmalade in the reference.\n```\n",
}


@pytest.fixture
def searched(project):
    static = [str(paths.root() / "book" / "_static")]
    built = project(PAGES, html_static_path=static)
    assert built.warnings == []
    return built


def texts(built) -> dict[str, list[list[str]]]:
    script = (built.html / "_static" / search.FILE).read_text(encoding="utf-8")
    return json.loads(script.removeprefix("const searchTexts=").rstrip(";\n"))


def test_the_texts_are_those_of_the_pages_by_section_with_prose_before_code(searched, project) -> None:
    held = texts(searched)
    assert sorted(held) == ["chapter", "index", "rotation"]
    assert held["chapter"][1] == ["shuffled", "A marmalade is cooked & x^2 stirred."]
    assert held["chapter"][2] == ["shuffled", "import marmalade quince = 1"]
    again = texts(project({"rotation.md": "# Rotation\n\nNow without.\n"}))
    assert again["rotation"] == [["rotation", "Now without."]] and again["chapter"] == held["chapter"]


def test_the_last_word_of_a_long_page_is_shown(project, chromium) -> None:
    long = "# Book\n\n" + "word " * 30_000 + "\n\n## End\n\nOnly here stands a damson.\n"
    built = project({"index.md": long}, html_static_path=[str(paths.root() / "book" / "_static")])
    assert texts(built)["index"][-1] == ["end", "Only here stands a damson."]
    with reading.opened(chromium, built.html.as_uri()) as (page, _):
        page.goto(f"{built.html.as_uri()}/search.html?q=damson")
        found = page.locator("#search-results p.context", has_text="Only here stands a damson")
        found.wait_for()
        assert found.locator("mark").all_text_contents() == ["damson"]


def test_each_result_shows_where_the_word_stands_and_the_reference_comes_last(searched, chromium) -> None:
    with reading.served(searched.html) as http:
        for base in (http, searched.html.as_uri()):
            with reading.opened(chromium, base) as (page, traffic):
                page.goto(f"{base}/search.html?q=Marmalade")
                page.locator("#search-results p.search-summary", has_text="found").wait_for()
                items = page.locator("#search-results ul.search > li")
                said = items.all_text_contents()
                assert len(said) == 3 and "in the reference" in said[-1]
                for item in said[:2]:
                    behind = item.partition("\N{HORIZONTAL ELLIPSIS}")[2]
                    assert "marmalade" in behind or "A marmalade is cooked" in item
                assert items.locator("mark").all_text_contents() == ["marmalade", "marmalade"]
                page.get_by_role("link", name="Order").first.click()
                page.wait_for_url("**/chapter.html#shuffled**")
                assert traffic == []
