"""Argument checks for all public functions: each error states the value, the bound and the remedy.

A wrong type is a TypeError, a wrong value a ValueError, and both name the argument. Whoever writes a function
that others call checks its arguments here, before computing. Most checks return what they were given::

    dim = whole("dim", dim, most=WIDEST)
    base = number("base", base, above=1)
    sizes = floats(q=(q, "B H N d"), k=(k, "B H M d"))  # one dtype, one device, letters that agree

Types, shapes and dtypes cost nothing. Only `within` reads the values of tensors: never while a graph is
compiled, and only with `wait` where the host would wait for a GPU.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from difflib import get_close_matches
from math import inf, isfinite
from reprlib import Repr
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import numpy as np
import torch
from torch import Tensor, nn

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
    """Return an int of at least `least` and, if given, at most `most`; `needs` replaces the bound in the
    message on a smaller one."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, got {shown(value)}")
    if value < least:
        raise ValueError(f"{name} is {shown(value)}; {needs or f'it must be at least {least}'}")
    if most is not None and value > most:
        raise ValueError(f"{name} is {shown(value)}; it must be at most {most}")
    return value


def at_least(lowest: int, **sizes: Any) -> None:
    """Refuse sizes below `lowest`; numpy integers count as ints."""
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
    """Return a finite number of at least `least`, at most `most` and above `above`; `needs` replaces the
    bounds in the message."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, got {shown(value)}")
    bounds = "finite"
    if most < inf:
        bounds = f"from {least} to {most}"
    elif above > -inf:
        bounds = f"finite and above {above}"
    elif least > -inf:
        bounds = f"finite and at least {least}"
    if not _finite(value) or not least <= value <= most or value <= above:
        raise ValueError(f"{name} is {shown(value)}; {needs or f'it must be {bounds}'}")
    return value


def _finite(value: float | int) -> bool:
    try:
        return isfinite(value)
    except OverflowError:  # an int beyond all floats
        return False


def above_zero(name: str, value: Any) -> float | int:
    """A finite number above 0."""
    if not number(name, value) > 0:
        raise ValueError(f"{name} is {shown(value)}; it must be above 0")
    return value


def share(name: str, value: Any) -> float | int:
    """A number of at least 0 and below 1, such as a dropout."""
    needs = "it must be at least 0 and below 1"
    if number(name, value, least=0, needs=needs) >= 1:
        raise ValueError(f"{name} is {shown(value)}; {needs}")
    return value


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {shown(value)}")
    return value


def one_of(name: str, value: Any, allowed: Collection[Any]) -> Any:
    """One of the allowed values: names, or None."""
    if not any(value is one or (isinstance(value, str) and value == one) for one in allowed):
        raise ValueError(f"unknown {name} {shown(value)}; use one of {', '.join(map(str, allowed))}")
    return value


def named(kind: str, name: Any, among: Mapping[str, Any], hint: str = "") -> Any:
    """The entry of `among` with this name; errors list near matches or, for a non-string, end in `hint`."""
    if not isinstance(name, str):
        raise TypeError(f"{kind} names are strings, got {shown(name)}{hint}")
    if name not in among:
        near = get_close_matches(name, among) or among
        raise ValueError(f"unknown {kind} {shown(name)}; did you mean {', '.join(near)}?")
    return among[name]


def known_options(name: str, description: type, given: Collection[str]) -> None:
    """Options that a frozen description has as its fields."""
    there_are = [field.name for field in fields(description)]
    if unknown := [option for option in given if option not in there_are]:
        raise ValueError(f"{name} has no option {unknown[0]!r}; it has {', '.join(there_are) or 'none'}")


def instance(name: str, value: Any, kind: type, example: str = "") -> Any:
    """A value of a class, such as `example`."""
    if not isinstance(value, kind):
        such = example and f", such as {example}"
        raise TypeError(f"{name} must be a {kind.__name__}{such}, got {shown(value)}")
    return value


def option(name: str, value: Any, kind: Any) -> None:
    """Refuse a value that does not fit the annotation `kind` of a field, if that is a plain type: None, bool,
    int, float (finite; ints count), str, another class, a tuple or a union of these."""
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
    if kind in (int, float):
        numbers = int if kind is int else int | float
        return isinstance(value, numbers) and not isinstance(value, bool) and (not finite or _finite(value))
    if get_origin(kind) is tuple:
        (one, *more) = get_args(kind)
        of_any_length = more == [...]
        fits = isinstance(value, tuple) and (of_any_length or len(value) == 1 + len(more))
        kinds = [one] * len(value) if fits and of_any_length else [one, *more]
        return fits and all(_is_a(item, each, finite) for item, each in zip(value, kinds, strict=True))
    return not isinstance(kind, type) or isinstance(value, kind)


def function(name: str, value: Any) -> None:
    """Refuse what cannot be called, and classes, which are passed by mistake for their instances."""
    if isinstance(value, type) or not callable(value):
        raise TypeError(f"{name} must be a function or a module, got {shown(value)}")


@contextmanager
def brought_by(extra: str) -> Iterator[None]:
    """Wrap imports from an optional extra: if a package is missing, the error says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if str(error.name).startswith("sepnb"):
            raise
        remedy = f"the extra {extra} of sepnb brings it, in a checkout of the book: pip install '.[{extra}]'"
        raise ModuleNotFoundError(f"{error.name} is not installed; {remedy}", name=error.name) from None


# --- tensors: kinds, shapes, devices and, where it costs nothing, values


