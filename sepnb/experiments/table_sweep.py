"""At which scale are the rows of a learned table drawn? Chosen with the learning rate, for all methods alike.

Token embeddings are drawn with standard deviation 0.5, and `Learned` draws a row with 0.02, as large models
do with both: beside such tokens a table is all but silent when training begins, and no sinusoid is. So every
method with a table is tried at three scales and at the rates of `RATES`, over the whole schedule, and what
is published has the pair with the least validation loss.
"""

from collections.abc import Callable
from dataclasses import dataclass

from .methods import run_of
from .scale_sweep import TABLES, Scale, ScaleSweep


@dataclass(eq=False, kw_only=True)
class TableSweep(ScaleSweep):
    """Which learning rate and which scale of its table suit each method? The test data are not read."""

    scale: Callable[[str], Scale | None] = lambda method: TABLES


SWEEP = TableSweep(
    "table_sweep",
    title="Scales of learned tables",
    order=0,
    methods=(
        *("learned", "separated-learned", "separated-learned-wide", "strict-learned"),
        *("learned-per-layer", "learned-query-key"),
    ),
    smoke=("separated-learned",),
    config_of=run_of,
    costs={"smoke": 2.0, "laptop": 110.0, "gpu": 60.0},
)
