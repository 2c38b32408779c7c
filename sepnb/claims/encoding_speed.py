"""Experiment `encoding_speed`: what encodings leave of the speed of fused attention, on a CPU.

Written before its records. A cell is one encoding at one length, timed in rounds beside fused causal
attention without positions, forward and backward, B = 8, H = 8, d = 64. *Share* is the speed of the compiled
step over that of the fused one; of several cells some may hold and others not, which is *partly*.
"""

from functools import partial

import pandas as pd

from sepnb.claims.asks import each, levels
from sepnb.claims.claim import Claim
from sepnb.claims.measured import by_rounds

TABLE = "experiment/encoding_speed"
BESIDE = ("rope", "xpos", "alibi", "t5", "cope")
"""What x-transformers has too, and is no control: all that `sepnb.experiments.peer` can time beside ours."""


def at_each_length(table: pd.DataFrame) -> pd.DataFrame:
    """`method`: each encoding at each length as one of its own, such as "rope at 512"."""
    names = [f"{method} at {length}" for method, length in zip(table["method"], table["length"], strict=True)]
    return pd.DataFrame({"method": names}, index=table.index)


_of = partial(Claim, experiments=(TABLE,), parts=True, derive=at_each_length, how=by_rounds)

CLAIMS = {
    "compiled-rope-is-nearly-free": _of(
        "On a CPU compiled RoPE is nearly free", levels("rope at 512, rope at 1024", "compiled", low=0.95)
    ),
    "a-fixed-bias-is-cheap": _of(
        "On a CPU a fixed bias is cheap",
        levels("alibi at 512", "compiled", low=0.95) + levels("alibi at 1024", "compiled", low=0.75),
    ),
    "a-trained-bias-leaves-three-fifths": _of(
        "On a CPU a trained bias leaves three fifths of the speed",
        levels("t5 at 512, kerple at 512", "compiled", low=0.6),
    ),
    "scores-of-their-own-leave-two-fifths": _of(
        "On a CPU scores of their own leave two fifths of the speed",
        levels(each("{} at 512", "transformer-xl, shaw, distance-aware"), "compiled", low=0.4),
    ),
    "ahead-of-x-transformers": _of(
        "On a CPU the encodings are faster than those of x-transformers",
        levels(each("{} at 512", BESIDE) + each("{} at 1024", BESIDE), "ahead", low=1.0),
        remark="The time of x-transformers, eager or compiled as a whole, whichever is faster, over ours, in "
        "the same rounds. Attention without positions, the same fused kernel in both, is not judged.",
    ),
}
