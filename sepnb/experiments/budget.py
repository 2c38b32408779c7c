"""Chapter 10: the same ranking at one, four and sixteen times the training. The size is that of `ablation`.

Each budget has a sweep of its own, over its whole schedule: a longer one prefers lower rates.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import pandas as pd

from ..records.store import Store
from . import ablation, methods
from . import language_modelling as lm
from .scale_sweep import ScaleSweep
from .sweep import Sweep
from .texts import TextExperiment

WIDE = "separated-sinusoidal-wide"
"""The separated model with as many block parameters as the dense one, within 5 %."""

METHODS = ("learned", "sinusoidal", "rope", "alibi", "separated-sinusoidal", "strict-sinusoidal", WIDE)

BUDGETS = (1, 4, 16)
"""Multiples of the shortest schedule."""

MIDDLE = 4
"""The budget whose schedule is that of `ablation`."""


def sizes_of(budget: int) -> dict[str, lm.Size]:
    """Those of `ablation`; the whole schedule, cosine included, is as long as the budget says."""
    sizes = ablation.SIZES.items()
    return {profile: replace(size, steps=size.steps * budget // MIDDLE) for profile, size in sizes}


def _sweep(budget: int, name: str, title: str, seconds: float, **rates: object) -> ScaleSweep:
    return ScaleSweep(
        name,
        title=title,
        order=4,
        methods=METHODS,
        smoke=METHODS[2:3],
        config_of=partial(methods.run_of, sizes=sizes_of(budget)),
        costs={"smoke": 1.0, "laptop": seconds},
        default=8e-3,
        **rates,
    )


SHORT = _sweep(
    1,
    "budget_short_sweep",
    "Learning rates of the shortest training",
    10.0,
    rates=(8e-3, 1.6e-2, 3.2e-2),
    beyond=dict.fromkeys(("rope", WIDE), (4e-3,)),
    further={
        "sinusoidal": ((1.6e-2, 0.25), (3.2e-2, 0.25)),
        "learned": ((8e-3, 1.0), (1.6e-2, 1.0)),
    },
)
LONG = _sweep(
    16,
    "budget_long_sweep",
    "Learning rates of sixteen times the training",
    150.0,
    beyond=dict.fromkeys((name for name in METHODS if name not in ("rope", "alibi")), (1.6e-2,)),
    further={
        "sinusoidal": ((4e-3, 0.25), (8e-3, 0.25)),
        "learned": ((4e-3, 1.0), (8e-3, 1.0)),
    },
)
SWEEPS: dict[int, Sweep] = {1: SHORT, MIDDLE: ablation.SWEEP, 16: LONG}
"""By budget."""


@dataclass(frozen=True)
class BudgetRun(lm.LanguageModelRun):
    """A run of the ablation's size with its share of training, one of `BUDGETS`."""

    budget: int

    @property
    def label(self) -> str:
        return f"{self.method}, {self.training.steps} steps"


class Budget(TextExperiment):
    """Is the ranking of six key models the same at 1, 4 and 16 times the training, and what if separated has
    as many parameters as dense?"""

    name = "budget"
    title = "More training"
    order = 5
    sizes, sweeps = ablation.SIZES, tuple(SWEEPS.values())
    methods = METHODS
    smoke = ("rope", "separated-sinusoidal")
    costs: ClassVar = {"smoke": 1.5, "laptop": 65.0}

    def cells(self, profile: str) -> list[tuple[str, int]]:
        budgets = BUDGETS[:2] if profile == "smoke" else BUDGETS
        return [(method, budget) for budget in budgets for method in super(Budget, self).cells(profile)]

    def config(self, profile: str, cell: tuple[str, int], seed: int) -> BudgetRun:
        method, budget = cell
        return BudgetRun(**vars(SWEEPS[budget].tuned(self.name, profile, method, seed)), budget=budget)

    def sweep_of(self, config: BudgetRun) -> tuple[Sweep, str]:
        return SWEEPS[config.budget], config.method

    def table(self, profile: str, store: Store | None = None) -> pd.DataFrame:
        """As in every experiment, with the budget of each run and its steps, missing runs included."""
        table, grid = super().table(profile, store), self.grid(profile)
        return table.assign(
            budget=[config.budget for config in grid], steps=[config.training.steps for config in grid]
        )
