"""Chapter 17: how do models read on that pay the same inside their trained length?

After a short training a dense model with a learned table is far behind a separated one, so that what either
loses past its length may be due to how little it has learned. Sixteen times the training of `budget` brings
them together. Rates are those of the sweep of that budget, or swept anew at its training, over the whole of
it. Dense learned tables are drawn at the scale of that sweep, separated ones at that of `ablation_sweep`.

Beside the tables stands the untied model with a constant position stream, and what it could owe its lead to:
the stream that evolves, more parameters, and the term of its score in a dense model of full width.
"""

from typing import ClassVar

from ..encodings import Tupe
from ..evaluation.long_windows import Beyond, blocks_of
from . import ablation
from . import language_modelling as lm
from . import methods as book
from .ablation import COMPARED, CONCATENATED
from .budget import BUDGETS, sizes_of
from .budget import LONG as OF_BUDGET
from .extrapolation import BEYOND as OF_NOVELS
from .extrapolation import TIMES
from .key_bytes import KeyBytes, Keyed, Scales
from .methods import EQUAL, POS_SHARE, SPINE, Method, listed, part_for_position
from .sweep import Sweep
from .variant_methods import VARIANTS

SIZES = sizes_of(BUDGETS[-1]) | {"smoke": ablation.SIZES["smoke"]}

BEYOND = OF_NOVELS | {
    "laptop": Beyond(64, TIMES, documents=20, windows=9, part=9, tight=20, batch_bytes=2048),
}
"""Every novel is read byte by byte: 20 windows a seed."""

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


def run_of(experiment: str, profile: str, name: str, seed: int, rate: float) -> lm.LanguageModelRun:
    """A run of the sweep of rates, with its tables drawn as in what is published."""
    run = book.run_of(experiment, profile, name, seed, rate, sizes=SIZES)
    return TABLES.settled(profile, name, run)


def needs(config: lm.LanguageModelRun) -> None:
    """A run of the sweep needs the scale of its table."""
    TABLES.require(config.profile, config.method)


SWEEP = Sweep(
    "matched_loss_sweep",
    title="Learning rates at sixteen times the training",
    order=9,
    methods=tuple(name for name in METHODS if name not in (*OF_BUDGET.methods, f"{CONSTANT}-wide")),
    smoke=("tupe",),
    config_of=run_of,
    needs=needs,
    costs={"smoke": 1.0, "laptop": 200.0},
    rates=(4e-3, 8e-3, 1.6e-2),
    beyond={"strict-learned": (2e-3,)},
)
"""Over the whole schedule: a shorter one prefers a larger rate. Of those that are in `budget`, its sweep has
the rates."""


class SmallKeyBytes(KeyBytes):
    """The same for the smaller models, which are trained on shorter texts."""

    name = "key_bytes_small"
    title = "Bytes that profit from far context, for shorter windows"
    sizes = SIZES
    costs: ClassVar = {"smoke": 4.0, "laptop": 600.0}

    def beyond(self, profile: str) -> Beyond:
        return BEYOND[profile]


KEY_BYTES = SmallKeyBytes()


class MatchedLoss(Keyed):
    """What is left past the trained length of models that pay the same inside it, under each extrapolator,
    control and window, and at the bytes that profit from far context?"""

    name = "matched_loss"
    title = "Past the trained length, at matched loss"
    order = 10
    sizes, sweeps = SIZES, (OF_BUDGET, SWEEP)
    selector, tables = KEY_BYTES, TABLES
    methods = tuple(METHODS)
    smoke = ("learned", CONSTANT)
    costs: ClassVar = {"smoke": 4.0, "laptop": 300.0}

    def beyond(self, profile: str) -> Beyond:
        return BEYOND[profile]

    def blocks(self, profile: str, seed: int) -> tuple[int, ...]:
        return blocks_of(seed)
