"""The words of the checks that every public function asks: value, bound and remedy, said once here.

That a function asks them is in `test_public_doors.py`; what it alone refuses is tested beside the function.
"""

import dataclasses
import re

import pytest
import torch

from sepnb import validation as v

from .shared import refused

BROKEN, HALF = float("nan"), torch.zeros(2, 3, dtype=torch.float16)
META = torch.zeros(2, device="meta")


@dataclasses.dataclass
class Options:
    rate: float = 0.0


VALUES = [
    ("size is 0; it must be at least 1", v.whole, "size", 0),
    ("size is 3; give 4 or more", v.whole, "size", 3, 4, None, "give 4 or more"),
    ("size is an int of 300 bits; it must be at most 9", v.whole, "size", 2**299, 1, 9),
    ("size is 0; it must be at least 1", lambda: v.at_least(1, size=0)),
    ("rate is nan; it must be finite", v.number, "rate", BROKEN),
    ("rate is an int of 16610 bits; it must be finite", v.number, "rate", 10**5000),
    ("rate is 1.5; it must be from 0 to 1", v.number, "rate", 1.5, 0, 1),
    ("rate is 0; it must be finite and above 0", lambda: v.number("rate", 0, above=0)),
    ("rate is -1; it must be finite and at least 0", v.number, "rate", -1, 0),
    ("rate is 0; it must be above 0", v.above_zero, "rate", 0),
    ("rate is 1; it must be at least 0 and below 1", v.share, "rate", 1),
    ("unknown kind 'third'; use one of first, None", v.one_of, "kind", "third", ("first", None)),
    ("unknown kind 'firs'; did you mean first?", v.named, "kind", "firs", {"first": 1, "other": 2}),
    ("unknown kind 'x'; did you mean first, other?", v.named, "kind", "x", {"first": 1, "other": 2}),
    ("mine has no option 'rat'; it has rate", v.known_options, "mine", Options, ["rat"]),
    ("rate is inf; it must be finite, and no int beyond all floats", v.option, "rate", float("inf"), float),
    ("'nowhere'", v.device, "device", "nowhere"),
    ("device is 'meta', on which nothing is computed; give 'cpu' or 'cuda'", v.device, "device", "meta"),
    ("x has shape [2, 3]; give [B, M=4] with B above 0", v.shaped, {"M": 4}, "x", HALF, "B+ M"),
    (
        "x holds 5; give values of at least 0 and at most 4, less",
        v.within,
        "x",
        torch.tensor([5]),
        0,
        4,
        "less",
    ),
    ("x is on the device meta and has no values", v.readable, "x", META),
    ("y is on meta and x on cpu; move one of them", lambda: v.together(x=HALF, y=META)),
]
KINDS = [
    ("size must be an int, got 2.0", v.whole, "size", 2.0),
    ("size must be an int, got True", lambda: v.at_least(1, size=True)),
    ("rate must be a number, got '7'", v.number, "rate", "7"),
    ("on must be True or False, got 1", v.flag, "on", 1),
    ("kind names are strings, got None", v.named, "kind", None, {}),
    ("x must be a Options, such as Options(1)", v.instance, "x", 1, Options, "Options(1)"),
    ("rate must be float, got 'x'", v.option, "rate", "x", float),
    ("model must be a function or a module, got <class 'int'>", v.function, "model", int),
    ("x must be a tensor, got list", v.tensor, "x", [1]),
    ("x must be dense, got torch.sparse_coo; give its to_dense()", v.tensor, "x", HALF.to_sparse()),
    ("x must be integers, got torch.float16", v.integers, "x", HALF),
    ("x must be integers or floating numbers, got torch.bool", v.reals, "x", HALF > 0),
    ("x must be floating, got torch.bool; give its float()", v.floating, "x", HALF > 0),
    ("dtype must be a floating dtype, such as torch.float32, got 'x'", v.floating_dtype, "dtype", "x"),
    (
        "y is torch.float32 and x torch.float16; give both in one dtype",
        lambda: v.floats(x=(HALF, "B M"), y=(HALF.float(), "B M")),
    ),
]


@pytest.mark.parametrize(
    ("error", "says", "call", "given"),
    [
        *((ValueError, says, call, given) for says, call, *given in VALUES),
        *((TypeError, says, call, given) for says, call, *given in KINDS),
    ],
    ids=[says for says, *_ in VALUES + KINDS],
)
def test_an_error_says_the_value_the_bound_and_the_remedy(error, says, call, given):
    refused(re.escape(says), call, *given, error=error)
