"""Run the grids of experiments: record by record, side by side, resumable.

A worker writes its record the moment a run ends, so whatever interrupts the grid loses only the runs that
were under way; running the same command again does the rest.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sepnb import paths
from sepnb.companion import workers
from sepnb.records.store import Store


@dataclass(frozen=True)
class Run:
    """One run of the grid of an experiment (a picklable object), and the folder of its record."""

    experiment: Any
    config: Any
    device: str
    folder: Path


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


def plan(
    experiments: Sequence[Any],
    profile: str,
    *,
    seeds: Sequence[int] | None = None,
    methods: Sequence[str] | None = None,
    device: str = "cpu",
    store: Store | None = None,
    fresh: bool = False,
) -> tuple[list[Run], list[Tally]]:
    """The runs still to be done, in grid order, and per experiment how many these are and are already there.

    A stale record counts as not done. `fresh` does everything again. A record that the store refuses, where
    it collects them, is neither there nor to be done: somebody has to look at it first. With `methods` the
    others of a grid are left out; a name that no grid has is a ValueError.
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
        for config in experiment.grid(profile, seeds):
            if methods and config.method not in methods:
                continue
            if not fresh and store.path(profile, experiment.name, config.key) in (store.refused or ()):
                continue
            if config.key in have and have[config.key].held_to(config).stale is None:
                tally.skipped += 1
            else:
                tally.left += 1
                todo.append(Run(experiment, config, device, store.root))
        tallies.append(tally)
    return todo, tallies


def run(
    todo: Sequence[Run],
    tallies: Sequence[Tally],
    *,
    side_by_side: int = 1,
    threads: int = 1,
    on_progress: Callable[[int, int, int], None] | None = None,
    on_end: Callable[[int, str | None], None] | None = None,
) -> list[Tally]:
    """Do the runs that `plan` gave and count them in its tallies; a run that fails ends only itself.

    `on_progress` is called as `(index of the run, steps done, steps)`, `on_end` with the index and the error,
    None when it succeeded. KeyboardInterrupt while runs are under way stops them and passes through; what had
    ended is stored.
    """
    of = {tally.experiment: tally for tally in tallies}
    ended = workers.run_jobs(_run, todo, workers=side_by_side, threads=threads, on_progress=on_progress)
    for index, took, error in ended:
        one, why = todo[index], None
        tally = of[one.experiment.name]
        tally.left -= 1
        if error is None:
            tally.ran += 1
            tally.seconds += took
        else:
            why = f"{one.config.label} ({one.config.key}): {_in_words(error)}"
            tally.failed.append(why)
        if on_end:
            on_end(index, why)
    return list(tallies)


def _run(run: Run, report: workers.Report) -> float:
    began = time.monotonic()
    store = Store(run.folder)
    store.try_write(run.config.profile, run.experiment.name)  # a disk may fill up while a grid runs
    record = run.experiment.run(run.config, device=run.device, progress=report)
    if store.published and record.provenance.get("dirty") is not False:
        raise RuntimeError("the tree was changed while the grid ran; commit, then run again")
    store.write(record)
    return time.monotonic() - began


def _in_words(error: BaseException) -> str:
    from concurrent.futures.process import BrokenProcessPool

    if isinstance(error, BrokenProcessPool):
        return "its process was killed while no other ran (out of memory?); what else was left went on"
    return f"{type(error).__name__}: {error}"
