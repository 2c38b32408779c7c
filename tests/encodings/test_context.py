"""Context extensions against their equations, and what each promises at its edges."""

import dataclasses
import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sepnb.encodings import (
    DynamicNTK,
    Llama3,
    LongRoPE,
    NTKAware,
    NTKByParts,
    PositionInterpolation,
    RaisedBase,
    RoPE,
    YaRN,
    build,
    build_extension,
    rope_frequencies,
)
from sepnb.encodings.context import Extension

from ..shared import refused
from .drawn import F64
from .waves import attention_factor, plain, slowed

L, S = 2048, 8.0
ONES = (1.0,) * 32

SHORT, LONG = tuple(1 + 0.1 * m for m in range(32)), tuple(1 + 0.25 * m for m in range(32))
EXTENSIONS = {
    "position interpolation": PositionInterpolation(S),
    "raised base": RaisedBase(500_000.0),
    "NTK-aware": NTKAware(S),
    "dynamic NTK": DynamicNTK(S, L),
    "NTK by parts": NTKByParts(S, L),
    "NTK by other parts": NTKByParts(S, L, alpha=2, beta=9),
    "YaRN, dimension": YaRN(S, L),
    "YaRN, other turns": YaRN(S, L, beta_fast=20, beta_slow=2),
    "YaRN, rotations": YaRN(S, L, ramp="rotations"),
    "Llama 3": Llama3(S, L),
    "LongRoPE": LongRoPE(SHORT, LONG, S, L),
}
BY_S = {
    "position interpolation": PositionInterpolation,
    "NTK-aware": NTKAware,
    "NTK by parts": lambda s: NTKByParts(s, L),
    "YaRN, dimension": lambda s: YaRN(s, L),
    "YaRN, rotations": lambda s: YaRN(s, L, ramp="rotations"),
    "Llama 3": lambda s: Llama3(s, L),
}
"""Those of which the factor alone says by how much the slowest pair is divided."""


def frequencies(extension, dim: int = 64, base: float = 10_000.0, length: int | None = 5 * L):
    return rope_frequencies(dim, base=base, extension=extension, length=length)


# --- what all of them owe


@pytest.mark.parametrize("name", EXTENSIONS)
def test_every_frequency_is_its_equation_and_what_was_given_is_left_as_it_was(name):
    extension = EXTENSIONS[name]
    for dim, base in ((64, 10_000.0), (64, 300_000.0), (16, 10_000.0), (6, 100.0)):
        if isinstance(extension, LongRoPE):
            extension = LongRoPE(SHORT[: dim // 2], LONG[: dim // 2], S, L)
        for length in (1, L, L + 1, 5 * L):
            ours, factor = frequencies(extension, dim, base, length)
            expected = slowed(extension, plain(dim, base), dim, base, length)
            assert ours.dtype == F64 and ours.tolist() == pytest.approx(expected, rel=1e-12)
            assert factor == pytest.approx(attention_factor(extension), rel=1e-14)
        given = rope_frequencies(dim, base=base)[0]
        extension(given, dim=dim, base=base, length=5 * L)
        assert torch.equal(given, rope_frequencies(dim, base=base)[0])


@pytest.mark.parametrize("extension", EXTENSIONS.values(), ids=EXTENSIONS)
def test_an_extension_is_frozen_hashable_equal_to_its_twin_and_plain_in_a_record(extension):
    twin = dataclasses.replace(extension)
    assert twin == extension and hash(twin) == hash(extension)
    for field in dataclasses.fields(extension):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(extension, field.name, 1)
    resolved = extension.resolved()
    assert json.loads(json.dumps(resolved)) == resolved and resolved["name"] == extension.name
    assert build_extension(**resolved) == twin
    assert build(**RoPE(extension=extension).resolved()) == RoPE(extension=twin)


def test_every_extension_has_a_name_of_its_own():
    classes = {type(extension) for extension in EXTENSIONS.values()}
    assert classes == set(Extension.__subclasses__())
    assert len({cls.name for cls in classes}) == len(classes)


@pytest.mark.parametrize("make", BY_S.values(), ids=BY_S)
def test_a_factor_of_one_is_plain_rope_bit_for_bit(make):
    ours, factor = frequencies(make(1))
    assert torch.equal(ours, rope_frequencies(64)[0]) and factor == 1.0


# --- each of them


def test_a_raised_base_is_that_of_a_model_built_with_it():
    ours = frequencies(RaisedBase(500_000.0), base=10_000.0)[0]
    torch.testing.assert_close(ours, rope_frequencies(64, base=500_000.0)[0], rtol=1e-14, atol=0)
    assert torch.equal(frequencies(RaisedBase(300.0), base=300.0)[0], rope_frequencies(64, base=300.0)[0])
    with pytest.raises(ValueError, match=r"base is 100\.0, below 300\.0, with which the model was built"):
        frequencies(RaisedBase(100.0), base=300.0)


@given(length=st.integers(1, L), s=st.floats(1, 100))
def test_dynamic_ntk_is_plain_rope_bit_for_bit_up_to_the_original_length(length, s):
    assert torch.equal(frequencies(DynamicNTK(s, L), length=length)[0], rope_frequencies(64)[0])


@pytest.mark.parametrize("extension", [DynamicNTK(S, L), LongRoPE(ONES, ONES, S, L)])
def test_what_follows_the_length_must_be_told_it(unhooked, extension):
    assert extension.by_length
    with pytest.raises(ValueError, match=f"length is None; the frequencies of {extension.name} follow the l"):
        frequencies(extension, length=None)
    with pytest.raises(ValueError, match="length is 0; a text has at least 1 token"):
        frequencies(extension, length=0)


@pytest.mark.parametrize(
    ("length", "base", "kept"),
    [(8, 10_000.0, 0), (64, 10_000.0, 0), (10**13, 100.0, 32)],
    ids=["a turn or so", "shorter than 32 turns", "longer than every wave"],
)
def test_the_ramp_in_the_dimension_has_its_ends_inside_the_head(length, base, kept):
    w, ours = rope_frequencies(64, base=base)[0], frequencies(YaRN(S, length), base=base)[0]
    assert (ours == w).sum() >= kept and ours.isfinite().all()
    assert kept == 32 or torch.equal(ours[-1:], w[-1:] / S)


def test_a_ramp_that_would_end_before_the_first_pair_is_refused():
    message = "beta_slow is 1; in 6 positions the fastest pair makes 0.955 turns, .* or use ramp='rotations'"
    with pytest.raises(ValueError, match=message):
        YaRN(S, 6)
    assert torch.equal(frequencies(YaRN(S, 6, ramp="rotations"))[0], frequencies(NTKByParts(S, 6))[0])


# --- refusals


def test_options_that_make_no_sense_name_themselves(unhooked):
    refused("original_length is 1; give the trained length", DynamicNTK, 2.0, 1)
    refused("alpha is 32 and beta is 32; alpha must be below beta", NTKByParts, 2, L, alpha=32, beta=32)
    refused("beta_slow is 0; in 2048 positions .* between 0 and that", YaRN, 2, L, beta_slow=0)
    refused("low_freq_factor is 4 and high_freq_factor is 4", Llama3, 2, L, low_freq_factor=4)
    refused("short holds 32 divisors for 8 pairs; give one", frequencies, EXTENSIONS["LongRoPE"], 16)
    refused("the width is 2; ntk-aware needs more than one pair", frequencies, NTKAware(2), 2)
