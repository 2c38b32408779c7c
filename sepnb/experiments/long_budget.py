"""Encodings by position after sixteen times the training.

The models of `in_window`, trained on twenty million bytes. Rates are swept anew for RoPE and the separated
sinusoid, over the whole schedule; a dense model takes the one, a model of two streams the other. The learned
table is drawn at the scale of `table_sweep`. Three seeds show the size of a difference and leave comparisons
undecided; together they read what six seeds read in `extrapolation`.

A run takes most of an hour of a core, and is kept every few minutes: see `resuming`.
"""

from dataclasses import replace
from functools import partial

from ..evaluation.long_windows import Beyond, blocks_of
from . import encodings, key_bytes, table_sweep
from . import language_modelling as lm
from . import methods as book
from .base import SHOWN
from .budget import BUDGETS
from .extrapolation import BEYOND as OF_NOVELS
from .extrapolation import TIMES
from .long_windows import LongTexts
from .matched_loss import CONSTANT
from .methods import model_config
from .run import Measure, Run
from .scales import Scales
from .sweep import Sweep
from .texts import TextExperiment

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


def run_of(*cell: object) -> Run:
    """A run of the sweep, kept while it trains."""
    return replace(book.run_of(*cell, sizes=SIZES), every=EVERY)


SWEEP = Sweep(
    name="long_budget_sweep",
    title="Learning rates at sixteen times the training, larger models",
    order=9,
    methods=tuple(SWEPT.values()),
    smoke=("rope",),
    config_of=run_of,
    costs={"smoke": 1.0, "laptop": 1700.0},
)

KEY_BYTES = key_bytes.selector(
    BEYOND,
    name="key_bytes",
    title="Bytes that profit from far context",
    sizes=SIZES,
    every=EVERY,
    costs={"smoke": 4.0, "laptop": 4500.0},
)


def measures(run: Run) -> tuple[Measure, ...]:
    """Read in the ways of `encodings`, and at the key bytes."""
    beyond, blocks = BEYOND[run.profile], blocks_of(run.seed, 2 if run.profile == "laptop" else 1)
    return key_bytes.keyed(run, LongTexts(beyond, blocks, encodings.readings(run, beyond)), KEY_BYTES)


EXPERIMENT = TextExperiment(
    name="long_budget",
    title="Every position, after long training",
    question="""After sixteen times the training, what does each encoding pay inside the trained length
        and past it, and what does far context give it?""",
    order=10,
    sizes=SIZES,
    sweeps=(SWEEP,),
    of={name: SWEPT[model_config(name).separated] for name in METHODS},
    tables=Scales(table_sweep.SWEEP),
    methods=METHODS,
    smoke=("rope", "learned"),
    laptop_seeds=dict.fromkeys(METHODS, SHOWN),
    costs={"smoke": 4.0, "laptop": 2200.0},
    measures=measures,
    every=EVERY,
    waits=partial(key_bytes.require, KEY_BYTES),
)
