"""Experiment `extrapolation` (chapters 10, 12 and 13): the five extrapolators, the separation, and encodings
alone; and experiment `fitted_rows` (chapter 12): rows that were fitted where the formulas guess. Each was
written before its records. Every model must clear the bar inside its trained length: past it, what a model
knew is the question.
"""

from functools import partial

from sepnb.claims.asks import FAR, Floor, changes, each, gap, levels, pairs
from sepnb.claims.claim import Claim
from sepnb.claims.evidence import judge
from sepnb.claims.language_model import BAR
from sepnb.claims.verdict import Tables, Verdict
from sepnb.records.verdicts import SURVIVES

TABLE = "experiment/extrapolation"

FIVE = ("sinusoidal", "fourier", "cyclic", "learned", "alibi")
"""The slides' equations (2) to (6), by the names of `sepnb.extrapolators`."""

REPEATING = ("fourier-full", "cyclic-literal")
CONTROLS = ("clamp", "wrap", "reflect", "zero", "interpolate")

OURS, DENSE = "separated-learned", "learned"

TRAINED_LONG = ("rope-long", "separated-sinusoidal-long")
"""Trained at eight lengths, on as many bytes as the short ones; inside the trained length they are behind
them."""

FITTED = gap("fitted", ("2x",))[0]
"""At rows that were fitted, in the bin that the laptop fits them for: the first trained length past the
trained length."""

_of = partial(Claim, experiment=TABLE, floors=(BAR,))
_slides = partial(_of, source="slides-separation")


FOUND_AGAIN = Floor(
    SURVIVES,
    "recovered",
    one_sided=True,
    why="the fit does not find the rows again that were taken from inside the trained length",
)
"""The control of a fit: where rows are known to exist it comes within the margin of *survives*. A fit that
misses it loses more than its best rows would, and no less."""

_formulas = partial(Claim, experiment="experiment/fitted_rows", floors=(BAR,))
_fit = partial(_formulas, floors=(BAR, FOUND_AGAIN))


CLAIMS = {
    "the-five-extrapolate": _slides(
        "The five approaches extrapolate the position embeddings", levels(OURS, *gap(FIVE), high=SURVIVES)
    ),
    "separation-makes-extrapolation-easier": _slides(
        "The separation makes extrapolation easier",
        pairs(f"{OURS} - {DENSE}", *gap(FIVE, ("2x", "8x")), high=0.0),
    ),
    "only-the-position-needs-extrapolating": _slides(
        "Only the position needs extrapolating",
        levels("separated-sinusoidal, strict-sinusoidal", *gap("native"), high=SURVIVES),
        remark="A sinusoid needs no extrapolation, so that a separated model filled with one should read on.",
    ),
    "wrap-in-disguise": _of(
        "The Fourier and the cyclic extrapolation only repeat the table",
        changes(OURS, [(f"{one}/{k}", f"wrap/{k}") for one in REPEATING for k in FAR], low=-0.05, high=0.05),
    ),
    "mask-rescues-no-extrapolator": _of(
        "A window mask rescues no extrapolator", levels(OURS, *gap(each("{}-window", FIVE)), low=0.03)
    ),
    "lookup-tables-limit-extrapolation": _of(
        "The size of a learned table limits extrapolation",
        levels(DENSE, *gap(FIVE + CONTROLS, ("2x", "8x")), low=0.03),
        source="seqpe-abstract",
    ),
    "strict-as-good-as-separated": _of(
        "A position stream without text is as good as one with it",
        pairs("strict-learned - separated-learned, strict-sinusoidal - separated-sinusoidal", high=0.02),
        turns=(("strict-sinusoidal", "separated-sinusoidal"),),
    ),
    "alibi-flat-beyond-length": _of(
        "ALiBi reads texts longer than those it was trained on",
        levels("alibi", *gap("native"), high=SURVIVES),
        source="notes-positional-encoding",
    ),
    "only-new-vectors-are-missing": _fit(
        "With the right vectors for the new positions a separated model reads on",
        levels(OURS, FITTED, high=SURVIVES),
        source="slides-separation",
        remark="The rows past the trained length are fitted, all weights frozen: no formula knows as much.",
    ),
    "fitted-rows-survive-dense": _fit(
        "Fitted rows carry the dense model past its trained length", levels(DENSE, FITTED, high=SURVIVES)
    ),
    "a-norm-makes-fitting-harder": _fit(
        "Fitted rows lose more behind a norm on positions than without one",
        pairs(f"{OURS} - {OURS}-plain", FITTED, low=0.0),
    ),
    "splitting-makes-fitting-harder": _fit(
        "Fitted rows lose more where weights are split than where position is only concatenated",
        pairs(f"{OURS} - concatenated-learned", FITTED, low=0.0),
    ),
    "separation-steadies-predictions": _formulas(
        "Predictions on long sequences are more stable in a separated model",
        pairs(f"{OURS} - {DENSE}", *(f"divergence/{rule}/{k}" for rule in FIVE for k in FAR), high=0.0),
        source="slides-separation",
        remark="Both models are read under the same formula. Where length changes nothing the divergence "
        "is 0.",
    ),
}


ENCODINGS = "experiment/encodings"
SIX_SEEDS = ("sinusoidal", "learned", "rope", "alibi")
OF_ROWS = ("learned", "learned-per-layer", "learned-query-key")
"""Those that are tables."""


def survival(tables: Tables, method: str) -> Verdict:
    """Whether an encoding of chapter 7 survives past its trained length, under its own rule, which for a
    table is its last row held. `SIX_SEEDS` are judged by the records of `extrapolation`, all others by three
    seeds of `encodings`, with which no comparison can be decided."""
    rule = "clamp" if method in OF_ROWS else "native"
    table = tables.get(TABLE if method in SIX_SEEDS else ENCODINGS)
    return judge(table, levels(method, *gap(rule), high=SURVIVES), floors=(BAR,)).of_ours()
