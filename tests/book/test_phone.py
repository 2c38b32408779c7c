"""A page offers a phone the drawing that was made for it, and no page keeps one that is not there."""

import nbformat

from sepnb.companion import phone
from sepnb.companion.build import clean

from . import browser as reading

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="9"><rect width="{0}" height="9"/></svg>'


def staged(narrow: str | None) -> tuple[str, dict[str, str]]:
    about = {"alt": "A bar.", "name": "fig-bar", "caption": "It is wide.", "narrow": narrow}
    output = nbformat.v4.new_output(
        "display_data", data={"image/svg+xml": SVG.format(800)}, metadata={"sepnb": about}
    )
    cells = [nbformat.v4.new_markdown_cell("# Bar"), nbformat.v4.new_code_cell("draw()", outputs=[output])]
    python = {"language_info": {"name": "python", "pygments_lexer": "python"}}
    held: dict[str, str] = {}
    notebook = clean(nbformat.v4.new_notebook(cells=cells, metadata=python), held)
    return nbformat.writes(nbformat.from_dict(notebook)), held


def test_a_phone_loads_the_narrow_drawing_and_a_desktop_the_wide_one(
    project, chromium, monkeypatch, tmp_path
) -> None:
    monkeypatch.setattr(phone, "folder", lambda: tmp_path / "narrow")
    notebook, held = staged(SVG.format(300))
    phone.keep(held)
    assert len(held) == 1 and 'width="300"' not in notebook
    built = project({"index.md": "# Book\n\n```{toctree}\nbar\n```\n", "bar.ipynb": notebook})
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


def test_a_figure_without_a_narrow_form_is_shown_as_it_is() -> None:
    notebook, held = staged(None)
    assert held == {} and phone.CLASS not in notebook
