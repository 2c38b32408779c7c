"""The edition on paper: whole, in order, and from this machine alone.

A site of three small pages stands for the book; `make pdf` refuses a whole book for the same reasons.
"""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image

from sepnb.companion.book.site import _package_folder
from sepnb.companion.editions import pages as editions
from sepnb.companion.editions import pdf

from . import browser as reading

FIGURE = (
    '<figure id="fig-a"><img alt="A grey square." src="../_images/grey.png"/>'
    "<figcaption>It is grey.</figcaption></figure>"
)
FOLD = (
    '<div class="cell"><details class="admonition hide above-input"><summary>Figure code</summary>'
    '<div class="cell_input"><pre>secret_code()</pre></div></details></div>'
)
SOLUTION = FOLD.replace("secret_code()", "answer = 42").replace(
    "Figure code", '<p class="collapsed">Solution</p><p class="expanded">Hide the code</p>'
)
DETAILS = (
    '<details class="sd-dropdown" id="more"><summary>Solution</summary>'
    "<p>It is forty-two &amp; more.</p></details>"
)
WIDE = f"<table><tbody><tr>{'<td>wide</td>' * 26}</tr></tbody></table>"
MOVING = '<div class="sepnb-interactive"><button>turn</button>moves</div>'
BODIES = {
    "book/index": '<h1>Book<a class="headerlink" href="#b">#</a></h1>'
    '<p>See <a href="one.html#fig-a">the figure</a> '
    'and <a href="api/sepnb.html">a page that is not here</a>.</p>',
    "book/one": f"<h1>1. One</h1><h2>Figures</h2>{FIGURE}{FOLD}{MOVING}"
    '<p><span class="math">\\(x^2\\)</span></p>',
    "book/two": f"<h1>2. Two</h1><h2>More</h2>{DETAILS}{SOLUTION}{WIDE}",
}
MATHJAX = '<script>window.MathJax = {"tex": {"packages": {"[-]": ["noundefined", "noerrors"]}}}</script>'
TOC = {
    "root": "book/index",
    "parts": [{"caption": "Part I", "chapters": [{"file": "book/one"}, {"file": "book/two"}]}],
}


def small(folder: Path, bodies: dict[str, str]) -> Path:
    site = folder / "html"
    (site / "_static").mkdir(parents=True)
    (site / "_static" / "pygments.css").write_text("", encoding="utf-8")
    mathjax = _package_folder("sphinx-mathjax-offline", "static", "mathjax")
    (site / "_static" / "mathjax").symlink_to(mathjax, target_is_directory=True)
    (site / "_images").mkdir()
    Image.new("RGB", (40, 40), "grey").save(site / "_images" / "grey.png")
    for name, body in bodies.items():
        file = site / f"{name}.html"
        file.parent.mkdir(exist_ok=True)
        id_ = name.rpartition("/")[2]
        article = f'<article class="bd-article"><section id="{id_}">{body}</section></article>'
        text = f"<html><head>{MATHJAX}</head><body>{article}</body></html>"
        file.write_text(text, encoding="utf-8")
    return site


def listed(site: Path, folder: Path) -> list[editions.Page]:
    import yaml

    (folder / "_toc.yml").write_text(yaml.safe_dump(TOC), encoding="utf-8")
    return editions.pages(site, folder / "_toc.yml")


def apart(work, *arguments):
    """What `work` returns, from a thread of its own: other tests may have a browser open in this one, and
    playwright opens no second one there."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work, *arguments).result()


def prepared_sections(site: Path, found: list[editions.Page]) -> list[str]:
    with editions.prepared(found, site) as (page, _):
        return page.eval_on_selector_all("section[data-page]", "all => all.map(one => one.outerHTML)")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Path]:
    reading.chromium()  # or the tests are skipped, and it is said how to get one
    folder = tmp_path_factory.mktemp("editions")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEPNB_BUILD", str(folder))
        yield small(folder, BODIES)


def test_the_pdf_has_every_chapter_at_the_page_that_its_contents_name_and_its_figure(site) -> None:
    held = apart(pdf.make, site, listed(site, site.parent)).read_bytes()
    where = pdf.places(held)
    assert [where[name] for name in ("p00", "p01", "p02")] == [3, 4, 5]  # after the title and the contents
    titles = [title for title in (b"Book", b"1. One", b"Figures", b"2. Two") if b"/Title (" + title in held]
    assert len(titles) == 4, "a bookmark is missing"
    assert held.count(b"/Subtype /Image") == 1 and b"A grey square." in held and b"/Lang (en" in held


def test_folded_code_and_what_moves_go_other_folds_open_and_links_to_what_is_not_there_are_words(
    site,
) -> None:
    index, one, two = apart(prepared_sections, site, listed(site, site.parent))
    assert (
        "secret_code" not in one and "moves" not in one and "<button" not in one and "headerlink" not in index
    )
    assert two.count(">Solution<") == 2 and "answer = 42" in two and "Hide the code" not in two
    assert "forty-two &amp; more" in two and "<details" not in two
    assert "a page that is not here" in index and "api/sepnb" not in index
    assert 'href="#p01-fig-a"' in index


def refused(tmp_path, monkeypatch, page: str, body: str | None) -> str:
    """Why a book with this page in place of its own is no edition."""
    monkeypatch.setenv("SEPNB_BUILD", str(tmp_path))
    wrong = small(tmp_path, {name: text for name, text in (BODIES | {page: body}).items() if text})
    with pytest.raises(editions.EditionError) as why:
        apart(pdf.make, wrong, listed(wrong, tmp_path))
    assert not (tmp_path / "book.pdf").exists()
    return str(why.value)


def test_a_chapter_that_was_not_built_is_refused(tmp_path, monkeypatch) -> None:
    assert "no page book/two" in refused(tmp_path, monkeypatch, "book/two", None)


def test_figures_that_are_missing_or_lie_elsewhere_and_bad_formulas_are_refused(
    tmp_path, monkeypatch
) -> None:
    reading.chromium()
    wrong = BODIES["book/one"].replace("grey.png", "gone.png").replace("x^2", r"\nosuch")
    why = refused(tmp_path, monkeypatch, "book/one", f'{wrong}<img src="https://example.org/grey.png">')
    assert re.search("cannot load .*gone.png", why) and "asks for https://example" in why and "formula" in why


def test_a_table_that_is_wider_than_the_paper_is_refused(tmp_path, monkeypatch) -> None:
    reading.chromium()
    wide = BODIES["book/two"].replace("wide", "wide</td><td>wide")
    assert re.search("too wide for .*: book/two: TABLE", refused(tmp_path, monkeypatch, "book/two", wide))
