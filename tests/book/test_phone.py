"""A page offers a phone the drawing that was made for it, and no page keeps one that is not there."""

import nbformat

from sepnb.companion.book import phone
from sepnb.companion.book.build import clean

from . import browser as reading
from .conftest import book_of, notebook, shows

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="9"><rect width="{0}" height="9"/></svg>'


def staged(narrow: str | None) -> tuple[nbformat.NotebookNode, dict[str, str]]:
    about = {"alt": "A bar.", "name": "fig-bar", "caption": "It is wide.", "narrow": narrow}
    held: dict[str, str] = {}
    bar = shows("draw()", {"data": {"image/svg+xml": SVG.format(800)}, "metadata": {"sepnb": about}})
    return nbformat.from_dict(clean(notebook("# Bar", bar), held)), held


def test_a_phone_loads_the_narrow_drawing_and_a_desktop_the_wide_one(
    project, chromium, monkeypatch, tmp_path
) -> None:
    monkeypatch.setattr(phone, "folder", lambda: tmp_path / "narrow")
    bar, held = staged(SVG.format(300))
    phone.keep(held)
    assert len(held) == 1 and 'width="300"' not in str(bar)
    built = project(book_of({"bar": bar}))
    assert built.warnings == []
    for window, width in ((reading.PHONE, 300), (reading.DESKTOP, 800)):
        with reading.opened(chromium, built.html.as_uri(), viewport=window) as (page, traffic):
            page.goto(f"{built.html.as_uri()}/bar.html", wait_until="load")
            picture = page.locator("picture > img")
            assert picture.evaluate("image => image.naturalWidth") == width
            assert picture.get_attribute("alt") == "A bar." and traffic == []


def test_drawings_of_figures_that_are_gone_go(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(phone, "folder", lambda: tmp_path)
    phone.keep({"one": "<svg/>", "two": "<svg/>"})
    phone.keep({"two": "<svg/>"})
    assert [file.name for file in tmp_path.iterdir()] == ["two.svg"]
