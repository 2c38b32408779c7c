"""A few published runs are trained again, from the first step to the last, and their losses compared.

A fingerprint sees the first steps and a checksum finds accidents: neither finds a number that somebody wrote
into a record and signed again. This does, for the records that a draw names. Other draws name other records,
so that those of many weeks cover what no single one could.

On the processor of the record a run on one thread is the same to the last bit. Elsewhere the order of sums
differs, and training makes the difference grow: two losses per byte of one run may differ by `ATOL`.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sepnb.companion import workers
from sepnb.companion.published import Replay, absent_data
from sepnb.records.store import Record, Store

LOSS = "bits_per_byte"
ATOL = 0.03
"""Bits per byte. The verdicts ask for differences of this size in the mean of six seeds."""
LONGEST = 600
"""Seconds of CPU that a run may have taken to be trained again."""


def drawn(
    experiments: Sequence[Any],
    count: int,
    *,
    profile: str = "laptop",
    draw: str = "",
    store: Store | None = None,
) -> list[Replay]:
    """So many published runs of language models that the text `draw` chooses, each with its run of the grid.

    Left out are stale and orphaned records, those of runs that took longer than `LONGEST`, and experiments
    whose data are not at hand. Tasks are left out too: when a model learns one at once, it is a matter of
    rounding in which step.
    """
    store = Store() if store is None else store
    absent = absent_data({(experiment, profile) for experiment in experiments})
    found = []
    for experiment in experiments:
        here = (experiment.name, profile) not in absent
        records = store.load(profile, experiment.name) if here else {}
        for config in experiment.grid(profile) if records else ():
            record = records.get(config.key)
            if record and _comparable(record.held_to(config)):
                found.append(Replay(record, experiment, config, "cpu"))
    return sorted(found, key=lambda one: hashlib.sha256(f"{draw} {one.name}".encode()).digest())[:count]


def _comparable(record: Record) -> bool:
    return not record.stale and record.provenance["cpu_s"] <= LONGEST and bool(losses(record.metrics))


def check(
    jobs: Sequence[Replay], *, side_by_side: int = 1, on_end: Callable[[Replay], None] = lambda one: None
) -> list[Replay]:
    """Train these runs and say of each whether its losses are those of its record: "equal", or "stale" and
    why. Nothing is stored or marked."""
    judged = []
    ended = workers.run_jobs(_losses, jobs, workers=side_by_side if side_by_side > 1 else 0)
    for index, now, error in ended:
        if now is None:
            why = f"{type(error).__name__}: {error}"
        else:
            why = differs(losses(jobs[index].record.metrics), now)
        judged.append(replace(jobs[index], status="stale" if why else "equal", detail=why or ""))
        on_end(judged[-1])
    return judged


def losses(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The losses per byte among the metrics of a run, whatever they were measured on."""
    return {name: value for name, value in metrics.items() if name.endswith(LOSS)}


def differs(stored: Mapping[str, float], now: Mapping[str, float]) -> str | None:
    """Which losses are not within `ATOL` of one another, in words; None where all are."""
    if stored.keys() != now.keys():
        return f"the record holds {', '.join(sorted(stored))}, the run gives {', '.join(sorted(now))}"
    told = [
        f"{name} is {value:.4f} in the record and {now[name]:.4f} here"
        for name, value in stored.items()
        if not abs(value - now[name]) <= ATOL
    ]
    return f"{'; '.join(told)} (allowed {ATOL:g})" if told else None


def _losses(job: Replay, report: workers.Report) -> dict[str, float]:
    return losses(job.experiment.run(job.config, device=job.device, progress=report).metrics)
