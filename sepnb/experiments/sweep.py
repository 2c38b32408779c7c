"""Learning-rate sweeps: the rate of every method is the best of the same few, by the records of its sweep.

A sweep trains every method at a few rates with a seed that no published run has, and reads the validation
data only. Where the best of these stands at an end, one more beyond it is tried for that method, until it
does not: so all are compared at a rate with a worse one on either side. A further rate counts once its run is
published; until then nothing that hangs on it is trained, and what was published stays as it is.

Where a grid takes its rates from is one plain rule: from the records *published with the code*, `results/` of
the checkout, whatever store a command reads and writes. A profile whose sweep has not tried a method at every
rate lists it at the laptop's, as smoke always does, and trains no record of it before; without those either
(a package without its records) the rate is the declared `default`.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from pathlib import Path
from statistics import fmean, median
from typing import Any

from .. import paths
from ..records.store import Record, Store
from . import language_modelling as lm
from .base import Experiment, Progress, RunConfig, check_profile

RATES = (2e-3, 4e-3, 8e-3)
"""Of the models of texts."""

STEPS = {"smoke": 60, "laptop": 500, "gpu": 1000}
"""Less than half of the published schedule: enough to rank three rates that are a factor of two apart."""

LEVEL = 0.005
"""Bits per byte within which one seed does not rank two trials: about what another seed changes."""

MORE_SEEDS = (7, 8)
"""With which trials that are level are tried too; no published run has them."""


@dataclass(eq=False, kw_only=True)
class Sweep(Experiment):
    """Which learning rate suits each method? The test data are not read.

    Args:
        name, title, order, methods, smoke, costs: as of every experiment.
        config_of: the config of a run, called as `(experiment, profile, method, seed, rate)`, and with the
            steps of a schedule that is not the whole one.
        rates: at which every method is tried.
        beyond: for some methods further ones, past an end at which their best stood at the laptop profile;
            other sizes of model are tried at `rates` alone.
        level: for some methods the trials, each without its method, that came within `LEVEL` of the best with
            one seed. They are tried with `MORE_SEEDS` too, and the least mean of all seeds is the best.
        steps: by profile; None tries all over the whole schedule.
        whole: methods that are tried over the whole schedule, because the short one leaves them where they
            know next to nothing of the order of the bytes, at every rate alike, and would rank nothing.
        score: the metric that chooses, the least of it.
        default: the rate where no record is published.
        part: of the config of a run, what has the rate that is tried.
        alike: scores within this of the least count as equal to it, and the middle one of their rates is
            taken, of two the lower: where a task is solved at several rates, one whose neighbours solve it.
        computes, begins: the run and the fingerprint of a config.
        needs: called with a config before it is run; refuses what another sweep has to choose first.
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
    level: Mapping[str, tuple[tuple, ...]] = field(default_factory=dict)
    steps: Mapping[str, int] | None = None
    whole: tuple[str, ...] = ()
    score: str = "val_bits_per_byte"
    default: float = 4e-3
    part: str = "training"
    alike: float = 0.0
    computes: Callable[..., Record] = lm.run
    begins: Callable[..., dict[str, list[float]]] = lm.fingerprint
    needs: Callable[[Any], None] | None = None

    seeds = (0,)
    chooses = True

    def tried(self, profile: str, method: str) -> list[float]:
        """The rates at which a profile tries a method."""
        beyond = self.beyond.get(method, ()) if profile == "laptop" else ()
        return sorted({*self.rates, *beyond})

    def trials(self, profile: str, method: str) -> list[tuple]:
        """The cells of a method: itself, and what is tried of it, its rate first."""
        return [(method, rate) for rate in self.tried(profile, method)]

    def trial_of(self, config: Mapping[str, Any]) -> tuple:
        """The cell whose record has this config."""
        return config["method"], config[self.part]["learning_rate"]

    def seeds_of(self, profile: str, cell: tuple) -> tuple[int, ...]:
        more = profile != "smoke" and cell in self.level_trials(cell[0])
        return (*self.seeds, *MORE_SEEDS) if more else self.seeds

    def level_trials(self, method: str) -> list[tuple]:
        """The trials of a method that have more than one seed."""
        return [(method, *rest) for rest in self.level.get(method, ())]

    def cells(self, profile: str) -> list[tuple]:
        return [trial for name in super().cells(profile) for trial in self.trials(profile, name)]

    def config(self, profile: str, cell: tuple, seed: int) -> RunConfig:
        method, rate = cell
        short = () if self.steps is None or method in self.whole else (self.steps[profile],)
        return self.config_of(self.name, profile, method, seed, rate, *short)

    def refuse(self, config: Any) -> None:
        if self.needs is not None:
            self.needs(config)

    def run(self, config: Any, *, device: str = "cpu", progress: Progress | None = None) -> Record:
        self.refuse(config)
        return self.computes(config, device=device, progress=progress, test=False)

    def fingerprint(self, config: Any, *, device: str = "cpu") -> dict[str, list[float]]:
        return self.begins(config, device=device)

    def scores(self, profile: str) -> dict[tuple, float]:
        """The score, with the first seed, of every trial that has a published record; infinite where the run
        diverged."""
        (seed,) = self.seeds
        runs = _scores(self, *self._published(profile))
        return {trial: score for (trial, of), score in runs.items() if of == seed}

    def _published(self, profile: str) -> tuple[Path, int | None]:
        """Where the records of a profile are, and when a record last came or went: None without any."""
        folder = paths.root() / "results" / profile / self.name
        return folder, folder.stat().st_mtime_ns if folder.is_dir() else None

    def chosen(self, profile: str) -> dict[str, tuple]:
        """The best trial of every method that has a published record of each of `rates`: that with the least
        validation loss of these and of those beyond that have one; see `alike` and `level`. A method that
        diverged in all has none.
        """
        return dict(_chosen(self, profile, *self._published(profile)))

    def best(self, profile: str) -> dict[str, float]:
        """The rates of the best trials."""
        return {method: trial[1] for method, trial in self.chosen(profile).items()}

    def waiting(self, profile: str, method: str) -> list[tuple]:
        """The trials of a method that have no published record yet, or not with all of their seeds."""
        there = _scores(self, *self._published(profile)).keys()
        trials = self.trials(profile, method)
        return [one for one in trials if {(one, seed) for seed in self.seeds_of(profile, one)} - there]

    def at_an_end(self, profile: str) -> dict[str, float]:
        """The methods whose best rate is the lowest or the highest that has a record, and that rate: a sweep
        that is published has none."""
        done = {trial[:2] for trial in self.scores(profile)}
        ends = {
            method: [rate for rate in self.tried(profile, method) if (method, rate) in done]
            for method in self.methods
        }
        best = self.best(profile).items()
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

    def tuned(self, experiment: str, profile: str, method: str, seed: int) -> Any:
        """The run of another experiment that trains a method as the trials do, at the best of them."""
        rate = self.rate(profile, method)
        return self.settled(profile, method, self.config_of(experiment, profile, method, seed, rate))

    def settled(self, profile: str, method: str, config: Any) -> Any:
        """The config of a run of a method, at its rate already, with whatever else the sweep chose for it."""
        return config

    def require(self, profile: str, method: str) -> None:
        """Refuse to train for a record what was not swept yet: its rate is a part of the record's key, so
        that all would have to be trained again. Of smoke runs nothing is published.

        Raises:
            ValueError: no records of the profile give the method a rate, or not all that are declared; the
                message says how they come about.
        """
        if profile == "smoke":
            return
        if method not in self.best(profile):
            why = f"no published record gives {method!r} a learning rate for {profile!r}"
        elif waiting := self.waiting(profile, method):
            more = ", ".join(" at scale ".join(f"{value:g}" for value in trial[1:]) for trial in waiting)
            why = f"{method!r} is to be tried at {more} too, which may be better for {profile!r}"
        else:
            return
        remedy = f"run `sepnb run {self.name} --profile {profile}` and commit what it writes"
        raise ValueError(f"{why}; {remedy}")


