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

from sepnb.claims.asks import levels
from sepnb.claims.claim import Claim
from sepnb.claims.evidence import by_rounds


def at_each_length(table: pd.DataFrame) -> pd.DataFrame:
    """`method`: each encoding at each length as one of its own, such as "rope at 512"."""
    names = [f"{method} at {length}" for method, length in zip(table["method"], table["length"], strict=True)]
    return pd.DataFrame({"method": names}, index=table.index)


_reads = partial(Claim, experiment="experiment/reading_cost", how=by_rounds)

CLAIMS = {
    "compiled-rope-is-nearly-free": Claim(
        "On a CPU compiled RoPE is nearly free",
        levels("rope at 512, rope at 1024", "compiled", low=0.95),
        experiment="experiment/encoding_speed",
        parts=True,
        derive=at_each_length,
        how=by_rounds,
    ),
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
