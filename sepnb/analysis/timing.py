"""Pieces of work timed against each other on a machine that others use too.

On shared cores a wall-clock ratio measures the neighbours. So work on a CPU is timed by the CPU time of this
process, on one thread; on a GPU by the time between two events on its stream. The pieces take turns within
each repeat, every other repeat in reversed order, so that a drift of the clock speed meets all of them.
"""

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..validation import whole

MIN_REPEATS = 9
WARMUP = 2
"""Calls of each step beforehand: they compile what the first call compiles."""

Step = Callable[[], object]


class Ratio(NamedTuple):
    """The median of paired ratios and their quartiles."""

    median: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{self.median:.3f} ({self.lower:.3f} to {self.upper:.3f})"


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on a single thread: the time of a process sums over its threads, waiting ones included."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def cpu_seconds(step: Step) -> float:
    """CPU time that this process spends in one call."""
    begun = time.process_time()
    step()
    return time.process_time() - begun


def cuda_seconds(step: Step) -> float:
    """Time on the GPU's stream from before the first kernel of one call to after its last; gaps in which the
    GPU waits for the host count, since they are what eager execution costs."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record()
    step()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1000  # in ms


def interleaved(
    steps: Mapping[str, Step],
    *,
    repeats: int,
    device: str = "cpu",
    on_repeat: Callable[[int], None] | None = None,
) -> dict[str, list[float]]:
    """Seconds of every step in every repeat; entries of the same place belong together.

    Args:
        steps: the pieces of work by name.
        repeats: at least `MIN_REPEATS`.
        device: "cpu" measures on one thread, "cuda" by events.
        on_repeat: called after each repeat with its number, counted from 0.

    Raises:
        ValueError: too few repeats; a step too short for the clock.
    """
    whole("repeats", repeats, MIN_REPEATS, needs=f"a median with quartiles takes at least {MIN_REPEATS}")
    seconds = cuda_seconds if torch.device(device).type == "cuda" else cpu_seconds
    times: dict[str, list[float]] = {name: [] for name in steps}
    with one_thread():
        for _ in range(WARMUP):
            for step in steps.values():
                step()
        collecting = gc.isenabled()
        gc.collect()
        gc.disable()
        try:
            for repeat in range(repeats):
                for name in steps if repeat % 2 == 0 else reversed(steps):
                    times[name].append(seconds(steps[name]))
                if on_repeat is not None:
                    on_repeat(repeat)
        finally:
            if collecting:
                gc.enable()
    for name, spent in times.items():
        if min(spent) <= 0:
            raise ValueError(f"{name!r} took no measurable time; give it more work")
    return times


def paired_ratio(baseline: Sequence[float], other: Sequence[float]) -> Ratio:
    """How many times as long `baseline` takes as `other`, repeat by repeat: above 1, `other` is faster.
    ValueError for lists of different lengths, or empty ones."""
    if len(baseline) != len(other) or not baseline:
        raise ValueError(f"{len(baseline)} times cannot be paired with {len(other)}; time them together")
    lower, median, upper = np.percentile(np.divide(baseline, other), [25, 50, 75])
    return Ratio(float(median), float(lower), float(upper))


def check_alike(one: Sequence[Tensor], other: Sequence[Tensor], within: float) -> None:
    """Raise RuntimeError if two steps, that give an output and then its gradients, compute different things.

    Args:
        within: how far two numbers may be apart, as a share of the largest number of their tensor in `other`.
    """
    if len(one) != len(other):
        raise RuntimeError(f"one step has {len(one) - 1} gradients, the other {len(other) - 1}; not timed")
    for number, (ours, theirs) in enumerate(zip(one, other, strict=True)):
        apart, largest = (ours - theirs).abs().max().item(), theirs.abs().max().item()
        if not apart <= within * largest:
            what = f"gradients {number}" if number else "outputs"
            raise RuntimeError(
                f"the {what} of two steps differ by {apart:.3g}, and their largest number is {largest:.3g}; "
                f"they compute different things and are not timed"
            )
