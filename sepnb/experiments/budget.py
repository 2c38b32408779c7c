"""Chapter 10: the same ranking at one, four and sixteen times the training. The size is that of `ablation`.

The learning rate of a model is the one of `ablation_sweep`, at every budget: a longer schedule may prefer a
lower one, and what that costs is not measured.
"""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from ..records.store import Store
from . import ablation
from . import language_modelling as lm
from .texts import TextExperiment

WIDE = "separated-sinusoidal-wide"
"""The separated model with as many block parameters as the dense one, within 5 %."""

METHODS = ("learned", "sinusoidal", "rope", "alibi", "separated-sinusoidal", "strict-sinusoidal", WIDE)

BUDGETS = (1, 4, 16)
"""Multiples of the shortest schedule."""

MIDDLE = 4
"""The budget whose schedule is that of `ablation`."""


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
    sizes, sweeps = ablation.SIZES, (ablation.SWEEP,)
    methods = METHODS
    smoke = ("rope", "separated-sinusoidal")
    costs: ClassVar = {"smoke": 1.5, "laptop": 65.0}

    def cells(self, profile: str) -> list[tuple[str, int]]:
        budgets = BUDGETS[:2] if profile == "smoke" else BUDGETS
        return [(method, budget) for budget in budgets for method in super(Budget, self).cells(profile)]

    def config(self, profile: str, cell: tuple[str, int], seed: int) -> BudgetRun:
        """The whole schedule, cosine included, is as long as the budget says."""
        method, budget = cell
        steps = self.sizes[profile].steps * budget // MIDDLE
        return BudgetRun(**vars(self.training_of(profile, method, seed, steps)), budget=budget)

    def table(self, profile: str, store: Store | None = None) -> pd.DataFrame:
        """As in every experiment, with the budget of each run and its steps, missing runs included."""
        table, grid = super().table(profile, store), self.grid(profile)
        return table.assign(
            budget=[config.budget for config in grid], steps=[config.training.steps for config in grid]
        )
