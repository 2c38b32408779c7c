"""Chapter 11: what the separation costs inside the trained length, one factor at a time, and under more
training. Experiments `in_window`, `ablation` and `budget`, in bits per byte of novels.

Written before their records.
"""

from functools import partial

import pandas as pd

from sepnb.claims.asks import Floor, Unless, each, pairs
from sepnb.claims.budget import BUDGETS, TABLE
from sepnb.claims.claim import Claim

BAR = Floor(3.35)
"""A bigram model of bytes, fitted on some of these novels and scored on others, has an entropy of about 3.48:
above the bar a model has hardly learned to look further back than one byte."""

DENSE, OURS, EQUAL = "sinusoidal", "separated-sinusoidal", "separated-sinusoidal-wide"
WIDE = f"separated-learned-wide - learned, {EQUAL} - {DENSE}"
ENCODINGS = "sinusoidal, learned"
BESIDE = "concatenated-sinusoidal"


def at_each_budget(table: pd.DataFrame) -> pd.DataFrame:
    """`method`: each model at each budget as one of its own, such as "rope at 4x"."""
    names = [
        f"{method} at {budget}x" for method, budget in zip(table["method"], table["budget"], strict=True)
    ]
    return pd.DataFrame({"method": names}, index=table.index)


def equal_size(of: str) -> Unless:
    """Both of each pair have as many parameters in their blocks, within 5 %."""
    asks = pairs(of, "block_parameters", low=0.95, high=1.05)
    return Unless(asks, "their block parameters are more than 5 % apart", ratio=True)


_in_window = partial(Claim, experiment="experiment/in_window", floors=(BAR,))
_ablation = partial(Claim, experiment="experiment/ablation", floors=(BAR,))

CLAIMS = {
    "separation-costs-nothing-at-equal-width": _in_window(
        "At equal width the separation costs nothing",
        pairs("separated-learned - learned, separated-sinusoidal - sinusoidal", high=0.03),
        turns=((OURS, DENSE),),
        remark="At equal width the separated model has fewer parameters.",
    ),
    "separation-costs-nothing-at-equal-parameters": _in_window(
        "At equal parameters the separation costs nothing",
        pairs(WIDE, high=0.03),
        unless=equal_size(WIDE),
        turns=((EQUAL, DENSE),),
    ),
    "separation-improves-a-learned-table": _in_window(
        "A learned table works better in dimensions of its own",
        pairs("separated-learned - learned", high=-0.05),
    ),
    "position-at-every-layer-helps": _ablation(
        "Adding the position in every layer helps",
        pairs("sinusoidal-reinjected - sinusoidal, learned-reinjected - learned", high=0.0),
        source="notes-positional-encoding",
    ),
    "split-norm-costs-nothing": _ablation(
        "One norm for each stream costs nothing",
        pairs(f"{OURS} - {OURS}-joint-norm, {BESIDE}-split-norm - {BESIDE}", high=0.03),
    ),
    "no-single-wall-costs": _ablation(
        "No other block-diagonal constraint costs anything by itself",
        pairs(each(f"{OURS} - {OURS}-{{}}", "joint-value-output, joint-mlp, both-readout"), high=0.03),
        remark="The norm has a claim of its own.",
    ),
    "concatenation-alone-helps": _ablation(
        "Concatenating the position is better than adding it, with nothing split",
        pairs("concatenated-sinusoidal - sinusoidal", high=0.0),
    ),
    "separation-ahead-at-every-budget": Claim(
        "The separated model stays ahead under more training",
        pairs(each(f"{OURS} at {{}}x - {DENSE} at {{}}x", list(map(str, BUDGETS))), high=-0.03),
        experiment=TABLE,
        floors=(BAR._replace(only=f" at {BUDGETS[-1]}x"),),
        derive=at_each_budget,
        remark="The bar of 3.35 holds for the longest training.",
    ),
}
