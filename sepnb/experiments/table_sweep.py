"""At which scale are positions drawn beside content? Chosen with the learning rate.

Token embeddings are drawn with standard deviation 0.5, and `Learned` draws a row with 0.02, as large models
do with both: beside such tokens a table is all but silent when training begins, and no sinusoid is. So every
method with a table is tried at three scales of it, and the dense sinusoid at three scales of its content, at
the rates of `RATES` and over the whole schedule. Where the first or the last of them is best, scales beyond
it are tried too, at the rates that did best. A learned table has the pair with the least validation loss. The
sinusoid's content has the best of its scales, one half, and the rate of `lr_screen`.
"""

from .methods import run_of
from .sweep import LEVEL, Sweep

SWEEP = Sweep(
    name="table_sweep",
    title="Scales of positions beside content",
    order=0,
    methods=(
        *("learned", "separated-learned", "separated-learned-wide", "strict-learned"),
        *("learned-per-layer", "learned-query-key", "sinusoidal"),
    ),
    smoke=("separated-learned",),
    config_of=run_of,
    scaled=True,
    stops=("sinusoidal",),
    level=LEVEL,
    costs={"smoke": 2.0, "laptop": 110.0},
)
