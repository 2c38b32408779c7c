"""How many dimensions does position need? Experiment `ladder_text`: novels inside the trained length, and at
eight of them with positions slowed down where a model has waves.

Written before the records; no trial had been seen.
"""

from functools import partial

from sepnb.claims.asks import each, pairs
from sepnb.claims.claim import Claim
from sepnb.claims.language_model import BAR

ALL = "rope"
SHARES = ("rope-16th", "rope-8th", "rope-partial", "rope-half")
"""RoPE on a sixteenth to half of the columns."""
LEVEL = 0.01
"""Bits per byte within which an arm is as good as its partner inside the trained length."""
GAP, ORDER = "gap/slowed/8x", "shuffled/8x"

_of = partial(Claim, experiment="experiment/ladder_text", floors=(BAR,), parts=True)

CLAIMS = {
    "ladder-text-a-share-of-the-columns-is-enough": _of(
        "RoPE on a sixteenth, an eighth, a quarter or half of the columns pays no more inside the trained "
        "length than RoPE on all of them, within 0.01 bits",
        pairs(each(f"{{}} - {ALL}", SHARES), high=LEVEL),
    ),
    "ladder-text-slowed-a-share-loses-less": _of(
        "With positions slowed down, RoPE on a sixteenth, an eighth, a quarter or half of the columns loses "
        "less at eight trained lengths than RoPE on all of them, each against its own sliding window",
        pairs(each(f"{{}} - {ALL}", SHARES), GAP, high=0.0),
    ),
    "ladder-text-a-small-share-hears-more-of-the-order": _of(
        "RoPE on a sixteenth, an eighth, a quarter or half of the columns hears more of the order of distant "
        "words at eight trained lengths than RoPE on all of them",
        pairs(each(f"{{}} - {ALL}", SHARES), ORDER, low=0.0),
        remark="The column `shuffled/8x` is what it costs that the words further back than a trained length "
        "stand in another order.",
    ),
}
