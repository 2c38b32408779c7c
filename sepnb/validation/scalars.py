"""Numbers, names, flags and other plain values."""

from collections.abc import Collection
from math import inf, isfinite
from reprlib import Repr
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import numpy as np
from torch import Tensor

WIDEST = 2**20
"""No width, and no number of heads, digits or buckets, is larger: what asks for more is a slip."""

FARTHEST = 2**40
"""No position is farther: up to it angles, computed in float64, are right to 1e-4."""

_short = Repr()
_short.maxstring = _short.maxother = 100


def shown(value: Any) -> str:
    """A value as a message has it: a tensor by its shape, what is long cut short."""
    if isinstance(value, Tensor):
        return f"a tensor of shape {list(value.shape)} and {value.dtype}"
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an int of {value.bit_length()} bits"
    return _short.repr(value)


def whole(name: str, value: Any, least: int = 1, most: int | None = None, needs: str = "") -> int:
    """An int of at least `least` and, where it has a bound, at most `most`.

    `needs`: what a smaller one lacks, in place of the bound.

    Raises:
        TypeError, ValueError: another one.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, got {shown(value)}")
    if value < least:
        raise ValueError(f"{name} is {shown(value)}; {needs or f'it must be at least {least}'}")
    if most is not None and value > most:
        raise ValueError(f"{name} is {shown(value)}; it must be at most {most}")
    return value


def at_least(lowest: int, **sizes: Any) -> None:
    """Refuse sizes that leave nothing to draw; ints of numpy are ints.

    Raises:
        TypeError: a size that is no int.
        ValueError: a size below `lowest`.
    """
    for name, value in sizes.items():
        whole(name, int(value) if isinstance(value, np.integer) else value, lowest)


def number(
    name: str,
    value: Any,
    least: int | float = -inf,
    most: int | float = inf,
    above: int | float = -inf,
    needs: str = "",
) -> float | int:
    """A finite number of at least `least`, at most `most` and above `above`.

    `needs`: what one that is too small or not finite lacks, in place of the bound.

    Raises:
        TypeError: no number, or a bool.
        ValueError: not finite, or out of bounds.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, got {shown(value)}")
    bounds = f" and at least {least}" if least > -inf else f" and above {above}" if above > -inf else ""
    if not _finite(value):
        raise ValueError(f"{name} is {shown(value)}; {needs or f'it must be finite{bounds}'}")
    if value < least or value <= above:
        raise ValueError(f"{name} is {shown(value)}; {needs or f'it must be finite{bounds}'}")
    if value > most:
        raise ValueError(f"{name} is {shown(value)}; it must be at most {most}")
    return value


def _finite(value: float | int) -> bool:
    try:
        return isfinite(value)
    except OverflowError:  # an int beyond all floats
        return False


def above_zero(name: str, value: Any) -> float | int:
    """A finite number above 0.

    Raises:
        TypeError, ValueError: another one.
    """
    if not number(name, value) > 0:
        raise ValueError(f"{name} is {shown(value)}; it must be above 0")
    return value


def share(name: str, value: Any) -> float | int:
    """A number of at least 0 and below 1, such as a dropout.

    Raises:
        TypeError, ValueError: another one.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, got {shown(value)}")
    if not 0 <= value < 1:
        raise ValueError(f"{name} is {shown(value)}; it must be at least 0 and below 1")
    return value


def flag(name: str, value: Any) -> bool:
    """True or False.

    Raises:
        TypeError: anything else.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {shown(value)}")
    return value


def choice(name: str, value: Any, allowed: Collection[Any]) -> Any:
    """One of the allowed values.

    Raises:
        ValueError: another one.
    """
    if not any(value is one or (isinstance(value, str) and value == one) for one in allowed):
        raise ValueError(f"{name}={shown(value)} is unknown; use one of {', '.join(map(str, allowed))}")
    return value


def one_of(name: str, value: Any, names: Collection[str]) -> str:
    """One of some names.

    Raises:
        ValueError: another one.
    """
    if not isinstance(value, str) or value not in names:
        raise ValueError(f"unknown {name} {shown(value)}; use one of {', '.join(names)}")
    return value


def instance(name: str, value: Any, kind: type, example: str = "") -> Any:
    """A value of a class, such as `example`.

    Raises:
        TypeError: anything else.
    """
    if not isinstance(value, kind):
        such = example and f", such as {example}"
        raise TypeError(f"{name} must be a {kind.__name__}{such}, got {shown(value)}")
    return value


def option(name: str, value: Any, kind: Any) -> None:
    """A value for a field that is annotated with `kind`, where that is a plain type: None, bool, int, float
    (an int is one too, and it must be finite), str, another class, a tuple or a choice of these.

    Raises:
        TypeError: a value of another type.
        ValueError: a number that is not finite.
    """
    if _is_a(value, kind):
        return
    if _is_a(value, kind, finite=False):
        raise ValueError(f"{name} is {shown(value)}; it must be finite, and no int beyond all floats")
    says = getattr(kind, "__name__", None) if isinstance(kind, type) and not get_args(kind) else None
    raise TypeError(f"{name} must be {says or kind}, got {shown(value)}")


def _is_a(value: Any, kind: Any, finite: bool = True) -> bool:
    if get_origin(kind) in (Union, UnionType):
        return any(_is_a(value, one, finite) for one in get_args(kind))
    if kind in (None, NoneType):
        return value is None
    if kind is float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and (not finite or _finite(value))
    if kind is int:
        number = isinstance(value, int) and not isinstance(value, bool)
        return number and (not finite or _finite(value))
    if get_origin(kind) is tuple:
        (one, *more) = get_args(kind)
        of_any_length = more == [...]
        fits = isinstance(value, tuple) and (of_any_length or len(value) == 1 + len(more))
        kinds = [one] * len(value) if fits and of_any_length else [one, *more]
        return fits and all(_is_a(item, each, finite) for item, each in zip(value, kinds, strict=True))
    return not isinstance(kind, type) or isinstance(value, kind)
