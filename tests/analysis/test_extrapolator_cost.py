"""Many positions cost little more than the writing of their rows: counted here, timed by `sepnb bench`."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from rich.console import Console
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from sepnb import encodings
from sepnb.analysis import extrapolator_cost, timing
from sepnb.analysis.extrapolator_cost import HELD, MILLION
from sepnb.companion.run.bench import bench_extrapolators
from sepnb.extrapolators import FORMS, METHODS, extrapolate
from sepnb.extrapolators.base import BLOCK
from sepnb.extrapolators.sinusoidal import BITS, _digit_table

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
    _digit_table.cache_clear()  # whatever a test before has left there is counted too
    return work_of(
        extrapolator_cost.call_of(method, form, extrapolator_cost.drawn_table(width), torch.arange(n))
    )


@pytest.mark.parametrize(("method", "form"), list(extrapolator_cost.variants(HELD)))
@pytest.mark.parametrize("width", [32, 64])
def test_a_million_rows_are_written_a_few_times_and_not_computed_entry_by_entry(method, form, width):
    few, many = (counted(method, form, n, width) for n in (FEW, MANY))
    rows, slope = (MANY - FEW) * width, (many.written - few.written) / (MANY - FEW)
    assert width <= slope <= PASSES * width
    assert few.written - slope * FEW < 0.05 * MILLION * width  # a spectrum, a scale, tables of waves
    assert many.curves - few.curves <= rows / width  # one series for a position: the fading of (6)
    assert many.curves <= MANY + 2 * 2**BITS * (width + 2) + 2 * extrapolator_cost.TABLE_LENGTH * width


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


def test_learned_alone_is_held_to_no_aim():
    assert {*METHODS} - {*HELD} == {"learned"} and len(HELD) == 9
    assert [form for method, form in extrapolator_cost.variants() if method == "fourier"] == list(FORMS)
    assert [form for method, form in extrapolator_cost.variants() if method == "wrap"] == ["corrected"]


@pytest.fixture
def clock(monkeypatch) -> list[list[str]]:
    """Times that are known: writing takes one second, every form as many as its place in the list."""
    asked = []

    def interleaved(steps, *, repeats, device):
        asked.append([*steps, repeats, device])
        return {name: [float(max(place, 1))] * repeats for place, name in enumerate(steps)}

    monkeypatch.setattr(extrapolator_cost, "interleaved", interleaved)
    return asked


def test_every_form_is_timed_in_turns_with_the_writing_of_its_rows(clock):
    found = extrapolator_cost.times_of_writing(8, n_positions=300, repeats=11)
    names = [f"{method} {form}" for method, form in extrapolator_cost.variants(HELD)]
    assert clock == [["writing", *names, 11, "cpu"]]
    assert [(one.method, one.form) for one in found] == list(extrapolator_cost.variants(HELD))
    assert [one.ratio for one in found] == [timing.Ratio(n, n, n) for n in range(1, len(found) + 1)]
    assert [one.reached for one in found] == [n <= extrapolator_cost.AIM for n in range(1, len(found) + 1)]
    assert all(one.width == 8 for one in found)


@pytest.mark.parametrize(("slowest", "told"), [(3.0, "reached"), (3.01, "missed")])
def test_bench_says_of_every_form_whether_it_is_within_the_aim(monkeypatch, slowest, told):
    def interleaved(steps, *, repeats, device):
        return {name: [slowest if name == "alibi literal" else 1.0] * repeats for name in steps}

    monkeypatch.setattr(extrapolator_cost, "interleaved", interleaved)
    console = Console(width=120, highlight=False, record=True)
    good = bench_extrapolators(console, profile="laptop", device="cpu", repeats=9)
    lines = console.export_text().splitlines()[2:]
    assert len(lines) == 2 * len([*extrapolator_cost.variants(HELD)]) and good == (told == "reached")
    found = f"{slowest:.3f} ({slowest:.3f} to {slowest:.3f})  {told}"
    for line in lines:
        assert line.endswith(found if line.startswith("alibi, literal") else "reached"), line
    assert sum("d_pos=64" in line for line in lines) == len(lines) / 2


def test_what_is_timed_is_the_whole_call():
    table, positions = extrapolator_cost.drawn_table(6), torch.arange(400)
    for method, form in extrapolator_cost.variants(HELD):
        options = {"length": 400} if method == "interpolate" else {}
        expected = extrapolate(table, positions, method, form=form, **options)
        assert torch.equal(extrapolator_cost.call_of(method, form, table, positions)(), expected)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"n_positions": 0}, "n_positions is 0; it must be at least 1"),
        ({"n_positions": 10, "repeats": 3}, "repeats is 3; a median with quartiles takes at least 9"),
    ],
)
def test_what_cannot_be_timed_is_refused(options, told):
    with pytest.raises(ValueError, match=told):
        extrapolator_cost.times_of_writing(4, **options)
