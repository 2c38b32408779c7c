"""Run the grids of experiments: record by record, side by side, resumable.

A worker writes its record the moment a run ends, so whatever interrupts the grid loses only the runs that
were under way; running the same command again does the rest. Whoever computes a run claims its record first,
so that two commands on one store share a grid.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from sepnb import paths
from sepnb.companion.run import workers
from sepnb.companion.run.fingerprints import of_small
from sepnb.records.store import Store

Ended = Iterator[tuple[int, Any, BaseException | None]]
"""The index of a run, what `compute` returned, and the error, None where there was none."""
ELSEWHERE = "another process computes it now; the same command, later, finds it"


class TaskError(RuntimeError):
    """A run that failed in another process; its message is shown as it is."""


@dataclass(frozen=True)
class GridRun:
    """One run of the grid of an experiment (a picklable object), the folder of its record, and `written`, the
    time in nanoseconds of the record that existed at planning; None without one."""

    experiment: Any
    config: Any
    device: str
    folder: Path
    written: int | None = None

    @property
    def path(self) -> Path:
        """Where its record is written."""
        return Store(self.folder).path(self.config.profile, self.experiment.name, self.config.key)


@dataclass
class Tally:
    """How the grid of one experiment fares: counts of runs, and one line per failed run."""

    experiment: str
    skipped: int = 0
    ran: int = 0
    failed: list[str] = field(default_factory=list)
    left: int = 0
    seconds: float = 0.0

    @property
    def complete(self) -> bool:
        return not self.failed and not self.left


def store_for(profile: str) -> Store:
    """Where runs of `profile` go: those of smoke to the build folder, others to the published store."""
    return Store(paths.build() / "smoke" / "results") if profile == "smoke" else Store()


def check_clean(store: Store) -> None:
    """ValueError where the published store would get records of a tree with changes, or of no checkout."""
    if not store.published:
        return
    from sepnb.records.provenance import git_state

    commit, dirty = git_state()
    if commit is None:
        raise ValueError("this is no git checkout, so its records could not be published; give --store DIR")
    if dirty:
        raise ValueError(
            "the tree has uncommitted changes (see `git status`), so its records could not be published; "
            "commit the code first, or give --store DIR to write records that stay private"
        )


def absent_data(wanted: set[tuple[Any, str]]) -> dict[tuple[str, str], str]:
    """The (experiment, profile) pairs whose data are not at hand, and how to get them."""
    from sepnb.data import registry

    needed = {(one.name, profile): one.data_sets(profile) for one, profile in wanted}
    status = {name: registry.get(name).status() for name in {n for names in needed.values() for n in names}}
    return {
        pair: f"data set {name} is {status[name]}: run `sepnb data {name}`, or set SEPNB_DATA"
        for pair, names in needed.items()
        for name in names
        if status[name] != "at hand"
    }


def plan(
    experiments: Sequence[Any],
    profile: str,
    *,
    seeds: Sequence[int] | None = None,
    methods: Sequence[str] | None = None,
    device: str = "cpu",
    store: Store | None = None,
    fresh: bool = False,
    shard: tuple[int, int] = (1, 1),
) -> tuple[list[GridRun], list[Tally]]:
    """The runs still to be done, in grid order, and per experiment how many these are and are already there.

    A stale record counts as not done. `fresh` does everything again. A record that the store refuses, where
    it collects them, is neither there nor to be done: somebody has to look at it first. With `methods` the
    others of a grid are left out; a name that no grid has is a ValueError. Of a `shard` (i, n) only every
    n-th run of each grid is planned, from the i-th on.
    """
    store = store_for(profile) if store is None else store
    if methods:
        from sepnb.validation import named  # torch is imported where there is something to check

        known = {config.method: None for one in experiments for config in one.grid(profile, seeds)}
        for name in methods:
            named("method", name, known)
    todo, tallies = [], []
    for experiment in experiments:
        have = {} if fresh else store.load(profile, experiment.name)
        tally = Tally(experiment.name)
        first, step = shard
        for config in experiment.grid(profile, seeds)[first - 1 :: step]:
            if methods and config.method not in methods:
                continue
            if not fresh and store.path(profile, experiment.name, config.key) in (store.refused or ()):
                continue
            if config.key in have and have[config.key].held_to(config).stale is None:
                tally.skipped += 1
            else:
                tally.left += 1
                path = store.path(profile, experiment.name, config.key).absolute()
                todo.append(GridRun(experiment, config, device, store.root.absolute(), written(path)))
        tallies.append(tally)
    return todo, tallies


def shard_of(text: str | None) -> tuple[int, int]:
    """`"2/3"` as (2, 3); None is the whole, (1, 1)."""
    part, _, parts = (text or "1/1").partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise ValueError(f"--shard {text!r}: give i/n, such as 1/3, 2/3 and 3/3 on three machines")
    return int(part), int(parts)


def phases(experiments: Sequence[Any], profile: str) -> list[list[Any]]:
    """Groups of experiments that can be planned together: chosen settings come after the records that choose
    them, timed experiments last.

    At smoke nothing is chosen, and all that is not timed is one group.
    """
    found: list[list[Any]] = []
    for one in sorted(experiments, key=lambda one: (one.alone, one.order)):
        last = found[-1][-1] if found else None
        if last is None or last.alone != one.alone or (last.chooses and profile != "smoke"):
            found.append([])
        found[-1].append(one)
    return found


def expected_seconds(todo: Sequence[GridRun], side_by_side: int, gpus: int = 0) -> float:
    """Expected seconds for these runs, `side_by_side` at a time on each GPU; on GPUs from their operations,
    at a share of the peak that is measured now."""
    from sepnb.companion.run.gpus import peak
    from sepnb.experiments import expected

    speed = peak() if gpus else expected.PEAK
    each = [expected.of_run(one.experiment, one.config, speed) for one in todo]
    return expected.together(each, side_by_side, max(1, gpus))


def run(
    todo: Sequence[GridRun],
    tallies: Sequence[Tally],
    *,
    side_by_side: int = 1,
    threads: int = 1,
    gpus: Sequence[str] = (),
    on_progress: Callable[[int, int, int], None] | None = None,
    on_end: Callable[[int, str | None], None] | None = None,
    through: Callable[[Sequence[GridRun]], Ended] | None = None,
) -> list[Tally]:
    """Do the runs that `plan` gave and count them in its tallies; a run that fails ends only itself.

    Runs whose settings depend on missing records are refused before any other starts. A run that another
    process computed counts as done if its record exists when all have ended.

    `on_progress` is called as `(index of the run, steps done, steps)`, `on_end` with the index and the error,
    None when it succeeded. KeyboardInterrupt stops the runs under way and passes through; finished runs are
    stored. `side_by_side` is the number of processes, on each GPU if `gpus` are given; `through` does the
    runs somewhere else.
    """
    of = {tally.experiment: tally for tally in tallies}
    refused = dict(_refused(todo))
    ready = [index for index in range(len(todo)) if index not in refused]
    options = {"workers": side_by_side, "threads": threads, "gpus": gpus}
    if on_progress:
        options["on_progress"] = lambda index, *steps: on_progress(ready[index], *steps)
    jobs, ended, elsewhere = [todo[index] for index in ready], iter(()), []
    if jobs:
        ended = through(jobs) if through else workers.run_jobs(compute, jobs, **options)
    endings = ((ready[index], took, error) for index, took, error in ended)
    for index, took, error in chain(((index, None, error) for index, error in refused.items()), endings):
        one, why = todo[index], None
        tally = of[one.experiment.name]
        tally.left -= 1
        if error is None and took is None:
            tally.left += 1
            elsewhere.append(one)
            why = ELSEWHERE
        elif error is None and took == 0:
            tally.skipped += 1
        elif error is None:
            tally.ran += 1
            tally.seconds += took
        else:
            message = str(error) if index in refused else _in_words(error)
            why = f"{one.config.label} ({one.config.key}): {message}"
            tally.failed.append(why)
        if on_end:
            on_end(index, why)
    for one in elsewhere:
        if written(one.path) not in (None, one.written):
            of[one.experiment.name].left -= 1
            of[one.experiment.name].skipped += 1
    return list(tallies)


def _refused(todo: Sequence[GridRun]) -> Iterator[tuple[int, ValueError]]:
    """The runs that have to wait, by index, and what for."""
    for index, one in enumerate(todo):
        try:
            one.experiment.refuse(one.config)
        except ValueError as error:
            yield index, error


def compute(run: GridRun, report: workers.Report) -> float | None:
    """Compute a run, store its record and return the seconds that it took. Nothing is done, and the answer
    is 0, if another process has stored the record since the grid was planned; None if one computes it now."""
    began = time.monotonic()
    store, config = Store(run.folder), run.config
    with store.claim(config.profile, run.experiment.name, config.key) as mine:
        if not mine:
            return None
        if written(run.path) not in (None, run.written):
            return 0.0
        store.try_write(config.profile, run.experiment.name)  # a disk may fill up while a grid runs
        small = of_small(run.experiment, config, run.device)
        record = run.experiment.run(config, device=run.device, progress=report)
        if store.published and record.provenance.get("dirty") is not False:
            raise RuntimeError("the tree was changed while the grid ran; commit, then run again")
        store.write(replace(record, fingerprint={**record.fingerprint, **small}))
    return time.monotonic() - began


def written(path: Path) -> int | None:
    """When a file was written, in nanoseconds; None where there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def _in_words(error: BaseException) -> str:
    from concurrent.futures.process import BrokenProcessPool

    if isinstance(error, BrokenProcessPool):
        return "its process was killed while no other ran (out of memory?); what else was left went on"
    if isinstance(error, TaskError):
        return str(error)
    return f"{type(error).__name__}: {error}"
