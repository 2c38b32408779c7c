"""Numerals as lists of digits, most significant first, and what a slip of the pen makes of them."""

EDITS = ("insert", "delete", "swap", "replace")


def numeral_of(value: int, base: int) -> list[int]:
    """The digits of a number, without padding; [0] of 0."""
    numeral = [value % base]
    while value := value // base:
        numeral.append(value % base)
    return numeral[::-1]


def value_of(numeral: list[int], base: int) -> int:
    """The number; leading zeros count for nothing."""
    value = 0
    for digit in numeral:
        value = value * base + digit
    return value


def edited(numeral: list[int], what: float, where: float, which: float, *, base: int) -> list[int]:
    """One edit, chosen by three numbers in [0, 1): which of `EDITS`, at what place, with what digit.

    A numeral of one digit is not deleted, and nothing is swapped in it: it stays as it is.
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
