"""Every causal encoding in one table: inside the trained length, and by position to eight times of it.

All methods are dense models of one size, trained on the same bytes in the same order, and differ in how they
tell positions. The spine is run again beside the others, so that every row is read in the same ways.

There are three seeds, which show the size of a difference and leave comparisons undecided. Each seed reads
two of the six blocks of `extrapolation`: together they read what six seeds read there.
"""

from dataclasses import replace

from ..evaluation.long_windows import Beyond, blocks_of
from ..evaluation.protocols import SLIDING_WINDOW, Protocol, masks, needed, sliding_windows
from ..extrapolators import CONTROLS
from . import language_modelling as lm
from .base import SHOWN
from .encoding_methods import METHODS, SCREEN
from .extrapolation import BEYOND
from .in_window import SWEEPS
from .long_windows import LongTexts
from .run import Measure, Run
from .texts import TextExperiment

DRAWS = 4
"""How often a window is read at drawn positions; the mean counts."""


def readings(run: Run, beyond: Beyond) -> tuple[Protocol, ...]:
    """`native` is the encoding's own rule; a table has none, and `clamp`, its last row repeated, takes
    its place, with the four other controls beside it. `-log` multiplies logits by the logarithm of the
    number of keys, `-window` and `-window-sinks` hide keys and keep the indices. The sliding-window
    baselines begin at index 0 in every pass. A randomised model reads at drawn positions, drawn anew for
    each pass of its baselines, and, in `contiguous`, at those from 0 on; it is not asked to begin far
    out. All are read on the same windows: what begins far out has its partner in the first bin of the
    rule.
    """
    length, longest = beyond.length, beyond.longest
    slid = tuple(
        one if one.id == SLIDING_WINDOW else replace(one, scope="part") for one in sliding_windows(length)
    )
    sampler = run.training.positions
    rule = "clamp" if run.model.encodings[0].name == "learned" else "native"
    how = {"extrapolator": rule if rule != "native" else None}
    own = (
        Protocol(rule, **how),
        Protocol(f"{rule}-log", log_scale=True, **how),
        *(Protocol(f"{rule}-{name}", **mask, **how) for name, mask in masks(length).items()),
    )
    if sampler is not None and sampler.at_evaluation:
        own = tuple(replace(reading, drawn=sampler, draws=DRAWS) for reading in own)
        at_drawn = tuple(replace(oracle, drawn=sampler) for oracle in slid)
        return (*at_drawn, *own, Protocol("contiguous"))
    if rule == "clamp":
        own += tuple(
            Protocol(name, extrapolator=name, options=needed(name, longest))
            for name in CONTROLS
            if name != rule
        )
    far = Protocol(f"{rule}-at-{longest // length - 1}x", start=longest - length, **how)
    return (*slid, *own, far)


def measures(run: Run) -> tuple[Measure, ...]:
    """As in `extrapolation`, but at stride 1 half as many novels are read in each of the two blocks."""
    beyond = BEYOND[run.profile]
    beyond = replace(beyond, tight=-(-beyond.tight // 2))
    return lm.INSIDE, LongTexts(beyond, blocks_of(run.seed, 2), readings(run, beyond))


EXPERIMENT = TextExperiment(
    name="encodings",
    title="Every encoding in one table",
    question="""What does each position encoding pay inside the trained length, and what is left of it at
        one to eight times that length?""",
    order=7,
    sweeps=(*SWEEPS, SCREEN),
    methods=tuple(METHODS),
    smoke=("t5", "rope-randomised"),
    seeds=SHOWN,
    costs={"smoke": 3.0, "laptop": 250.0},
    measures=measures,
)
