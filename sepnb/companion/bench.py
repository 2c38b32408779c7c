"""The benchmark for a terminal: what this machine reaches now, beside what the multiply-adds allow."""

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console

from sepnb.experiments import speed


def bench(
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
        "in brackets the quartiles; then the exact limit of the multiply-adds, and the share of the"
    )
    console.print("time they promise to save that was saved")
    good = True
    for cell in cells:
        cell = cell if repeats is None else replace(cell, repeats=repeats)
        with console.status(cell.label):
            try:
                metrics = speed.run(cell, device=device).metrics
            except speed.CompilerMissing as missing:
                console.print(f"{cell.label}: not timed: {missing}", markup=False, soft_wrap=True)
                good = False
                continue
        quartiles = f"({metrics['ratio_lower']:.3f} to {metrics['ratio_upper']:.3f})"
        console.print(
            f"{cell.label:<54} {metrics['ratio']:.3f} {quartiles}  limit {metrics['limit']:.3f}  "
            f"{metrics['share_reached']:.0%}",
            markup=False,
            soft_wrap=True,
        )
    return good
