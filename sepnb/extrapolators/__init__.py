"""Extrapolators: a learned table in, rows for unseen positions out. One file per idea, one registry.

`SOURCE_METHODS` are the slides' equations (2) to (6); `CONTROLS` are the plain rules that they must be
compared with. Each has two forms: "literal" is the printed formula at every position, its slips included,
and "corrected" is the repaired one, which leaves the rows of the window alone.

To add one: write a file with a frozen `Extrapolator`, and add the class to those below. `METHODS`, `build`,
`extrapolate` and the tests that all of them share then know it. What is out of its bounds is refused as
`sepnb.validation` says.
"""

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from ..validation import known_options, named
from .alibi import Alibi
from .base import FORMS, Continuation, Control, Extrapolator, check_table
from .controls import Clamp, Interpolate, Reflect, Wrap, Zero
from .cyclic import Cyclic
from .describe import Description, describe, median_step
from .fourier import Fourier
from .learned import Learned
from .sinusoidal import Sinusoidal

_PRINTED = (Sinusoidal, Fourier, Cyclic, Learned, Alibi)
_PLAIN = (Clamp, Wrap, Reflect, Zero, Interpolate)
_REGISTRY: dict[str, type[Extrapolator]] = {kind.name: kind for kind in (*_PRINTED, *_PLAIN)}

METHODS = tuple(_REGISTRY)
CONTROLS = tuple(name for name, extrapolator in _REGISTRY.items() if issubclass(extrapolator, Control))
SOURCE_METHODS = tuple(kind.name for kind in _PRINTED)

__all__ = [
    "CONTROLS",
    "FORMS",
    "METHODS",
    "SOURCE_METHODS",
    "Continuation",
    "Control",
    "Description",
    "Extrapolator",
    "build",
    "describe",
    "extrapolate",
    "seam",
]


def build(method: str, **options: object) -> Extrapolator:
    """The extrapolator of this name, e.g. `build("fourier", n_components=4)`."""
    extrapolator = named("extrapolator", method, _REGISTRY)
    known_options(method, extrapolator, options)
    return extrapolator(**options)


def extrapolate(
    table: Float[Tensor, "L d_pos"],
    positions: Integer[Tensor, "*shape"],
    method: str,
    *,
    form: str = "corrected",
    **options: object,
) -> Float[Tensor, "*shape d_pos"]:
    """Rows of `positions`, of any shape, from a table of the positions below L.

    In the corrected form the rows i < L come back bit for bit, but for `interpolate`, which squeezes them
    all, and `zero` with `everywhere=True`. Nothing is differentiated. For many calls on one table, keep a
    `Continuation`, which computes what depends on the table once.

    Args:
        table: `[L, d_pos]`, floating and finite, L at least 2.
        positions: integers, not negative.
        method: one of `METHODS`.
        form: "corrected" or "literal"; controls have one form.
        options: of the method; see the class of its file.
    """
    return Continuation(table, build(method, **options), form)(positions)


def seam(
    table: Float[Tensor, "L d_pos"], method: str, *, form: str = "corrected", **options: object
) -> float:
    """`|p_L - p_(L-1)|` in units of the table's median step: 1 where a stranger would not notice the border.

    Both rows are the method's own, so that row L-1 of a literal form need not be the table's. A median step
    of 0 is a ValueError.
    """
    check_table(table)
    last = len(table) - 1
    border = torch.tensor([last, last + 1], device=table.device)
    before, after = extrapolate(table, border, method, form=form, **options).to(torch.float64)
    step = median_step(table)
    if step == 0:
        raise ValueError(
            "most rows of the table equal their neighbours: there is no step to measure the seam in"
        )
    return float((after - before).norm()) / step
