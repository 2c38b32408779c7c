"""Sweeps: every method takes the best of the same few learning rates, by the records of its sweep.

A sweep trains every method at a few rates with a seed that no published run has, and reads the validation
data only. One rule extends it: while the best rate of a method is the lowest or the highest that was tried,
one more beyond it is tried; in the end every method has a worse rate on either side of its own. A further
trial counts once its run is published; until then no run that depends on it is trained, and published runs
stay unchanged.

A method that adds positions to content is tried at several scales too, see `scales`.

Grids take their settings from the records *published with the code*, `results/` of the checkout, whatever
store a command reads and writes. Until a profile's sweep has tried a method at every rate, the method is
listed at the laptop's rate, as always at smoke, and no record of it is trained; without laptop records either
(a package without its records) the rate is the declared `default`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from math import inf
from pathlib import Path
from statistics import fmean, median
from typing import Any

from .. import paths
from ..records.store import Store
from .base import Experiment, check_profile
from .scales import Scale, scale_of

RATES = (2e-3, 4e-3, 8e-3)
"""Of the models of texts."""

STEPS = {"smoke": 60, "laptop": 500, "gpu": 1000}
"""Less than half of the published schedule: enough to rank three rates that are a factor of two apart."""

LEVEL = 0.005
"""Bits per byte within which one seed does not rank two trials: about what another seed changes."""

MORE_SEEDS = (7, 8)
"""Further seeds of trials that are level; no published run has them."""

Trial = tuple
"""A method, its rate and, where there is something to scale, its scale."""


def _rate_of_training(config: Mapping[str, Any]) -> float:
    return config["training"]["learning_rate"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Sweep(Experiment):
    """Which learning rate suits each method, and which scale? The test data are not read.

    Scores that count as alike stand in the order of scales, and at each scale of rates.

    Args:
        config_of: the config of a run, called as `(experiment, profile, method, seed, rate)`, and with the
            steps of a schedule that is not the whole one.
        rates: at which every method is tried.
        ladder: where a further rate is not twice or half the last, all that may be tried, rising.
        scaled: whether methods that have something to scale are tried at its scales too.
        stops: methods that are settled: because they guess whatever is tried, or have their rate elsewhere.
        level: trials within this of the best, with one seed, are tried with `MORE_SEEDS` too; the least mean
            of all seeds is the best. 0: one seed ranks.
        steps: by profile; None tries all over the whole schedule.
        whole: methods that are tried over the whole schedule, because the short one leaves them where they
            know next to nothing of the order of the bytes, at every rate alike, and would rank nothing.
        score: the metric that chooses, the least of it.
        default: the rate where no record is published.
        rate_of: returns the rate that was tried, from the config of a record.
        alike: scores within this of the least count as equal to it, and the middle one of their rates is
            taken (the lower of two): if several rates solve a task, one whose neighbours solve it too.
        seeds: with several, everything is tried with each, and the median of the scores counts. One seed
            ranks rates badly if a model learns a task all at once, or not at all.
    """

    question: str = "Which learning rate suits each method? The test data are not read."
    config_of: Callable[..., Any]
    rates: tuple[float, ...] = RATES
    ladder: tuple[float, ...] = ()
    scaled: bool = False
    stops: tuple[str, ...] = ()
    level: float = 0.0
    steps: Mapping[str, int] | None = None
    whole: tuple[str, ...] = ()
    score: str = "val_bits_per_byte"
    default: float = 4e-3
    rate_of: Callable[[Mapping[str, Any]], float] = _rate_of_training
    alike: float = 0.0
    seeds: tuple[int, ...] = (0,)
    chooses: bool = True

    @cache  # noqa: B019 - sweeps live as long as the program
    def scale(self, method: str) -> Scale | None:
        """What is tried of a method beside its rate."""
        if not self.scaled:
            return None
        return scale_of(self.config_of(self.name, "laptop", method, 0, self.rates[0]).model)

    def declared(self, method: str, rates: tuple[float, ...] | None = None) -> list[Trial]:
        """What is tried of a method first: at every scale every rate."""
        scale, rates = self.scale(method), self.rates if rates is None else rates
        if scale is None:
            return [(method, rate) for rate in rates]
        return [(method, rate, std) for std in scale.stds for rate in rates]

    def trials(self, profile: str, method: str) -> list[Trial]:
        """What a profile tries of a method. Smoke chooses nothing and tries one rate, at every scale; of
        other sizes than the laptop's, what is declared."""
        if profile != "laptop":
            return self.declared(method, self.rates[:1] if profile == "smoke" else None)
        return [*_trials(self, method, *self._published(profile))]

    def trial_of(self, config: Mapping[str, Any]) -> Trial:
        """The cell whose record has this config."""
        scale = self.scale(config["method"])
        return (
            config["method"],
            self.rate_of(config),
            *(() if scale is None else (scale.of(config["model"]),)),
        )

    def cells(self, profile: str) -> list[Trial]:
        return [trial for name in super().cells(profile) for trial in self.trials(profile, name)]

    def seeds_of(self, profile: str, cell: Trial) -> tuple[int, ...]:
        more = profile != "smoke" and cell and cell in self.level_trials(profile, cell[0])
        return (*self.seeds, *MORE_SEEDS) if more else super().seeds_of(profile, cell)

    def level_trials(self, profile: str, method: str) -> list[Trial]:
        """The trials of a method that one seed does not rank, by `level`, and those that have a record with
        more seeds."""
        runs, scores = _scores(self, *self._published(profile)), self.scores(profile)
        own = {trial: score for trial, score in scores.items() if trial[0] == method}
        several = {trial for trial, seed in runs if trial in own and seed not in self.seeds}
        if self.level and method not in self.stops and own:
            near = {trial for trial in own if own[trial] <= min(own.values()) + self.level}
            several |= near if len(near) > 1 else set()
        return sorted(several, key=lambda trial: trial[:0:-1])

    def config(self, profile: str, cell: Trial, seed: int) -> Any:
        method, rate, *std = cell
        short = () if self.steps is None or method in self.whole else (self.steps[profile],)
        return self._drawn(method, self.config_of(self.name, profile, method, seed, rate, *short), std)

    def scores(self, profile: str) -> dict[Trial, float]:
        """The score of every trial that has a published record with each of the first seeds; infinite where
        the run diverged."""
        runs, seeds = _scores(self, *self._published(profile)), super().seeds_of(profile, None)
        whole = [one for one in dict.fromkeys(one for one, _ in runs) if all((one, s) in runs for s in seeds)]
        return {trial: median(runs[trial, seed] for seed in seeds) for trial in whole}

    def _published(self, profile: str) -> tuple[Path, int | None]:
        """Where the records of a profile are, and when a record last came or went: None without any."""
        folder = paths.root() / "results" / profile / self.name
        return folder, folder.stat().st_mtime_ns if folder.is_dir() else None

    def chosen(self, profile: str) -> dict[str, Trial]:
        """The best trial of every method that has published records of all `declared` trials: the one with
        the least validation loss among these and any further published ones; see `alike` and `level`. A
        method that diverged in all trials has none.
        """
        return dict(_chosen(self, profile, *self._published(profile)))

    def best(self, profile: str) -> dict[str, float]:
        """The rates of the best trials."""
        return {method: trial[1] for method, trial in self.chosen(profile).items()}

    def waiting(self, profile: str, method: str) -> list[Trial]:
        """The trials of a method that have no published record yet, or not with all of their seeds."""
        there = _scores(self, *self._published(profile)).keys()
        trials = self.trials(profile, method)
        return [one for one in trials if {(one, seed) for seed in self.seeds_of(profile, one)} - there]

    def at_an_end(self, profile: str) -> dict[str, float]:
        """The methods whose best rate is the lowest or the highest that has a record, and that rate: a sweep
        that is published has none."""
        ends: dict[str, list[float]] = {}
        for method, rate, *_ in self.scores(profile):
            ends.setdefault(method, []).append(rate)
        best = self.best(profile).items()
        return {method: rate for method, rate in best if rate in (min(ends[method]), max(ends[method]))}

    def rate(self, profile: str, method: str) -> float:
        """The rate of a method in the runs of a profile, by the rule above.

        Raises:
            ValueError: a method that is not tried.
        """
        if method not in self.methods:
            raise ValueError(
                f"{self.name} tries no {method!r}, so that it has no rate; it tries {', '.join(self.methods)}"
            )
        trial = self._taken(profile, method)
        return self.default if trial is None else trial[1]

    def _taken(self, profile: str, method: str) -> Trial | None:
        own = {} if check_profile(profile) == "smoke" else self.chosen(profile)
        return own.get(method) or self.chosen("laptop").get(method)

    def std(self, profile: str, method: str) -> float | None:
        """The scale of a method in the runs of a profile, of the records that `rate` reads; None without."""
        trial = self._taken(profile, method)
        return trial[2] if trial and len(trial) > 2 else None

    def best_run(self, experiment: str, profile: str, method: str, seed: int) -> Any:
        """The run of another experiment that trains a method as the trials do, at the best of them."""
        rate = self.rate(profile, method)
        return self.settled(profile, method, self.config_of(experiment, profile, method, seed, rate))

    def measured(self, measures: tuple, experiment: str, profile: str, method: str, seed: int) -> Any:
        """The same, with what is asked of the trained model: a `plan` of an experiment."""
        return replace(self.best_run(experiment, profile, method, seed), measures=measures)

    def settled(self, profile: str, method: str, config: Any) -> Any:
        """The config of a run of a method, at its rate already, at the scale that the sweep chose for it."""
        std = self.std(profile, method)
        return self._drawn(method, config, [] if std is None else [std])

    def _drawn(self, method: str, config: Any, std: list[float]) -> Any:
        scale = self.scale(method)
        return replace(config, model=scale.drawn(config.model, *std)) if scale and std else config

    def before(self, run: Any) -> None:
        """Refuse a run whose training is not swept yet, see `require`: what `Experiment.waits` may be."""
        self.require(run.profile, (run.base or run).method)

    def require(self, profile: str, method: str) -> None:
        """Refuse to train a record before its sweep is complete: the rate is part of the record's key, so
        that all would have to be trained again. Smoke runs are exempt: they are not published.

        Raises:
            ValueError: no records of the profile give the method a rate, or not all that are to be tried; the
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


@lru_cache(maxsize=256)
def _scores(sweep: Sweep, folder: Path, stamp: int | None) -> dict[tuple[Trial, int], float]:
    """The scores of the records in a folder, by trial and seed, read again once it has changed."""
    store = Store(folder.parents[1])
    records = [store.read(path) for path in folder.glob("*.json") if stamp is not None]
    return {
        (sweep.trial_of(one.config), one.config["seed"]): one.metrics.get(sweep.score, inf) for one in records
    }


@lru_cache(maxsize=2048)
def _trials(sweep: Sweep, method: str, folder: Path, stamp: int | None) -> tuple[Trial, ...]:
    """The trials of a method on a laptop: those declared, those with a record, and those that the rule adds.
    It adds the next rate, at every scale, beyond an end at which the best rate stands, else the next scale;
    with `alike`, a best scale at an end is accepted."""
    scores, trials = sweep.scores("laptop"), sweep.declared(method)
    while method not in sweep.stops and all(trial in scores for trial in trials):
        best = _best(sweep, "laptop", sorted(trials, key=lambda trial: trial[:0:-1]))
        if best is None or not (more := _beyond(sweep, method, best, trials)):
            break
        trials += more
    recorded = {trial for trial, _ in _scores(sweep, folder, stamp) if trial[0] == method}
    return tuple(sorted({*trials, *recorded}, key=lambda trial: trial[:0:-1]))


def _beyond(sweep: Sweep, method: str, best: Trial, trials: list[Trial]) -> list[Trial]:
    """The trials beyond a best one that stands at an end of these; none where it does not."""
    rates, rungs = sorted({trial[1] for trial in trials}), sweep.ladder
    for end, step, factor in ((0, -1, 0.5), (-1, 1, 2.0)):
        if best[1] == rates[end]:
            rate = rungs[rungs.index(best[1]) + step] if rungs else best[1] * factor
            return sweep.declared(method, (rate,))
    scale, stds = sweep.scale(method), sorted(trial[2] for trial in trials if trial[2:])
    for end in (0, -1):
        if scale is not None and not sweep.alike and best[2] == stds[end]:
            return [(method, best[1], best[2] * scale.further[end])]
    return []


def _best(sweep: Sweep, profile: str, trials: list[Trial]) -> Trial | None:
    """The best of trials of one method that stand in order and have scores; None where all diverged."""
    scores, runs = sweep.scores(profile), _scores(sweep, *sweep._published(profile))
    level = [trial for trial in sweep.level_trials(profile, trials[0][0]) if trial in trials]
    seeds = {trial: [(trial, seed) for seed in sweep.seeds_of(profile, trial)] for trial in level}
    if level and all(run in runs for several in seeds.values() for run in several):
        return min(level, key=lambda trial: fmean(runs[run] for run in seeds[trial]))
    least = min(scores[trial] for trial in trials)
    alike = [trial for trial in trials if scores[trial] <= least + sweep.alike]
    return alike[(len(alike) - 1) // 2 if sweep.alike else 0] if least < inf else None


@lru_cache(maxsize=256)
def _chosen(sweep: Sweep, profile: str, folder: Path, stamp: int | None) -> dict[str, Trial]:
    scores, best = sweep.scores(profile), {}
    for method in sweep.methods:
        there = [trial for trial in sweep.trials(profile, method) if trial in scores]
        if set(sweep.declared(method)) <= set(there):  # those that are tried first, at any size
            best[method] = _best(sweep, profile, there)
    return {method: trial for method, trial in best.items() if trial is not None}
