"""Chapters 11 and 12: how do models read on that pay the same inside their trained length?

After a short training a dense model with a learned table is far behind a separated one, so that what either
loses past its length may be due to how little it has learned. Sixteen times the training of `budget` brings
them together. Rates are those of the sweep of that budget, or swept anew at its training, over the whole of
it. Dense learned tables are drawn at the scale of that sweep, separated ones at that of `ablation_sweep`.

Beside the tables stands the untied model with a constant position stream, and what it could owe its lead to:
the stream that evolves, more parameters, and the term of its score in a dense model of full width.
"""

from ..encodings import Tupe
from ..evaluation.long_windows import blocks_of
from . import ablation, extrapolation, key_bytes
from . import methods as book
from .ablation import COMPARED, CONCATENATED
from .budget import LONG as OF_BUDGET
from .key_bytes import BEYOND, SIZES
from .long_windows import LongTexts
from .methods import EQUAL, POS_SHARE, SPINE, Method, listed, part_for_position
from .run import Measure, Run
from .scales import Scales
from .sweep import Sweep
from .texts import TextExperiment
from .variant_methods import VARIANTS

CONSTANT = "untied-constant"
TWINS = listed(
    Method(
        "concatenated-learned",
        "position embedding beside the content, nothing split",
        "learned",
        COMPARED[CONCATENATED].model,
    ),
    Method(
        "untied-learned-constant",
        "no cross terms, pos stream constant over layers",
        "strict-learned",
        {"query_key": "untied", "pos_stream": "constant"},
    ),
    Method("tupe", "dense, no cross terms", "rope", {"encoding": Tupe()}),
    Method(
        f"{CONSTANT}-wide",
        EQUAL,
        CONSTANT,
        {"streams": part_for_position(POS_SHARE, lambda size: size.width * 21 // 16)},
    ),
)
"""`untied-constant` is a dense model of three quarters of the width with the score of `tupe`, whose width is
whole; `-wide` has about as many block parameters as RoPE's model (within 5 %)."""

METHODS = {
    name: SPINE.get(name) or VARIANTS.get(name) or TWINS[name]
    for name in (
        *("learned", "separated-learned", "separated-learned-wide", "strict-learned"),
        "concatenated-learned",
        *("rope", CONSTANT, "tupe", "untied", f"{CONSTANT}-wide", "untied-learned-constant"),
    )
}

TABLES = Scales(OF_BUDGET, ablation.SWEEP)


def run_of(experiment: str, profile: str, name: str, seed: int, rate: float) -> Run:
    """A run of the sweep of rates, with its tables drawn as in what is published."""
    run = book.run_of(experiment, profile, name, seed, rate, sizes=SIZES)
    return TABLES.settled(profile, name, run)


def waits(run: Run) -> None:
    """A run of the sweep needs the scale of its table."""
    TABLES.require(run.profile, run.method)


SWEEP = Sweep(
    name="matched_loss_sweep",
    title="Learning rates at sixteen times the training",
    order=9,
    methods=tuple(name for name in METHODS if name not in (*OF_BUDGET.methods, f"{CONSTANT}-wide")),
    smoke=("tupe",),
    config_of=run_of,
    waits=waits,
    costs={"smoke": 1.0, "laptop": 200.0},
    rates=(4e-3, 8e-3, 1.6e-2),
)
"""Over the whole schedule: a shorter one prefers a larger rate. Of those that are in `budget`, its sweep has
the rates."""


def measures(run: Run) -> tuple[Measure, ...]:
    beyond = BEYOND[run.profile]
    texts = LongTexts(beyond, blocks_of(run.seed), extrapolation.asked(run, beyond))
    return key_bytes.keyed(run, texts)


EXPERIMENT = TextExperiment(
    name="matched_loss",
    title="Past the trained length, at matched loss",
    question="""What is left past the trained length of models that pay the same inside it, under each
        extrapolator, control and window, and at the bytes that profit from far context?""",
    order=10,
    sizes=SIZES,
    sweeps=(OF_BUDGET, SWEEP),
    tables=TABLES,
    methods=tuple(METHODS),
    smoke=("learned", CONSTANT),
    costs={"smoke": 4.0, "laptop": 300.0},
    measures=measures,
    waits=key_bytes.require,
)
