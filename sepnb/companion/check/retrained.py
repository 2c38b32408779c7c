"""A few published runs are trained again, from the first step to the last, and their numbers compared.

A fingerprint sees the first steps and a checksum finds accidents: neither finds a number that somebody wrote
into a record and signed again. Retraining does, for the records that a draw selects. Other draws select other
records, so that the draws of many weeks cover more than a single one could.

On the processor of the record, with its torch, a run on one thread is the same to the last bits: there all
metrics except times are compared. Elsewhere the order of sums differs, and training makes the difference
grow: there losses per byte are compared, which may differ by `ATOL`. A model may learn a task suddenly, at a
step that depends on rounding: tasks are trained again on their own processor only.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sepnb.companion.check.published import Replay
from sepnb.companion.run import workers
from sepnb.companion.run.runs import absent_data
from sepnb.records.provenance import processor_name
from sepnb.records.store import Record, Store

LOSS = "bits_per_byte"
ATOL = 0.03
"""Bits per byte. The verdicts ask for differences of this size in the mean of six seeds."""
SAME = 1e-3
"""On the processor of the record; runs of recall that were trained again differed by 1e-6."""
OF_TIME = ("_s", "_mb")
OF_TEXT = {"unigram_bits_per_byte", "bigram_bits_per_byte"}
"""What a text alone gives: records of `lr_screen` from before its runs left that out have it still."""
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
    """So many published runs that the text `draw` chooses, each with its run of the grid.

    Left out are stale and orphaned records, those of runs that took longer than `LONGEST` or on a GPU, and
    experiments whose data are not at hand, or which measure times: no two are alike.
    """
    store = Store() if store is None else store
    absent = absent_data({(experiment, profile) for experiment in experiments})
    found = []
    for experiment in experiments:
        here = (experiment.name, profile) not in absent
        records = store.load(profile, experiment.name) if here and not experiment.alone else {}
        for config in experiment.grid(profile) if records else ():
            record = records.get(config.key)
            if record and _comparable(record.held_to(config)):
                found.append(Replay(record, experiment, config, "cpu"))
    return sorted(found, key=lambda one: hashlib.sha256(f"{draw} {one.name}".encode()).digest())[:count]


def _comparable(record: Record) -> bool:
    facts = record.provenance
    short = facts["cpu_s"] <= LONGEST and facts.get("device", "cpu") == "cpu"
    return not record.stale and short and bool(compared(record, record.metrics))


def check(
    jobs: Sequence[Replay], *, side_by_side: int = 1, on_end: Callable[[Replay], None] = lambda one: None
) -> list[Replay]:
    """Train these runs and say of each whether its numbers are those of its record: "equal", or "stale" and
    why. Nothing is stored or marked."""
    judged = []
    ended = workers.run_jobs(_metrics, jobs, workers=side_by_side if side_by_side > 1 else 0)
    for index, now, error in ended:
        if now is None:
            why = f"{type(error).__name__}: {error}"
        else:
            record = jobs[index].record
            within = SAME if repeats(record) else ATOL
            why = differs(compared(record, record.metrics), compared(record, now), within)
        judged.append(replace(jobs[index], status="stale" if why else "equal", detail=why or ""))
        on_end(judged[-1])
    return judged


def repeats(record: Record) -> bool:
    """Whether a run gives the same bits here: on the record's own processor, with its torch."""
    import torch

    own = {"device_name": processor_name(), "torch": torch.__version__}
    return record.provenance | own == record.provenance


def compared(record: Record, metrics: Mapping[str, Any]) -> dict[str, float]:
    """Those of the metrics of a run that must be its record's, here."""
    if repeats(record):
        return {name: value for name, value in metrics.items() if not name.endswith(OF_TIME)}
    return {name: value for name, value in metrics.items() if name.endswith(LOSS)}


def differs(stored: Mapping[str, float], now: Mapping[str, float], within: float) -> str | None:
    """Which numbers are not `within` that of one another, in words; None where all are."""
    stored = {name: value for name, value in stored.items() if name in now or name not in OF_TEXT}
    if stored.keys() != now.keys():
        return f"the record holds {', '.join(sorted(stored))}, the run gives {', '.join(sorted(now))}"
    problems = [
        f"{name} is {value:.4f} in the record and {now[name]:.4f} here"
        for name, value in stored.items()
        if not abs(value - now[name]) <= within
    ]
    return f"{'; '.join(problems)} (allowed {within:g})" if problems else None


def _metrics(job: Replay, report: workers.Report) -> dict[str, float]:
    return dict(job.experiment.run(job.config, device=job.device, progress=report).metrics)
