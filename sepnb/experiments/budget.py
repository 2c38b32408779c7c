"""Chapter 11: the same ranking at one, four and sixteen times the training. The size is that of `ablation`.

Each budget has a sweep of its own, over its whole schedule: a longer one prefers lower rates.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter

from . import ablation, methods
from . import language_modelling as lm
from .base import Experiment
from .run import Run
from .sweep import Sweep

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


def _sweep(budget: int, name: str, title: str, seconds: float, **rates: object) -> Sweep:
    return Sweep(
        name=name,
        title=title,
        order=4,
        methods=METHODS,
        smoke=METHODS[2:3],
        config_of=partial(methods.run_of, sizes=sizes_of(budget)),
        costs={"smoke": 1.0, "laptop": seconds},
        default=8e-3,
        scaled=True,
        **rates,
    )


SHORT = _sweep(
    1,
    "budget_short_sweep",
    "Learning rates of the shortest training",
    10.0,
    rates=(8e-3, 1.6e-2, 3.2e-2),
)
LONG = _sweep(16, "budget_long_sweep", "Learning rates of sixteen times the training", 150.0)
SWEEPS: dict[int, Sweep] = {1: SHORT, MIDDLE: ablation.SWEEP, 16: LONG}
"""By budget."""


def budget_of(run: Run) -> int:
    return dict(run.besides)["budget"]


def crossed(profile: str, methods: Sequence[str]) -> list[tuple[str, int]]:
    budgets = BUDGETS[:2] if profile == "smoke" else BUDGETS
    return [(method, budget) for budget in budgets for method in methods]


def plan(experiment: str, profile: str, cell: tuple[str, int], seed: int) -> Run:
    """A run of the ablation's size with its share of training."""
    method, budget = cell
    run = SWEEPS[budget].best_run(experiment, profile, method, seed)
    besides = (("budget", budget),)
    return replace(run, measures=(lm.INSIDE,), besides=besides, titled="{name}, {steps} steps")


def waits(run: Run) -> None:
    """Refuse a run until the sweep of its budget is published."""
    SWEEPS[budget_of(run)].require(run.profile, run.method)


EXPERIMENT = Experiment(
    name="budget",
    title="More training",
    question="""Is the ranking of six key models the same at 1, 4 and 16 times the training, and what if
        separated has as many parameters as dense?""",
    order=5,
    methods=METHODS,
    smoke=("rope", "separated-sinusoidal"),
    crossed=crossed,
    plan=plan,
    waits=waits,
    columns={"budget": budget_of, "steps": attrgetter("training.steps")},
    costs={"smoke": 1.5, "laptop": 65.0},
)
