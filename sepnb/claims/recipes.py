"""Experiment `recipes` (the page on far distances): what makes a model survive past its trained length, and
use the far past, and at what price.

Written before its records, with what the sweep had shown: one seed, on the validation text. It chose the
models that are compared.
"""

from functools import partial

from sepnb.claims.asks import Ask, changes, gap, levels, pairs
from sepnb.claims.claim import Claim
from sepnb.claims.language_model import BAR
from sepnb.records.verdicts import SURVIVES

TABLE = "experiment/recipes"

BEST = "separated-torus-phase-long-gaps-wide"
AT_A_MILLION = (("native-at-1m", "native/1x"),)
"""What the same bytes cost more at indices from 1,000,000 on than from 0 on."""

_of = partial(Claim, experiment=TABLE, floors=(BAR,))

CLAIMS = {
    "random-offsets-survive": _of(
        "Trained at random offsets, a separated sinusoid survives",
        levels("separated-offsets, strict-offsets", *gap("native"), high=SURVIVES),
    ),
    "the-torus-and-a-window-reach-the-oracle": _of(
        "A short-period sinusoid and a window reach the sliding-window baseline",
        levels("separated-torus-offsets", *gap("native-window"), high=0.05)
        + changes("separated-torus-offsets", AT_A_MILLION, high=0.05),
        remark="No wave is longer than twice the trained length, and no offset covered the indices from "
        "1,000,000 on.",
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
}
