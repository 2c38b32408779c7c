"""The reference: a page for each module, every public name once, what a function takes in one list."""

import importlib
import pkgutil
import re
import sys
import textwrap
from collections import Counter
from itertools import chain

import pytest

import sepnb
from sepnb.companion.book import api_pages

from ..test_layers import FLOORS


@pytest.fixture(scope="module")
def modules() -> dict[str, api_pages.Module]:
    return api_pages.modules()


def test_every_room_has_its_place_from_the_ground_up(modules) -> None:
    """A new room: name it in `ROOMS` of sepnb/companion/book/api_pages.py."""
    inside = {"paths", "validation", "companion", "cli", "__main__"}
    floors = [floor - inside for floor in FLOORS]
    rooms = [*api_pages.ROOMS, *api_pages.DOORS_ONLY]
    assert sorted(rooms) == sorted(chain(*floors))
    heights = [next(height for height, floor in enumerate(floors) if room in floor) for room in rooms]
    assert heights == sorted(heights)
    found = list(dict.fromkeys(module.room for module in modules.values()))
    assert found == rooms, "a room has no page"


def test_every_name_that_a_package_exports_is_described_once_under_that_name(modules) -> None:
    shown = Counter(name for module in modules.values() for name in module.shown)
    assert {name: count for name, count in shown.items() if count > 1} == {}
    missing = []
    for found in pkgutil.walk_packages(sepnb.__path__, "sepnb."):
        room = found.name.split(".")[1]
        if found.ispkg and room in (*api_pages.ROOMS, *api_pages.DOORS_ONLY):
            package = importlib.import_module(found.name)
            names = [name for name in getattr(package, "__all__", ()) if callable(getattr(package, name))]
            missing += [name for name in names if f"{found.name}.{name}" not in shown]
    assert missing == []


SOURCE = '''
"""A module.

    f(x) = |x - y|

of two numbers.
"""

from dataclasses import dataclass
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

SIZES: tuple[int, ...] = (1, 2)
"""Sizes: all that there are."""


def double(x: Float[Tensor, " B N D"], *, times: int = 2) -> Float[Tensor, "*B N D"]:
    """Twice as much.

    Args:
        x: what is doubled.

    Raises:
        ValueError: never.
    """
    return times * x


@dataclass
class Box:
    """A box.

    Attributes:
        width: from side to side.
    """

    width: float
    height: float = 1.0

    def area(self) -> float:
        """How much it covers."""
        return self.width * self.height


class Pair(NamedTuple):
    """Two.

    Attributes:
        left: the first.
    """

    left: int
    right: int = 2
'''


@pytest.fixture
def described(project, tmp_path, monkeypatch) -> str:
    """The page of the module above, as text without tags and links."""
    (tmp_path / "jam.py").write_text(textwrap.dedent(SOURCE))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "jam", raising=False)
    shown = {"jam.SIZES": "value", "jam.double": "function", "jam.Box": "class", "jam.Pair": "class"}
    module = api_pages.Module("jam", "A module.", {name: (kind, "") for name, kind in shown.items()})
    extensions = ["myst_nb", "sphinx.ext.napoleon", "sphinx.ext.mathjax", "sepnb.companion.book.site"]
    settings = {"autodoc_typehints": "description", "default_role": "literal"}
    pages = {"index.md": "# Book\n\n{py:func}`jam.double`\n", "jam.md": module.page()}
    built = project(pages, extensions=extensions, **settings)
    assert built.warnings == []
    assert 'href="jam.html#jam.double"' in built.page("index")
    body = built.page("jam").partition('<div class="body"')[2].partition('<div class="sphinxsidebar"')[0]
    return re.sub(
        r"\s+", " ", re.sub(r"<(?!/?code|/?pre|dt|/dt)[^>]*>", "", body).replace("\N{PILCROW SIGN}", "")
    )


def test_an_entry_has_one_list_of_what_it_takes_and_constants_and_formulas_are_told(described) -> None:
    words = re.sub(r"<[^>]*>", "", described)
    double, box, pair = re.split(r"double\(x|class jam\.Box|class jam\.Pair", words)[1:]
    for entry in (double, box, pair):
        assert entry.count("Parameters:") == 1 and "Variables:" not in entry
    assert "x (Float[Tensor, &quot;B N D&quot;])" in double and "what is doubled." in double
    assert (
        "times (int)" in double and "Float[Tensor, &quot;*B N D&quot;]" in double.partition("Return type")[2]
    )
    assert "width (float)" in box and box.count("from side to side.") == 1 and "height (float)" in box
    assert pair.count("the first.") == 1 and "Alias for field" not in pair
    assert "How much it covers." in box
    assert "Sizes: all that there are." in words, "a constant says what it is"
    assert "<pre>f(x) = |x - y|" in re.sub(r"</?(?:span|div)[^>]*>", "", described), (
        "a formula stands by itself"
    )
