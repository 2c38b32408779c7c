"""The registry, and what every extrapolator owes: the window kept, any shape and dtype, no side effects."""

import dataclasses

import pytest
import torch

from sepnb.extrapolators import (
    CONTROLS,
    FORMS,
    METHODS,
    SOURCE_METHODS,
    Continuation,
    build,
    extrapolate,
    seam,
)
from sepnb.extrapolators.base import BLOCK

from ..shared import refused

F64 = torch.float64
OPTIONS = {"learned": {"steps": 20, "hidden": 8}, "interpolate": {"length": 1000}}
VARIANTS = [
    *((method, OPTIONS.get(method, {})) for method in METHODS),
    ("sinusoidal", {"align": "procrustes"}),
    ("fourier", {"n_components": 2}),
    ("fourier", {"n_components": 1, "pick": "lowest"}),
    ("learned", {"protocol": "masked", "steps": 20}),
    ("alibi", {"tau": 8.0}),
    ("zero", {"everywhere": True}),
]
KEEP_THE_WINDOW = [
    (method, options)
    for method, options in VARIANTS
    if method != "interpolate" and not options.get("everywhere")
]
SHAPES = [(12, 5), (13, 4), (7, 1), (2, 6), (3, 3), (2, 1)]  # odd and even L and d_pos, L = 2, d_pos = 1


def test_the_methods_are_the_source_s_five_then_the_controls():
    assert METHODS == SOURCE_METHODS + CONTROLS
    assert " ".join(SOURCE_METHODS) == "sinusoidal fourier cyclic learned alibi"
    assert " ".join(CONTROLS) == "clamp wrap reflect zero interpolate"


@pytest.mark.parametrize(("method", "options"), VARIANTS, ids=str)
def test_a_description_is_frozen_hashable_and_equal_to_its_twin(method, options):
    one, other = build(method, **options), build(method, **options)
    assert one.name == method and one == other and hash(one) == hash(other)
    for field in dataclasses.fields(one):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(one, field.name, 1)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [*((shape, F64) for shape in SHAPES), (SHAPES[0], torch.float32), (SHAPES[1], torch.bfloat16)],
)
@pytest.mark.parametrize(("method", "options"), KEEP_THE_WINDOW, ids=str)
def test_corrected_leaves_the_rows_of_the_window_bit_for_bit(table, method, options, shape, dtype):
    rows = table(*shape, dtype=dtype)
    continued = extrapolate(rows, torch.arange(3 * len(rows)), method, **options)
    assert continued.dtype == dtype and continued.shape == (3 * len(rows), shape[1])
    assert torch.equal(continued[: len(rows)], rows)
    assert torch.isfinite(continued).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", METHODS)
def test_every_form_takes_every_table_and_its_rows_are_finite_far_out(table, method, form):
    options = {"interpolate": {"length": 10**9 + 1}}.get(method, OPTIONS.get(method, {}))
    for shape in SHAPES:
        positions = torch.tensor([0, 1, shape[0] - 1, shape[0], 10 * shape[0], 10**6, 10**9])
        continued = extrapolate(table(*shape), positions, method, form=form, **options)
        assert continued.shape == (7, shape[1]) and torch.isfinite(continued).all()


@pytest.mark.parametrize(("method", "options"), VARIANTS, ids=str)
def test_positions_of_any_shape_and_integer_dtype_keep_their_shape(table, method, options):
    positions = torch.arange(24).reshape(2, 3, 4)
    flat = extrapolate(table(), positions.flatten(), method, **options)
    assert torch.equal(extrapolate(table(), positions, method, **options), flat.reshape(2, 3, 4, 5))
    single = extrapolate(table(), torch.tensor(20), method, **options)
    torch.testing.assert_close(single, flat[20], rtol=0, atol=1e-15)
    assert extrapolate(table(), positions[:0], method, **options).shape == (0, 3, 4, 5)
    for dtype in (torch.uint8, torch.int32):
        assert torch.equal(extrapolate(table(), positions.to(dtype), method, **options).flatten(0, 2), flat)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", METHODS)
