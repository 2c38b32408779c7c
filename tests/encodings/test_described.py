"""The description of every encoding: frozen, told by a record, and refused with the option and its bound."""

import dataclasses
import json
from math import nan
from typing import get_args

import pytest

from sepnb import encodings
from sepnb.encodings import Heads, build
from sepnb.models import TransformerConfig
from sepnb.streams import Streams

from ..shared import refused
from .cases import CASES


@pytest.mark.parametrize("name", CASES)
def test_a_description_is_frozen_equal_to_its_twin_and_built_again_from_its_record(name):
    case = CASES[name]
    twin = dataclasses.replace(case)
    assert case == twin and hash(case) == hash(twin)
    for field in dataclasses.fields(case):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(case, field.name, 1)
    resolved = case.resolved()
    assert json.loads(json.dumps(resolved)) == resolved and build(**resolved) == case


REFUSED = [
    ("sinusoidal", {"layout": "half"}, "unknown layout 'half'; use one of interleaved, halves, h"),
    ("learned", {"per_layer": True, "site": "query_key"}, "per_layer is for tables at the input, and"),
    ("learned", {"grid": (3, 0)}, "give rows and columns, each at least 1"),
    ("rope", {"partial": 0.5, "p": 0.25}, r"partial=0\.5 and p=0\.25 are two ways .*; give one"),
    *(
        ("rope", {"shared": True} | how, "leaves the key of a head no column of its own")
        for how in ({}, {"partial": 1.0}, {"p": 0.5})
    ),
    ("rope", {"shared": True, "partial": 0.5, "streams": ("pos",)}, "nothing can be shared; leave streams"),
    ("xpos", {"gamma": 0}, "gamma is 0; it must be above 0"),
    ("phase", {"longest": 4}, "longest is 4; it must be finite and above the shortest wavelength, 4"),
    ("axial-rope", {"dims": 0}, "dims is 0; a position has at least 1 coordinate"),
    ("t5", {"n_buckets": 7, "bidirectional": True}, "n_buckets is 7; give an even number of at least 4"),
    ("t5", {"max_distance": 16}, "max_distance is 16; the first 16 distances .* give at least 17"),
    ("kerple", {"form": "cubic"}, "unknown form 'cubic'; use one of logarithmic, power"),
    ("sandwich", {"width": 7}, "width is 7; the embedding has pairs of columns, so give an even number"),
    ("fire", {"threshold": 0.0}, r"threshold is 0\.0; it must be above 0"),
    ("shaw", {"clip": -1}, "clip is -1; give 0 or more"),
    ("transformer-xl", {"base": 1.0}, r"base is 1\.0; it must be above 1"),
    ("distance-aware", {"spread": 0.0}, r"spread is 0\.0; it must be above 0"),
    ("cope", {"n_positions": 1}, "n_positions is 1; counting needs at least 2"),
]


@pytest.mark.parametrize(("name", "options", "message"), REFUSED, ids=str)
def test_options_out_of_their_bounds_are_refused(name, options, message, unhooked):
    refused(message, build, name, **options)


@pytest.mark.parametrize("name", sorted({name for name, *_ in REFUSED}))
def test_options_that_are_no_numbers_are_refused_by_the_class_too(name, unhooked):
    kind = type(build(name))
    for field in dataclasses.fields(kind):
        if not {int, float} & {field.type, *get_args(field.type)}:
            continue
        for wrong in ("2", True):
            refused(f"{field.name} must be", kind, error=TypeError, **{field.name: wrong})
        refused(field.name, kind, error=(ValueError, TypeError), **{field.name: nan})


@pytest.mark.parametrize("name", [name for name in encodings.names() if build(name).causal_only])
def test_what_is_for_causal_models_is_refused_by_others(name):
    message = f"{name} is for causal models only; use causal=True"
    refused(message, TransformerConfig, Streams.dense(16), 1, 2, name, causal=False)


@pytest.mark.parametrize(
    ("name", "options", "width", "message"),
    [
        ("rope", {}, 5, "even and at least 2, got 5"),
        ("xpos", {}, 7, "even and at least 2, got 7"),
        ("axial-rope", {"dims": 3}, 8, r"by 3 coordinates: .* a multiple of 6, got 8; 6 would do"),
        ("phase", {"longest": None}, 8, r"longest is 4; it must be finite and above the shortest .*, 4\.0"),
    ],
)
def test_what_does_not_fit_a_model_is_refused_where_its_module_is_built(name, options, width, message):
    refused(message, build(name, **options).at_query_key, Heads(width=width, max_length=4))
