"""Chapter 11: bits per byte inside the trained length, dense and separated, at equal width and parameters."""

from . import table_sweep
from .methods import SPINE, has_a_table, model_config, run_of
from .sweep import STEPS, Sweep
from .texts import TextExperiment

OTHERS = tuple(name for name in SPINE if name != "none")

LR_SCREEN = Sweep(
    name="lr_screen",
    title="Learning rates of the spine",
    order=0,
    methods=("none", *(name for name in OTHERS if not has_a_table(name))),
    smoke=("rope", "separated-sinusoidal"),
    config_of=run_of,
    steps=STEPS,
    whole=("none",),
    costs={"smoke": 1.0, "laptop": 65.0},
)
"""Of what has no learned table: those take scale and rate together, from `table_sweep`."""

SWEEPS = (LR_SCREEN, table_sweep.SWEEP)
METHODS = ("none", *(name for name in OTHERS if model_config(name).mode != "strict"))


EXPERIMENT = TextExperiment(
    name="in_window",
    title="Inside the trained length",
    question="""How many bits per byte do dense and separated models pay inside the trained length, at
        equal width and at equal parameters?""",
    order=1,
    sweeps=SWEEPS,
    methods=METHODS,
    smoke=METHODS,
    costs={"smoke": 2.0, "laptop": 140.0},
)
