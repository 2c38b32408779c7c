"""Experiment `recipes` (chapter 13): what makes a model survive past its trained length, use the far past, at
what price.

Written before its records, with what the sweep had shown: one seed, on the validation text. It chose the
models that are compared. Three rules were written anew when other models of the table had run, and before
either side of most of their comparisons had: those on position gaps, which differed from their base in the
waves too and left out the piece of another novel, and the ladder, whose rungs had not the same parameters. A
fourth, on half of the gap to RoPE, was narrowed with its records in view: it held, and there was no gap.
"""

from functools import partial

import pandas as pd

from sepnb.claims import extrapolation
from sepnb.claims.asks import Ask, changes, gap, levels, pairs
from sepnb.claims.claim import Claim
from sepnb.claims.extrapolation import FAR_TEXT_PAYS
from sepnb.claims.language_model import BAR
from sepnb.records.verdicts import SURVIVES

TABLE = "experiment/recipes"

OFFSETS = ("separated-offsets", "strict-offsets")
BEST = "separated-torus-phase-long-gaps-wide"
AT_A_MILLION = (("native-at-1m", "native/1x"),)
"""What the same bytes cost more at indices from 1,000,000 on than from 0 on."""

LONG = {extrapolation.TABLE: extrapolation.TRAINED_LONG}


def margins(table: pd.DataFrame) -> pd.DataFrame:
    """`margin`: of each run the smaller of 0.03 minus the gap and the gain minus 0.02."""
    read = table.reindex(columns=["gap/native/8x", "gain/8x"]).astype(float)
    both = pd.DataFrame({"survives": 0.03 - read["gap/native/8x"], "uses": read["gain/8x"] - 0.02})
    return pd.DataFrame({"margin": both.min(axis=1, skipna=False)})


_of = partial(Claim, experiments=(TABLE,), floors=(BAR,))
_changed = partial(_of, source="ours, changed when some records were there")

