"""Digit strings: what a position is written as, and what cannot be written."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sepnb.seqpe import as_grid, digits


def by_hand(position: int, base: int, width: int) -> list[int]:
    found = []
    for _ in range(width):
        position, digit = divmod(position, base)
        found.append(digit)
    return found[::-1]


@given(
    base=st.sampled_from([2, 3, 10, 16, 97]),
    width=st.integers(1, 8),
    fractions=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=6),
)
def test_every_position_is_written_most_significant_first_and_padded(base, width, fractions):
    positions = [int(fraction * base**width) for fraction in fractions]
    strings = digits(positions, base=base, width=width)
    assert strings.dtype == torch.int64
    assert strings.tolist() == [by_hand(position, base, width) for position in positions]


def test_coordinates_stand_one_after_the_other_and_may_differ_in_range():
    grid = torch.tensor([[7, 5, 120], [0, 1, 9]])
    written = digits(grid, width=(1, 2, 3))
    assert written.tolist() == [[7, 0, 5, 1, 2, 0], [0, 0, 1, 0, 0, 9]]
    assert torch.equal(digits(grid, width=3)[:, 3:6], digits(grid[:, 1], width=3))


@pytest.mark.parametrize(
    "positions",
    [
        [[4, 2], [0, 1]],
        ((4, 2), (0, 1)),
        np.array([[4, 2], [0, 1]], dtype=np.int32),
        np.array([[4, 2], [0, 1]], dtype=np.uint8),
        torch.tensor([[4, 2], [0, 1]], dtype=torch.int16),
        [[np.int64(4), np.int64(2)], [np.int64(0), np.int64(1)]],
    ],
    ids=["lists", "tuples", "int32", "uint8", "int16", "numpy-numbers"],
)
def test_whole_numbers_of_any_kind_are_the_same_strings(positions, unhooked):
    assert digits(positions, width=1).tolist() == [[4, 2], [0, 1]]


@pytest.mark.parametrize("nothing", [[], np.empty(0, dtype=np.int64), torch.empty(0, dtype=torch.int64)])
def test_no_positions_have_no_strings_and_still_as_many_places(nothing):
    assert digits(nothing, width=4).shape == (0, 4)


def test_the_largest_number_of_int64_can_be_written():
    largest = 2**63 - 1
    assert digits([largest], width=19).tolist() == [by_hand(largest, 10, 19)]


@pytest.mark.parametrize(
    "positions",
    [[5, 2**63], np.array([5, 2**63], dtype=np.uint64), torch.tensor([5, 2**63], dtype=torch.uint64)],
    ids=["list", "array", "tensor"],
)
def test_a_number_beyond_int64_is_named_as_it_is_and_no_negative_one(positions, unhooked):
    with pytest.raises(ValueError, match=f"position {2**63} is beyond int64"):
        digits(positions, width=19)
    assert digits(positions[:1], width=19)[0, -1] == 5


@pytest.mark.parametrize(
    ("positions", "how", "message"),
    [
        ([3, -1], {"width": 2}, r"position -1 \(coordinate 0\) is not in \[0, 100\)"),
        ([100], {"width": 2}, "position 100 .* what 2 digits of base 10 can write; give more digits"),
        ([[5, 5], [5, 123]], {"width": 2}, r"position 123 \(coordinate 1\)"),
        ([[10, 99]], {"width": (1, 2)}, r"position 10 \(coordinate 0\) is not in \[0, 10\)"),
        ([[1, 2, 3]], {"width": (1, 2)}, "3 coordinates, 2 widths were given"),
        ([3, 10**30], {"width": 19}, f"position {10**30} is beyond int64"),
        (np.array([3, None]), {"width": 19}, "must be whole numbers, got object"),
        ([True], {"width": 2}, "positions must be"),
        ([0], {"width": 2, "base": 1}, "base is 1"),
        ([0], {"width": 20}, "20 digits of base 10 write numbers beyond int64"),
    ],
    ids=repr,
)
def test_a_position_that_cannot_be_written_is_named_with_the_range(positions, how, message, unhooked):
    with pytest.raises((ValueError, TypeError), match=message):
        digits(positions, **how)


def test_a_grid_keeps_its_numbers():
    assert as_grid([3, 1]).tolist() == [[3], [1]]
    assert as_grid(torch.tensor([[3, 1]], dtype=torch.uint8)).tolist() == [[3, 1]]
