"""What changes when positions get more coordinates, counted: settings, training, lines of code.

A family is an encoding and, where that takes one coordinate only, the one that is its form for several. What
is counted for it hangs on which class is called its form for one: RoPE is counted twice, as the class of one
coordinate that hands over to another, and as the axial class alone, which on one axis is RoPE (`apart`). A
model of each is built on one, two and three axes, trained for some steps and read, while a tracer notes which
lines of the family's own files run. Counted from one number of axes to another are

- whether there is a form at all, and whether it is the same encoding;
- the settings of model and of training whose values differ, or that only one of them has;
- the lines that run on so many axes and did not run on fewer.

The count is of this code, and of the lines that a step needs; checks of bad input do not run. A line that
asks for the number of axes and goes on either way counts in neither: `questions` counts those, by what they
compare. What holds for every encoding alike, such as the shape of positions in a model, is nobody's.
"""

import ast
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from . import encodings
from .encodings import Encoding, grid_positions
from .models import LanguageModel, TransformerConfig
from .records.store import flattened
from .streams import Streams
from .training.loop import TrainingConfig
from .training.seqpe_schedule import grid_losses, grid_shifts

WIDTH, HEADS, VOCABULARY = 48, 4, 5
SIDE, REACH = 4, 100
"""Cells along an axis of the trained grid, and the coordinates of SeqPE's losses."""
STEPS = 2
"""Of the losses, which are enough for every kind of candidate and of edit."""

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Family:
    """An encoding with its form for several axes.

    Args:
        encodings: names, the first that takes so many coordinates is the form.
        files: its own files in the package, those of a schedule that belongs to it among them.
        trained: whether it has a schedule of its own: losses and shift steps.
    """

    encodings: tuple[str, ...]
    files: tuple[str, ...]
    trained: bool = False


FAMILIES: dict[str, Family] = {
    "seqpe": Family(
        ("seqpe",),
        (
            "encodings/seqpe.py",
            "seqpe/digits.py",
            "seqpe/encoder.py",
            "seqpe/injection.py",
            "seqpe/losses.py",
            "seqpe/numerals.py",
            "seqpe/objective.py",
            "seqpe/prefixes.py",
            "seqpe/sampling.py",
            "seqpe/schedule.py",
            "grid_shifts.py",
            "shift_steps.py",
        ),
        trained=True,
    ),
    "rope": Family(("rope", "axial-rope"), ("encodings/rope.py", "encodings/axial.py")),
    "axial-rope": Family(("axial-rope",), ("encodings/rope.py", "encodings/axial.py")),
    "alibi": Family(("alibi",), ("encodings/alibi.py",)),
    "sinusoidal": Family(("sinusoidal",), ("encodings/sinusoidal.py",)),
}


def form(family: str, axes: int) -> Encoding | None:
    """The encoding of a family for so many coordinates, None where there is none.

    Raises:
        ValueError: an unknown family.
    """
    if family not in FAMILIES:
        raise ValueError(f"unknown family {family!r}; use one of {', '.join(FAMILIES)}")
    found = (encodings.on_axes(name, axes) for name in FAMILIES[family].encodings)
    return next((encoding for encoding in found if encoding is not None), None)


def refusal(family: str, axes: int) -> str:
    """What a model of so many axes says to the first encoding of a family, empty where it takes it."""
    try:
        _config(encodings.build(FAMILIES[family].encodings[0]), axes)
    except ValueError as refused:
        return str(refused)
    return ""


def settings(family: str, axes: int) -> dict[str, Any] | None:
    """Every setting, by dotted name, of the model and of what the family adds to its training."""
    encoding = form(family, axes)
    if encoding is None:
        return None
    told = {"model": {"axes": axes, "encoding": encoding.resolved()}}
    if FAMILIES[family].trained:
        grid, ranges = (SIDE,) * axes, (REACH,) * axes
        losses = grid_losses(grid, ranges, columns=WIDTH)
        training = TrainingConfig(1, 1, 1, 1e-3, positions=grid_shifts(grid, ranges), auxiliary=losses)
        told["training"] = {key: training.resolved()[key] for key in ("positions", "auxiliary")}
    return flattened(told)


@dataclass(frozen=True)
class Changes:
    """What changes from one number of axes to another.

    Attributes:
        exists: whether the family has a form there.
        same: whether it is the same encoding, by its name.
        model, training: the settings that differ, by dotted name.
        lines: by file, how many lines run there that did not run before.
        hears: how far, at least, the logits move with one coordinate of one token; 0 where there is no form.
    """

    exists: bool
    same: bool
    model: tuple[str, ...]
    training: tuple[str, ...]
    lines: dict[str, int]
    hears: float


def changes(family: str, before: int, after: int) -> Changes:
    """What changes for a family from `before` axes to `after`.

    Raises:
        ValueError: an unknown family, or one without a form to begin with.
    """
    one, other = form(family, before), form(family, after)
    if other is None:
        return Changes(False, False, (), (), {}, 0.0)
    if one is None:
        raise ValueError(f"{family} has no form on {before} axes to begin with; count from fewer")
    a, b = settings(family, before), settings(family, after)
    differing = [key for key in {**a, **b} if a.get(key) != b.get(key) or (key in a) != (key in b)]
    parts = {what: tuple(k for k in differing if k.startswith(f"{what}.")) for what in ("model", "training")}
    earlier = frozenset().union(*(lines_run(family, axes) for axes in range(1, before + 1)))
    new = [file for file, _ in lines_run(family, after) - earlier]
    lines = {file: new.count(file) for file in FAMILIES[family].files if file in new}
    return Changes(True, one.name == other.name, lines=lines, hears=_hears(family, after), **parts)


