"""The benchmarks for a terminal: what this machine reaches now, beside what the multiply-adds allow.

Nothing is stored. `profile` chooses the cells and `device` where they are timed; `repeats` are the timed
rounds of each, by default the profile's. All refuse too few of them with a ValueError.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console

from sepnb.analysis.timing import Ratio
from sepnb.companion.run.screens import say
from sepnb.experiments import encoding_speed, speed, timed
from sepnb.experiments.base import Experiment
from sepnb.models.fast.kernels import CompilerMissing
from sepnb.validation import named


def bench_models(console: Console, *, variants: Sequence[str] = (), **how: Any) -> bool:
    """Time separated and strict models, some of `speed.VARIANTS` (none means all); ValueError for others."""
    for variant in variants:
        named("variant", variant, dict.fromkeys(speed.VARIANTS))
    console.print(
        "ratio: times faster than the dense model of the same width, forward and backward of the blocks;\n"
        "limit: that of the multiply-adds, and at the rate of attention on this machine; share reached:\n"
        "of the time that the exact limit would save"
    )
    return bench_cells(console, speed.EXPERIMENT, methods=variants or speed.VARIANTS, **how)


def bench_encodings(console: Console, **how: Any) -> bool:
    """Time every encoding against causal attention without positions."""
    console.print(
        "share of the speed of fused causal attention, forward and backward of one layer, eager, compiled,\n"
        "and of the route, the same kernel without positions; products: the ratio of the multiply-adds, of\n"
        "the compiled step or else of the eager one; target: of the compiled step"
    )
    return bench_cells(console, encoding_speed.EXPERIMENT, **how)


def bench_cells(
    console: Console,
    experiment: Experiment,
    *,
    profile: str,
    device: str,
    repeats: int | None = None,
    methods: Sequence[str] | None = None,
) -> bool:
    """Time the cells of an experiment, all or those of some methods, and print each as it ends: its ratios,
    in brackets their quartiles, and what was counted. Where no compiler is at hand, a cell is timed eager.
    Returns whether every cell could be timed as it is declared."""
    good = True
    for cell in experiment.grid(profile):
        if methods is not None and cell.method not in methods:
            continue
        cell = cell if repeats is None else replace(cell, repeats=repeats)
        with console.status(cell.label):
            try:
                metrics = timed.run(cell, device=device).metrics
            except CompilerMissing as missing:
                if good:
                    say(console, f"not compiled: {missing}")
                good, cell = False, replace(cell, compiler=None)
                metrics = timed.run(cell, device=device).metrics
        say(console, "  ".join([f"{cell.label:<54}", *_shown(metrics)]))
    return good


def _shown(metrics: Mapping[str, float | int]) -> list[str]:
    """Every ratio with its quartiles, and the other numbers but for whole ones, which are sizes."""
    shown = []
    for name, value in metrics.items():
        if f"{name}_lower" in metrics:
            shown.append(f"{name} {Ratio(value, metrics[f'{name}_lower'], metrics[f'{name}_upper'])}")
        elif isinstance(value, float) and not name.endswith(("_lower", "_upper")):
            shown.append(f"{name} {value:.3f}")
    return [text.replace("_", " ") for text in shown]
