"""The benchmarks for a terminal: what this machine reaches now, beside what the multiply-adds allow.

Nothing is stored. `profile` chooses the cells and `device` where they are timed; `repeats` are the timed
rounds of each, by default the profile's. All refuse too few of them with a ValueError.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rich.console import Console

from sepnb.analysis import extrapolator_cost
from sepnb.analysis.timing import Ratio
from sepnb.companion.run.screens import say
from sepnb.experiments import encoding_speed, peer, speed, timed
from sepnb.models.fast.kernels import CompilerMissing
from sepnb.validation import named

POSITIONS = {"smoke": 10**5, "laptop": extrapolator_cost.MILLION, "gpu": extrapolator_cost.MILLION}
WIDTHS = {"smoke": (32,), "laptop": (32, 64), "gpu": (32, 64)}
"""How many positions are extrapolated, and to how many columns."""


def bench_models(
    console: Console, *, profile: str, device: str, variants: Sequence[str] = (), repeats: int | None = None
) -> bool:
    """Time separated and strict models, some of `speed.VARIANTS` (none means all), and print each cell as it
    ends; returns whether every cell could be timed.

    Raises:
        ValueError: an unknown variant.
    """
    for variant in variants:
        named("variant", variant, dict.fromkeys(speed.VARIANTS))
    console.print(
        "times faster than the dense model of the same width, forward and backward of the blocks;\n"
        "in brackets the quartiles; then the exact limit of the multiply-adds, the limit at the rate of\n"
        "attention on this machine, and the share of the time that the exact limit would save\n"
        "that was saved; on a CPU, the floor and the aim where they were set"
    )
    good = True
    for cell in speed.EXPERIMENT.grid(profile):
        if variants and cell.variant not in variants:
            continue
        try:
            metrics = _timed(console, cell, device, repeats)
        except CompilerMissing as missing:
            say(console, f"{cell.label}: not timed: {missing}")
            good = False
            continue
        line = (
            f"{cell.label:<54} {_ratio('ratio', metrics)}  limit {metrics['limit']:.3f}  "
            f"at rates {metrics['limit_at_rates']:.3f}  {metrics['share_reached']:.0%}"
        )
        for name, told in (cell.standing(metrics["ratio"]) if device == "cpu" else {}).items():
            line += f"  {name} {cell.bounds[name]:.2f} {told}"
        say(console, line)
    return good


def bench_encodings(console: Console, *, profile: str, device: str, repeats: int | None = None) -> bool:
    """Time every encoding against causal attention without positions, and print each cell as it ends. Where
    no compiler is at hand, the compiled column is left out. Returns whether every column could be timed."""
    console.print(
        "share of the speed of fused causal attention, forward and backward of one layer; in brackets\n"
        "the quartiles; the route is the same kernel without positions; then the ratio of the\n"
        "multiply-adds, of the compiled step or else of the eager one, and the target of the\n"
        "compiled step"
    )
    good = True
    for cell in encoding_speed.EXPERIMENT.grid(profile):
        try:
            metrics = _timed(console, cell, device, repeats)
        except CompilerMissing as missing:
            if good:
                say(console, f"not compiled: {missing}")
            good = False
            metrics = _timed(console, replace(cell, compiler=None), device, repeats)
        shown = ("eager", "compiled", peer.NAME, *(["route"] if "route" in metrics else []))
        columns = [f"{name} {_ratio(name.replace('-', '_'), metrics)}" for name in shown]
        aim = f"target {metrics['target']:.2f}" if "target" in metrics else "no target"
        say(console, "  ".join([f"{cell.label:<40}", *columns, f"products {metrics['products']:.3f}", aim]))
    return good


def bench_extrapolators(console: Console, *, profile: str, device: str, repeats: int | None = None) -> bool:
    """Time every form of every extrapolator but `learned` against the writing of the rows that it makes;
    returns whether every time is within `extrapolator_cost.AIM`."""
    n_positions, good = POSITIONS[profile], True
    console.print(
        f"times as long as the writing of the rows of {n_positions:,} positions, in brackets the\n"
        f"quartiles; the aim is at most {extrapolator_cost.AIM:.1f}"
    )
    how = {"n_positions": n_positions, "device": device}
    how |= {} if repeats is None else {"repeats": repeats}
    for width in WIDTHS[profile]:
        with console.status(f"d_pos={width}"):
            found = extrapolator_cost.times_of_writing(width, **how)
        for one in found:
            good = good and one.reached
            label = f"{one.method}, {one.form}, d_pos={one.width}"
            say(console, f"{label:<36} {one.ratio}  {'reached' if one.reached else 'missed'}")
    return good


def _timed(
    console: Console, cell: timed.TimedRun, device: str, repeats: int | None
) -> dict[str, float | int]:
    with console.status(cell.label):
        cell = cell if repeats is None else replace(cell, repeats=repeats)
        return timed.run(cell, device=device).metrics


def _ratio(name: str, metrics: Mapping[str, float | int]) -> str:
    """A ratio and its quartiles."""
    if name not in metrics:
        return "not timed"
    return str(Ratio(metrics[name], metrics[f"{name}_lower"], metrics[f"{name}_upper"]))