class MedianSweep(Sweep):
    """A sweep that tries everything with three seeds; what counts is the median of their scores. One seed
    ranks rates badly where a model learns a task all at once, or not at all."""

    seeds = (0, *MORE_SEEDS)

    def seeds_of(self, profile: str, cell: tuple) -> tuple[int, ...]:
        return self.seeds[:1] if profile == "smoke" else self.seeds

    def scores(self, profile: str) -> dict[tuple, float]:
        """The median of every trial that has a published record of each seed."""
        runs, needed = _scores(self, *self._published(profile)), self.seeds_of(profile, ())
        trials = dict.fromkeys(trial for trial, _ in runs)
        whole = [trial for trial in trials if all((trial, seed) in runs for seed in needed)]
        return {trial: median(runs[trial, seed] for seed in needed) for trial in whole}


class Swept(Experiment):
    """An experiment whose runs take their rates from sweeps. A subclass says which run takes which."""

    @abstractmethod
    def sweep_of(self, config: Any) -> tuple[Sweep, str]:
        """The sweep that chose the rate of a run, and the run's method there."""

    def refuse(self, config: Any) -> None:
        sweep, method = self.sweep_of(config)
        sweep.require(config.profile, method)


@lru_cache(maxsize=256)
def _scores(sweep: Sweep, folder: Path, stamp: int | None) -> dict[tuple[tuple, int], float]:
    """The scores of the records in a folder, by trial and seed, read again once it has changed."""
    store = Store(folder.parents[1])
    records = [store.read(path) for path in folder.glob("*.json") if stamp is not None]
    return {
        (sweep.trial_of(one.config), one.config["seed"]): one.metrics.get(sweep.score, inf) for one in records
    }


@lru_cache(maxsize=256)
def _chosen(sweep: Sweep, profile: str, folder: Path, stamp: int | None) -> dict[str, tuple]:
    runs, scores, best = _scores(sweep, folder, stamp), sweep.scores(profile), {}
    for method in sweep.methods:
        trials = sweep.trials(profile, method)
        there = [trial for trial in trials if trial in scores]
        if not set(sweep.trials("gpu", method)) <= set(there):  # those that are tried first, at any size
            continue
        level = sweep.level_trials(method)
        seeds = [[(trial, seed) for seed in sweep.seeds_of(profile, trial)] for trial in level]
        if level and all(run in runs for several in seeds for run in several):
            means = {several[0][0]: fmean(runs[run] for run in several) for several in seeds}
            best[method] = min(means, key=means.__getitem__)
            continue
        least = min(scores[trial] for trial in there)
        alike = [trial for trial in there if scores[trial] <= least + sweep.alike]
        best |= {method: alike[(len(alike) - 1) // 2 if sweep.alike else 0]} if least < inf else {}
    return best
