"""Tensors: kinds, shapes, devices and, where it costs nothing, values."""

from typing import Any

import torch
from torch import Tensor

from .scalars import FARTHEST, shown


def tensor(name: str, value: Any) -> Tensor:
    """A tensor.

    Raises:
        TypeError: anything else, or one that is sparse.
    """
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}")
    if value.layout != torch.strided:
        raise TypeError(f"{name} must be dense, got {value.layout}; give its to_dense()")
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


def reals(name: str, value: Any) -> Tensor:
    """A tensor of integers or floating numbers.

    Raises:
        TypeError: anything else; bool and complex numbers count as such.
    """
    kind = tensor(name, value).dtype
    if kind.is_complex or kind == torch.bool:
        raise TypeError(f"{name} must be integers or floating numbers, got {kind}")
    return value


def floating(name: str, value: Any) -> Tensor:
    """A tensor of floating numbers.

    Raises:
        TypeError: anything else.
    """
    if not tensor(name, value).is_floating_point():
        raise TypeError(f"{name} must be floating, got {value.dtype}; give its float()")
    return value


def floating_dtype(name: str, value: Any) -> torch.dtype:
    """A dtype of floating numbers.

    Raises:
        TypeError: anything else.
    """
    if not isinstance(value, torch.dtype) or not value.is_floating_point:
        raise TypeError(f"{name} must be a floating dtype, such as torch.float32, got {shown(value)}")
    return value


def on_device(name: str, value: Tensor, device: torch.device) -> Tensor:
    """A tensor that is where the model is.

    Raises:
        ValueError: it is on another device.
    """
    if value.device != device:
        raise ValueError(f"{name} are on {value.device}, the model is on {device}; move one of them")
    return value


def together(**tensors: Tensor) -> None:
    """Refuse tensors that are not all on one device.

    Raises:
        ValueError: they are not.
    """
    (first, one), *others = tensors.items()
    for name, value in others:
        if value.device != one.device:
            raise ValueError(f"{name} is on {value.device} and {first} on {one.device}; move one of them")


def movable(name: str, value: Tensor, device: torch.device) -> Tensor:
    """A tensor that can be moved to a device.

    Raises:
        ValueError: it is on the device meta, and has no values to move.
    """
    return value if device.type == "meta" else readable(name, value)


def shaped(sizes: dict[str, int], name: str, value: Tensor, *patterns: str) -> None:
    """Match the shape with the first pattern that fits, and add its letters to `sizes`.

    A pattern such as "B H N d" has one name for every dimension; the same name is the same size in all
    tensors that are checked with the same `sizes`. One that ends in + must not be 0, and a leading ... is
    any number of dimensions.

    Raises:
        ValueError: no pattern fits.
    """
    for pattern in patterns:
        letters = pattern.split()
        given = tuple(value.shape)
        if letters[0] == "...":
            letters = letters[1:]
            given = given[max(0, len(given) - len(letters)) :]
        if len(given) != len(letters):
            continue
        found = dict(sizes)
        if all(
            found.setdefault(letter.rstrip("+"), size) == size and (size or letter[-1] != "+")
            for letter, size in zip(letters, given, strict=True)
        ):
            sizes.update(found)
            return
    raise ValueError(
        f"{name} has shape {list(value.shape)}; give {' or '.join(_wanted(one, sizes) for one in patterns)}"
    )


def _wanted(pattern: str, sizes: dict[str, int]) -> str:
    """The pattern with the sizes that are known, such as [B=2, H=3, M, d=4]."""
    letters = [letter.rstrip("+") for letter in pattern.split()]
    told = [f"{letter}={sizes[letter]}" if letter in sizes else letter for letter in letters]
    at_least_one = [letter[:-1] for letter in pattern.split() if letter[-1] == "+"]
    return f"[{', '.join(told)}]" + (f" with {' and '.join(at_least_one)} above 0" if at_least_one else "")


def floats(**given: tuple[Any, str]) -> dict[str, int]:
    """The sizes of floating tensors of one dtype on one device, each given with the pattern of its shape; see
    `shaped`. Under autocast, which makes them one, dtypes may differ.

    Raises:
        TypeError: no floating tensor, or another dtype than that of the first.
        ValueError: another device than that of the first, or shapes that do not fit together.
    """
    sizes: dict[str, int] = {}
    for name, (value, pattern) in given.items():
        shaped(sizes, name, floating(name, value), pattern)
    tensors = {name: value for name, (value, _) in given.items()}
    together(**tensors)
    (first, one), *others = tensors.items()
    for name, value in others:
        if value.dtype != one.dtype and not torch.is_autocast_enabled(one.device.type):
            raise TypeError(f"{name} is {value.dtype} and {first} {one.dtype}; give both in one dtype")
    return sizes


def within(
    name: str, value: Tensor, low: int | float, high: int | float, remedy: str = "", wait: bool = True
) -> Tensor:
    """A tensor with values from `low` to `high` only. Nothing is read while a graph is compiled, under
    vmap, nor of tensors without values.

    wait: read them also where the host must wait for a device.

    Raises:
        ValueError: a value outside, or one that is no number.
    """
    if torch.compiler.is_compiling() or value.is_meta or not value.numel():
        return value
    if not wait and value.device.type != "cpu":
        return value
    wide = value.detach().to(torch.float64 if value.is_floating_point() else torch.int64)
    try:
        ends = [end.item() for end in wide.aminmax()]
    except RuntimeError:  # under vmap, and of what only stands for a tensor, there is no one value to read
        return value
    for end in ends:
        if not low <= end <= high:
            raise ValueError(
                f"{name} holds {end}; give values of at least {low} and at most {high}"
                f"{remedy and f', {remedy}'}"
            )
    return value


def angular(name: str, value: Any) -> Tensor:
    """A tensor of positions whose angles float64 resolves: reals of which none is beyond `FARTHEST`."""
    return within(name, reals(name, value), -FARTHEST, FARTHEST, "beyond which no float64 resolves an angle")


def readable(name: str, value: Tensor) -> Tensor:
    """A tensor whose values can be read.

    Raises:
        ValueError: it is on the device meta, on which there are shapes only.
    """
    if value.is_meta:
        raise ValueError(f"{name} is on the device meta and has no values; give it on a device that has them")
    return value
