"""Positions as digit strings: what SeqPE (Li et al. 2025) reads instead of looking up a row.

A position with n coordinates becomes the digits of each coordinate, most significant first and padded with
zeros on the left, one coordinate after the other: a place of the string has one place value in all strings.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from ..validation import readable, shown, tensor, unread, whole

Positions = Tensor | np.ndarray | Sequence[int] | Sequence[Sequence[int]]

LARGEST = 2**63 - 1


def digits(positions: Positions, *, base: int = 10, width: int | Sequence[int]) -> Int[Tensor, "P places"]:
    """The digits of positions: int `[P]` or `[P, n]` to int64 `[P, n*width]`.

    Args:
        positions: whole numbers, as a tensor, an array or (nested) sequences; the result is on its device.
        base: at least 2.
        width: digits of a coordinate, or one number for each of n coordinates, whose ranges may differ: a
            coordinate lies in [0, base^width).

    Raises:
        TypeError, ValueError: numbers that are not whole, another number of coordinates, a position outside
            the range, or a range that int64 does not hold.
    """
    places = checked_places(base, width)
    grid = as_grid(positions)
    if isinstance(width, int):
        places = places * grid.shape[1]
    check_range(grid, base, places)
    return written(grid, base, places)


def written(grid: Int[Tensor, "P n"], base: int, places: Sequence[int]) -> Int[Tensor, "P S"]:
    """The digits of checked positions, `places` of each coordinate."""
    powers = [base**exponent for count in places for exponent in reversed(range(count))]
    axes = [axis for axis, count in enumerate(places) for _ in range(count)]
    return grid[:, axes] // torch.tensor(powers, device=grid.device) % base


def check_range(grid: Int[Tensor, "P n"], base: int, places: Sequence[int], vouched: bool = False) -> None:
    """Refuse positions that are negative or need more than `places` digits in a coordinate. Values that
    cannot be read go unchecked; see `validation.unread`."""
    if len(places) != grid.shape[1]:
        raise ValueError(
            f"positions of shape {list(grid.shape)} have {grid.shape[1]} coordinates, {len(places)} widths "
            f"were given; give one width for each"
        )
    if unread(grid, vouched):
        return
    highest = torch.tensor([min(base**count - 1, LARGEST) for count in places], device=grid.device)
    outside = (grid < 0) | (grid > highest)
    if outside.any():
        row, axis = outside.nonzero()[0].tolist()
        value, count = int(grid[row, axis]), places[axis]
        raise ValueError(
            f"position {value} (coordinate {axis}) is not in [0, {base**count}), what {count} digits of base "
            f"{base} can write; give more digits"
        )


def period(length: int, base: int = 10) -> int:
    """The smallest power of the base, above 1, that is at least `length`. All windows of `length` positions
    that begin at a multiple of it have the same low digits as the window at 0."""
    power = base
    while power < length:
        power *= base
    return power


def misaligned(length: int, base: int = 10) -> int:
    """The distance from an aligned window to a misaligned one, whose low digits run through other strings: an
    odd number near 0.384 times the `period`."""
    return int(0.384 * period(length, base)) | 1


def as_grid(positions: Positions) -> Int[Tensor, "P n"]:
    """Positions `[P]` or `[P, n]` as an int64 tensor `[P, n]`; refused is what int64 cannot hold."""
    given = positions if isinstance(positions, Tensor) else torch.from_numpy(_whole(positions))
    readable("positions", tensor("positions", given))
    if given.dtype == torch.bool or given.is_floating_point() or given.is_complex():
        raise TypeError(f"positions must be integers, got {given.dtype}; round them first")
    if given.dim() not in (1, 2) or (given.dim() == 2 and given.shape[1] < 1):
        raise ValueError(f"positions of shape {list(given.shape)}; give [P] or [P, n], n at least 1")
    whole = given.to(torch.int64)
    if given.dtype == torch.uint64 and (whole < 0).any():  # 2^63 and more wrap around
        raise _too_large(int(whole[whole < 0].min()) + 2**64)
    return whole.reshape(len(given), given.shape[1] if given.dim() == 2 else 1)


def _whole(positions: np.ndarray | Sequence) -> np.ndarray:
    array = np.asarray(positions)
    if array.size == 0 and not isinstance(positions, np.ndarray):
        array = array.astype(np.int64)  # numpy takes an empty list for floats
    # Numbers beyond 64 bits become objects, and those between 63 and 64 beside smaller ones become floats.
    given = np.asarray(positions, dtype=object) if array.dtype.kind in "fO" else np.empty(0)
    if beyond := [value for value in given.flat if type(value) is int and abs(value) > LARGEST]:
        raise _too_large(beyond[0])
    if not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"positions must be whole numbers, got {array.dtype}: {shown(positions)}")
    return array if array.dtype == np.uint64 else array.astype(np.int64)


def _too_large(value: int) -> ValueError:
    return ValueError(
        f"position {shown(value)} is beyond int64, whose largest number is {LARGEST}; give smaller ones"
    )


def checked_places(base: int, width: int | Sequence[int], name: str = "width") -> list[int]:
    """The digits of each coordinate as a list, checked; `name` is what errors, as in `digits`, call them."""
    several = isinstance(width, Sequence) and not isinstance(width, str | bytes)
    places = list(width) if several else [width]
    whole("base", base, 2, LARGEST, needs="a digit needs at least 2 values")
    for count in places:
        whole(name, count, 1, needs="a coordinate needs at least 1 digit")
        if count > LARGEST.bit_length() or base ** (count - 1) > LARGEST:
            raise ValueError(f"{shown(count)} digits of base {base} write numbers beyond int64; give fewer")
    return places


EDITS = ("insert", "delete", "swap", "replace")
"""What a slip of the pen makes of a numeral, a list of digits, most significant first."""


def numeral_of(value: int, base: int) -> list[int]:
    """The digits of a number, without padding; [0] of 0."""
    numeral = [value % base]
    while value := value // base:
        numeral.append(value % base)
    return numeral[::-1]


def value_of(numeral: list[int], base: int) -> int:
    """The number; leading zeros are ignored."""
    value = 0
    for digit in numeral:
        value = value * base + digit
    return value


def edited(numeral: list[int], what: float, where: float, which: float, *, base: int) -> list[int]:
    """The numeral after one edit, chosen by three numbers in [0, 1): which of `EDITS`, where, which digit.

    A deletion or a swap leaves a numeral of one digit unchanged.
    """
    edit, digit = EDITS[int(what * len(EDITS))], int(which * base)
    if edit == "insert":
        at = int(where * (len(numeral) + 1))
        return [*numeral[:at], digit, *numeral[at:]]
    if edit == "replace":
        at = int(where * len(numeral))
        return [*numeral[:at], digit, *numeral[at + 1 :]]
    if len(numeral) == 1:
        return numeral
    if edit == "delete":
        at = int(where * len(numeral))
        return [*numeral[:at], *numeral[at + 1 :]]
    at = int(where * (len(numeral) - 1))
    return [*numeral[:at], numeral[at + 1], numeral[at], *numeral[at + 2 :]]
