"""The built book as files: every page is there, nothing points outside, nothing of the machine remains."""

import posixpath
import re
from pathlib import Path

import pytest
import yaml

from sepnb import paths

TOC = yaml.safe_load((paths.root() / "_toc.yml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, str]:
    return {str(path.relative_to(site)): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}


def test_every_page_of_the_contents_is_built_and_no_other(pages) -> None:
    listed = [TOC["root"], *(page["file"] for part in TOC["parts"] for page in part["chapters"])]
    assert len(listed) == len(set(listed))
    ours = {name for name in pages if name.startswith(("book/", "notebooks/"))}
    assert ours == {f"{name}.html" for name in listed}


def test_every_chapter_is_in_the_contents() -> None:
    sources = {path.stem for path in (paths.root() / "notebooks").glob("[0-9][0-9]_*.py")}
    listed = {Path(page["file"]).name for part in TOC["parts"] for page in part["chapters"]}
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


def test_a_number_in_prose_is_one_click_from_the_page_that_computed_it(pages) -> None:
    links = re.findall(r'<span class="sepnb-num"><a[^>]*href="([^"#]+)"', pages["book/index.html"])
    assert links, "the landing page quotes no number"
    for link in links:
        assert posixpath.normpath(f"book/{link}") in pages


def test_mathjax_and_its_fonts_lie_beside_the_pages(site) -> None:
    folder = site / "_static" / "mathjax"
    assert (folder / "tex-mml-chtml.js").stat().st_size > 1_000_000
    assert len(list(folder.glob("output/chtml/fonts/woff-v2/*.woff"))) > 20


def test_no_page_is_left_without_a_description_of_what_was_loaded(pages) -> None:
    """The provenance page lists every experiment, published or not."""
    from sepnb import experiments

    for name in experiments.names():
        assert f">{name}<" in pages["book/provenance.html"]
