"""Chapter 13: which change of training or score makes a model survive, use and match, and at what price?

Four questions are asked of every variant, each with a number of its own:

- *survives*: is it worse past its trained length than through its own sliding window at stride 1?
- *uses*: does it lose when the text further back than a trained length is that of another novel?
- *quality*: what does it pay beside RoPE, as it is and with a window?
- *price*: how much more does it pay inside the trained length than its method of the spine of equal width?
  If a variant adds parameters, this is more than the price of the training.

Past the trained length a seed reads the bytes that the methods with six seeds read in `extrapolation`, so
that columns of one name compare. Inside it a laptop scores less text, so that `bits_per_byte` does not.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ..evaluation.long_windows import Beyond, blocks_of
from ..evaluation.protocols import Protocol, masks, sliding_windows
from . import language_modelling as lm
from .extrapolation import BEYOND
from .in_window import SWEEPS
from .long_windows import LongTexts, ReplacedContext
from .methods import run_of
from .run import Measure, Run
from .sweep import LEVEL, Sweep
from .texts import TextExperiment
from .variant_methods import MATCHED, VARIANTS

LAPTOP = lm.SIZES["laptop"]
SIZES = lm.SIZES | {"laptop": replace(LAPTOP, text=replace(LAPTOP.text, test_bytes=20_480))}
"""On a laptop less of each test novel is scored inside the trained length than in `in_window`."""

ELSEWHERE = 1_000_000
"""Where a text starts that no training reached: the largest offsets end at 100,000."""

WINNER = "separated-torus-phase-long-gaps-wide"
"""The separated model that the screening puts first at about the parameters of RoPE's (within 1 %)."""

PUBLISHED = (
    *("rope", WINNER, VARIANTS[WINNER].base),
    *("separated-phase-gaps", "dense-phase-gaps", "sinusoidal-torus-phase-long-gaps"),
    *("separated-phase-long", "dense-phase-long", "separated-phase-gaps-other", "dense-phase-gaps-other"),
    *("rope-gaps", "separated-sinusoidal", MATCHED, "separated-phase", "dense-phase"),
    *("separated-offsets", "sinusoidal", "sinusoidal-offsets", "strict-sinusoidal", "strict-offsets"),
    *("separated-torus", "separated-torus-offsets", "sinusoidal-torus-offsets"),
    *("untied", "untied-rope", "strict-phase", "strict-phase-narrow", "separated-rope", "untied-constant"),
)
"""What is read on the test text. Survivors, and one variant of each kind that does not survive, were chosen
on the validation text by `recipe_screen`. Their partners (for gaps the same model without gaps, for a variant
of the separated model its dense twin) were added whether or not the screen chose them. ALiBi is in
`extrapolation`."""


SWEEP = Sweep(
    name="recipe_sweep",
    title="Learning rates and scales of the survivors",
    order=4,
    methods=(
        *("rope-gaps", "dense-phase-gaps", "separated-phase-gaps"),
        *("separated-torus-phase-long-gaps", "sinusoidal-torus-phase-long-gaps"),
    ),
    smoke=("sinusoidal-torus-phase-long-gaps",),
    config_of=partial(run_of, sizes=SIZES),
    scaled=True,
    level=LEVEL,
    costs={"smoke": 1.0, "laptop": 110.0},
)
"""Over the whole schedule. The verdicts on separation among survivors compare these; one that varies another
of them takes its rate, and all others have those of the spine."""


def readings(beyond: Beyond) -> tuple[Protocol, ...]:
    length, longest = beyond.length, beyond.longest
    tight, coarse, _ = sliding_windows(length)
    return (
        tight,
        replace(coarse, scope="part"),
        Protocol("native"),
        Protocol("native-log", log_scale=True),
        *(Protocol(f"native-{name}", **mask) for name, mask in masks(length).items()),
        Protocol(f"native-at-{longest // length - 1}x", start=longest - length),
        Protocol("native-at-1m", start=ELSEWHERE),
    )


def measures(run: Run, asked: Callable[[Beyond], tuple[Protocol, ...]] = readings) -> tuple[Measure, ...]:
    beyond = BEYOND[run.profile]
    texts = LongTexts(beyond, blocks_of(run.seed), asked(beyond), keeps_tight=True)
    return lm.INSIDE, texts, ReplacedContext(texts)


def screened(run: Run) -> tuple[Measure, ...]:
    """All windows of the validation novels are read in every way, four at stride 1."""
    beyond, few = BEYOND[run.profile], {"documents": 10, "windows": 4, "part": 4, "tight": 4}
    beyond = beyond if run.profile == "smoke" else replace(beyond, **few)
    texts = LongTexts(beyond, (0,), readings(beyond), split="validation", keeps_tight=True)
    return texts, ReplacedContext(texts)


EXPERIMENT = TextExperiment(
    name="recipes",
    title="Variants for longer texts",
    question="""Which change of training or of the score makes a model survive, use and match beyond its
        trained length, and at what price?""",
    order=5,
    sizes=SIZES,
    sweeps=(SWEEP, *SWEEPS),
    methods=PUBLISHED,
    smoke=("separated-sinusoidal", "separated-phase-offsets"),
    costs={"smoke": 4.0, "laptop": 160.0},
    measures=measures,
)
SCREEN = TextExperiment(
    name="recipe_screen",
    title="Choice of the variants",
    question="""Which variants survive, use and match past the trained length, on the validation text with
        one seed?""",
    order=4,
    sizes=SIZES,
    sweeps=SWEEPS,
    methods=tuple(VARIANTS),
    smoke=EXPERIMENT.smoke[1:],
    seeds=(0,),
    costs={"smoke": 4.0, "laptop": 150.0},
    measures=screened,
)
