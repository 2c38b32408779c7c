"""Every public function refuses bad arguments itself: a ValueError or TypeError of its own, within a second.

Each argument of a door in turn is replaced by everything that `spoiled` makes of it, and then several at once
by what is drawn; see `doors.py`, where a new public name is one row.
"""

import random
import re
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import sepnb
from sepnb import encodings, extrapolators, models, protocol, seqpe, streams
from sepnb.encodings import transformer_xl_scores
from sepnb.evaluation import tasks

from .doors import DOORS, M, may_be_taken, noise

SECONDS = 1.0
torch.zeros(1, device="meta").double().sin()  # the first such call loads what it needs

NOTHING = object()
SPOILT = {
    "None": None,
    "str": "7",
    "list": [1.5],
    "dict": {},
    "object": NOTHING,
    "True": True,
    "False": False,
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": -float("inf"),
    "-1": -1,
    "0": 0,
    "0.5": 0.5,
    "1.5": 1.5,
    "2**62": 2**62,
    "-2**62": -(2**62),
    "10**5000": 10**5000,
    "1e300": 1e300,
    "1j": 1j,
    "array": np.array([1, 2]),
    "tensor": torch.tensor([1, 2]),
    "type": int,
}


def spoiled(valid: object) -> Iterator[tuple[str, object]]:
    """What is put in the place of a valid argument, with a name for it."""
    plain = isinstance(valid, bool | int | float | str | NoneType)
    for name, value in SPOILT.items():
        if not (plain and type(value) is type(valid) and value == valid):
            yield name, value
    if not isinstance(valid, Tensor):
        return
    real = valid.real if valid.is_complex() else valid
    if not valid.is_complex():
        yield "complex", valid.to(torch.complex64)
    yield "bool", real > 0
    yield "sparse", valid.to_sparse()
    yield "meta", valid.to("meta")
    yield "one dimension more", valid[None]
    if valid.dim():
        yield "one dimension less", valid[0]
        yield "no dimension", valid.flatten()[0]
    for axis in range(valid.dim()):
        yield f"axis {axis} longer", torch.cat([valid, valid.narrow(axis, 0, 1)], dim=axis)
        yield f"axis {axis} empty", valid.narrow(axis, 0, 0)
    if real.is_floating_point():
        yield "another dtype", real.to(torch.float16)
        yield "integers", real.long()
    else:
        yield "floats", valid.double()
        yield "nans", valid.double().fill_(torch.nan)
        yield "negative", -1 - valid
        yield "huge", valid + 2**62


def outcome(call: Callable, arguments: dict[str, Any]) -> str:
    """How a call ends: "taken", "refused", or what is wrong about it."""
    start = time.process_time()
    try:
        call(**arguments)
        how = "taken"
    except (ValueError, TypeError) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        own = Path(last.filename).is_relative_to(Path(sepnb.__file__).parent)
        how = "refused" if own and last.line.startswith("raise ") else f"{error!r} at {last.line}"
    except Exception as error:
        how = repr(error)
    return how if time.process_time() - start < SECONDS else f"{how}, after more than a second"


@pytest.mark.attack("every argument of every public function, one at a time")
@pytest.mark.parametrize("door", DOORS)
def test_bad_arguments_are_refused_in_words_of_our_own(door, unhooked):
    call, valid = DOORS[door]
    assert outcome(call, valid) == "taken"
    wrong = []
    for argument in valid:
        for name, value in spoiled(valid[argument]):
            found = outcome(call, valid | {argument: value})
            if found != "refused" and not (found == "taken" and may_be_taken(door, argument, name)):
                wrong.append(f"{argument}: {name}: {found}")
    assert not wrong, "\n".join([door, *wrong])


@pytest.mark.attack("several arguments of every public function at once, drawn")
@pytest.mark.parametrize("door", DOORS)
def test_whatever_is_drawn_is_taken_or_refused_in_words_of_our_own(door, unhooked, tries):
    call, valid = DOORS[door]
    draw = random.Random(door)
    options = {argument: [(name, value) for name, value in spoiled(good)] for argument, good in valid.items()}
    for _ in range(tries(5, 100)):
        arguments = draw.sample([*valid], draw.randint(1, len(valid)))
        changes = {argument: draw.choice(options[argument]) for argument in arguments}
        found = outcome(call, valid | {argument: value for argument, (_, value) in changes.items()})
        assert found in ("taken", "refused"), {argument: name for argument, (name, _) in changes.items()}


ROOMS = (sepnb, streams, encodings, extrapolators, seqpe, models, tasks, protocol)
ELSEWHERE = {
    "Card": "protocol/test_card.py",
    "SeqPE": "encodings/test_seqpe.py",
    "Transformer": "models/test_doors.py",
    "hf": "protocol/test_adapters.py",
}
"""Public names whose bad arguments are tried in other tests."""


NO_DOORS = {
    *("Encoding", "Heads", "InputModule", "PairModule", "QueryKeyModule", "ScoreModule", "Site"),
    *("TermModule", "ValueModule", "Continuation", "Control", "Extrapolator"),
    *("Description", "PositionTables", "Reader", "Samples", "Verdict"),
    *("Attention", "Block", "causal_mask"),
}
"""What encodings, extrapolators and models are made of, and what functions give back."""


def test_no_public_name_is_left_out():
    """Encodings and extrapolators are built by name, with the options of their classes."""
    built = {type(encodings.build(name)).__name__ for name in encodings.names()} - {"SeqPE"}
    tried = {part for door in DOORS for part in door.partition(",")[0].split(".")} | ELSEWHERE.keys() | built
    public = {
        name
        for room in ROOMS
        for name in getattr(room, "__all__", vars(room))
        if not name.startswith("_") and callable(getattr(room, name))
        if getattr(room, name).__module__.startswith(room.__name__)
    }
    assert public - tried - set(NO_DOORS) == set()
    assert NO_DOORS.isdisjoint(tried)
    for name, file in ELSEWHERE.items():
        assert re.search(rf"\b{name}\b", (Path(__file__).parent / file).read_text(encoding="utf-8")), name


def test_the_checks_break_no_graph_and_no_vmap(unhooked):
    x, at, (w, _) = noise(3, M, 6), torch.arange(3 * M).reshape(3, M), encodings.rope_frequencies(6)
    turned = encodings.apply_rope(x, at, w)
    compiled = torch.compile(encodings.apply_rope, backend="eager", fullgraph=True)
    assert torch.equal(compiled(x, at, w), turned)
    assert torch.equal(torch.vmap(lambda *one: encodings.apply_rope(*one, w))(x, at), turned)
    compiled = torch.compile(transformer_xl_scores, backend="eager", fullgraph=True)
    scores = DOORS["transformer_xl_scores"][1]
    assert torch.equal(compiled(**scores), transformer_xl_scores(**scores))
