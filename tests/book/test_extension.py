"""What the extension refuses, renders and loads, on small projects."""

import html
import re
from types import SimpleNamespace

import pandas as pd
import pytest
import yaml

from sepnb import claims, encodings, experiments, paths
from sepnb.analysis.inventory import inventory
from sepnb.claims.ledger import Source
from sepnb.companion.book import once, pages, site
from sepnb.companion.book.build import clean
from sepnb.plots import moving
from sepnb.records.store import Record

from .conftest import book_of, notebook, shows


def test_unread_markup_is_one_located_warning_each(project) -> None:
    lines = {
        5: "An unclosed $x + y here.",
        7: "`{note}`, `$HOME` and `` ```{note} `` in code are fine, and so is $x^2$.",
        9: "```{admonition} A title with `code`",
    }
    text = "\n".join(lines.get(number, "") for number in range(2, 10))
    built = project({"index.md": f"# Book\n{text}\n\nText.\n```\n"})
    assert [int(line.split("index.md:")[1].split(":")[0]) for line in built.warnings] == [5, 9]
    for line, said in zip(built.warnings, ("left in prose", "open it with ~~~"), strict=True):
        assert said in line


def test_a_page_of_evidence_is_parsed_and_its_fault_is_one_located_warning(project, monkeypatch) -> None:
    text = "Said.\n\n### A part\n\n| claim | verdict |\n|---|---|\n| one | **partly** |\n"
    monkeypatch.setitem(site.PAGES, "claims", (lambda: text, site.RULES))
    index = {"index.md": "# Book\n\n## The ledger\n\n```{claims}\n```\n"}
    built = project(index)
    assert built.warnings == []
    assert "<strong>partly</strong>" in built.page("index") and "<h3>A part" in built.page("index")

    def refuse() -> str:
        raise ValueError("results/laptop/x.json: checksum differs")

    monkeypatch.setitem(site.PAGES, "claims", (refuse, site.RULES))
    index["index.md"] += "\nMore.\n"
    built = project(index)
    assert len(built.warnings) == 1 and "index.md:5: WARNING" in built.warnings[0]
    assert "checksum differs" in built.warnings[0] and "checksum differs" in built.page("index")


def a_record(key: str, stale: str | None = None) -> Record:
    facts = {"device_name": "two | cores", "torch": "2.13.0", "commit": "0123456789abcdef"}
    facts |= {"started": "2026-11-21T10:00:00+00:00", "seed": 0, "cpu_s": 61.2}
    return Record("in_window", "laptop", key, {}, {}, [], {}, facts, stale)


@pytest.fixture
def only(monkeypatch):
    """`only(table)`: the tables of records, by profile, of the one experiment that there is."""

    def register(table) -> None:
        def load(profile, store=None):
            return table(profile)

        one = SimpleNamespace(name="in_window", title="Inside the window", table=load)
        monkeypatch.setattr(experiments, "names", lambda: ["in_window"])
        monkeypatch.setattr(experiments, "get", lambda name: one)
        once.forget()

    yield register
    once.forget()


def test_the_table_of_records_counts_published_missing_and_stale(only) -> None:
    table = pd.DataFrame({"status": ["ok", "not run", "stale"]})
    table.attrs["records"] = [a_record("rope-0"), a_record("none-0", stale="first loss differs")]
    empty = pd.DataFrame({"status": ["not run"] * 3})
    empty.attrs["records"] = []
    only({"laptop": table, "gpu": empty}.__getitem__)
    lines = pages.provenance().splitlines()
    assert "No record of profile gpu is published." in lines
    assert not any(line.startswith("| `in_window` | gpu |") for line in lines)
    row = r"| `in_window` | laptop | 2 | 1 | 1 | two \| cores | 2\.13\.0 | `012345678` | 2026\-11\-21 |"
    assert row in lines
    cells = "results/laptop/in_window/none-0.json", "0", "stale: first loss differs", "012345678"
    row = [f"<td>{cell}</td>" for cell in (*cells, "2026-11-21", "61 s")]
    found = [line.strip() for line in lines]
    assert row == found[found.index(row[0]) :][: len(row)]


HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)> {download}`x </etc/passwd>` [a](b.md) ![c](d.png) "
    "`code` ``two`` $x^2$ {{ name }} **bold** | # head\n```{include} /etc/passwd\n```\n\\| &amp; - 1. "
)


@pytest.mark.attack("scripts, links, roles and formulas in every value of a record")
def test_what_a_record_holds_shows_as_it_is_and_does_nothing(project, only, monkeypatch) -> None:
    """In every value of a record, also one with the right checksum: no HTML, no role, no link, no formula."""
    facts = a_record("x").provenance
    facts = {name: HOSTILE for name in facts} | {"cpu_s": 61.2}
    one = Record("in_window", "laptop", HOSTILE, {}, {}, [], {}, facts, HOSTILE)
    cells = {"status": "ok", "method": HOSTILE, "length": 512, "eager": 0.7, "products": 1.0}
    quartiles = {"compiled_lower": 0.96, "compiled": 0.97, "compiled_upper": 0.98}
    table = pd.DataFrame([cells | quartiles])
    table.attrs["records"] = [one]
    only(lambda profile: table)
    monkeypatch.setattr("sepnb.claims.judge", lambda asked, tables: {})
    claim = claims.CLAIMS[0]
    made = {"": frozenset({HOSTILE})}
    source = Source(claim.needs[0], profile="laptop", records=1, seeds=(1,), commits=made)
    verdict = claims.Verdict("undecided", HOSTILE)
    row = claims.Row(claim=claim, verdict=verdict, sources=(source,), rule_commit=None, precedes=None)
    monkeypatch.setattr(claims, "evaluate", lambda **_: [row])
    blocks = "\n\n".join(f"```{{{name}}}\n```" for name in ("claims", "provenance"))
    index = f"# Book\n\n## Evidence\n\n{blocks}\n\n```{{toctree}}\n{HOME}\n```\n"
    extensions = ["myst_nb", "sphinx.ext.mathjax", "sphinx_design", "sepnb.companion.book.site"]
    built = project({"index.md": index, f"{HOME}.md": "# Order\n"}, extensions=extensions)
    told = ("a dollar sign left in prose", "a directive that was not recognised")  # and so the build ends
    assert [one for one in built.warnings if not any(words in one for words in told)] == []
    page = built.page("index")
    article = page[page.index('<div class="body"') : page.index('<div class="sphinxsidebar"')]
    assert not re.search(r"<script>alert|<img|<strong>bold|<a [^>]*(b\.md|passwd)|root:", article)
    assert 'class="math' not in article
    shown = html.unescape(re.sub(r"<[^>]+>", "", article))
    assert shown.count("<script>alert(1)</script><img src=x onerror=alert(1)> {download}`x") >= 8


@pytest.fixture
def few_encodings(monkeypatch):
    """A registry of three, so that the tables of encodings take no time."""
    few = {name: encodings._REGISTRY[name] for name in ("none", "learned", "alibi")}
    monkeypatch.setattr(encodings, "_REGISTRY", few)
    monkeypatch.setattr(encodings, "_ELSEWHERE", {})


def test_the_table_of_encodings_has_what_is_measured_and_follows_the_registry(few_encodings) -> None:
    measured = inventory(length=32, width=32, n_heads=4, n_layers=2).set_index("encoding")
    lines = pages.inventory().splitlines()
    assert sum(line.startswith("| `") for line in lines) == 2 * len(measured)
    assert "| `alibi` | score | distance | no | no | no | FlexAttention |" in lines
    assert "| `learned` | input | index | yes | yes | no | fused |" in lines
    learned, alibi = measured.loc["learned"], measured.loc["alibi"]
    assert learned["parameters"] == 8 * 32 * 32
    assert any(
        line.startswith("| `learned` | 8,192 | 0 | 32 | ") and line.endswith(" yes |") for line in lines
    )
    held = f"{alibi['memory'] / 1024:,.0f}"
    assert f"| `alibi` | 0 | 0 | {alibi['elementwise']} | {held} | {alibi['growth']:g} | yes |" in lines


