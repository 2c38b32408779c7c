"""An address that a page has left leads to where it is now."""

import re

import pytest

from sepnb.companion.book import moved

from . import browser as reading

PAGES = {
    "index.md": "# Book\n\n```{toctree}\nnew/there\n```\n",
    "new/there.md": "# There\n\n## The part\n\nText.\n",
}


@pytest.fixture
def built(project, monkeypatch):
    addresses = {"old/here": "new/there#the-part", "gone": "new/there", "elsewhere": "in/another/book"}
    monkeypatch.setattr(moved, "MOVED", addresses)
    return project(PAGES)


def test_an_old_address_names_the_new_one_and_only_where_there_is_one(built) -> None:
    assert built.warnings == [] and not (built.html / "elsewhere.html").exists()
    assert 'content="0; url=../new/there.html#the-part"' in built.page("old/here")
    assert '<link rel="canonical" href="../new/there.html">' in built.page("old/here")
    assert re.search(r'<a href="new/there\.html">', built.page("gone"))
    assert not {"gone.html", "old/here.html"} & set(reading.pages(built.html)), "nobody wrote them"


def test_a_browser_follows_an_old_address_to_its_section(built, chromium) -> None:
    base = built.html.as_uri()
    with reading.opened(chromium, base) as (page, traffic):
        page.goto(f"{base}/old/here.html")
        page.wait_for_url("**/new/there.html#the-part")
        assert traffic == []
