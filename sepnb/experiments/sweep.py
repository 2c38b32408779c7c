"""Learning-rate sweeps: the rate of every method is the best of the same few, by the records of its sweep.

A sweep trains every method at a few rates with a seed that no published run has, and reads the validation
data only. Where the best of these stands at an end, one more beyond it is tried for that method, until it
does not: so all are compared at a rate with a worse one on either side.

Where a grid takes its rates from is one plain rule: from the records *published with the code*, `results/` of
the checkout, whatever store a command reads and writes. A profile whose sweep has not tried a method at every
rate takes the laptop's, as smoke always does; without those either (a package without its records) the rate
is the declared `default`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .. import paths
from ..records.store import Record, Store
from . import language_modelling as lm
from .base import Experiment, Progress, RunConfig, check_profile

RATES = (2e-3, 4e-3, 8e-3)
"""Of the models of texts."""

STEPS = {"smoke": 60, "laptop": 500, "gpu": 1000}
"""Less than half of the published schedule: enough to rank three rates that are a factor of two apart."""


@dataclass(eq=False, kw_only=True)
class Sweep(Experiment):
    """Which learning rate suits each method? The test data are not read.

    Args:
        name, title, order, methods, smoke, costs: as of every experiment.
        config_of: the config of a run, called as `(sweep, profile, method, seed, rate, steps)`; steps None is
            the whole schedule.
        rates: at which every method is tried.
        beyond: for some methods further ones, past an end at which their best stood.
        steps: by profile; None tries all over the whole schedule.
        whole: methods that are tried over the whole schedule, because the short one leaves them where they
            know next to nothing of the order of the bytes, at every rate alike, and would rank nothing.
        score: the metric that chooses, the least of it.
        default: the rate where no record is published.
        part: of the config of a run, what has the rate that is tried.
        computes, begins: the run and the fingerprint of a config.
    """

    name: str = field(kw_only=False)
    title: str
    order: int
    methods: tuple[str, ...]
    smoke: tuple[str, ...]
    config_of: Callable[..., RunConfig]
    costs: Mapping[str, float]
    rates: tuple[float, ...] = RATES
    beyond: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    steps: Mapping[str, int] | None = None
    whole: tuple[str, ...] = ()
    score: str = "val_bits_per_byte"
    default: float = 4e-3
    part: str = "training"
    computes: Callable[..., Record] = lm.run
    begins: Callable[..., dict[str, list[float]]] = lm.fingerprint

    seeds = (0,)

    def tried(self, profile: str, method: str) -> list[float]:
        """The rates at which a profile tries a method."""
        beyond = () if profile == "smoke" else self.beyond.get(method, ())
        return sorted({*self.rates, *beyond})

    def cells(self, profile: str) -> list[tuple[str, float]]:
        return [(name, rate) for name in super().cells(profile) for rate in self.tried(profile, name)]

    def config(self, profile: str, cell: tuple[str, float], seed: int) -> RunConfig:
        method, rate = cell
        short = None if self.steps is None or method in self.whole else self.steps[profile]
        return self.config_of(self.name, profile, method, seed, rate, short)

    def run(self, config: Any, *, device: str = "cpu", progress: Progress | None = None) -> Record:
        return self.computes(config, device=device, progress=progress, test=False)

    def fingerprint(self, config: Any, *, device: str = "cpu") -> dict[str, list[float]]:
        return self.begins(config, device=device)

    def best(self, profile: str) -> Mapping[str, float]:
        """The rate with the least validation loss of every method that the published records of a profile
        have at every rate. A run that diverged has no loss; a method that diverged at every rate has none.
        """
        folder = paths.root() / "results" / profile / self.name
        tried = tuple((method, tuple(self.tried(profile, method))) for method in self.methods)
        stamp = folder.stat().st_mtime_ns if folder.is_dir() else None
        return _best(tried, self.score, self.part, folder, stamp)

    def at_an_end(self, profile: str) -> dict[str, float]:
        """The methods whose best rate is the lowest or the highest that was tried, and that rate: a sweep
        that is published has none."""
        best = self.best(profile).items()
        ends = {method: self.tried(profile, method) for method in self.methods}
        return {method: rate for method, rate in best if rate in (ends[method][0], ends[method][-1])}

    def rate(self, profile: str, method: str) -> float:
        """The rate of a method in the runs of a profile, by the rule above.

        Raises:
            ValueError: a method that is not tried.
        """
        if method not in self.methods:
            raise ValueError(
                f"{self.name} tries no {method!r}, so that it has no rate; it tries {', '.join(self.methods)}"
            )
        own = {} if check_profile(profile) == "smoke" else self.best(profile)
        return own.get(method) or self.best("laptop").get(method, self.default)

    def require(self, profile: str, method: str) -> None:
        """Refuse to train for a record what was not swept yet: its rate is a part of the record's key, so
        that all would have to be trained again. Of smoke runs nothing is published.

        Raises:
            ValueError: no records give the method a rate; the message says how they come about.
        """
        if profile != "smoke" and method not in {**self.best("laptop"), **self.best(profile)}:
            raise ValueError(
                f"no published record gives {method!r} a learning rate for {profile!r}; run "
                f"`sepnb run {self.name} --profile {profile}` and commit what it writes"
            )


@lru_cache(maxsize=64)
def _best(
    tried: tuple[tuple[str, tuple[float, ...]], ...], score: str, part: str, folder: Path, stamp: int | None
) -> Mapping[str, float]:
    """`Sweep.best` by the records in a folder, read again once the folder has changed."""
    store, scores = Store(folder.parents[1]), {}
    for path in sorted(folder.glob("*.json")) if stamp is not None else []:
        record = store.read(path)
        run = record.config["method"], record.config[part]["learning_rate"]
        scores[run] = record.metrics.get(score, inf)
    found = {}
    for method, rates in tried:
        of_method = [scores.get((method, rate)) for rate in rates]
        if None not in of_method and min(of_method) < inf:
            found[method] = rates[of_method.index(min(of_method))]
    return MappingProxyType(found)
