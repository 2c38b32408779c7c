"""The catalogs of other languages: what a translation must keep of its English, and how it follows it."""

import json
import re
from collections import Counter
from collections.abc import Iterator

import pytest
from babel.messages.catalog import Message

from sepnb import paths
from sepnb.companion.book import catalogs, languages
from sepnb.companion.book.translated import WORDS, worded
from sepnb.companion.evidence import scoreboard, verdict_table
from sepnb.records.verdicts import WORDS as VERDICTS

LANGUAGES = sorted(languages.translations(paths.root()))
EQUATION, CODE = re.compile(r"\$[^$]+\$"), re.compile(r"(?<![}`])`[^`]+`")
ROLE = re.compile(r"\{([\w:]+)\}`(?:[^`<]*<)?([^`>]+)>?`")
LINK = re.compile(r"\]\(([^)]+)\)")
NUMBER = re.compile(r"\d+(?:[.,\N{NARROW NO-BREAK SPACE}]\d+)*")
MARKUP = re.compile("|".join(one.pattern for one in (EQUATION, ROLE, CODE)))


def entries(language: str) -> Iterator[tuple[str, Message]]:
    """Every translated message with its page."""
    pages = {page for page in languages.translations(paths.root())[language]}
    for page in (WORDS, *sorted(pages)):
        yield from ((page, entry) for entry in catalogs.read(language, page) if entry.id and entry.string)


def numbers(text: str, french: bool = False) -> Counter:
    """The numbers that are typed in prose, without what groups thousands, with a decimal point."""
    typed = NUMBER.findall(MARKUP.sub(" ", text))
    if french:
        return Counter(one.replace("\N{NARROW NO-BREAK SPACE}", "").replace(",", ".") for one in typed)
    return Counter(re.sub(r",(?=\d{3}(?!\d))", "", one) for one in typed)


KEPT = {
    "roles and their targets": lambda text, _=None: Counter(ROLE.findall(text)),
    "equations": lambda text, _=None: Counter(EQUATION.findall(text)),
    "code": lambda text, _=None: Counter(CODE.findall(ROLE.sub(" ", text))),
    "links": lambda text, _=None: Counter(LINK.findall(text)),
    "numbers": numbers,
    "lines of a label": lambda text, _=None: Counter(re.findall("\n", text)),
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("what", KEPT)
def test_a_translation_has_exactly_those_of_its_english(language, what) -> None:
    kept, french = KEPT[what], language == "fr"
    differ = ((page, one.id, kept(one.id), kept(one.string, french)) for page, one in entries(language))
    wrong = [(page, text, dict(had - has), dict(has - had)) for page, text, had, has in differ if had != has]
    assert wrong == []


def test_french_is_set_as_french() -> None:
    """A line may not begin with a colon, nor end with an opening guillemet. Apostrophes are typed as such:
    Sphinx takes a straight one before emphasis for a closing quote."""
    loose = re.compile(r" [:;!?»%]|« |[\"']")
    found = [
        (page, entry.string) for page, entry in entries("fr") if loose.search(MARKUP.sub("x", entry.string))
    ]
    assert found == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_word_that_a_page_may_compute_is_translated(language) -> None:
    have = catalogs.read(language, WORDS)
    heads = {"method", *scoreboard.WORDS.values(), "survives", "quality", "price"}
    cells = {*scoreboard.IN_CELLS.values(), "not learned", "base"}
    labels = {line.label for line in verdict_table.LINES}
    wanted = {*VERDICTS, *heads, *cells, *labels, "can", "cannot", "Show the code", "Hide the code", "Table"}
    wanted.add("Records of this page")
    assert sorted(word for word in wanted if not have.get(word)) == []


@pytest.fixture
def edition(tmp_path, monkeypatch):
    """`edition(*messages)`: a French page that says them in the last build; the file of its catalog."""
    monkeypatch.setenv("SEPNB_ROOT", str(tmp_path))
    monkeypatch.setenv("SEPNB_BUILD", str(tmp_path / "build"))
    folder = tmp_path / "book" / "locale" / "fr"
    (folder / "LC_MESSAGES").mkdir(parents=True)
    (folder / "_toc.yml").write_text("format: jb-book\nroot: page\n", encoding="utf-8")
    said = tmp_path / "build" / "book-work" / "fr" / "_build" / catalogs.MESSAGES

    def say(*messages: str):
        said.parent.mkdir(parents=True, exist_ok=True)
        said.write_text(json.dumps({"page": messages}), encoding="utf-8")
        return folder / "LC_MESSAGES" / "page.po"

    return say


def test_a_changed_message_keeps_its_translation_for_a_person_and_changed_numbers_are_taken(edition) -> None:
    file = edition("A loss of 1.25 bits in 9 of 12 runs.", "The quick brown fox jumps over the lazy dog.")
    assert [message for _, message in catalogs.refresh("fr")] == catalogs.messages("fr")["page"]
    text = file.read_text(encoding="utf-8")
    for told in ("Une perte de 1,25 bit dans 9 exécutions sur 12.", "Portez ce vieux whisky au juge blond."):
        text = text.replace('msgstr ""', f'msgstr "{told}"', 1)
    file.write_text(text, encoding="utf-8")
    assert catalogs.refresh("fr") == []

    edition("A loss of 1.31 bits in 9 of 13 runs.", "The quick brown fox jumps over a lazy dog.")
    assert catalogs.refresh("fr") == [("page", "The quick brown fox jumps over a lazy dog.")]
    changed, fuzzy = (entry for entry in catalogs.read("fr", "page") if entry.id)
    assert changed.string == "Une perte de 1,31 bit dans 9 exécutions sur 13." and not changed.fuzzy
    assert fuzzy.string == "Portez ce vieux whisky au juge blond." and fuzzy.fuzzy
    before = file.read_bytes()
    assert len(catalogs.refresh("fr")) == 1 and file.read_bytes() == before


def test_mathematics_code_and_bare_roles_need_no_translation() -> None:
    bare = "$x_{\\text{pos}}$ {num}`a/b:.2f`, {doc}`7 <chapter>` `a_name` [1]{.sepnb-badge}"
    assert not worded(bare)
    assert worded(f"{bare} and") and worded("{term}`streams <stream>`") and worded("{term}`dense model`")
