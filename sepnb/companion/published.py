"""Published records are checked, not only believed: their first numbers are computed again.

Each record stores a fingerprint, the untrained model's score and its first training losses. Replaying it
takes about a second and tells whether the code of today still begins the run that was published. A record
that no longer begins the same way is marked stale; one that does again loses the mark.

Two tolerances, both relative to the stored value. On the device of the record only the order of float32
sums may differ (thread count, processor). Between a GPU and a CPU, bfloat16 rounding differs as well.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

from sepnb.companion import workers
from sepnb.records.store import Record, Store, flattened

RTOL = {"same device": 1e-4, "other device": 2e-3}
PROFILES = ("laptop", "gpu")
STATUSES = ("equal", "stale", "orphaned", "not replayed")

Fingerprint = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Replay:
    """One record and what its replay said: `equal`, `stale`, `orphaned` or `not replayed`, and why."""

    profile: str
    experiment: str
    key: str
    status: str
    detail: str = ""


@dataclass(frozen=True)
class _Job:
    experiment: Any
    config: Any
    device: str
    eager: bool


def differs(stored: Fingerprint, now: Fingerprint, rtol: float) -> str | None:
    """Where two fingerprints part, in words; None when every number agrees within `rtol`."""
    if stored.keys() != now.keys():
        return f"the record holds {', '.join(sorted(stored))}, the code gives {', '.join(sorted(now))}"
    for name, values in stored.items():
        if len(values) != len(now[name]):
            return f"{name}: the record holds {len(values)} numbers, the code gives {len(now[name])}"
        for index, (old, new) in enumerate(zip(values, now[name], strict=True)):
            if not math.isclose(old, new, rel_tol=rtol, abs_tol=0.0):
                return f"{name}[{index}] was {old:.7g}, is {new:.7g} (tolerance {rtol:g} relative)"
    return None


def other_settings(stored: Mapping[str, Any], declared: Mapping[str, Any]) -> str | None:
    """Where the config of a record parts from that of the grid's run of its name, in words; None if nowhere.

    A fingerprint sees the first steps only: a record could name any number of steps.
    """
    told, own = flattened(dict(stored)), flattened(json.loads(json.dumps(declared)))
    parted = [name for name in {**told, **own} if told.get(name) != own.get(name)]
    if not parted:
        return None
    first, more = parted[0], f", and {len(parted) - 1} more" if parted[1:] else ""
    here, there = own.get(first), told.get(first)
    return f"its config is not that of the grid: {first} is {there!r} there and {here!r} here{more}"


def check(
    experiments: Sequence[Any],
    *,
    profiles: Sequence[str] = PROFILES,
    store: Store | None = None,
    sample: int | None = None,
    device: str = "cpu",
    side_by_side: int = 1,
    mark: bool = True,
    on_end: Callable[[int, int], None] | None = None,
) -> list[Replay]:
    """Replay the records of `experiments`, and mark in the store what is stale.

    Args:
        experiments: experiment objects.
        profiles: whose records.
        store: the published one by default.
        sample: replay only this many, chosen by a hash of their keys (the same ones each time).
        device: where to replay.
        side_by_side: worker processes; 1 computes in this one.
        mark: write staleness to the store; a test that must leave no trace says False.
        on_end: called as `(done, total)`.

    Raises:
        RecordError: a record that cannot be read.
    """
    store = Store() if store is None else store
    found: list[tuple[Any, Record, Any]] = []
    for profile in profiles:
        for experiment in experiments:
            records = store.load(profile, experiment.name)
            seeds = sorted({record.provenance["seed"] for record in records.values()})
            configs = {config.key: config for config in experiment.grid(profile)}
            configs |= {config.key: config for config in experiment.grid(profile, seeds)} if seeds else {}
            found += [(experiment, record, configs.get(record.key)) for record in records.values()]
    if sample is not None:
        found = sorted(found, key=lambda item: hashlib.sha256(item[1].key.encode()).hexdigest())[:sample]
    absent = absent_data({(experiment, record.profile) for experiment, record, _ in found})

    replays, jobs, subjects = [], [], []
    for experiment, record, config in found:
        where = (record.profile, experiment.name, record.key)
        if config is None:
            replays.append(Replay(*where, "orphaned", "no grid has this run any more; delete its file"))
        elif why := other_settings(record.config, config.resolved()):
            replays.append(Replay(*where, "stale", why))
        elif why := absent.get((experiment.name, record.profile)):
            replays.append(Replay(*where, "not replayed", why))
        else:
            jobs.append(_Job(experiment, config, device, eager=not _same_device(record, device)))
            subjects.append(record)
    ended = workers.run_jobs(_replay, jobs, workers=side_by_side) if side_by_side > 1 else _here(jobs)
    for done, (index, now, error) in enumerate(ended, 1):
        replays.append(_judge(subjects[index], now, error, device))
        if on_end:
            on_end(done, len(jobs))
    if mark:
        for replay in replays:
            if replay.status in ("equal", "stale"):
                _mark(store, replay)
    return sorted(replays, key=lambda replay: (replay.profile, replay.experiment, replay.key))


def _here(jobs: Sequence[_Job]) -> Iterator[tuple[int, Fingerprint | None, Exception | None]]:
    for index, job in enumerate(jobs):
        try:
            yield index, _replay(job, lambda done, total: None), None
        except Exception as error:
            yield index, None, error


def exit_status(replays: Sequence[Replay]) -> int:
    """0: all that was replayed is equal; 1: something is stale; 2: something could not be replayed."""
    statuses = {replay.status for replay in replays}
    return 1 if "stale" in statuses else 2 if "not replayed" in statuses else 0


def _judge(record: Record, now: Fingerprint | None, error: BaseException | None, device: str) -> Replay:
    where = (record.profile, record.experiment, record.key)
    if isinstance(error, (BrokenProcessPool, MemoryError, OSError)):
        return Replay(
            *where, "not replayed", f"the machine failed, not the code: {type(error).__name__}: {error}"
        )
    if error is not None:
        return Replay(*where, "stale", f"its replay failed: {type(error).__name__}: {error}")
    assert now is not None
    rtol = RTOL["same device" if _same_device(record, device) else "other device"]
    why = differs(record.fingerprint, now, rtol)
    return Replay(*where, "stale" if why else "equal", why or "")


def _same_device(record: Record, device: str) -> bool:
    return str(record.provenance["device"]).split(":")[0] == device.split(":")[0]


def _mark(store: Store, replay: Replay) -> None:
    known = store.load(replay.profile, replay.experiment)[replay.key].stale
    reason = replay.detail if replay.status == "stale" else None
    if reason != known:
        store.mark_stale(replay.profile, replay.experiment, replay.key, reason)


def _replay(job: _Job, report: workers.Report) -> dict[str, list[float]]:
    if not job.eager:
        return job.experiment.fingerprint(job.config, device=job.device)
    import torch

    # What was compiled for a GPU costs a minute and a C++ compiler here, and differs by the order of sums.
    with torch.compiler.set_stance("force_eager"):
        return job.experiment.fingerprint(job.config, device=job.device)


def absent_data(wanted: set[tuple[Any, str]]) -> dict[tuple[str, str], str]:
    """Of these (experiment, profile) pairs, those whose data are not at hand, and how to get them."""
    from sepnb.data import registry

    status: dict[str, str] = {}
    absent = {}
    for experiment, profile in wanted:
        for name in experiment.data_sets(profile):
            if name not in status:
                status[name] = registry.get(name).status()
            if status[name] != "at hand":
                why = f"data set {name} is {status[name]}: run `sepnb data {name}`, or set SEPNB_DATA"
                absent[experiment.name, profile] = why
    return absent
