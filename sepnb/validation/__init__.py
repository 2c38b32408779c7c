"""What every public function asks of its arguments: the value, the bound and the remedy, in one place.

A wrong type is a TypeError, a wrong value a ValueError, and both name the argument. Whoever writes a function
that others call checks its arguments here, before computing. Most checks return what they were given::

    dim = whole("dim", dim, most=WIDEST)
    base = number("base", base, above=1)
    sizes = floats(q=(q, "B H N d"), k=(k, "B H M d"))  # one dtype, one device, letters that agree

Types, shapes and dtypes cost nothing. The values of tensors are read by `within` alone: never while a graph
is compiled, and where a GPU would be waited for only if the caller says so.
"""

from .scalars import (
    FARTHEST,
    WIDEST,
    above_zero,
    at_least,
    choice,
    flag,
    instance,
    number,
    one_of,
    option,
    share,
    shown,
    whole,
)
from .tensors import (
    angular,
    floating,
    floating_dtype,
    floats,
    integers,
    movable,
    on_device,
    readable,
    reals,
    shaped,
    tensor,
    together,
    within,
)

__all__ = [
    "FARTHEST",
    "WIDEST",
    "above_zero",
    "angular",
    "at_least",
    "choice",
    "flag",
    "floating",
    "floating_dtype",
    "floats",
    "instance",
    "integers",
    "movable",
    "number",
    "on_device",
    "one_of",
    "option",
    "readable",
    "reals",
    "shaped",
    "share",
    "shown",
    "tensor",
    "together",
    "whole",
    "within",
]
