"""The registry, and what every encoding in it owes: sites, no state between calls, any positions."""

import dataclasses

import pytest
import torch

from sepnb import encodings, seqpe
from sepnb.encodings import Site, base

from ..shared import refused

OF_THIS_BOOK = ["none", "sinusoidal", "learned", "rope", "xpos", "alibi", "phase", "tupe", "axial-rope", "t5"]
OF_THIS_BOOK += ["kerple", "sandwich", "fire", "shaw", "transformer-xl", "distance-aware", "cope"]
OF_THIS_BOOK += ["forgetting", "seqpe"]
"""In the order of tables."""


def modules(encoding: encodings.Encoding) -> dict[Site, torch.nn.Module | None]:
    """What the encoding builds at each site, for width 8, heads of width 4 and 2 heads."""
    heads = encodings.Heads(2, 4, 8, content_width=8, reading=2, max_length=64)
    return {
        Site.INPUT: encoding.at_input(8, 64),
        Site.QUERY_KEY: encoding.at_query_key(heads),
        Site.SCORE: encoding.at_score(heads),
        Site.VALUE: encoding.at_value(heads),
    }


@pytest.fixture
def own_registry(monkeypatch) -> dict[str, type[encodings.Encoding]]:
    """A copy: what a test defines is forgotten after it."""
    copy = dict(base._REGISTRY)
    monkeypatch.setattr(base, "_REGISTRY", copy)
    monkeypatch.setattr(encodings, "_REGISTRY", copy)
    return copy


def test_the_encodings_of_this_book_come_in_their_order_and_are_had_by_name_and_by_class():
    assert [name for name in encodings.names() if name in OF_THIS_BOOK] == OF_THIS_BOOK
    for name in OF_THIS_BOOK:
        assert type(encodings.build(name)).__name__ in (*encodings.__all__, *seqpe.__all__)


def test_an_encoding_is_known_from_its_definition_on_after_those_that_say_their_place(own_registry):
    @dataclasses.dataclass(frozen=True)
    class Zigzag(encodings.Encoding):
        name = "a-zigzag"

    @dataclasses.dataclass(frozen=True)
    class Early(encodings.Encoding):
        name, order = "zz-early", 0.5

    assert encodings.build("a-zigzag") == Zigzag()
    names = encodings.names()
    assert names[1] == "zz-early" and names.index("a-zigzag") > names.index("seqpe")


def test_a_second_class_of_a_name_is_refused_and_the_same_one_anew_or_a_variant_is_not(own_registry):
    with pytest.raises(ValueError, match=r"sepnb\.encodings\.alibi\.ALiBi and .*Slopes are both named"):

        class Slopes(encodings.Encoding):
            name = "alibi"

    def cell() -> type[encodings.Encoding]:
        """Of a notebook, which may run again."""

        class Mine(encodings.Encoding):
            name = "mine"

        return Mine

    assert cell() is not (again := cell()) and type(encodings.build("mine")) is again

    class Steeper(encodings.ALiBi):
        """A variant: it keeps the name."""

    assert type(encodings.build("alibi")) is encodings.ALiBi and Steeper.name == "alibi"


@pytest.mark.parametrize("name", encodings.names())
def test_an_encoding_builds_a_module_exactly_at_its_sites(name):
    encoding = encodings.build(name)
    assert encoding.name == name
    built = {site for site, module in modules(encoding).items() if module is not None}
    assert built == encoding.sites


def test_names_can_be_asked_for_by_the_coordinates_that_they_take_as_they_are():
    for axes in (1, 2, 3):
        takes = {name: encodings.build(name).axes for name in encodings.names()}
        expected = [name for name, known in takes.items() if known is None or axes in known]
        assert encodings.names(axes=axes) == expected
    assert "rope" not in encodings.names(axes=2) and "axial-rope" not in encodings.names(axes=1)


def test_an_encoding_for_points_is_built_with_the_option_that_it_has():
    assert encodings.on_axes("sinusoidal", 3) == encodings.Sinusoidal(dims=3)
    assert encodings.on_axes("sinusoidal", 1) == encodings.Sinusoidal()
    assert encodings.on_axes("axial-rope", 1) == encodings.AxialRoPE(dims=1)
    assert encodings.on_axes("learned", 2, side=5) == encodings.Learned(grid=(5, 5))
    assert encodings.on_axes("none", 7) == encodings.NoEncoding()
    assert encodings.on_axes("learned", 3) is encodings.on_axes("rope", 2) is None
    assert encodings.how_on_axes("sinusoidal", 2) == "sinusoidal (dims=2)"
    assert encodings.how_on_axes("axial-rope", 2) == "axial-rope"
    assert encodings.how_on_axes("t5", 2) is None


def test_unknown_names_and_options_are_answered_with_what_there_is(unhooked):
    build, rope = encodings.build, "base, layout, streams, partial, p"
    refused(r"unknown encoding 'rop'; did you mean rope\?", build, "rop")
    refused("did you mean none, sinusoidal, learned, rope, xpos, alibi, phase", build, "quaternions")
    refused(f"rope has no option 'bass'; it has {rope}", build, "rope", bass=3)
