"""Experiment `shaw_clip` (chapter 3): precise position near the query and far from it. Written before its
records.
"""

from functools import partial

import pandas as pd

from sepnb.claims.asks import Ask, Floor, pairs
from sepnb.claims.claim import Claim
from sepnb.claims.evidence import judge
from sepnb.claims.language_model import BAR
from sepnb.claims.verdict import Tables, Verdict
from sepnb.records.verdicts import NOT_JUDGED, NOT_REPRODUCED, NOT_RUN, NOT_TESTABLE, REPRODUCED, UNDECIDED

TABLE = "experiment/shaw_clip"
UNCLIPPED = "keys-unclipped"
CLIPS = (4, 8, 16)
FAR = {clip: Ask(f"keys-{clip}", UNCLIPPED, high=0.03) for clip in CLIPS}
USED = {clip: Ask(f"{UNCLIPPED}:cost/{clip}", low=0.03) for clip in CLIPS}


def cost_of_hiding(table: pd.DataFrame) -> pd.DataFrame:
    """`cost/<n>`: what a run pays more, on validation text, when the keys from distance n on are
    hidden from it: all of them or all but the first four, whichever costs less.

    An upper bound of what these keys say: the model was never trained with a window, and with them it loses
    what its softmax rested on, the first tokens or the number of keys."""
    costs = {}
    for n in CLIPS:
        windows = [f"val_bits_window_{n}", f"val_bits_window_{n}_sinks"]
        read = table.reindex(columns=["val_bits_per_byte", *windows]).astype(float)
        costs[f"cost/{n}"] = read[windows].min(axis=1, skipna=False) - read["val_bits_per_byte"]
    return pd.DataFrame(costs)


def useless_far_away(claim: Claim, tables: Tables) -> Verdict:
    """The clips, at the largest distance from which on far keys are used. Whether they are is asked at three
    distances, so each at a third of 5 % (Bonferroni)."""
    table = claim.table(tables)
    whole = judge(table, list(FAR.values()), floors=claim.floors)
    if whole.word in (NOT_JUDGED, NOT_RUN, NOT_TESTABLE):
        return whole
    asked = {clip: judge(table, [ask], significance=0.05 / 3) for clip, ask in USED.items()}
    if without := [one for one in asked.values() if one.word == NOT_TESTABLE]:  # no finite number
        return without[0]
    numbers = {
        f"hidden from {clip} on": value for clip, one in asked.items() for value in one.numbers.values()
    }
    costs = "hidden, far keys cost " + ", ".join(
        f"{value:+.3f} {name[7:]}" for name, value in numbers.items()
    )
    held = [clip for clip, one in asked.items() if one.word == REPRODUCED]
    farthest = max(held, default=0)
    is_open = [clip for clip, one in asked.items() if one.word == UNDECIDED and clip > farthest]
    if not held:
        word = UNDECIDED if is_open else NOT_TESTABLE
        return Verdict(word, f"far keys are not shown to be used: {costs}", numbers=whole.numbers | numbers)
    judged = judge(table, [FAR[farthest]])
    word = UNDECIDED if is_open and judged.word == NOT_REPRODUCED else judged.word
    nearer = [FAR[clip] for clip in held if clip < farthest]
    threshold = judge(table, nearer).answers if nearer else ()
    why = f"{judged.why}; decided at {farthest}, smaller clips say where the threshold lies; {costs}"
    answers = (*judged.answers, *threshold)
    return Verdict(word, why, answers, {one.name: one.value for one in answers} | numbers)


_shaw = partial(Claim, experiments=(TABLE,))

CLAIMS = {
    "precise-position-is-useless-far-away": _shaw(
        "Precise position is useless far away",
        [*FAR.values(), *USED.values()],
        rule="At the largest of the distances 4, 8 and 16 at which far keys are used, vectors clipped there "
        "minus unclipped ones are below +0.03 bits per byte. Used means: hidden from the unclipped model, "
        "all of them or all but the first four, the keys from there on cost it more than 0.03 either way. "
        "Not testable if they are used at none of the three. The smaller distances do not move the verdict: "
        "they show where the threshold lies. A clip that costs more decides nothing while it is open "
        "whether keys farther out are used.",
        source="notes-positional-encoding",
        floors=(BAR,),
        derive=cost_of_hiding,
        how=useless_far_away,
    ),
    "precise-position-helps-nearby": _shaw(
        "Precise position helps nearby",
        pairs("keys-8 - keys-1", high=0.0),
        floors=(Floor(4.0),),
        remark="One has labels of their own for the nearest eight distances, the other one for the token "
        "itself and one for all earlier tokens. The bar is 4.0, below the entropy of single bytes (about "
        "4.48): a model that its clip holds back is to be judged and not refused.",
    ),
}
