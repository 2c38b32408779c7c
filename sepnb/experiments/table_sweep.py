"""At which scale are positions drawn beside content? Chosen with the learning rate.

Token embeddings are drawn with standard deviation 0.5, and `Learned` draws a row with 0.02, as large models
do with both: beside such tokens a table is all but silent when training begins, and no sinusoid is. So every
method with a table is tried at three scales of it, and the dense sinusoid at three scales of its content, at
the rates of `RATES` and over the whole schedule. Where the first or the last of them is best, scales beyond
it are tried too, at the rates that did best. A learned table has the pair with the least validation loss. The
sinusoid's content has the best of its scales, one half, and the rate of `lr_screen`.
"""

from .methods import run_of
from .scale_sweep import ScaleSweep

SWEEP = ScaleSweep(
    "table_sweep",
    title="Scales of positions beside content",
    order=0,
    methods=(
        *("learned", "separated-learned", "separated-learned-wide", "strict-learned"),
        *("learned-per-layer", "learned-query-key", "sinusoidal"),
    ),
    smoke=("separated-learned",),
    config_of=run_of,
    beyond={
        **dict.fromkeys(("learned", "learned-per-layer", "learned-query-key"), (1.6e-2,)),
        "strict-learned": (1e-3,),
    },
    level={
        "separated-learned-wide": ((4e-3, 0.00125), (4e-3, 0.005), (4e-3, 0.02), (2e-3, 0.02)),
        "strict-learned": ((4e-3, 0.005), (2e-3, 0.02), (4e-3, 0.02)),
    },
    further={
        "learned": ((8e-3, 1.0), (1.6e-2, 1.0)),
        "learned-per-layer": ((4e-3, 1.0), (8e-3, 1.0)),
        "learned-query-key": ((2e-3, 1.0), (4e-3, 1.0), (8e-3, 1.0), (4e-3, 2.0)),
        "sinusoidal": ((4e-3, 0.25), (8e-3, 0.25)),
        **dict.fromkeys(("separated-learned", "strict-learned"), ((4e-3, 0.005),)),
        "separated-learned-wide": ((4e-3, 0.005), (4e-3, 0.00125)),
    },
    costs={"smoke": 2.0, "laptop": 110.0},
)
