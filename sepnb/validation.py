"""What every public function asks of its arguments: the value, the bound and the remedy, in one place.

A wrong type is a TypeError, a wrong value a ValueError, and both name the argument.
"""

from collections.abc import Collection
from math import isfinite
from typing import Any

import torch
from torch import Tensor


def whole(name: str, value: Any, least: int = 1, most: int | None = None, needs: str = "") -> int:
    """An int of at least `least` and, where it has a bound, at most `most`.

    `needs`: what a smaller one lacks, in place of the bound.

    Raises:
        TypeError, ValueError: another one.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, got {value!r}")
    if value < least:
        raise ValueError(f"{name} is {value}; {needs or f'it must be at least {least}'}")
    if most is not None and value > most:
        raise ValueError(f"{name} is {value}; it must be at most {most}")
    return value


def number(name: str, value: Any) -> float | int:
    """A finite number.

    Raises:
        TypeError: no number, or a bool.
        ValueError: not finite.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not isfinite(value):
        raise ValueError(f"{name} is {value}; it must be finite")
    return value


def above_zero(name: str, value: Any) -> float | int:
    """A finite number above 0.

    Raises:
        TypeError, ValueError: another one.
    """
    if not number(name, value) > 0:
        raise ValueError(f"{name} is {value}; it must be above 0")
    return value


def share(name: str, value: Any) -> float | int:
    """A number of at least 0 and below 1, such as a dropout.

    Raises:
        TypeError, ValueError: another one.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not 0 <= value < 1:
        raise ValueError(f"{name} is {value}; it must be at least 0 and below 1")
    return value


def flag(name: str, value: Any) -> bool:
    """True or False.

    Raises:
        TypeError: anything else.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return value


def choice(name: str, value: Any, allowed: Collection[Any]) -> Any:
    """One of the allowed values.

    Raises:
        ValueError: another one.
    """
    if not any(value is one or (isinstance(value, str) and value == one) for one in allowed):
        raise ValueError(f"{name}={value!r} is unknown; use one of {', '.join(map(str, allowed))}")
    return value


def instance(name: str, value: Any, kind: type) -> Any:
    """A value of a class.

    Raises:
        TypeError: anything else.
    """
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be a {kind.__name__}, got {value!r}")
    return value


def tensor(name: str, value: Any) -> Tensor:
    """A tensor.

    Raises:
        TypeError: anything else.
    """
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}")
    return value


def integers(name: str, value: Any) -> Tensor:
    """A tensor of integers.

    Raises:
        TypeError: anything else; bool and complex numbers count as such.
    """
    kind = tensor(name, value).dtype
    if kind.is_floating_point or kind.is_complex or kind == torch.bool:
        raise TypeError(f"{name} must be integers, got {kind}")
    return value


def on_device(name: str, value: Tensor, device: torch.device) -> Tensor:
    """A tensor that is where the model is.

    Raises:
        ValueError: it is on another device.
    """
    if value.device != device:
        raise ValueError(f"{name} are on {value.device}, the model is on {device}; move one of them")
    return value
