"""Chapter 17: encodings by position after sixteen times the training.

The models of `in_window`, trained on twenty million bytes. Rates are swept anew for RoPE and the separated
sinusoid, over the whole schedule; a dense model takes the one, a model of two streams the other. The learned
table is drawn at the scale of `table_sweep`. Three seeds show the size of a difference and leave comparisons
undecided; together they read what six seeds read in `extrapolation`.

A run takes most of an hour of a core, and is kept every few minutes: see `resuming`.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from ..evaluation.long_windows import Beyond, blocks_of
from . import language_modelling as lm
from . import methods as book
from . import table_sweep
from .budget import BUDGETS
from .encodings import EncodingRun
from .extrapolation import BEYOND as OF_NOVELS
from .extrapolation import TIMES
from .key_bytes import KeyBytes, Keyed, KeyedRun, Scales
from .matched_loss import CONSTANT
from .methods import model_config
from .sweep import Sweep

LAPTOP = lm.SIZES["laptop"]
SIZES = lm.SIZES | {"laptop": replace(LAPTOP, steps=LAPTOP.steps * BUDGETS[-1])}
"""A GPU trains for as long as in `in_window`, on more bytes than these."""

BEYOND = OF_NOVELS | {
    "laptop": Beyond(128, TIMES, documents=20, windows=9, part=4, tight=20, batch_bytes=2048),
}
"""Every novel is read byte by byte: 40 windows a seed."""

EVERY = 1200
"""Steps after which a training is kept."""

METHODS = (
    *("rope", "separated-sinusoidal", CONSTANT, "sinusoidal", "learned", "separated-sinusoidal-wide"),
    *("tupe", "untied"),
)
"""In the order of their worth where time is short: first what the table of encodings needs, last twins of the
untied model, which have six seeds in `matched_loss`."""

SWEPT = {False: "rope", True: "separated-sinusoidal"}
"""Whose rate a model takes, by whether it has two streams."""

SWEEP = Sweep(
    "long_budget_sweep",
    title="Learning rates at sixteen times the training, larger models",
    order=9,
    methods=tuple(SWEPT.values()),
    smoke=("rope",),
    config_of=partial(book.run_of, sizes=SIZES),
    computes=partial(lm.run, every=EVERY),
    costs={"smoke": 1.0, "laptop": 1700.0},
)


class LongKeyBytes(KeyBytes):
    """Which bytes of the test text does a model trained on long windows predict better from eight trained
    lengths than from one?"""

    sizes = SIZES
    every = EVERY
    costs: ClassVar = {"smoke": 4.0, "laptop": 4500.0}

    def beyond(self, profile: str) -> Beyond:
        return BEYOND[profile]


KEY_BYTES = LongKeyBytes()


@dataclass(frozen=True)
class LongRun(KeyedRun, EncodingRun):
    """Read in the ways of `encodings`, and at the key bytes."""


class LongBudget(Keyed):
    """After sixteen times the training, what does each encoding pay inside the trained length and past it,
    and what does far context give it?"""

    name = "long_budget"
    title = "Every position, after long training"
    order = 10
    sizes, sweeps = SIZES, (SWEEP,)
    selector, tables = KEY_BYTES, Scales(table_sweep.SWEEP)
    methods = METHODS
    smoke = ("rope", "learned")
    runs = LongRun
    every = EVERY
    costs: ClassVar = {"smoke": 4.0, "laptop": 2200.0}

    def swept(self, method: str) -> tuple[Sweep, str]:
        """The sweep, and the nearer of its two methods."""
        return SWEEP, SWEPT[model_config(method, lm.SIZES["smoke"]).separated]

    def beyond(self, profile: str) -> Beyond:
        return BEYOND[profile]

    def seeds_of(self, profile: str, cell: str) -> tuple[int, ...]:
        every = super().seeds_of(profile, cell)
        return every[:3] if profile == "laptop" else every

    def blocks(self, profile: str, seed: int) -> tuple[int, ...]:
        return blocks_of(seed, 2 if profile == "laptop" else 1)