def test_many_positions_give_the_same_rows_as_few(table, method, form):
    """They go through in blocks; the borders of the blocks must not show."""
    options = {"interpolate": {"length": 10**6}}.get(method, OPTIONS.get(method, {}))
    generator = torch.Generator().manual_seed(1)
    positions = torch.randint(0, 40, (2 * BLOCK + 3,), generator=generator) ** 3
    many = extrapolate(table(), positions, method, form=form, **options)
    for part in (slice(0, 5), slice(BLOCK - 2, BLOCK + 2), slice(2 * BLOCK - 1, None)):
        few = extrapolate(table(), positions[part], method, form=form, **options)
        torch.testing.assert_close(many[part], few, rtol=0, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", METHODS)
def test_table_positions_and_global_random_numbers_are_left_as_they_were(table, method, form):
    rows, positions = table().requires_grad_(), torch.arange(36)
    before, state = rows.detach().clone(), torch.get_rng_state()
    continued = extrapolate(rows, positions, method, form=form, **OPTIONS.get(method, {}))
    continued.fill_(7)
    assert not continued.requires_grad
    assert torch.equal(rows, before) and torch.equal(positions, torch.arange(36))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("method", METHODS)
def test_a_continuation_is_of_the_table_as_it_was_and_controls_have_one_form(table, method):
    rows, positions, options = table(), torch.arange(36), OPTIONS.get(method, {})
    continuation = Continuation(rows, build(method, **options))
    first = continuation(positions)
    if method in CONTROLS:
        assert torch.equal(extrapolate(rows, positions, method, form="literal", **options), first)
    rows.mul_(3)
    continuation(positions + 1)
    assert torch.equal(continuation(positions), first)


# --- the seam


@pytest.mark.parametrize(("method", "options"), VARIANTS, ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_the_seam_is_the_step_over_the_border_in_median_steps(table, method, form, options):
    rows = table()
    if form == "literal" and method in ("sinusoidal", "alibi") and options:
        with pytest.raises(ValueError, match="no part of the printed"):
            seam(rows, method, form=form, **options)
        return
    steps = sorted(float((rows[j + 1] - rows[j]).norm()) for j in range(11))
    before, after = extrapolate(rows, torch.tensor([11, 12]), method, form=form, **options)
    expected = float((after - before).norm()) / steps[5]
    assert seam(rows, method, form=form, **options) == pytest.approx(expected, rel=1e-12)


# --- refusals


def test_unknown_names_forms_and_options_are_answered_with_what_there_is(table, unhooked):
    given = table(), torch.arange(3)
    refused(r"unknown extrapolator 'sinusoid'; did you mean sinusoidal\?", extrapolate, *given, "sinusoid")
    refused("did you mean sinusoidal, fourier, cyclic, learned, alibi", build, "quaternions")
    refused("fourier has no option 'terms'; it has n_com", extrapolate, *given, "fourier", terms=3)
    refused("cyclic has no option 'seed'; it has none", build, "cyclic", seed=3)
    refused("unknown form 'printed'; use one of", extrapolate, *given, "cyclic", form="printed")


def test_what_is_no_table_is_refused(table, unhooked):
    positions, holed = torch.arange(3), table()
    holed[4, 1] = float("nan")
    refused("the table has 1 rows; at least 2 are needed", extrapolate, torch.ones(1, 4), positions, "clamp")
    refused("row 4 of the table is not finite", extrapolate, holed, positions, "clamp")
    refused("position -4 is negative", extrapolate, table(), torch.tensor([3, -1, -4]), "clamp")
    refused("most rows of the table equal their neighbours", seam, torch.ones(5, 2), "wrap")


@pytest.mark.parametrize(
    ("method", "options", "form"),
    [
        *((*variant, "corrected") for variant in VARIANTS),
        *((method, OPTIONS.get(method, {}), "literal") for method in METHODS),
    ],
    ids=str,
)
def test_autocast_changes_no_bit(table, method, options, form):
    """A product of matrices under it would be rounded to bfloat16, and a position with it."""
    p, positions = table(dtype=torch.float32), torch.arange(40)
    exact = extrapolate(p, positions, method, form=form, **options)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = extrapolate(p, positions, method, form=form, **options)
    assert rounded.dtype == torch.float32 and torch.equal(rounded, exact)
