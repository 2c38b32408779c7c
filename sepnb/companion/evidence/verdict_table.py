"""One table of the methods that matter: does each survive, use the far past, at what quality and price?

Survival, quality and price are judged by the records of `recipes`, or of `extrapolation` where `recipes` has
no such method; their bounds are those of the claims on far distances, and were put together here after these
records. *Uses* has a column for each task of `TASKS`, judged by `uses`; there a model is trained anew,
on the task, and its gaps are drawn for it.
"""

from dataclasses import dataclass

import pandas as pd

from sepnb.claims import budget, extrapolation, recipes
from sepnb.claims.asks import Ask, gap, levels
from sepnb.claims.evidence import judge
from sepnb.claims.language_model import BAR
from sepnb.claims.uses import uses
from sepnb.claims.verdict import Cause, Tables, Verdict
from sepnb.records.verdicts import DEARER, NOT_RUN, SURVIVES, WORSE

TASKS = ("mqar", "latest_value", "needle")
"""The experiments of *uses*, a column each."""

FIXED = ("survives", "quality", "price")


@dataclass(frozen=True)
class Line:
    """A line of the table.

    Args:
        label: what it is, in words.
        method: its name in the experiments.
        reading: how it reads past its trained length.
        task: its name in the tasks, where it is another.
        base: what the price is counted from; None: the method that it varies, if any.
    """

    label: str
    method: str
    reading: str = "native"
    task: str | None = None
    base: str | None = None


_ALL = "short period, content-to-position, gaps"

LINES = (
    Line("RoPE", "rope"),
    Line("RoPE, read behind a window", "rope", "native-window"),
    Line("RoPE, read with YaRN", "rope", "yarn"),
    Line("RoPE, trained with position gaps", "rope-gaps", task="rope-gap"),
    Line("RoPE, random positions", "rope-randomised", base="rope"),
    Line("ALiBi", "alibi"),
    Line("dense, sinusoidal", "sinusoidal"),
    Line("separated, sinusoidal", "separated-sinusoidal", base="sinusoidal"),
    Line("strict, sinusoidal", "strict-sinusoidal", base="sinusoidal"),
    Line("dense, random positions", "sinusoidal-randomised", base="sinusoidal"),
    Line("separated, random positions", "separated-randomised", base="separated-sinusoidal"),
    Line("strict, random positions", "strict-randomised", base="strict-sinusoidal"),
    Line("separated, position gaps", "separated-gap", base="separated-sinusoidal"),
    Line("dense, random offsets", "sinusoidal-offsets"),
    Line("separated, random offsets", "separated-offsets"),
    Line("separated, short period and offsets, window", "separated-torus-offsets", "native-window"),
    Line("dense, content-to-position and gaps", "dense-phase-gaps", base="sinusoidal"),
    Line(
        "dense, content-to-position, read behind a window",
        "dense-phase",
        "native-window",
        base="sinusoidal",
    ),
    Line("separated, content-to-position and gaps", "separated-phase-gaps"),
    Line(f"dense, {_ALL}", "sinusoidal-torus-phase-long-gaps", task="sinusoidal-content-gap"),
    Line(f"separated, {_ALL}", "separated-torus-phase-long-gaps", task="separated-content-gap"),
    Line(f"separated, {_ALL}, as large as RoPE", recipes.BEST),
)


def needs() -> tuple[str, ...]:
    """What the table is made of, as `Claim.needs` names it."""
    return (recipes.TABLE, extrapolation.TABLE, budget.TABLE, *(f"experiment/{name}" for name in TASKS))


def verdict_table(tables: Tables) -> list[tuple[Line, dict[str, Verdict]]]:
    """Every line with its verdicts by column: survives, each of `TASKS`, quality, price. What has no records
    reads *not run*."""
    return [
        (
            line,
            {"survives": survives(line, tables)}
            | {name: used(line, tables.get(f"experiment/{name}")) for name in TASKS}
            | {"quality": quality(line, tables), "price": price(line, tables)},
        )
        for line in LINES
    ]


def used(line: Line, table: pd.DataFrame | None) -> Verdict:
    """Whether it uses an answer far back in a task, as it reads."""
    return uses(table, line.task or line.method, line.reading.removeprefix("native-"))


def survives(line: Line, tables: Tables) -> Verdict:
    """Not more than `SURVIVES` above its own sliding window, in each bin past the trained length."""
    return _judged(line, tables, levels(line.method, *gap(line.reading), high=SURVIVES))


def quality(line: Line, tables: Tables) -> Verdict:
    """Not more than `WORSE` above RoPE with a window in the bin that ends at eight trained lengths."""
    own = f"{line.method}:{line.reading}/8x"
    return _judged(line, tables, [Ask(own, "rope:native-window/8x", high=WORSE)])


def price(line: Line, tables: Tables) -> Verdict:
    """Not more than `DEARER` above its base inside the trained length; a base has no price. Where more
    training turns the order of the two, *partly*."""
    base = line.base or _varied(line.method)
    if base == line.method:
        return Verdict(NOT_RUN, "it is a base", cause=Cause.BASE)
    verdict = _judged(line, tables, [Ask(line.method, base, high=DEARER)])
    if not {line.method, base} <= set(budget.TRAINED):
        return verdict
    return budget.overridden(verdict, [(line.method, base)], tables.get(budget.TABLE))


def _judged(line: Line, tables: Tables, asks: list[Ask]) -> Verdict:
    """By the first experiment that has the method; *not run* where its texts were not read so."""
    for need in (recipes.TABLE, extrapolation.TABLE):
        table = tables.get(need)
        if table is not None and (table["method"] == line.method).any():
            if f"{line.reading}/8x" not in table:
                return Verdict(NOT_RUN, "not read so")
            return judge(table, asks, floors=(BAR,)).of_ours()
    return Verdict(NOT_RUN, "no runs")


def _varied(method: str) -> str:
    """The method that a variant varies, as wide as it; of any other, itself."""
    from sepnb.experiments import variant_methods  # brings torch, which nothing else here needs

    return variant_methods.reference(method) if method in variant_methods.VARIANTS else method
