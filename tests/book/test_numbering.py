"""Figures, equations and tables have the numbers of their chapters, wherever they are quoted."""

import re

import nbformat

from sepnb import paths
from sepnb.companion.book.numbering import by_chapter

from .conftest import book_of, notebook, shows

PAGE, FIRST, SECOND = "book/notation", "notebooks/executed/01_order", "notebooks/executed/12_extrapolators"
AFTER = "notebooks/executed/90_conclusion"


def test_each_kind_counts_from_one_in_each_chapter_in_the_order_of_the_book() -> None:
    counted = {
        SECOND: {"figure": {"d": (4,), "c": (3,)}},
        PAGE: {"displaymath": {"e": (1,)}, "figure": {"z": (5,)}},
        AFTER: {"figure": {"y": (6,)}},
        FIRST: {"figure": {"b": (2,), "a": (1,)}, "displaymath": {"f": (2,)}},
    }
    assert by_chapter(counted) == {
        FIRST: {"figure": {"a": (1, 1), "b": (1, 2)}, "displaymath": {"f": (1, 1)}},
        SECOND: {"figure": {"c": (12, 1), "d": (12, 2)}},
        PAGE: {"displaymath": {"e": (1,)}, "figure": {"z": (1,)}},
        AFTER: {"figure": {"y": (2,)}},
    }


def chapter(title: str, *blocks: str) -> nbformat.NotebookNode:
    return notebook(f"# {title}\n\n" + "\n\n".join(blocks))


def figure(name: str) -> str:
    return f"```{{figure}} /picture.svg\n:name: {name}\n:alt: a picture\nA caption.\n```"


def book(*first: str) -> dict[str, str]:
    quoting = (
        "See {numref}`fig-early` and {numref}`fig-late`, {eq}`eq-page`, {eq}`eq-early` and {eq}`eq-late`."
    )
    late = ("$$\na = c\n$$ (eq-late)", figure("fig-late"), quoting)
    files = book_of(
        {
            FIRST: chapter("1. Order", *first, "$$\na = b\n$$ (eq-early)", figure("fig-early")),
            SECOND: chapter("12. What works", *late),
        },
        before=f"See {{numref}}`fig-late`.\n\n```{{toctree}}\n{PAGE}\n```",
    )
    return files | {f"{PAGE}.md": "# Notation\n\n$$\na = b\n$$ (eq-page)\n"}


def test_captions_and_links_agree_and_no_title_gets_a_second_number(project) -> None:
    built = project(book())
    assert built.warnings == []
    page = built.page(SECOND)
    assert '<span class="caption-number">Figure 12.1 </span>' in page
    assert '<span class="caption-number">Figure 1.1 </span>' in built.page(FIRST)
    assert '<span class="eqno">(12.1)' in page and '<span class="eqno">(1.1)' in built.page(FIRST)
    shown = re.findall(r'href="[^"]*#(?:fig|equation)-[^"]*">(?:<span[^>]*>)?([^<]+)<', page)
    assert [text for text in shown if text != "#"] == ["Figure 1.1", "Figure 12.1", "(1)", "(1.1)", "(12.1)"]
    assert "Figure 12.1" in built.page("index") and "section-number" not in page

    built = project({f"{FIRST}.ipynb": book(figure("fig-first"))[f"{FIRST}.ipynb"]})
    assert "Figure 1.2" in built.page(SECOND) and "Figure 12.1" in built.page(SECOND)


TABLE = '<div class="sepnb-table"><table class="table"><caption>Losses</caption>{}</table></div>'


def test_the_tables_that_a_chapter_shows_are_numbered(project) -> None:
    html = TABLE.format("<tbody><tr><td>RoPE</td></tr></tbody>")
    cells = [shows("show()", {"data": {"text/html": html}}) for _ in range(2)]
    page = project(book_of({SECOND: notebook("# 12. What works", *cells)})).page(SECOND)
    for number in ("12.1", "12.2"):
        assert f'<caption><span class="caption-number">Table {number} </span>Losses</caption>' in page


def test_a_link_that_says_a_chapter_s_number_says_that_of_its_page() -> None:
    sources = [*paths.root().glob("notebooks/*.py"), *paths.root().glob("book/**/*.md")]
    sources += paths.root().glob("book/locale/**/*.po")
    wrong = [
        f"{source.name}: {link[0]}"
        for source in sources
        for link in re.finditer(
            r"\{doc\}`[^`<]*?(\d+) <[^`>]*?(\d\d)_\w+>`", source.read_text(encoding="utf-8")
        )
        if int(link[1]) != int(link[2])
    ]
    assert len(sources) > 30 and not wrong, wrong
