"""How many dimensions does position need? Experiment `ladder_text`: novels inside the trained length, and at
eight of them with positions slowed down where a model has waves.

Written before the records; no trial had been seen.
"""

from functools import partial

from sepnb.claims.asks import Ask, each, pairs
from sepnb.claims.claim import Claim
from sepnb.claims.language_model import BAR

ALL, QUARTER = "rope", "rope-partial"
SHARES = ("rope-16th", "rope-8th", QUARTER, "rope-half")
SKIPPED = ("rope-nope-2", "rope-nope-4")
STREAM = "separated-sinusoidal-wide"
*NARROW, WIDEST = (f"separated-sinusoidal-pos-{share}-wide" for share in ("16th", "8th", "half"))
SLOWED = (*SHARES, ALL, "p-rope-quarter", "rope-shared-key", *SKIPPED, *NARROW, STREAM, WIDEST)
"""All that has waves."""

LEVEL = 0.01
"""Bits per byte within which an arm is as good as its partner inside the trained length."""
GAP, ORDER = "gap/slowed/8x", "shuffled/8x"

_of = partial(Claim, experiments=("experiment/ladder_text",), floors=(BAR,), parts=True)

CLAIMS = {
    "ladder-text-a-share-of-the-columns-is-enough": _of(
        "RoPE on a sixteenth, an eighth, a quarter or half of the columns pays no more inside the trained "
        "length than RoPE on all of them, within 0.01 bits",
        pairs(each(f"{{}} - {ALL}", SHARES), high=LEVEL),
    ),
    "ladder-text-the-fastest-quarter-is-enough": _of(
        "RoPE on the fastest quarter of the pairs pays no more inside the trained length than RoPE on all of "
        "them, within 0.01 bits",
        pairs(f"p-rope-quarter - {ALL}", high=LEVEL),
    ),
    "ladder-text-one-key-serves-all-heads": _of(
        "Rotated columns with one key for all heads pay no more inside the trained length than rotated "
        "columns with a key for each head, within 0.01 bits",
        pairs(f"rope-shared-key - {QUARTER}", high=LEVEL),
        remark="The shared key has fewer parameters.",
    ),
    "ladder-text-not-every-layer-needs-position": _of(
        "RoPE in every second layer, or in three of four, pays no more inside the trained length than RoPE "
        "in all, within 0.01 bits",
        pairs(each(f"{{}} - {ALL}", SKIPPED), high=LEVEL),
    ),
    "ladder-text-forget-gates-are-enough": _of(
        "Forget gates without any position pay no more inside the trained length than RoPE, within 0.01 bits",
        pairs(f"forgetting - {ALL}", high=LEVEL),
    ),
    "ladder-text-a-narrow-stream-is-enough": _of(
        "At equal parameters, a position stream of a sixteenth or an eighth of the width pays no more inside "
        "the trained length than one of a quarter, within 0.01 bits",
        pairs(each(f"{{}} - {STREAM}", NARROW), high=LEVEL),
    ),
    "ladder-text-slowed-a-share-loses-less": _of(
        "With positions slowed down, RoPE on a sixteenth, an eighth, a quarter or half of the columns loses "
        "less at eight trained lengths than RoPE on all of them, each against its own sliding window",
        pairs(each(f"{{}} - {ALL}", SHARES), GAP, high=0.0),
    ),
    "ladder-text-slowed-fewer-layers-lose-less": _of(
        "With positions slowed down, RoPE in every second layer, or in three of four, loses less at eight "
        "trained lengths than RoPE in all, each against its own sliding window",
        pairs(each(f"{{}} - {ALL}", SKIPPED), GAP, high=0.0),
    ),
    "ladder-text-slowed-a-narrow-stream-loses-less": _of(
        "At equal parameters and with positions slowed down, a position stream of a sixteenth or an eighth "
        "of the width loses less at eight trained lengths than one of a quarter, each against its own "
        "sliding window",
        pairs(each(f"{{}} - {STREAM}", NARROW), GAP, high=0.0),
    ),
    "ladder-text-forget-gates-lose-least": _of(
        "At eight trained lengths forget gates, read as they were trained, lose less than every model whose "
        "positions are slowed down, each against its own sliding window",
        [Ask("forgetting:gap/native/8x", f"{name}:{GAP}", high=0.0) for name in SLOWED],
        parts=False,
    ),
    "ladder-text-a-small-share-hears-more-of-the-order": _of(
        "RoPE on a sixteenth, an eighth, a quarter or half of the columns hears more of the order of distant "
        "words at eight trained lengths than RoPE on all of them",
        pairs(each(f"{{}} - {ALL}", SHARES), ORDER, low=0.0),
        remark="The column `shuffled/8x` is what it costs that the words further back than a trained length "
        "stand in another order.",
    ),
}
