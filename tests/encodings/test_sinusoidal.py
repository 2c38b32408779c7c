"""Sinusoidal codes against the printed formula, in float64 and far out."""

import math

import pytest
import torch

from sepnb.encodings import (
    PositionInterpolation,
    Sinusoidal,
    base_of_longest_wave,
    grid_sinusoidal,
    sinusoidal,
)
from sepnb.encodings.sinusoidal import orthonormal

F64 = torch.float64


def printed(position: float, dim: int, base: float = 10_000.0) -> list[float]:
    """Section 3.5 of Vaswani et al., column by column, in Python's own floats."""
    row = []
    for column in range(dim):
        angle = position / base ** ((column // 2 * 2) / dim)
        row.append(math.cos(angle) if column % 2 else math.sin(angle))
    return row


@pytest.mark.parametrize("dim", [1, 2, 7, 8, 33])
@pytest.mark.parametrize("base", [10_000.0, 37.0])
def test_every_entry_is_the_printed_formula(dim, base):
    positions = torch.tensor([0, 1, 2, 63, 64, 4095])
    expected = torch.tensor([printed(p, dim, base) for p in positions.tolist()], dtype=F64)
    code = sinusoidal(positions, dim, base=base, dtype=F64)
    assert code.shape == (6, dim)
    torch.testing.assert_close(code, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("dim", [1, 2, 7, 8])
def test_the_layouts_are_a_permutation_of_columns(dim):
    positions = torch.arange(50)
    order = [*range(0, dim, 2), *range(1, dim, 2)]
    interleaved, halves = (sinusoidal(positions, dim, layout=name) for name in ("interleaved", "halves"))
    assert torch.equal(interleaved[:, order], halves)
    assert dim < 3 or not torch.equal(interleaved, halves)


def test_a_code_needs_a_column_and_the_layout_with_the_end_point_two_whole_pairs(unhooked):
    with pytest.raises(ValueError, match="dim is 0; a sinusoidal embedding needs at least 1 column"):
        sinusoidal(torch.arange(3), 0)
    for dim in (1, 2, 5):
        with pytest.raises(ValueError, match=f"dim is {dim}; .* needs an even dim of at least 4"):
            sinusoidal(torch.arange(3), dim, layout="halves-endpoint")
    with pytest.raises(ValueError, match="dim is 7; halves-endpoint"):
        Sinusoidal(layout="halves-endpoint").at_input(7, max_length=4)


@pytest.mark.parametrize("position", [10**6, 2**24 + 1, 2**31 + 1])
def test_a_float32_code_is_exact_far_out(position):
    """Angles in float32 would be wrong by 1e-2 at a million, and 2^24 + 1 has no float32."""
    code = sinusoidal(torch.tensor([position]), 16, dtype=torch.float32)
    assert code.dtype == torch.float32
    expected = torch.tensor([printed(position, 16)], dtype=F64)
    torch.testing.assert_close(code.double(), expected, rtol=0, atol=1e-6)


def test_the_dtype_is_that_of_floating_positions_else_the_default_or_the_one_asked_for():
    integers = torch.arange(4)
    assert sinusoidal(integers, 4).dtype == torch.get_default_dtype()
    assert sinusoidal(integers.double(), 4).dtype == F64
    assert sinusoidal(integers.bfloat16(), 4).dtype == torch.bfloat16
    assert sinusoidal(integers.double(), 4, dtype=torch.float32).dtype == torch.float32
    assert sinusoidal(torch.tensor([0.5]), 2, dtype=F64)[0, 0].item() == math.sin(0.5)


@pytest.mark.parametrize("dim", [3, 4, 7, 16, 32])
@pytest.mark.parametrize("length", [10, 256, 4000.0])
def test_the_slowest_wave_has_the_length_that_its_base_was_made_for(dim, length):
    """Read off the code itself: back after that many positions, and opposite after half of them."""
    base = base_of_longest_wave(dim, length)
    slowest = 2 * ((dim + 1) // 2 - 1)
    at = torch.tensor([0.0, length / 2, length, 3 * length], dtype=F64)
    sine = sinusoidal(at + 0.7, dim, base=base)[:, slowest]
    torch.testing.assert_close(
        sine * torch.tensor([1, -1, 1, 1], dtype=F64), sine[:1].expand(4), rtol=0, atol=1e-9
    )
    faster = sinusoidal(at + 0.7, dim, base=base * 1.01)[:, slowest]
    assert (faster[1] + faster[0]).abs() > 1e-4


# --- some columns of a width


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_waves_in_the_first_columns_are_those_of_that_width_and_the_rest_is_zero(layout):
    positions, encoding = torch.tensor([0, 5, 4095]), Sinusoidal(37.0, layout, columns=6)
    module = encoding.at_input(20, max_length=4)
    expected = sinusoidal(positions, 6, base=37.0, layout=layout, dtype=F64)
    assert torch.equal(module(positions)[:, :6], expected) and module(positions)[:, 6:].eq(0).all()
    module.extend(PositionInterpolation(4))
    slowed = sinusoidal(positions.double() / 4, 6, base=37.0, layout=layout)
    torch.testing.assert_close(module(positions)[:, :6], slowed, rtol=0, atol=1e-12)


def test_copies_of_the_waves_lie_side_by_side_and_are_together_as_long_as_one():
    positions, encoding = torch.tensor([0, 5, 4095]), Sinusoidal(37.0, columns=6, copies=3)
    module, one = encoding.at_input(20, max_length=4), Sinusoidal(37.0, columns=6).at_input(20, max_length=4)
    for extension in (None, PositionInterpolation(4)):
        module.extend(extension)
        one.extend(extension)
        expected = one(positions)[:, :6] / 3**0.5
        for start in (0, 6, 12):
            torch.testing.assert_close(module(positions)[:, start : start + 6], expected, rtol=0, atol=1e-15)
        assert module(positions)[:, 18:].eq(0).all()
        torch.testing.assert_close(module(positions).norm(dim=-1), one(positions).norm(dim=-1))
    with pytest.raises(ValueError, match="columns is 6 in each of 3 copies; the input has 17"):
        encoding.at_input(17, max_length=4)
    with pytest.raises(ValueError, match="copies"):
        Sinusoidal(copies=0)


def test_waves_in_few_directions_are_projected_onto_them_after_they_are_slowed_down():
    positions, encoding = torch.arange(0, 4096, 5), Sinusoidal(37.0, columns=16, directions=6)
    module, axes = encoding.at_input(18, max_length=4), orthonormal(16, 6)
    torch.testing.assert_close(axes.T @ axes, torch.eye(6, dtype=F64), rtol=0, atol=1e-12)
    for extension, slower in ((None, 1), (PositionInterpolation(4), 4)):
        module.extend(extension)
        waves = sinusoidal(positions.double() / slower, 16, base=37.0)
        found = module(positions)
        torch.testing.assert_close(found[:, :6], waves @ axes, rtol=0, atol=1e-12)
        assert found[:, 6:].eq(0).all()
        assert torch.linalg.matrix_rank(found) == 6 < torch.linalg.matrix_rank(waves) == 16
    for bad, says in (({"directions": 0}, "directions"), ({"directions": 4, "copies": 2}, "copies is 2")):
        with pytest.raises(ValueError, match=says):
            Sinusoidal(**bad)
    with pytest.raises(ValueError, match="directions is 17; it must be at most 16"):
        Sinusoidal(columns=16, directions=17).at_input(18, max_length=4)


def test_waves_with_a_period_repeat_and_are_slowed_down_within_it():
    positions, encoding = torch.tensor([0, 4, 5, 4096]), Sinusoidal(37.0, period=5)
    module, again = encoding.at_input(6, max_length=4), torch.tensor([0, 4, 0, 1])
    assert torch.equal(module(positions), sinusoidal(again, 6, base=37.0, dtype=F64))
    assert torch.equal(module(positions + 0.5), sinusoidal(again + 0.5, 6, base=37.0, dtype=F64))
    module.extend(PositionInterpolation(4))
    slowed = sinusoidal(again.double() / 4, 6, base=37.0)
    torch.testing.assert_close(module(positions), slowed, rtol=0, atol=1e-12)
    points = Sinusoidal(37.0, dims=2, period=5).at_input(6, max_length=4)
    assert torch.equal(points(torch.tensor([[6, 13]])), points(torch.tensor([[1, 3]])))
    for bad in (1, 0, -3):
        with pytest.raises(ValueError, match="period"):
            Sinusoidal(period=bad)


# --- points


@pytest.mark.parametrize(("dim", "widths"), [(8, (4, 4)), (9, (5, 4)), (2, (1, 1)), (7, (4, 3))])
@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_each_coordinate_has_its_share_of_the_columns(dim, widths, layout):
    at = torch.tensor([[0, 5], [3, 0], [70, 2]])
    code = grid_sinusoidal(at, dim, base=37.0, layout=layout, dtype=F64)
    shares = [
        sinusoidal(at[:, place], width, base=37.0, layout=layout, dtype=F64)
        for place, width in enumerate(widths)
    ]
    assert torch.equal(code, torch.cat(shares, dim=-1))
    module = Sinusoidal(37.0, layout, dims=2).at_input(dim, max_length=4)
    assert torch.equal(module(at), code) and torch.equal(module(at[None]), code[None])
