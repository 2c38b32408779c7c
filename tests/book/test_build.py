"""The built book as files: every page is there, nothing points outside, nothing of the machine remains."""

import html
import posixpath
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from sepnb import paths
from sepnb.companion.book import api_pages, languages, moved, search

MOST_TEXT = 2_500_000  # bytes of the texts that the search page loads, whole as they are


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, str]:
    return {str(path.relative_to(site)): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}


def test_every_page_of_the_contents_is_built_and_no_other(pages) -> None:
    listed = languages.contents(paths.root() / "_toc.yml")
    assert len(listed) == len(set(listed))
    listed += [
        f"{api_pages.FOLDER}/{name}" for name in api_pages.modules()
    ]  # reached from a list of their own
    assert not moved.MOVED.keys() & set(listed)
    listed += moved.MOVED
    ours = {name for name in pages if name.startswith(("book/", "notebooks/"))}
    assert ours == {f"{name}.html" for name in listed}


def test_an_old_address_leads_to_the_section_that_took_its_place(pages) -> None:
    for old, new in moved.MOVED.items():
        page, _, section = new.partition("#")
        address = re.search(r'content="0; url=([^"#]+)', pages[f"{old}.html"])[1]
        assert posixpath.normpath(posixpath.join(posixpath.dirname(old), address)) == f"{page}.html"
        assert not section or f'id="{section}"' in pages[f"{page}.html"], new


def test_the_reference_is_in_its_list_and_not_among_the_texts_that_are_searched(site, pages) -> None:
    links = set(re.findall(r'href="api/([\w.]+)\.html"', pages["book/api.html"]))
    assert links == set(api_pages.modules()) and 'href="../genindex.html"' in pages["book/api.html"]
    texts = (site / "_static" / search.FILE).read_text(encoding="utf-8")
    assert '"book/notation":' in texts and f'"{api_pages.FOLDER}/' not in texts
    assert len(texts.encode()) < MOST_TEXT


def test_no_entry_of_the_reference_lists_its_parameters_twice(pages) -> None:
    found = []
    for name in (name for name in pages if name.startswith(f"{api_pages.FOLDER}/")):
        entries = re.split(r'<dt class="sig', pages[name])
        found += [(name, entry[:80]) for entry in entries if entry.count(">Parameters<") > 1]
    assert found == []


def test_figures_are_numbered_by_chapter_and_links_to_them_agree(pages) -> None:
    """Every quoted number is that of the caption to which it leads."""
    figures, quoted = {}, []
    for name, text in pages.items():
        for figure in re.findall(r"<figure\b.*?</figure>", text, re.S):
            number = re.search(r'caption-number">Figure ([\d.]+) ', figure)
            for target in re.findall(r'\bid="([^"]+)"', figure) if number else ():
                figures[name, target] = number[1]
        links = re.findall(
            r'href="([^"#]*)#(fig-[\w-]+)"[^>]*><span class="std std-numref">\D+([\d.]+)<', text
        )
        quoted += [(name, *link) for link in links]
    wrong = []
    for name, page, target, number in quoted:
        place = posixpath.normpath(posixpath.join(posixpath.dirname(name), page)) if page else name
        if figures.get((place, target)) != number:
            wrong.append((name, target, number, figures.get((place, target))))
    assert quoted and wrong == []
    for (name, target), number in figures.items():
        chapter = re.match(r"(?:[a-z]{2}/)?notebooks/executed/([0-8]\d)_", name)
        assert number.partition(".")[0] == str(int(chapter[1])) if chapter else "." not in number, target


def test_every_figure_of_a_chapter_is_a_drawing_that_knows_both_modes(site, pages) -> None:
    shown = {
        name: re.findall(r'<(?:img|source)\b[^>]*?\ssrc(?:set)?="[./]*(_images/[^"]+)"', text)
        for name, text in pages.items()
        if name.startswith("notebooks/")
    }
    assert sum(map(len, shown.values())) > 100
    for name, files in shown.items():
        raster = [file for file in files if not file.endswith(".svg")]
        assert not raster, f"{name} shows {raster}; a figure beyond figures.HEAVY_SVG bytes has one look only"
        assert all("prefers-color-scheme" in (site / file).read_text(encoding="utf-8") for file in files)


def test_every_chapter_is_in_the_contents() -> None:
    sources = {path.stem for path in (paths.root() / "notebooks").glob("[0-9][0-9]_*.py")}
    listed = {Path(page).name for page in languages.contents(paths.root() / "_toc.yml")}
    assert sources and sources <= listed


def test_pages_load_nothing_from_elsewhere(pages) -> None:
    """Also what a browser would fetch only after a click: live kernels, fonts, iframes."""
    loads = re.compile(
        r"""<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\ssrc=["'](?:https?:)?//[^"']*"""
        r"""|<link\b[^>]*rel=["'](?:stylesheet|preload|icon|modulepreload)["'][^>]*href=["'](?:https?:)?//[^"']*"""
        r"""|unpkg\.com|cdn\.jsdelivr\.net|cdnjs\.cloudflare\.com|THEBE_JS_URL"""
    )
    found = {name: loads.findall(text) for name, text in pages.items() if loads.search(text)}
    assert not found


def test_pages_carry_nothing_of_the_machine_that_built_them(site, pages) -> None:
    places = {str(paths.root()), str(paths.build()), str(Path.home())} - {"/"}
    found = {name: place for name, text in pages.items() for place in places if f"{place}/" in text}
    assert not found


def test_every_link_of_every_page_leads_to_a_place_that_is_there(site, pages) -> None:
    """Numbers too: each to the cell that made it, or to its runs. And the links of French pages, to the
    English ones of what is not translated."""
    places = {name: {*re.findall(r'\bid="([^"]+)"', text), ""} for name, text in pages.items()}
    dead, numbers = [], 0
    for name, text in pages.items():
        numbers += text.count('<span class="sepnb-num"><a ')
        if name.startswith("_modules/"):
            continue  # listings of source files link back by names that Sphinx makes
        for link in set(re.findall(r'<a\b[^>]*\bhref="([^":]+)"', text)):
            page, _, place = unquote(html.unescape(link)).partition("#")
            page = posixpath.normpath(posixpath.join(posixpath.dirname(name), page)) if page else name
            if place not in places.get(page, {""}) or not (site / page).is_file():
                dead.append(f"{name}: {link}")
    assert numbers > 500 and not dead, dead[:20]


def test_mathjax_and_its_fonts_lie_beside_the_pages(site) -> None:
    folder = site / "_static" / "mathjax"
    assert (folder / "tex-mml-chtml.js").stat().st_size > 1_000_000
    assert len(list(folder.glob("output/chtml/fonts/woff-v2/*.woff"))) > 20
