"""The catalogs that translators fill: what the pages of the last build say, and what is said of it elsewhere.

    python -m sepnb.companion.book.catalogs      (make french)

brings them up to date. A message whose English changed keeps its translation, marked `fuzzy`, for a person to
look at; one whose numbers alone changed gets the new numbers.
"""

import io
import json
import re
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import read_po, write_po

from sepnb import paths
from sepnb.companion.book.languages import locale, translations
from sepnb.companion.book.translated import MESSAGES, decimal

_DIGITS = re.compile(r"\d+(?:[.,\N{NARROW NO-BREAK SPACE}]\d+)*")


def messages(language: str) -> dict[str, list[str]]:
    """What the pages of the last build asked for, page by page.

    Raises:
        ValueError: the edition has not been built.
    """
    file = paths.build() / "book-work" / language / "_build" / MESSAGES
    if not file.is_file():
        raise ValueError(f"the edition {language!r} has not been built here; run make book")
    return json.loads(file.read_text(encoding="utf-8"))


def read(language: str, page: str) -> Catalog:
    """The catalog of a page; an empty one where there is none yet."""
    file = locale() / language / "LC_MESSAGES" / f"{page}.po"
    return read_po(io.BytesIO(file.read_bytes() if file.exists() else b""), locale=language)


def missing(language: str) -> list[tuple[str, str]]:
    """Page and English text of every message that has no translation, or a fuzzy one."""
    words, found = read(language, "words"), []
    for page, asked in messages(language).items():
        have = read(language, page)
        for message in asked:
            translation = have.get(message) or words.get(message)
            if translation is None or not translation.string or translation.fuzzy:
                found.append((page, message))
    return found


def refresh(language: str) -> list[tuple[str, str]]:
    """Bring the catalogs to what the pages say now, and return what is `missing`."""
    words = read(language, "words")
    for page, asked in messages(language).items():
        have, now = read(language, page), Catalog(locale=language)
        for message in asked:
            if message not in words:
                now.add(message)
        have.update(now)
        for entry in have:
            _renew(entry, language)
        _write(have, locale() / language / "LC_MESSAGES" / f"{page}.po")
    return missing(language)


def _renew(entry: Message, language: str) -> None:
    """Give a fuzzy message whose English changed in its numbers alone the new ones."""
    if not (entry.fuzzy and entry.previous_id and entry.string):
        return
    (before,) = entry.previous_id
    if _DIGITS.sub("0", before) != _DIGITS.sub("0", entry.id):
        return
    changed = zip(*map(_DIGITS.findall, (before, entry.id)), strict=True)
    replaced = {decimal(old, language): decimal(new, language) for old, new in changed}
    if set(replaced) >= set(_DIGITS.findall(entry.string)):
        entry.string = _DIGITS.sub(lambda old: replaced[old[0]], entry.string)
        entry.flags.discard("fuzzy")
        entry.previous_id = []


def _write(catalog: Catalog, file: Path) -> None:
    held = io.BytesIO()
    write_po(held, catalog, width=110, ignore_obsolete=True, omit_header=True)
    paths.write_atomically(file, held.getvalue().decode().lstrip("\n"))


def main() -> None:
    """Refresh every edition, and say what is left to translate."""
    for language in translations(paths.root()):
        left = refresh(language)
        for page, message in left:
            print(f"{locale() / language / 'LC_MESSAGES' / page}.po: {message}")
        print(f"{language}: {len(left)} messages have no translation, or a fuzzy one")


if __name__ == "__main__":
    main()
