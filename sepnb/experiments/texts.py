"""Experiments on texts: every method is trained at its size and at the rate of its sweep, then measured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from ..evaluation.protocols import SCOPES
from ..records.store import Store
from ..validation import one_of
from . import language_modelling as lm
from .base import Experiment
from .methods import run_of, series
from .run import Measure, Run
from .scales import Scales
from .sweep import Sweep


def inside(run: Run) -> tuple[Measure, ...]:
    """What every run reads: the test text, inside the trained length."""
    return (lm.INSIDE,)


@dataclass(frozen=True, eq=False, kw_only=True)
class TextExperiment(Experiment):
    """An experiment whose runs are language models, trained alike and then measured.

    Args:
        sweeps: a rate is read from the first of these that tried the method, or the nearest of its bases.
        of: methods, each with the one whose rate it takes instead.
        tables: the sweeps that choose scales, if they are not those of the rates.
        measures: returns the measures of a run.
        sizes, titled: of its runs, see `Run`.
        parts: for cells that are not methods, the method of each and further arguments of `measures`.
        shared: whether other experiments have the same trainings, so that each is made once.
    """

    sweeps: tuple[Sweep, ...]
    of: Mapping[str, str] = field(default_factory=dict)
    tables: Scales | None = None
    measures: Callable[..., tuple[Measure, ...]] = inside
    sizes: Mapping[str, lm.Size] = field(default_factory=lambda: lm.SIZES)
    titled: str = Run.titled
    parts: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    shared: bool = False

    def swept(self, method: str) -> tuple[Sweep, str]:
        """The sweep that a rate is read from, and its method there.

        Raises:
            ValueError: an unknown method, or one of which nothing was swept.
        """
        for one in series(self.of.get(method, method)):
            for sweep in self.sweeps:
                if one.name in sweep.methods:
                    return sweep, one.name
        raise ValueError(
            f"{method!r} has no learning rate in {self.name}: neither it nor a base of it was swept; its "
            f"methods are {', '.join(self.methods)}"
        )

    def training_of(self, profile: str, method: str, seed: int) -> Run:
        """The training of a method and seed, with nothing measured yet."""
        sweep, swept = self.swept(method)
        run = run_of(self.name, profile, method, seed, sweep.rate(profile, swept), sizes=self.sizes)
        run = sweep.settled(profile, swept, run)
        return run if self.tables is None else self.tables.settled(profile, method, run)

    def config(self, profile: str, cell: Any, seed: int) -> Run:
        method, *besides = self.parts.get(cell, (cell,))
        run = self.training_of(profile, method, seed)
        base = replace(run, experiment="trained") if self.shared else None
        measures = self.measures(run, *besides)
        return replace(run, method=cell, measures=measures, base=base, titled=self.titled)

    def refuse(self, config: Run) -> None:
        method = (config.base or config).method
        sweep, swept = self.swept(method)
        sweep.require(config.profile, swept)
        if self.tables is not None:
            self.tables.require(config.profile, method)
        super().refuse(config)

    def by_bin(self, profile: str, scope: str = "part", store: Store | None = None) -> pd.DataFrame:
        """Bits per byte of every reading in every bin of one scope: the rows of the kind "reading" with their
        method, label and seed.

        Within a scope all methods of a seed with the same blocks read the same bytes. "part" holds all
        readings but the sliding-window baseline at stride 1; "all" the most bytes; "tight" that baseline and,
        on the same bytes, the readings of "all"; "far" the readings that start far out.

        Raises:
            ValueError: no such scope.
        """
        one_of("scope", scope, (*SCOPES, "far"))
        rows = self.rows(profile, "reading", store)
        return rows if rows.empty else rows[rows["scope"] == scope].reset_index(drop=True)
