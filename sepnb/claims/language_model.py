"""Chapter 11: what the separation costs inside the trained length, one factor at a time, and under more
training. Experiments `in_window`, `ablation` and `budget`, in bits per byte of novels.

Written before their records; the rule on equal parameters under more training was written when three seeds of
the models of equal width had been seen.
"""

from functools import partial

import pandas as pd

from sepnb.claims.asks import Ask, Floor, Unless, against, each, pairs
from sepnb.claims.budget import TABLE, budgets, exchanges, models, places
from sepnb.claims.claim import Claim
from sepnb.claims.evidence import obstacle
from sepnb.claims.verdict import Tables, Verdict
from sepnb.records.verdicts import NOT_JUDGED, NOT_REPRODUCED, REPRODUCED, UNDECIDED

BAR = Floor(3.35)
"""A bigram model of bytes, fitted on some of these novels and scored on others, has an entropy of about 3.48:
above the bar a model has hardly learned to look further back than one byte."""

DENSE, OURS, EQUAL = "sinusoidal", "separated-sinusoidal", "separated-sinusoidal-wide"
WIDE = f"separated-learned-wide - learned, {EQUAL} - {DENSE}"
ENCODINGS = "sinusoidal, learned"
ENCODED = f"{ENCODINGS}, rope, alibi, separated-sinusoidal, separated-learned"
BESIDE = "concatenated-sinusoidal"


def at_each_budget(table: pd.DataFrame) -> pd.DataFrame:
    """`method`: each model at each budget as one of its own, such as "rope at 4x"."""
    names = [
        f"{method} at {budget}x" for method, budget in zip(table["method"], table["budget"], strict=True)
    ]
    return pd.DataFrame({"method": names}, index=table.index)


def ranking(claim: Claim, tables: Tables) -> Verdict:
    """No two of the models exchange places; undecided while an order is open at some budget."""
    if found := obstacle(claim.table(tables), claim.asks, floors=claim.floors):
        return found
    runs = tables[TABLE]
    standing = places(runs, list(models()))
    exchanged = [f"{a} and {b}" for a, b in exchanges(standing)]
    ranked, unsettled = (
        len(rows.groupby(["a", "b"])) for rows in (standing, standing[standing.place == "open"])
    )
    numbers = {"pairs": float(ranked), "exchanged": float(len(exchanged)), "open": float(unsettled)}
    seeds = runs["seed"].nunique()
    said = [f"{seeds} seeds", f"of {ranked} pairs {unsettled} are open at some budget"]
    said += [f"exchanged: {', '.join(exchanged)}"] if exchanged else []
    if seeds < 6:
        return Verdict(NOT_JUDGED, "; ".join([*said, "a verdict needs at least 6 seeds"]), numbers=numbers)
    word = NOT_REPRODUCED if exchanged else UNDECIDED if unsettled else REPRODUCED
    return Verdict(word, "; ".join(said), numbers=numbers)


_in_window = partial(Claim, experiments=("experiment/in_window",), floors=(BAR,))
_ablation = partial(Claim, experiments=("experiment/ablation",), floors=(BAR,))
_budget = partial(
    Claim, experiments=(TABLE,), floors=(BAR._replace(only=f" at {budgets()[-1]}x"),), derive=at_each_budget
)


def budget_pairs(a: str, b: str, **bounds: float) -> list[Ask]:
    """One model minus another at each budget."""
    return pairs(each(f"{a} at {{}}x - {b} at {{}}x", [str(n) for n in budgets()]), **bounds)


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
        unless=Unless(
            pairs(WIDE, "block_parameters", low=0.95, high=1.05),
            "their block parameters are more than 5 % apart",
            ratio=True,
        ),
        turns=((EQUAL, DENSE),),
    ),
    "separation-improves-a-learned-table": _in_window(
        "A learned table works better in dimensions of its own",
        pairs("separated-learned - learned", high=-0.05),
    ),
    "position-information-helps": _in_window(
        "Every position encoding improves on none",
        against(ENCODED, "none", high=0.0),
        source="article-positional-encoding",
        remark="Our models are causal, and their mask alone already tells positions apart, which the "
        "article does not consider.",
    ),
    "rope-improves-on-absolute": _in_window(
        "RoPE improves on absolute encodings",
        pairs("rope - sinusoidal, rope - learned", high=0.0),
        source="article-positional-encoding",
        turns=(("rope", DENSE), ("rope", "learned")),
        remark="Longer sequences have claims of their own.",
    ),
    "rope-leads-in-window": _in_window(
        "RoPE leads inside the trained length",
        against(
            "rope",
            f"sinusoidal, {OURS}, {EQUAL}, learned, separated-learned, separated-learned-wide",
            high=0.0,
        ),
        turns=tuple(("rope", other) for other in (DENSE, "learned", OURS, EQUAL)),
    ),
    "position-at-every-layer-helps": _ablation(
        "Adding the position in every layer helps",
        pairs("sinusoidal-reinjected - sinusoidal, learned-reinjected - learned", high=0.0),
        source="notes-positional-encoding",
    ),
    "constant-pos-stream-ties-with-evolving": _ablation(
        "A constant position stream is as good as one that evolves",
        pairs(each("separated-{}-constant - separated-{}", ENCODINGS), low=-0.03, high=0.03),
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
    "separation-ahead-at-every-budget": _budget(
        "The separated model stays ahead under more training",
        budget_pairs(OURS, DENSE, high=-0.03),
        remark="The bar of 3.35 holds for the longest training.",
    ),
    "separation-ahead-at-equal-parameters-and-every-budget": _budget(
        "At equal parameters, too, the separated model stays ahead under more training",
        budget_pairs(EQUAL, DENSE, high=-0.03),
        remark="Their block parameters are within 5 % of each other. The bar of 3.35 holds for the longest "
        "training.",
    ),
    "ranking-stable-under-budget": _budget(
        "The ranking of six models does not change with more training",
        [Ask(f"{model} at {n}x") for n in budgets() for model in models()],
        rule="No two of six models exchange places between 1, 4 and 16 times the shortest training. Two "
        "models are level where the interval of their difference, paired by seed and corrected over all "
        "pairs and budgets at 5 %, lies within 0.03 bits per byte of 0; else one is ahead where it leaves "
        "out 0, and else their order is open. One exchange makes the claim *refuted*; without any it "
        "is *held* if no order is open, and *undecided* otherwise. The bar of 3.35 holds for the "
        "longest training.",
        how=ranking,
    ),
}
