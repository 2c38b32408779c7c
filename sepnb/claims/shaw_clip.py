"""Rules on the experiment `shaw_clip` (chapter 3): precise position near the query and far from it.

Written before its records. All bounds are in bits per byte and stand inside the functions, so that the commit
that last touched a function is the commit that last moved its bounds.
"""

import math

import pandas as pd

from sepnb.claims.evidence import RULES_OF_EVIDENCE, Comparison, judge
from sepnb.claims.in_window import OURS
from sepnb.claims.verdict import (
    NOT_REPRODUCED,
    NOT_RUN,
    NOT_TESTABLE,
    REPRODUCED,
    UNDECIDED,
    Claim,
    Tables,
    Verdict,
)

TABLE = "experiment/shaw_clip"
UNCLIPPED = "keys-unclipped"


def cost_of_hiding(table: pd.DataFrame, distance: int) -> pd.Series:
    """What each run of the unclipped model pays more, indexed by seed, when the keys from this distance on
    are hidden from it: all of them or all but the first four, whichever costs less (validation text).

    An upper bound of what these keys say: the model was never trained with a window, and with them it loses
    what its softmax rested on, the first tokens or the number of keys.
    """
    runs = table[table.method == UNCLIPPED].set_index("seed")
    windows = [f"val_bits_window_{distance}", f"val_bits_window_{distance}_sinks"]
    least = runs[windows].astype(float).min(axis=1, skipna=False)
    return least - runs["val_bits_per_byte"].astype(float)


def far_keys_are_used(table: pd.DataFrame, distance: int) -> Verdict:
    """Is the mean over seeds of `cost_of_hiding` above 0.03? Asked at three distances, so each at a third of
    5 % (Bonferroni)."""
    costs = cost_of_hiding(table, distance).rename("bits_per_byte").reset_index().assign(status="ok")
    name = f"hidden from {distance} on"
    rows = pd.concat([costs.assign(method=name), costs.assign(method="seen", bits_per_byte=0.0)])
    return judge(rows, [Comparison(name, "seen", low=0.03)], bar=math.inf, significance=0.05 / 3)


def rule_precise_position_is_useless_far_away(tables: Tables) -> Verdict:
    """At the largest of the distances 4, 8 and 16 at which far keys are used, vectors clipped there minus
    unclipped ones are below +0.03 bits per byte. Used means: hidden from the unclipped model, all of them or
    all but the first four, the keys from there on cost it more than 0.03 either way. Not testable if they are
    used at none of the three. The smaller distances do not move the verdict: they show where the threshold
    lies. A clip that costs more decides nothing while it is open whether keys farther out are used."""
    far = {clip: Comparison(f"keys-{clip}", UNCLIPPED, high=0.03) for clip in (4, 8, 16)}
    table = tables.get(TABLE)
    whole = judge(table, list(far.values()), bar=3.35)
    if whole.word in (NOT_RUN, NOT_TESTABLE):
        return whole
    asked = {clip: far_keys_are_used(table, clip) for clip in far}
    for one in asked.values():
        if one.word == NOT_TESTABLE:  # a reading that is no finite number
            return one
    numbers = {
        f"hidden from {clip} on": value for clip, one in asked.items() for value in one.numbers.values()
    }
    costs = "hidden, far keys cost " + ", ".join(
        f"{value:+.3f} from {clip} on" for clip, value in zip(far, numbers.values(), strict=True)
    )
    used = [clip for clip, one in asked.items() if one.word == REPRODUCED]
    farthest = max(used, default=0)
    is_open = [clip for clip, one in asked.items() if one.word == UNDECIDED and clip > farthest]
    if not used:
        word = UNDECIDED if is_open else NOT_TESTABLE
        return Verdict(word, f"far keys are not shown to be used: {costs}", whole.numbers | numbers)
    judged = judge(table, [far[farthest]], bar=3.35)
    word = UNDECIDED if is_open and judged.word == NOT_REPRODUCED else judged.word
    told, numbers = [judged.detail], judged.numbers | numbers
    if nearer := [far[clip] for clip in used if clip < farthest]:
        threshold = judge(table, nearer, bar=3.35)
        told.append("for the threshold: " + threshold.detail.partition("; ")[2])
        numbers = threshold.numbers | numbers
    return Verdict(word, "; ".join([*told, costs]), numbers)


def rule_precise_position_helps_nearby(tables: Tables) -> Verdict:
    """Vectors clipped at distance 8 minus vectors clipped at distance 1, one label for a token and one for
    all before it, are below 0. The bar is 4.0, below the entropy of single bytes (about 4.48): a model that
    its clip holds back is to be judged and not refused."""
    return judge(tables.get(TABLE), [Comparison("keys-8", "keys-1", high=0.0)], bar=4.0)


CLAIMS = (
    Claim(
        id="precise-position-is-useless-far-away",
        source="notes-positional-encoding",
        statement="It is hypothesised that precise positional information is not useful beyond a certain "
        "distance.",
        rule=rule_precise_position_is_useless_far_away,
        needs=(TABLE,),
        stands_on=(cost_of_hiding, far_keys_are_used, *RULES_OF_EVIDENCE),
    ),
    Claim(
        id="precise-position-helps-nearby",
        source=OURS,
        statement="Near the query precise position is useful: a model with labels of their own for the "
        "nearest eight distances is better than one with a label for the token itself and one for all "
        "earlier tokens. (Without this, that it is useless far away would say little.)",
        rule=rule_precise_position_helps_nearby,
        needs=(TABLE,),
        stands_on=RULES_OF_EVIDENCE,
    ),
)