def test_with_an_address_each_chapter_opens_in_binder_and_colab_and_without_one_nowhere(project) -> None:
    files = book(("01_order/fig-one",), a_figure("fig-one", "The first.", "red"))
    config = yaml.safe_load((paths.root() / "_config.yml").read_text(encoding="utf-8"))
    opened_at = {}
    for address in ("https://github.com/someone/book", ""):
        named = {
            "launch_buttons": config["launch_buttons"],
            "repository_branch": config["repository"]["branch"],
            "repository_url": address,
            "use_issues_button": False,
        }
        opened_at[address] = project(files, html_theme="sphinx_book_theme", html_theme_options=named).page(
            HOME
        )
    opened, closed = opened_at.values()
    links = re.findall(r'href="(https://(?:mybinder|colab)[^"]*)"', opened)
    assert links == [
        f"https://mybinder.org/v2/gh/someone/book/published?urlpath=lab/tree/{HOME}.ipynb",
        f"https://colab.research.google.com/github/someone/book/blob/published/{HOME}.ipynb",
    ]
    assert "mybinder" not in closed and "colab" not in closed and "github.com" not in closed


HOME = "notebooks/executed/01_order"


def book(asked: tuple[str, ...], *outputs: dict) -> dict[str, str]:
    """An index that shows figures of chapter 1, and that chapter as the executor leaves it."""
    chapter = notebook("# Chapter", *(shows("draw()", output) for output in outputs))
    clean(chapter)
    return book_of({HOME: chapter}, "\n\n".join(f"```{{chapter-figure}} {figure}\n```" for figure in asked))


def a_figure(name: str, caption: str, colour: str) -> dict:
    square = f'<path fill="{colour}" d="M0 0h9v9z"/>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">{square}</svg>'
    about = {"alt": f"A {colour} square.", "name": name, "caption": caption}
    return {"data": {"image/svg+xml": svg, "text/plain": "<figure>"}, "metadata": {"sepnb": about}}


def test_a_figure_of_a_chapter_stands_on_another_page_with_its_words_and_a_link(project) -> None:
    one, two = a_figure("fig-one", "The first.", "red"), a_figure("fig-two", "Half is $1/2$.", "blue")
    built = project(book(("01_order/fig-two",), one, two))
    assert built.warnings == []
    page = built.page("index")
    source = re.search(r'<img alt="A blue square."[^>]* src="([^"]+)"', page)
    assert 'fill="blue"' in (built.html / source[1]).read_text(encoding="utf-8")
    caption = re.search(r"<figcaption>.*?</figcaption>", page, re.S)[0]
    assert "Half is" in caption and 'class="math' in caption
    assert re.search(rf'href="{HOME}.html#fig-two".*Figure 1.2', caption, re.S)
    assert "The first." not in page and "caption-number" not in page  # its number is the chapter's

    built = project(book(("01_order/fig-two",), one, a_figure("fig-two", "All of it.", "green")))
    assert built.warnings == [] and "All of it." in built.page("index")
    assert 'fill="green"' in (built.html / source[1]).read_text(encoding="utf-8")


def test_a_panel_of_a_chapter_stands_on_another_page_with_its_scripts(project, monkeypatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(moving, "display", lambda html: shown.append(html.data))
    moving.show("slopes", {"slopes": [0.5]}, name="moving-one", alt="A panel.", instead="the figure above")
    pages = book(("01_order/moving-one",), {"data": {"text/html": shown[0]}})
    pages["index.md"] = pages["index.md"].replace("chapter-figure", "chapter-panel")
    static = {"html_static_path": [str(paths.root() / "book" / "_static")]}
    built = project(pages, **static)
    assert built.warnings == []
    assert 'id="moving-one"' in built.page("index") and "small_figures.js" in built.page("index")

    pages["index.md"] = pages["index.md"].replace("moving-one", "moving-two")
    built = project(pages, **static)
    assert len(built.warnings) == 1 and "index.md:3: WARNING" in built.warnings[0]
    assert "has no panel 'moving-two'; it has moving-one" in built.warnings[0]


def test_a_figure_that_is_not_there_is_one_located_warning(project) -> None:
    asked = ("01_order/fig-three", "02_absolute/fig-one")
    built = project(book(asked, a_figure("fig-one", "The first.", "red")))
    first, second = built.warnings
    assert "index.md:3: WARNING" in first and "shows no figure 'fig-three'; it shows fig-one" in first
    assert "index.md:6: WARNING" in second and "no executed chapter 02_absolute.ipynb" in second