CLAIMS = {
    "random-offsets-survive": _of(
        "Trained at random offsets, a separated sinusoid survives",
        levels(OFFSETS, *gap("native"), high=SURVIVES),
    ),
    "the-encoding-makes-extrapolation-fail": _of(
        "It is the encoding that makes extrapolation fail",
        levels("separated-offsets", *gap("native-window"), low=0.03),
        source="notes-positional-encoding",
        remark="The encoding is as it was and only the training changed, to random offsets that cover all "
        "indices read; with a window neither the number of the keys nor their distance is new.",
    ),
    "covered-indices-are-no-extrapolation": _of(
        "Random offsets cover indices and do not extrapolate", changes(OFFSETS, AT_A_MILLION, low=0.03)
    ),
    "the-torus-and-a-window-reach-the-oracle": _of(
        "A short-period sinusoid and a window reach the sliding-window baseline",
        levels("separated-torus-offsets", *gap("native-window"), high=0.05)
        + changes("separated-torus-offsets", AT_A_MILLION, high=0.05),
        remark="No wave is longer than twice the trained length, and no offset covered the indices from "
        "1,000,000 on.",
    ),
    "the-phase-read-survives": _of(
        "A content-to-position term with waves survives",
        levels("dense-phase, separated-phase", *gap("native"), high=SURVIVES),
        remark="The term reaches up to the trained length.",
    ),
    "the-phase-read-with-true-gaps-survives": _of(
        "Trained with position gaps, the content-to-position term survives",
        levels("dense-phase-gaps, separated-phase-gaps", *gap("native"), high=SURVIVES),
        remark="The term reaches up to 8 trained lengths.",
    ),
    "the-toeplitz-clamp-survives": _of(
        "With Toeplitz distillation a model survives",
        levels("untied-constant-clamp", *gap("native"), high=SURVIVES),
        remark="The distillation has weight 0.1, and there are no random offsets.",
    ),
    "separation-makes-recipes-easier": _of(
        "Random offsets carry a separated model further than a dense one",
        pairs("separated-offsets - sinusoidal-offsets", *gap("native"), high=0.0),
    ),
    "log-n-helps-past-the-length": _of(
        "Logits that grow with log n help past the trained length",
        changes("rope, dense-phase, separated-offsets", [("native-log/8x", "native/8x")], high=0.0),
        remark="Logits are multiplied by ln n / ln L (n visible keys, L the trained length).",
    ),
    "something-uses-the-far-past": _of(
        "Models that survive depend on the far past",
        levels(
            "rope, separated-offsets, separated-torus-offsets, separated-phase-gaps, dense-phase-gaps",
            "margin",
            low=0.0,
        ),
        beside=LONG,
        unless=FAR_TEXT_PAYS,
        derive=margins,
        remark="A model's margin is, in each seed, the smaller of 0.03 minus the gap at 8x and the gain "
        "minus 0.02. A gain does not tell use from being disturbed by foreign text.",
    ),
    "true-gaps-teach-use": _changed(
        "Training with position gaps teaches a model to use the far past",
        pairs(
            "separated-phase-gaps - separated-phase-long, separated-phase-gaps - separated-phase-gaps-other, "
            "dense-phase-gaps - dense-phase-long, dense-phase-gaps - dense-phase-gaps-other",
            *("gain/4x", "gain/8x"),
            low=0.0,
        ),
        beside=LONG,
        unless=FAR_TEXT_PAYS,
        remark="The models compared are trained on contiguous text (`-long`), or with a second piece of "
        "another novel (`-gaps-other`).",
    ),
    "no-recipe-beats-a-window-on-rope": _of(
        "No separated variant of equal width beats RoPE behind a window",
        [
            Ask(f"{name}/8x", "rope:native-window/8x", low=0.0)
            for name in (
                "separated-offsets:native",
                "separated-torus-offsets:native-window",
                "separated-phase:native-window",
                "separated-phase-gaps:native",
            )
        ],
    ),
    "a-separated-model-stands-beside-rope": _of(
        "With as many parameters, a separated model matches RoPE behind a window",
        [
            *levels(BEST, *gap("native"), high=SURVIVES),
            *changes(BEST, AT_A_MILLION, high=0.03),
            Ask(BEST, "rope", high=0.02),
            Ask(f"{BEST}:native/8x", "rope:native-window/8x", high=0.02),
        ],
        remark="The separated model has as many parameters in its blocks as RoPE's, within 1 %.",
    ),
    "separation-helps-the-survivor": _of(
        "Separated, with gaps and a content-to-position term, beats dense without position embeddings",
        pairs(f"{BEST} - dense-phase-gaps", "bits_per_byte", "native/8x", high=0.0),
        remark="The dense model has 8 % more parameters in its blocks.",
    ),
    "a-stream-of-its-own-helps-the-survivor": _of(
        "With gaps and a content-to-position term, position is better in dimensions of its own",
        pairs(
            "separated-torus-phase-long-gaps - sinusoidal-torus-phase-long-gaps",
            "bits_per_byte",
            "native/8x",
            high=0.0,
        ),
    ),
    "far-distances-need-no-true-text": _of(
        "To bear far keys it is enough to have trained on their distances",
        levels("separated-phase-gaps-other, dense-phase-gaps-other", *gap("native"), high=SURVIVES),
        remark="The second of two distant pieces in training is of another novel.",
    ),
    "random-offsets-are-free-in-window": _of(
        "Random offsets cost nothing inside the trained length",
        pairs(
            "separated-offsets - separated-sinusoidal, strict-offsets - strict-sinusoidal, "
            "separated-torus-offsets - separated-torus",
            high=0.03,
        ),
    ),
    "true-gaps-are-free-in-window": _changed(
        "Position gaps cost nothing inside the trained length",
        pairs("separated-phase-gaps - separated-phase-long, dense-phase-gaps - dense-phase-long", high=0.03),
    ),
    "ladder-of-expressivity": _changed(
        "The more a score can say of content and position together, the better",
        pairs(
            "strict-sinusoidal - untied, strict-phase-narrow - strict-sinusoidal, untied-rope - strict-phase",
            high=0.0,
        ),
        remark="The rungs: position with position, content with absolute position, content of the query "
        "with distance, RoPE. All position heads see positions only. From rung to rung there are as many "
        "parameters in the blocks or fewer; RoPE, in the sem heads and without cross terms, is held against "
        "a model of the same width, which has more.",
    ),
    "the-position-stream-matters-beside-rope": _of(
        "A stream of absolute positions still helps beside relative scores",
        pairs("separated-rope - rope, separated-phase - dense-phase", high=0.0),
    ),
}