def table() -> pd.DataFrame:
    """One row for each family and number of axes above 1, counted from one axis less: `family`, `axes`, `has`
    a form and whether it is the `same`, numbers of settings of the `model` and of the `training`, of `lines`,
    and what it `hears`."""
    rows = []
    for family in FAMILIES:
        for axes in (2, 3):
            found = changes(family, axes - 1, axes)
            counts = {"model": len(found.model), "training": len(found.training)}
            told = {"has": found.exists, "same": found.same, **counts, "lines": sum(found.lines.values())}
            rows.append({"family": family, "axes": axes, **told, "hears": found.hears})
    return pd.DataFrame(rows)


def apart(family: str, other: str, axes: int = 1) -> float:
    """How far apart, at most, the logits of two families are on so many axes, with the same weights.

    Raises:
        ValueError: an unknown family, or one without a form there.
        RuntimeError: an encoding with weights that the other has not (torch names them).
    """
    if absent := [name for name in (family, other) if form(name, axes) is None]:
        raise ValueError(f"{absent[0]} has no form on {axes} axes; compare where both have one")
    one, two, places = _model(family, axes).double(), _model(other, axes).double(), _places(axes)
    with torch.no_grad():
        for parameter in one.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        two.load_state_dict(one.state_dict())
        tokens = torch.arange(len(places))[None] % VOCABULARY
        return float((one.eval()(tokens, places) - two.eval()(tokens, places)).abs().max())


@lru_cache
def lines_run(family: str, axes: int) -> frozenset[tuple[str, int]]:
    """The lines of a family's files, by file and number, that run while a model of so many axes is built,
    trained and read; none where there is no form."""
    files = {str(HERE / file): file for file in FAMILIES[family].files}
    with traced(files) as seen:
        if form(family, axes) is not None:
            _exercised(family, axes)
    return frozenset((files[name], line) for name, line in seen)


@contextmanager
def traced(files: Collection[str]) -> Iterator[set[tuple[str, int]]]:
    """Collects, as long as the context is open, the lines of these files that run in this thread."""
    seen: set[tuple[str, int]] = set()

    def line(frame: FrameType, event: str, arg: object) -> Callable:
        if event == "line":
            seen.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    def call(frame: FrameType, event: str, arg: object) -> Callable | None:
        return line if frame.f_code.co_filename in files else None

    earlier = sys.gettrace()
    sys.settrace(call)
    try:
        yield seen
    finally:
        sys.settrace(earlier)


def questions(family: str) -> int:
    """How often the files of a family compare a number of axes with 1: what goes on either way."""
    return sum(
        isinstance(node, ast.Compare)
        and getattr(node.left, "attr", getattr(node.left, "id", "")) in ("dims", "axes")
        and any(isinstance(end, ast.Constant) and end.value == 1 for end in node.comparators)
        for file in FAMILIES[family].files
        for node in ast.walk(ast.parse((HERE / file).read_text(encoding="utf-8")))
    )


def _config(encoding: Encoding, axes: int) -> TransformerConfig:
    return TransformerConfig(
        Streams.dense(WIDTH), 2, HEADS, encoding, max_length=SIDE**axes, causal=False, axes=axes
    )


def _model(family: str, axes: int) -> LanguageModel:
    torch.manual_seed(0)
    return LanguageModel(_config(form(family, axes), axes), VOCABULARY)


def _places(axes: int) -> Tensor:
    """The cells of the trained grid, counted from 1, as a model takes them."""
    places = 1 + grid_positions(*(SIDE,) * axes).to(torch.int64)
    return places if axes > 1 else places[:, 0]


def _exercised(family: str, axes: int) -> None:
    """A model is built, trained by one step of everything, and read."""
    model, places = _model(family, axes), _places(axes)
    tokens = torch.zeros(2, len(places), dtype=torch.int64)
    model(tokens, places).square().mean().backward()
    if FAMILIES[family].trained:
        grid, ranges = (SIDE,) * axes, (REACH,) * axes
        loss = grid_losses(grid, ranges, columns=WIDTH).bind(0)
        for _ in range(STEPS):
            loss(model).backward()
        list(grid_shifts(grid, ranges).positions(seed=0, steps=STEPS))
    model.eval()
    with torch.no_grad():
        model(tokens, places)


def _hears(family: str, axes: int) -> float:
    """The least, over axes, of how far the logits move when one token moves by one cell."""
    model, places = _model(family, axes).double().eval(), _places(axes)
    tokens = torch.arange(len(places))[None] % VOCABULARY
    moved = []
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        model.eval()  # whatever remembers positions forgets them here
        home = model(tokens, places)
        for axis in range(axes):
            other = places.clone()
            other.view(len(places), axes)[0, axis] += 1
            moved.append(float((model(tokens, other) - home).abs().max()))
    return min(moved)
