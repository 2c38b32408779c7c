"""Published records are checked, not only believed: their first numbers are computed again.

Each record stores a fingerprint, the untrained model's score and its first training losses. Replaying it
takes about a second and tells whether the code of today still begins the run that was published. A record
that no longer begins the same way is marked stale; one that does again loses the mark.

Two tolerances, both relative to the stored value. On the device of the record only the order of float32
sums may differ (thread count, processor). Between a GPU and a CPU, bfloat16 rounding differs as well; a CPU
replays the small fingerprint of a run of the gpu profile.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from typing import Any

from sepnb.companion.check import contradictions
from sepnb.companion.run import workers
from sepnb.companion.run.fingerprints import PREFIX, Fingerprint, of_small, part
from sepnb.companion.run.runs import absent_data
from sepnb.records.provenance import history
from sepnb.records.settings import other_settings
from sepnb.records.store import Record, Store

RTOL = {"same device": 1e-4, "other device": 2e-3}
PROFILES = ("laptop", "gpu")
STATUSES = ("equal", "stale", "orphaned", "not replayed")


@dataclass(frozen=True)
class Replay:
    """A record, its experiment and its run of the grid, and where it is replayed; once it was, one of
    `STATUSES` and why."""

    record: Record
    experiment: Any
    config: Any
    device: str
    status: str = ""
    detail: str = ""

    @property
    def key(self) -> str:
        return self.record.key

    @property
    def name(self) -> str:
        return f"{self.record.profile}/{self.record.experiment}/{self.key}"

    @property
    def same_device(self) -> bool:
        return str(self.record.provenance.get("device")).split(":")[0] == self.device.split(":")[0]

    @property
    def small(self) -> bool:
        """Whether the small fingerprint is replayed."""
        return not self.same_device and any(name.startswith(PREFIX) for name in self.record.fingerprint)


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
    """Replay the records of `experiments` (objects); with `mark`, mark stale ones in the store.

    `sample` is how many are replayed, always the same ones, by a hash of their keys. With `side_by_side` 1
    this process does the work. `on_end` is called as `(done, total)`. A record that cannot be read raises
    RecordError, unless the store collects such records and leaves them out.
    """
    store = Store() if store is None else store
    found: list[Replay] = []
    for profile in profiles:
        for experiment in experiments:
            records = store.load(profile, experiment.name)
            seeds = sorted({record.provenance["seed"] for record in records.values()})
            grid = [*experiment.grid(profile), *(experiment.grid(profile, seeds) if seeds else ())]
            configs = {config.key: config for config in grid}
            found += [Replay(one, experiment, configs.get(one.key), device) for one in records.values()]
    if sample is not None:
        found = sorted(found, key=lambda one: hashlib.sha256(one.key.encode()).hexdigest())[:sample]
    pairs = {(one.experiment, one.record.profile) for one in found}
    absent, registered, commits = absent_data(pairs), digests(pairs), history()

    replays, jobs = [], []
    for one in found:
        pair = one.experiment.name, one.record.profile
        if one.config is None:
            state = ("orphaned", "no grid has this run any more; delete its file")
        elif why := other_settings(one.record.config, one.config.resolved()):
            state = ("stale", why)
        elif why := contradictions.of(one.record, registered[pair], commits):
            state = ("stale", f"it contradicts itself: {why}")
        elif why := absent.get(pair):
            state = ("not replayed", why)
        else:
            jobs.append(one)
            continue
        replays.append(replace(one, status=state[0], detail=state[1]))
    ended = workers.run_jobs(_fingerprint, jobs, workers=side_by_side if side_by_side > 1 else 0)
    for done, (index, now, error) in enumerate(ended, 1):
        status, detail = _judged(jobs[index], now, error)
        replays.append(replace(jobs[index], status=status, detail=detail))
        if on_end:
            on_end(done, len(jobs))
    for one in replays if mark else ():
        reason = one.detail if one.status == "stale" else None
        if one.status in ("equal", "stale") and reason != one.record.stale:
            store.mark_stale(one.record.profile, one.record.experiment, one.key, reason)
    return sorted(replays, key=lambda one: (one.record.profile, one.record.experiment, one.key))


def exit_status(replays: Sequence[Replay]) -> int:
    """0: all that was replayed is equal; 1: something is stale; 2: something, or all, was not replayed."""
    statuses = {replay.status for replay in replays}
    return 1 if "stale" in statuses else 2 if "not replayed" in statuses or "equal" not in statuses else 0


def _judged(job: Replay, now: Fingerprint | None, error: BaseException | None) -> tuple[str, str]:
    if isinstance(error, (BrokenProcessPool, MemoryError, OSError)):
        return "not replayed", f"the machine failed, not the code: {type(error).__name__}: {error}"
    if error is not None or now is None:
        return "stale", f"its replay failed: {type(error).__name__}: {error}"
    why = differs(
        part(job.record.fingerprint, job.small),
        now,
        RTOL["same device" if job.same_device else "other device"],
    )
    return ("stale", why) if why else ("equal", "")


def _fingerprint(job: Replay, report: workers.Report) -> Fingerprint:
    if job.small:
        return of_small(job.experiment, job.config, job.device)
    if job.same_device:
        return job.experiment.fingerprint(job.config, device=job.device)
    import torch

    # What was compiled for a GPU costs a minute and a C++ compiler here, and differs by the order of sums.
    with torch.compiler.set_stance("force_eager"):
        return job.experiment.fingerprint(job.config, device=job.device)


def digests(wanted: set[tuple[Any, str]]) -> dict[tuple[str, str], dict[str, str]]:
    """The data sets of each (experiment, profile) pair, with their registered digests."""
    from sepnb.data import registry

    return {
        (one.name, profile): {name: registry.get(name).sha256 for name in one.data_sets(profile)}
        for one, profile in wanted
    }
