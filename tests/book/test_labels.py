"""Figures in another language: a French word is drawn where matplotlib itself would have drawn it."""

import io
import json
import re
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pytest

from sepnb.companion.book import phone
from sepnb.companion.book.build import clean
from sepnb.companion.book.labels import relabelled
from sepnb.companion.book.translated import MESSAGES, decimal

from .conftest import book_of, notebook, shows

FRENCH = {
    "a title": "un titre bien plus long",
    "top left": "en haut et à gauche",
    "time $t$": "le temps $t$ qui passe",
    "value\n(small)": "la valeur mesurée\n(toute petite)",
    "low": "la plus basse",
    "one": "la première des deux",
    "near": "tout à côté",
    "further away": "plus loin",
    "a mark": "une marque de plus",
}


def drawing(told=lambda words: words) -> str:
    """A figure that says the same things in each of the ways in which words hang."""
    with plt.rc_context({"svg.hashsalt": "labels"}):
        fig, ax = plt.subplots(figsize=(6, 4))
        fig.subplots_adjust(left=0.3)
        ax.plot([0, 1], [0.25, 0.5], label=told("one"))
        ax.set(xlabel=told("time $t$"), ylabel=told("value\n(small)"), xlim=(0, 1), ylim=(0, 1))
        ax.set_title(told("a title"))
        ax.set_title(told("top left"), loc="left")
        ax.set_yticks([0.25, 0.5], [told("low"), "$10^{-1.5}$"])
        ax.set_xticks([0, 0.25], ["0.00", told("0.25")])
        ax.legend(loc="lower left")
        for height, words in ((0.7, "near"), (0.8, "further away")):
            ax.text(0.9, height, told(words), ha="right")
        ax.text(0.3, 0.9, told("a mark"), ha="center", weight="bold")
        file = io.StringIO()
        fig.savefig(file, format="svg", metadata={"Date": None})
        plt.close(fig)
    return file.getvalue()


def french(words: str) -> str:
    return FRENCH.get(words, words)


def group(svg: str, words: str) -> str:
    """What is drawn for a line of text."""
    return re.search(rf"<!-- {re.escape(words)} -->\n( *)<g.*?\n\1</g>", svg, re.S)[0]


def start(svg: str, words: str) -> float:
    """Where the line begins, along its own direction, in points; a turned one from below."""
    drawn = group(svg, words)
    x, y, turned, size = re.search(r"translate\((\S+) (\S+)\)( rotate\(-90\))? scale\((\S+)", drawn).groups()
    inner = re.search(r'<path d="M[^>]*transform="translate\((\S+) 0\)', drawn)
    return (-float(y) if turned else float(x)) + float(size) * float(inner[1] if inner else 0)


@pytest.mark.parametrize("line", [line for words in FRENCH.values() for line in words.split("\n")])
def test_a_translated_line_begins_where_matplotlib_would_begin_it(line) -> None:
    """Titles and names of an axis keep their middle, a legend its left edge, labels of ticks, and two words
    that end at one place, their right edge."""
    ours, theirs = relabelled(drawing(), french), drawing(french)
    assert start(ours, line) == pytest.approx(start(theirs, line), abs=1)


def test_a_label_too_long_for_the_picture_is_set_narrower() -> None:
    long = "la plus basse de toutes les valeurs"
    after = relabelled(drawing(), lambda words: long if words == "low" else words)
    assert start(drawing(lambda words: long if words == "low" else words), long) < 0 < start(after, long) < 2


def test_a_number_gets_its_comma_and_mathematics_and_untranslated_words_stay() -> None:
    def told(words: str) -> str:
        return decimal(words, "fr") if words == "0.25" else words

    before = drawing()
    after = relabelled(before, told)
    assert "<!-- 0,25 -->" in after and "<!-- 0.25 -->" not in after
    rest = re.compile(r"<!-- 0[.,]25 -->.*?</g>", re.S)
    assert rest.sub("", before) == rest.sub("", after)
    assert group(before, "$10^{-1.5}$") == group(after, "$10^{-1.5}$")
    assert relabelled(before, lambda words: words) == before


def test_glyphs_that_a_translated_text_defined_are_still_there_for_others() -> None:
    after = relabelled(drawing(), french)
    used = set(re.findall(r'href="#([^"]+)"', after))
    assert used <= set(re.findall(r'id="([^"]+)"', after))


def test_an_edition_draws_and_lists_its_words_and_the_original_stays(project, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(phone, "folder", lambda: tmp_path / "narrow")
    about = {"alt": "Time.", "name": "fig-time", "caption": "Time passes.", "narrow": drawing()}
    shown = shows("draw()", {"data": {"image/svg+xml": drawing()}, "metadata": {"sepnb": about}})
    held: dict[str, str] = {}
    pages = book_of({"bar": nbformat.from_dict(clean(notebook("# Bar", shown), held))})
    phone.keep(held)
    catalog = tmp_path / "locale" / "fr" / "LC_MESSAGES" / "bar.po"
    catalog.parent.mkdir(parents=True)
    catalog.write_text('msgid "a title"\nmsgstr "un titre"\n', encoding="utf-8")

    def pictures() -> list[str]:
        folder = tmp_path / "html" / "_images"
        return [file.read_text(encoding="utf-8") for file in sorted(Path(folder).glob("*.svg"))]

    assert project(pages).warnings == []
    original = pictures()
    assert len(original) == 2 and all("<!-- a title -->" in one and "0.25" in one for one in original)
    edition = {"language": "fr", "locale_dirs": [str(tmp_path / "locale")], "gettext_compact": False}
    assert project(pages, sepnb_original="none", **edition).warnings == []
    assert len(pictures()) == 2
    for one in pictures():
        assert "<!-- un titre -->" in one and "<!-- 0,25 -->" in one and "<!-- top left -->" in one
    asked = json.loads((tmp_path / MESSAGES).read_text(encoding="utf-8"))["bar"]
    assert {"top left", "time $t$", "value\n(small)"} < set(asked) and "0.25" not in asked
    assert all(
        "<!-- a title -->" in file.read_text(encoding="utf-8") for file in (tmp_path / "narrow").iterdir()
    )