def tensor(name: str, value: Any) -> Tensor:
    """A tensor that is not sparse."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}")
    if value.layout != torch.strided:
        raise TypeError(f"{name} must be dense, got {value.layout}; give its to_dense()")
    return value


def integers(name: str, value: Any) -> Tensor:
    """A tensor of integers, not of bool."""
    kind = tensor(name, value).dtype
    if kind.is_floating_point or kind.is_complex or kind == torch.bool:
        raise TypeError(f"{name} must be integers, got {kind}")
    return value


def reals(name: str, value: Any) -> Tensor:
    """A tensor of integers or floating numbers, neither bool nor complex."""
    kind = tensor(name, value).dtype
    if kind.is_complex or kind == torch.bool:
        raise TypeError(f"{name} must be integers or floating numbers, got {kind}")
    return value


def floating(name: str, value: Any) -> Tensor:
    """A tensor of floating numbers."""
    if not tensor(name, value).is_floating_point():
        raise TypeError(f"{name} must be floating, got {value.dtype}; give its float()")
    return value


def floating_dtype(name: str, value: Any) -> torch.dtype:
    """A dtype of floating numbers."""
    if not isinstance(value, torch.dtype) or not value.is_floating_point:
        raise TypeError(f"{name} must be a floating dtype, such as torch.float32, got {shown(value)}")
    return value


def on_device(name: str, value: Tensor, device: torch.device) -> Tensor:
    """A tensor that is where the model is."""
    if value.device != device:
        raise ValueError(f"{name} are on {value.device}, the model is on {device}; move one of them")
    return value


def device(name: str, value: Any) -> str:
    """The name of a device that computes here."""
    option(name, value, str | torch.device)
    try:
        there = torch.empty(0, device=value).device
    except (RuntimeError, AssertionError) as error:  # no such device, or torch was built without it
        raise ValueError(f"{name} is {shown(value)}: {str(error).splitlines()[0]}") from None
    if there.type != "meta":
        return str(there)
    raise ValueError(f"{name} is 'meta', on which nothing is computed; give 'cpu' or 'cuda'")


def together(**tensors: Tensor) -> None:
    """Refuse tensors that are not all on one device."""
    (first, one), *others = tensors.items()
    for name, value in others:
        if value.device != one.device:
            raise ValueError(f"{name} is on {value.device} and {first} on {one.device}; move one of them")


def movable(name: str, value: Tensor, device: torch.device) -> Tensor:
    """A tensor that can be moved to a device: it has values, or the device is meta and asks for none."""
    return value if device.type == "meta" else readable(name, value)


def shaped(sizes: dict[str, int], name: str, value: Tensor, *patterns: str) -> None:
    """Match the shape with the first pattern that fits, and add its sizes by letter to `sizes`.

    A pattern such as "B H N d" names every dimension: a name is one size in all tensors that are checked with
    the same `sizes`. A dimension whose name ends in + must not be 0.
    """
    for pattern in patterns:
        letters, found = pattern.split(), dict(sizes)
        if len(letters) == value.dim() and all(
            found.setdefault(letter.rstrip("+"), size) == size and (size or letter[-1] != "+")
            for letter, size in zip(letters, value.shape, strict=True)
        ):
            sizes.update(found)
            return
    raise ValueError(
        f"{name} has shape {list(value.shape)}; give {' or '.join(_wanted(one, sizes) for one in patterns)}"
    )


def _wanted(pattern: str, sizes: dict[str, int]) -> str:
    """The pattern with the sizes that are known, such as [B=2, H=3, M, d=4]."""
    letters = [letter.rstrip("+") for letter in pattern.split()]
    known = [f"{letter}={sizes[letter]}" if letter in sizes else letter for letter in letters]
    at_least_one = [letter[:-1] for letter in pattern.split() if letter[-1] == "+"]
    return f"[{', '.join(known)}]" + (f" with {' and '.join(at_least_one)} above 0" if at_least_one else "")


def floats(**given: tuple[Any, str]) -> dict[str, int]:
    """Refuse floating tensors that differ in dtype or device, or from the pattern given with each (see
    `shaped`); return the sizes. Under autocast, which unifies dtypes, these may differ."""
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
    """Return a tensor whose values lie from `low` to `high`. They are read only if they exist, no graph is
    compiled and no vmap is active, and only with `wait` where the host must wait for a device."""
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


@contextmanager
def restored(modules: Iterable[Any], attribute: str) -> Iterator[None]:
    """Afterwards, also after an error, each of these has the value of an attribute that it has now."""
    before = [(module, getattr(module, attribute)) for module in modules]
    try:
        yield
    finally:
        for module, value in before:
            setattr(module, attribute, value)


@contextmanager
def vouched(model: nn.Module, so: bool = True) -> Iterator[None]:
    """Inside, if `so`, the modules of a model do not read positions on a GPU: these were checked before the
    transfer, and the host would wait for all queued work."""
    asked = [module for module in model.modules() if hasattr(module, "vouched")]
    with restored(asked, "vouched"):
        for module in asked:
            module.vouched = so
        yield


def unread(positions: Tensor, vouched: bool = False) -> bool:
    """Whether these are not to be read: while a graph is compiled, and if vouched for, on a GPU."""
    return torch.compiler.is_compiling() or (vouched and positions.device.type != "cpu")


def angular(name: str, value: Any) -> Tensor:
    """A tensor of positions whose angles float64 resolves: reals of which none is beyond `FARTHEST`."""
    return within(name, reals(name, value), -FARTHEST, FARTHEST, "beyond which no float64 resolves an angle")


def readable(name: str, value: Tensor) -> Tensor:
    """A tensor whose values can be read: it is not on the device meta, on which there are shapes only."""
    if value.is_meta:
        raise ValueError(f"{name} is on the device meta and has no values; give it on a device that has them")
    return value
