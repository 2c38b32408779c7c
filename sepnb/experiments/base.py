"""What an experiment is: a declared grid of runs that answers one question, and a table that only loads.

A run is one function of one frozen config, so that it can be computed anywhere and in any order. Only
`sepnb run` calls it; chapters and claims read `table`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, runtime_checkable

import pandas as pd

from ..models import TransformerConfig
from ..records.provenance import Clock
from ..records.settings import plain
from ..records.store import Record, Store, digest
from ..training.config import TrainingConfig
from ..validation import one_of

PROFILES = ("smoke", "laptop", "gpu")

Progress = Callable[[int, int], None]
"""Called as `progress(done, total)` while a run computes."""


@runtime_checkable
class RunConfig(Protocol):
    """A frozen description of one run.

    Attributes:
        experiment, profile: who declares it.
        method, seed: its cell of the grid.
        label: what a table calls its row.
        key: the file name of its record: readable, and different for every different config.
    """

    experiment: str
    profile: str
    method: str
    seed: int
    label: str
    key: str

    def resolved(self) -> dict[str, Any]:
        """Every setting in plain JSON types."""


@dataclass(frozen=True)
class TrainedRun:
    """The config of a run that trains one model; a subclass adds what the model reads."""

    experiment: str
    profile: str
    method: str
    seed: int
    model: TransformerConfig
    training: TrainingConfig

    @property
    def tokens(self) -> int:
        """Of one input of the model in training."""
        return self.training.length

    @property
    def label(self) -> str:
        return f"{self.method.replace('/', ', ')}, learning rate {self.training.learning_rate:g}"

    @property
    def key(self) -> str:
        name = f"{self.method.replace('/', '-')}-lr{self.training.learning_rate:g}-seed{self.seed}"
        return f"{name}-{digest(self.resolved())[:8]}"

    def resolved(self) -> dict[str, Any]:
        return {field.name: plain(getattr(self, field.name)) for field in fields(self)}


def check_profile(profile: str) -> str:
    """The profile; ValueError if there is none of this name."""
    return one_of("profile", profile, PROFILES)


class Records(list[Record]):
    """Records in the `attrs` of a table. Pandas copies attrs deeply at every step; these are shared."""

    def __deepcopy__(self, memo: dict) -> "Records":
        return self


def recorded(
    config: RunConfig,
    clock: Clock,
    metrics: Mapping[str, float | int],
    rows: Sequence[Mapping[str, Any]],
    fingerprint: Mapping[str, Sequence[float]],
    *,
    data: Mapping[str, str] | None = None,
    bytes_seen: int = 0,
) -> Record:
    """The record of a run that began when the clock did, with the hashes of its data and the bytes that it
    read in training: none, where all inputs are drawn."""
    facts = clock.facts(seed=config.seed, data=data or {}, bytes_seen=bytes_seen)
    return Record.of(config, metrics=metrics, rows=rows, fingerprint=fingerprint, provenance=facts)


class Experiment(ABC):
    """A grid, a run function and a table. A subclass has its question as docstring, and sets the class
    attributes and the abstract methods."""

    name: ClassVar[str]
    title: ClassVar[str]
    order: ClassVar[int] = 0
    """Experiments run in this order: what chooses a setting comes before what uses it."""

    chooses: ClassVar[bool] = False
    """Whether its records choose settings of later experiments, which are planned once these are there."""
    alone: ClassVar[bool] = False
    """Whether its runs are timed, so that nothing else may compute on their GPU."""

    methods: ClassVar[Sequence[str]]
    """What is compared, in the order of tables."""
    smoke: ClassVar[Sequence[str]]
    """Of these, what the smoke profile runs, with the first seed."""
    seeds: ClassVar[tuple[int, ...]] = (1, 2, 3, 4, 5, 6)
    """Six, because fewer allow no verdict. Seed 0 chose the learning rates; what is published uses others."""
    shown: ClassVar[Sequence[str]] = ()
    """Methods that no claim compares: the first three seeds are enough to show them."""
    costs: ClassVar[Mapping[str, float]]
    """A rough time of one run by profile, in seconds on one core of a laptop. Of gpu, on one GPU, only where
    no `TransformerConfig` is trained: else `expected` computes it."""

    def cells(self, profile: str) -> Sequence[Any]:
        """What a profile crosses with the seeds: methods, unless a subclass says otherwise."""
        return self.smoke if profile == "smoke" else self.methods

    def seeds_of(self, profile: str, cell: Any) -> tuple[int, ...]:
        """The declared seeds of a cell."""
        if profile == "smoke":
            return self.seeds[:1]
        return self.seeds[:3] if cell in self.shown else self.seeds

    @abstractmethod
    def config(self, profile: str, cell: Any, seed: int) -> RunConfig:
        """The run of a cell and seed."""

    def grid(self, profile: str, seeds: Sequence[int] | None = None) -> list[RunConfig]:
        """The runs of a profile, seed by seed, with the declared seeds or every cell with these."""
        cells = self.cells(check_profile(profile))
        own = [set(self.seeds_of(profile, cell)) if seeds is None else set(seeds) for cell in cells]
        return [
            self.config(profile, cell, seed)
            for seed in (sorted(set().union(*own)) if seeds is None else seeds)
            for cell, declared in zip(cells, own, strict=True)
            if seed in declared
        ]

    def runs_here(self, profile: str) -> bool:
        """Whether the packages that a record of a profile needs beside the locked ones are installed."""
        return True

    def refuse(self, config: RunConfig) -> None:  # noqa: B027
        """A ValueError where a run has to wait, because the published records that choose its settings are
        not there; asked before it is computed, or submitted to be computed elsewhere."""

    @abstractmethod
    def run(self, config: RunConfig, *, device: str = "cpu", progress: Progress | None = None) -> Record:
        """Compute one run."""

    @abstractmethod
    def fingerprint(self, config: RunConfig, *, device: str = "cpu") -> dict[str, list[float]]:
        """The first numbers of the run, in about a second: what a published record is checked against."""

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
        rows, found = [], []
        for config in self.grid(profile):
            record = records.get(config.key)
            record = record and record.held_to(config)
            status = "not run" if record is None else "stale" if record.stale else "ok"
            row = {"method": config.method, "label": config.label, "seed": config.seed, "status": status}
            if record is not None:
                row |= record.metrics
                found.append(record)
            rows.append(row)
        table = pd.DataFrame(rows)
        table.attrs = {"profile": profile, "experiment": self.name, "records": Records(found)}
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
