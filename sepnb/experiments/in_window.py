"""Chapter 11: bits per byte inside the trained length, dense and separated, at equal width and parameters."""

from .methods import SPINE, facets, run_of
from .sweep import LEVEL, STEPS, Sweep
from .texts import TextExperiment

OTHERS = tuple(name for name in SPINE if name != "none")

LR_SCREEN = Sweep(
    name="lr_screen",
    title="Learning rates of the spine",
    order=0,
    methods=("none", *(name for name in OTHERS if "learned" not in facets(name).encoding)),
    smoke=("rope", "separated-sinusoidal"),
    config_of=run_of,
    steps=STEPS,
    whole=("none",),
    costs={"smoke": 1.0, "laptop": 65.0},
)
"""Of what has no learned table: those take scale and rate together."""

TABLE_SWEEP = Sweep(
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
"""At which scale are positions drawn beside content? Chosen with the learning rate.

Token embeddings are drawn with standard deviation 0.5, and `Learned` draws a row with 0.02, as large models
do with both: beside such tokens a table is all but silent when training begins, and no sinusoid is. So every
method with a table is tried at three scales of it, and the dense sinusoid at three scales of its content, at
the rates of `RATES` and over the whole schedule. Where the first or the last of them is best, scales beyond
it are tried too, at the rates that did best. A learned table has the pair with the least validation loss. The
sinusoid's content has the best of its scales, one half, and the rate of `lr_screen`.
"""

SWEEPS = (LR_SCREEN, TABLE_SWEEP)
METHODS = ("none", *(name for name in OTHERS if facets(name).streams != "strict"))


EXPERIMENT = TextExperiment(
    name="in_window",
    title="Inside the trained length",
    question="""How many bits per byte do dense and separated models pay inside the trained length, at
        equal width and at equal parameters?""",
    order=1,
    sweeps=SWEEPS,
    methods=METHODS,
    smoke=("none", "sinusoidal", "rope", "separated-sinusoidal"),
    costs={"smoke": 2.0, "laptop": 140.0},
)
