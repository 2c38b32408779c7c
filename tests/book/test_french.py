"""The French pages: whole, with the numbers of the English ones, one key away from them."""

import html
import re
from pathlib import Path

import pytest

from sepnb import paths
from sepnb.companion.book import catalogs, languages
from sepnb.companion.book.translated import decimal

from . import browser as reading

PAGES = languages.translations(paths.root())["fr"]
QUOTED = re.compile(r'<span class="sepnb-num">(?:<a\b[^>]*>)?(?:<span\b[^>]*>)?([^<]*)<')


def text(site: Path, page: str) -> str:
    return (site / f"{page}.html").read_text(encoding="utf-8")


def words(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", markup))


def test_no_message_of_the_french_pages_is_untranslated(site) -> None:
    left = "\n".join(f"{page}: {message}" for page, message in catalogs.missing("fr"))
    assert not left, (
        f"English text without French, or with one that is marked fuzzy; run make french and translate it in "
        f"book/locale/fr/LC_MESSAGES:\n{left}"
    )


@pytest.mark.parametrize("page", PAGES)
def test_a_french_page_quotes_the_numbers_and_shows_the_pictures_of_its_english_twin(site, page) -> None:
    """The order of numbers within a sentence is the translator's."""
    english, french = text(site, page), text(site, f"fr/{page}")
    verdicts = catalogs.read("fr", "words")

    def told(number: str) -> str:
        word = verdicts.get(number)
        return word.string if word else decimal(number, "fr")

    quoted = [sorted(map(words, QUOTED.findall(of))) for of in (english, french)]
    assert sorted(map(told, quoted[0])) == quoted[1] and (quoted[1] or "references" in page)
    for counted in (r"<img\b", r"<table\b", r"<figure\b", r'class="math notranslate', r"<h[1-6]\b"):
        assert len(re.findall(counted, english)) == len(re.findall(counted, french)), counted
    assert '<html lang="fr"' in french and '<html lang="en"' in english
    assert "WARNING" not in french and "??" not in words(french)


@pytest.mark.parametrize("page", PAGES)
def test_each_of_two_twins_names_the_other(site, page) -> None:
    for here, there, code in ((page, f"fr/{page}", "fr"), (f"fr/{page}", page, "en")):
        found = re.findall(r'<link rel="alternate" hreflang="(\w+)" href="([^"]+)"', text(site, here))
        assert dict(found).keys() == {"en", "fr"}
        for address in dict(found).values():
            assert ((site / here).parent / address).is_file()
        link = re.search(
            r'<a class="[^"]*sepnb-language[^"]*" href="([^"]+)" hreflang="(\w+)"', text(site, here)
        )
        assert link and link[2] == code
        assert ((site / here).parent / link[1]).resolve() == (site / f"{there}.html").resolve()


def test_a_page_that_is_not_translated_offers_no_other_language(site) -> None:
    assert "sepnb-language" not in text(site, "book/glossary")
    assert "sepnb-language" not in text(site, "fr/search")


def test_the_switch_works_by_keyboard_from_a_folder(site, chromium) -> None:
    page = chromium.new_page(viewport=reading.PHONE)
    page.goto((site / f"{PAGES[1]}.html").as_uri())
    for lang in ("fr", "en"):
        page.locator("a.sepnb-language").first.focus()
        assert page.evaluate("document.activeElement.hreflang") == lang
        page.keyboard.press("Enter")
        page.wait_for_url(lambda url, lang=lang: ("/fr/" in url) == (lang == "fr"))
        assert page.evaluate("document.documentElement.lang") == lang
    page.close()
