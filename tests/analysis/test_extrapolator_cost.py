"""Extrapolating many positions writes little more than their rows."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from sepnb import encodings
from sepnb.extrapolators import CONTROLS, FORMS, METHODS, extrapolate
from sepnb.extrapolators.base import BLOCK
from sepnb.extrapolators.sinusoidal import BITS, _digit_table

MILLION = 10**6
TABLE_LENGTH = 128
WIDTH = 32
PASSES = 5.5
"""How often as many numbers may be written as the rows have: gathered, changed in place, copied; and what is
done for every position and not for every column."""
FEW, MANY = 2 * BLOCK, 6 * BLOCK
"""The work is the same in every block, so that two counts tell that of a million."""
CURVES = frozenset({"cos", "erf", "exp", "expm1", "log", "log1p", "polar", "pow", "sigmoid", "sin", "tanh"})
"""Operations that take a series for every entry, and not one or two instructions."""


class Work(NamedTuple):
    """How many numbers the operations of a call write, a complex one as two, and how many of these an
    operation of `CURVES` computes."""

    written: int
    curves: int


class Counter(TorchDispatchMode):
    """Adds up what every operation writes; a view and a fresh allocation write nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.written = self.curves = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        name = func._schema.name.removeprefix("aten::").rstrip("_")
        aliases = [each.alias_info for each in func._schema.returns]
        views = any(alias is not None and not alias.is_write for alias in aliases)
        if not views and "empty" not in name and name != "_unsafe_view":
            entries = sum(x.numel() * (1 + x.is_complex()) for x in tree_leaves(out) if isinstance(x, Tensor))
            self.written += entries
            self.curves += entries * (name in CURVES)
        return out


def work_of(call: Callable[[], object]) -> Work:
    """What one call writes, its results and everything on the way."""
    with Counter() as counter:
        call()
    return Work(counter.written, counter.curves)


def counted(method: str, form: str, n: int, width: int = WIDTH) -> Work:
    """The work of one call of `extrapolate`, with what it fits on the table."""
    _digit_table.cache_clear()  # whatever a test before has left there is counted too
    table = 0.02 * torch.randn(TABLE_LENGTH, width, generator=torch.Generator().manual_seed(0))
    options = {"length": max(n, TABLE_LENGTH)} if method == "interpolate" else {}
    return work_of(lambda: extrapolate(table, torch.arange(n), method, form=form, **options))


HELD = [
    (method, form)
    for method in METHODS
    if method != "learned"  # a perceptron at every position, and its training, are no matter of writing
    for form in (FORMS[:1] if method in CONTROLS else FORMS)
]


@pytest.mark.parametrize(("method", "form"), HELD)
@pytest.mark.parametrize("width", [32, 64])
def test_a_million_rows_are_written_a_few_times_and_not_computed_entry_by_entry(method, form, width):
    few, many = (counted(method, form, n, width) for n in (FEW, MANY))
    rows, slope = (MANY - FEW) * width, (many.written - few.written) / (MANY - FEW)
    assert width <= slope <= PASSES * width
    assert few.written - slope * FEW < 0.05 * MILLION * width  # a spectrum, a scale, tables of waves
    assert many.curves - few.curves <= rows / width  # one series for a position: the fading of (6)
    assert many.curves <= MANY + 2 * 2**BITS * (width + 2) + 2 * TABLE_LENGTH * width


def test_the_count_would_find_a_sine_for_every_entry_and_a_pass_too_many():
    positions = torch.arange(1000)
    naive = work_of(lambda: encodings.sinusoidal(positions, WIDTH, dtype=torch.float64))
    assert naive.curves >= positions.numel() * WIDTH
    rows = torch.ones(1000, WIDTH)
    assert work_of(lambda: rows + 1) == Work(rows.numel(), 0)
    assert work_of(lambda: rows.add_(1)) == Work(rows.numel(), 0)
    assert work_of(lambda: rows.exp_().sin()) == Work(2 * rows.numel(), 2 * rows.numel())
    assert work_of(lambda: torch.view_as_real(torch.complex(rows, rows))).written == 2 * rows.numel()
    assert work_of(lambda: rows.t()[:, :3].reshape(-1)).written == 3 * WIDTH  # the copy, not the views
    assert work_of(lambda: torch.empty(7).fill_(1)).written == 7
