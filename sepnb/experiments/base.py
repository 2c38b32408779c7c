"""What an experiment is: a declared grid of runs that answers one question, and a table that only loads.

Only `sepnb run` computes a run; chapters and claims read `table`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from ..records.store import Record, Store
from ..validation import one_of
from . import run as runs
from .run import Fingerprint, Progress

PROFILES = ("smoke", "laptop", "gpu")
SHOWN = (1, 2, 3)
"""Seeds of methods that no claim compares: enough to show them."""


def check_profile(profile: str) -> str:
    """The profile; ValueError if there is none of this name."""
    return one_of("profile", profile, PROFILES)


class Records(list[Record]):
    """Records in the `attrs` of a table. Pandas copies attrs deeply at every step; these are shared."""

    def __deepcopy__(self, memo: dict) -> "Records":
        return self


@dataclass(frozen=True, eq=False, kw_only=True)
class Experiment:
    """A grid, what computes a run of it, and a table.

    Args:
        name, title: what commands and tables call it.
        question: what it asks.
        methods: what is compared, in the order of tables.
        smoke: of these, what the smoke profile runs, with the first seed.
        costs: rough seconds of one run by profile, on one core of a laptop. That of gpu, on one GPU, is given
            only if no `TransformerConfig` is trained: else `expected` computes it.
        plan: the run of a cell, called as `(experiment, profile, cell, seed)` with the experiment's name. A
            run is frozen and has `experiment`, `profile`, `method`, `seed`, its `label` in tables, its `key`
            (the file name of its record, different for every different run) and `resolved()`, every setting
            in plain JSON types.
        order: experiments run in this order: what chooses a setting comes before what uses it.
        chooses: whether its records choose settings of later experiments, which are planned once these are
            there.
        alone: whether its runs are timed, so that nothing else may compute on their GPU.
        seeds: six, because fewer allow no verdict. Seed 0 chose the learning rates; what is published uses
            others.
        other_seeds: the seeds of single cells, except at smoke.
        crossed: the cells that a profile crosses with the seeds, by default its methods; called with the
            profile and its methods.
        columns: further columns of its table, each computed from a run, also from missing ones.
        cells_first: the seeds of a cell follow each other, so that runs that start together differ in seed.
        waits: called with a run before it is computed or submitted; ValueError if the published records that
            choose its settings are missing.
        computes, begins: return the record and the fingerprint of a run; called with it and `device`, and
            `begins` with the `steps` of a training too.
        installed: whether the further packages that its records need are installed.
    """

    name: str
    title: str
    question: str
    methods: Sequence[str] = ()
    smoke: Sequence[str] = ()
    costs: Mapping[str, float]
    plan: Callable[..., Any] | None = None
    order: int = 0
    chooses: bool = False
    alone: bool = False
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    other_seeds: Mapping[Any, tuple[int, ...]] = field(default_factory=dict)
    crossed: Callable[[str, Sequence[str]], Sequence[Any]] | None = None
    columns: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    cells_first: bool = False
    waits: Callable[[Any], None] | None = None
    computes: Callable[..., Record] = runs.record_of
    begins: Callable[..., Fingerprint] = runs.fingerprint
    installed: Callable[[], bool] | None = None

    def cells(self, profile: str) -> Sequence[Any]:
        """What a profile crosses with the seeds: methods, unless it is declared otherwise."""
        methods = self.smoke if profile == "smoke" else self.methods
        return methods if self.crossed is None else self.crossed(profile, methods)

    def seeds_of(self, profile: str, cell: Any) -> tuple[int, ...]:
        """The declared seeds of a cell."""
        if profile == "smoke":
            return self.seeds[:1]
        return self.other_seeds.get(cell, self.seeds) if self.other_seeds else self.seeds

    def config(self, profile: str, cell: Any, seed: int) -> Any:
        """The run of a cell and seed."""
        return self.plan(self.name, profile, cell, seed)

    def grid(self, profile: str, seeds: Sequence[int] | None = None) -> list[Any]:
        """The runs of a profile, seed by seed, with the declared seeds or every cell with these."""
        cells = self.cells(check_profile(profile))
        own = [set(self.seeds_of(profile, cell)) if seeds is None else set(seeds) for cell in cells]
        order = [
            (seed, at)
            for seed in (sorted(set().union(*own)) if seeds is None else seeds)
            for at, declared in enumerate(own)
            if seed in declared
        ]
        if self.cells_first:
            order.sort(key=lambda place: place[1])
        return [self.config(profile, cells[at], seed) for seed, at in order]

    def runs_here(self, profile: str) -> bool:
        """Whether the packages that a record of a profile needs beside the locked ones are installed."""
        return profile == "smoke" or self.installed is None or self.installed()

    def refuse(self, config: Any) -> None:
        """A ValueError where a run has to wait, see `waits`."""
        if self.waits is not None:
            self.waits(config)

    def run(self, config: Any, *, device: str = "cpu", progress: Progress | None = None) -> Record:
        """Compute one run."""
        self.refuse(config)
        return self.computes(config, device=device, progress=progress)

    def fingerprint(
        self, config: Any, *, device: str = "cpu", steps: int = runs.FINGERPRINT_STEPS
    ) -> Fingerprint:
        """The first numbers of the run, those of so many steps of a training, in about a second: what a
        published record is checked against."""
        return self.begins(config, device=device, steps=steps)

    def seconds(self, profile: str) -> float:
        """The rough time of one run where it is declared, see `costs`."""
        return self.costs[check_profile(profile)]

    def data_sets(self, profile: str) -> tuple[str, ...]:
        """The data sets that a run needs at hand: those that its config names."""
        return tuple(getattr(self.grid(profile)[0], "data_sets", ()))

    def table(self, profile: str, store: Store | None = None) -> pd.DataFrame:
        """One row per run of the grid: method, label, seed, status ("ok", "not run", "stale"), metrics.

        A record whose config is not that of its run of the grid is stale.

        It only loads; what is missing says so. `attrs["records"]` holds the records, in the order of the
        rows that have one, and `attrs["profile"]` the profile.
        """
        records = (store or Store()).load(check_profile(profile), self.name)
        rows, present, grid = [], [], self.grid(profile)
        for config in grid:
            record = records.get(config.key)
            record = record and record.held_to(config)
            status = "not run" if record is None else "stale" if record.stale else "ok"
            row = {"method": config.method, "label": config.label, "seed": config.seed, "status": status}
            if record is not None:
                row |= record.metrics
                present.append(record)
            rows.append(row)
        table = pd.DataFrame(rows)
        for name, value_of in self.columns.items():
            table[name] = [value_of(config) for config in grid]
        table.attrs = {"profile": profile, "experiment": self.name, "records": Records(present)}
        return table

    def rows(self, profile: str, kind: str, store: Store | None = None) -> pd.DataFrame:
        """The tidy rows of one kind of every run of the grid that has a record, with its method and seed."""
        records = (store or Store()).load(check_profile(profile), self.name)
        tidy = [
            {"method": config.method, "label": config.label, "seed": config.seed, **row}
            for config in self.grid(profile)
            if config.key in records
            for row in records[config.key].rows
            if row.get("kind") == kind
        ]
        return pd.DataFrame(tidy)
