"""Figures that move by the book's scripts: data arrive whole, and what a page cannot show is refused."""

import json
import re

import pytest

from sepnb import paths
from sepnb.plots import moving

WORDS = {"name": "moving-one", "alt": "A figure.", "instead": "the figure above"}


def test_the_data_comes_back_whatever_it_holds(displayed):
    data = {"text": 'a < b, </script> & "c"', "numbers": [1, 0.5, None]}
    moving.show("model", data, **WORDS)
    (html,) = displayed
    held = re.search(r'<script type="application/json">(.*?)</script>', html)
    assert json.loads(held[1]) == data
    assert 'data-draw="model"' in html and "data-interactive" in html and "<noscript>" in html


def test_every_script_that_a_figure_needs_is_in_the_book_and_none_reaches_out():
    scripts = {name for names in moving.SCRIPTS.values() for name in names}
    for name in scripts:
        text = (paths.root() / "book" / "_static" / name).read_text(encoding="utf-8")
        assert not re.search(
            r"https?://(?!www\.w3\.org)|\bfetch\(|XMLHttpRequest|\bimport\b *[({\"']", text
        ), name


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "modle"}, "model"),
        ({"name": "Two words"}, "must look like"),
        ({"data": {"x": float("nan")}}, "not JSON compliant"),
        ({"alt": " "}, "needs alt="),
        ({"instead": ""}, "needs instead="),
    ],
)
def test_what_a_page_cannot_show_is_refused(change, said, displayed):
    with pytest.raises(ValueError, match=said):
        moving.show(**({"kind": "model", "data": {}} | WORDS | change))
    assert not displayed
