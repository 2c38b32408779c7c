"""The benchmarks for a terminal: what this machine reaches now, beside what the multiply-adds allow."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rich.console import Console

from sepnb.analysis import extrapolator_cost
from sepnb.experiments import encoding_speed, peer, speed, timed
from sepnb.models.kernels import CompilerMissing

POSITIONS = {"smoke": 10**5, "laptop": extrapolator_cost.MILLION, "gpu": extrapolator_cost.MILLION}
WIDTHS = {"smoke": (32,), "laptop": (32, 64), "gpu": (32, 64)}
"""How many positions are extrapolated, and to how many columns."""


def bench_models(
    console: Console,
    *,
    profile: str,
    device: str,
    variants: Sequence[str] = (),
    repeats: int | None = None,
) -> bool:
    """Time the cells of a profile one after the other and print each as it ends; nothing is stored.

    Args:
        console: where to print.
        profile, device: which grid, and where to time it.
        variants: some of `speed.VARIANTS`; none means all.
        repeats: timed pairs of each cell; None takes the profile's.

    Returns:
        Whether every cell could be timed.

    Raises:
        ValueError: an unknown variant, or too few repeats.
    """
    for variant in variants:
        if variant not in speed.VARIANTS:
            raise ValueError(f"unknown variant {variant!r}; use one of {', '.join(speed.VARIANTS)}")
    cells = [one for one in speed.Speed().grid(profile) if not variants or one.variant in variants]
    console.print("times faster than the dense model of the same width, forward and backward of the blocks;")
    console.print(
        "in brackets the quartiles; then the exact limit of the multiply-adds, the limit at the rate of"
    )
    console.print("attention on this machine, and the share of the time that the exact limit would save")
    console.print("that was saved; on a CPU, the floor and the aim where they were set")
    good = True
    for cell in cells:
        cell = cell if repeats is None else replace(cell, repeats=repeats)
        with console.status(cell.label):
            try:
                metrics = timed.run(cell, device=device).metrics
            except CompilerMissing as missing:
                console.print(f"{cell.label}: not timed: {missing}", markup=False, soft_wrap=True)
                good = False
                continue
        quartiles = f"({metrics['ratio_lower']:.3f} to {metrics['ratio_upper']:.3f})"
        line = (
            f"{cell.label:<54} {metrics['ratio']:.3f} {quartiles}  limit {metrics['limit']:.3f}  "
            f"at rates {metrics['limit_at_rates']:.3f}  {metrics['share_reached']:.0%}"
        )
        bounds = cell.bounds if device == "cpu" else None
        for name, told in ({} if bounds is None else bounds.standing(metrics["ratio"])).items():
            line += f"  {name} {getattr(bounds, name):.2f} {told}"
        console.print(line, markup=False, soft_wrap=True)
    return good


def bench_encodings(console: Console, *, profile: str, device: str, repeats: int | None = None) -> bool:
    """Time every encoding against causal attention without positions, and print each cell as it ends; nothing
    is stored. Where no compiler is at hand, the compiled column is left out.

    Args:
        console, profile, device, repeats: as in `bench_models`.

    Returns:
        Whether every column could be timed.

    Raises:
        ValueError: too few repeats.
    """
    console.print(
        "share of the speed of fused causal attention, forward and backward of one layer; in brackets"
    )
    console.print("the quartiles; the route is the same kernel without positions; then the ratio of the")
    console.print("multiply-adds, of the compiled step or else of the eager one, and the target of the")
    console.print("compiled step")
    good = True
    for cell in encoding_speed.EncodingSpeed().grid(profile):
        cell = cell if repeats is None else replace(cell, repeats=repeats)
        with console.status(cell.label):
            try:
                metrics = timed.run(cell, device=device).metrics
            except CompilerMissing as missing:
                if good:
                    console.print(f"not compiled: {missing}", markup=False, soft_wrap=True)
                good = False
                metrics = timed.run(replace(cell, compiler=None), device=device).metrics
        shown = ("eager", "compiled", peer.NAME, *(["route"] if "route" in metrics else []))
        columns = [_column(name, metrics) for name in shown]
        aim = f"target {metrics['target']:.2f}" if "target" in metrics else "no target"
        line = "  ".join([f"{cell.label:<40}", *columns, f"products {metrics['products']:.3f}", aim])
        console.print(line, markup=False, soft_wrap=True)
    return good


def bench_extrapolators(console: Console, *, profile: str, device: str, repeats: int | None = None) -> bool:
    """Time every form of every extrapolator but `learned` against the writing of the rows that it makes;
    nothing is stored.

    Args:
        console, profile, device, repeats: as in `bench_models`; the profile chooses positions and widths.

    Returns:
        Whether every time is within `cost.AIM`.

    Raises:
        ValueError: too few repeats.
    """
    n_positions, good = POSITIONS[profile], True
    console.print(f"times as long as the writing of the rows of {n_positions:,} positions, in brackets the")
    console.print(f"quartiles; the aim is at most {extrapolator_cost.AIM:.1f}")
    for width in WIDTHS[profile]:
        with console.status(f"d_pos={width}"):
            found = extrapolator_cost.times_of_writing(
                width,
                n_positions=n_positions,
                repeats=extrapolator_cost.REPEATS if repeats is None else repeats,
                device=device,
            )
        for one in found:
            good = good and one.reached
            told = "reached" if one.reached else "missed"
            label = f"{one.method}, {one.form}, d_pos={one.width}"
            console.print(f"{label:<36} {one.ratio}  {told}", markup=False, soft_wrap=True)
    return good


def _column(name: str, metrics: Mapping[str, float | int]) -> str:
    key = name.replace("-", "_")
    if key not in metrics:
        return f"{name} not timed"
    return f"{name} {metrics[key]:.3f} ({metrics[f'{key}_lower']:.3f} to {metrics[f'{key}_upper']:.3f})"
