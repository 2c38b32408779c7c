"""Chapter 20: what encodings leave of the speed of fused attention, and what a long text costs, on a CPU.
Experiments `encoding_speed` and `reading_cost`, whose rules were written before their records.

A cell of `encoding_speed` is one encoding at one length, timed in rounds beside fused causal
attention without positions, forward and backward, B = 8, H = 8, d = 64. *Share* is the speed of the compiled
step over that of the fused one; of several cells some may hold and others not, which is *partly*.

Of `reading_cost` a trial was known: one reading each of 2,048 and of 8,192 tokens. *Growth* is the
time of a text in one piece over that of the same tokens as four texts; *speed* is over that of the dense
sinusoidal model, timed in turns.
"""

from functools import partial

import pandas as pd

from sepnb.claims.asks import each, levels
from sepnb.claims.claim import Claim
from sepnb.claims.measured import by_rounds

ENCODINGS = "experiment/encoding_speed"
BESIDE = ("rope", "xpos", "alibi", "t5", "cope")
"""What x-transformers has too, and is no control: all that `sepnb.experiments.peer` can time beside ours."""


def at_each_length(table: pd.DataFrame) -> pd.DataFrame:
    """`method`: each encoding at each length as one of its own, such as "rope at 512"."""
    names = [f"{method} at {length}" for method, length in zip(table["method"], table["length"], strict=True)]
    return pd.DataFrame({"method": names}, index=table.index)


_of = partial(Claim, experiment=ENCODINGS, parts=True, derive=at_each_length, how=by_rounds)

OF_ENCODINGS = {
    "compiled-rope-is-nearly-free": _of(
        "On a CPU compiled RoPE is nearly free", levels("rope at 512, rope at 1024", "compiled", low=0.95)
    ),
    "ahead-of-x-transformers": _of(
        "On a CPU the encodings are faster than those of x-transformers",
        levels(each("{} at 512", BESIDE) + each("{} at 1024", BESIDE), "ahead", low=1.0),
        remark="The time of x-transformers, eager or compiled as a whole, whichever is faster, over ours, in "
        "the same rounds. Attention without positions, the same fused kernel in both, is not judged.",
    ),
}


READING = "experiment/reading_cost"

_reads = partial(Claim, experiment=READING, how=by_rounds)

OF_READING = {
    "a-longer-text-costs-more-a-token": _reads(
        "A token of a longer text costs more",
        levels("sinusoidal-at-32768, rope-at-32768", "growth", low=2.0),
        source="article-positional-encoding",
        remark="With the maps alone it would be 1, with attention alone 4.",
    ),
    "separation-alone-saves-little-in-long-texts": _reads(
        "In a long text separation alone saves little time",
        levels("separated-at-32768, strict-at-32768", "speed", high=1.15),
        remark="The text is read alone: no other shares the position branch of the strict model.",
    ),
}

CLAIMS = OF_ENCODINGS | OF_READING
