"""Experiment `inside` (chapter 21): what the layers hold, and what a new index does to them.

Written before its records. The *content* is the sem stream of a separated model and the whole state of a
dense one. Its *drift* is how far the final state of a text moves when the text starts elsewhere, in units of
the norm of that state; past the trained length it is the mean over three starts.
"""

from functools import partial

import pandas as pd

from sepnb.claims.asks import Ask, Unless, levels
from sepnb.claims.claim import Claim
from sepnb.claims.evidence import inside, judge, share
from sepnb.claims.extrapolation import FIVE
from sepnb.claims.language_model import BAR
from sepnb.claims.verdict import Tables, Verdict
from sepnb.records.run_table import RunTable
from sepnb.records.verdicts import NOT_REPRODUCED, NOT_RUN, NOT_TESTABLE, PARTLY, REPRODUCED, UNDECIDED

LEARNED = "separated-learned"
ADDED = [f"added drift/{name}" for name in FIVE]


def added_drift(table: pd.DataFrame) -> pd.DataFrame:
    """`added drift/<rule>`: the drift under a rule past the trained length minus that of a text
    that starts half-way inside it, where every index was trained."""
    drifts = table.reindex(columns=["drift/trained", *(f"drift/{name}" for name in FIVE)]).astype(float)
    added = {f"added drift/{name}": drifts[f"drift/{name}"] - drifts["drift/trained"] for name in FIVE}
    return pd.DataFrame(added)


def routing_alone(claim: Claim, tables: Tables) -> Verdict:
    """The largest movement of each separated model, over all its runs, is exactly 0."""
    table, (condition,) = claim.table(tables), claim.unless
    for ask in [*condition.asks, *claim.asks]:  # the models have different seeds
        found = judge(table, [ask], floors=claim.floors)
        if found.word in (NOT_RUN, NOT_TESTABLE):
            return found
    runs = RunTable(table)
    numbers = {f"{ask.a}, most": float(runs.each(ask.a).max()) for ask in claim.asks}
    still = [value == 0.0 for value in numbers.values()]
    least = {f"{ask.a}, least": float(runs.each(ask.a).min()) for ask in condition.asks}
    seen = [f"{name} {value:.3g}" for name, value in (numbers | least).items()]
    if not all(map(inside, least.values(), condition.asks)):
        return Verdict(NOT_TESTABLE, condition.why, seen=tuple(seen), numbers=numbers | least)
    return Verdict(share(still), "; ".join(seen), numbers=numbers | least)


def index_or_its_logarithm(claim: Claim, tables: Tables) -> Verdict:
    """The index is readable; or, in part, its logarithm."""
    rules = {"floors": claim.floors, "unless": claim.unless}
    index, logarithm = (judge(claim.table(tables), [ask], **rules) for ask in claim.asks)
    if index.word != NOT_REPRODUCED:
        return index
    word = {REPRODUCED: PARTLY, NOT_REPRODUCED: NOT_REPRODUCED}.get(logarithm.word, UNDECIDED)
    return Verdict(word, index.why, index.answers + logarithm.answers)


_inside = partial(Claim, experiment="experiment/inside", floors=(BAR,))

CLAIMS = {
    "semantic-integrity-is-preserved": _inside(
        "Extrapolating the position leaves the content as it was",
        levels(LEARNED, *ADDED, high=0.1),
        source="slides-separation",
        parts=True,
        derive=added_drift,
        unless=Unless(
            [Ask(f"{LEARNED}:another_text", low=0.5)],
            "different texts are less than 0.5 apart in the same unit",
        ),
    ),
    "only-the-routing-hears-a-new-index": _inside(
        "A new index reaches the content through attention weights alone",
        levels(f"{LEARNED}, separated-sinusoidal, strict-learned", "held", low=0.0, high=0.0),
        rule="With every head attending as it does at index 0, the content of a text read past the trained "
        "length does not move at all (drift exactly 0, in every run, rule and layer) in separated learned, "
        "separated sinusoidal and strict learned; in some of the three, *partly*. Not testable unless it "
        "moves by more than 0.001 in every run of dense learned.",
        parts=True,
        unless=Unless([Ask("learned:held", low=1e-3)], "nothing moves in the dense model either"),
        how=routing_alone,
    ),
    "position-is-readable-without-an-encoding": _inside(
        "Without an encoding a causal model still learns where its tokens are",
        levels("none", "index/joint", "log_index/joint", low=0.5),
        rule="In the dense model without an encoding a linear probe, at its best layer, explains more than "
        "half of the variance of the index, at positions and in documents that it was not fitted on; if it "
        "explains that much of the logarithm of the index only, *partly*. Not testable unless the same "
        "probe on the embedding explains less than 0.05.",
        source="ours, after Haviv et al. (2022)",
        parts=True,
        unless=Unless([Ask("none:input/joint", high=0.05)], "the embedding tells the index already"),
        how=index_or_its_logarithm,
    ),
    "pos-stream-carries-almost-no-text": _inside(
        "The position stream carries almost no text",
        levels(LEARNED, "text/pos", high=0.01)
        + levels(LEARNED, "byte/pos", "byte/pos_less_position", high=0.02),
        rule="In separated learned, at every layer, less than 1 % of the variance of the pos stream is "
        "between texts, and a linear probe on it names the current or the previous byte less than 0.02 more "
        "often than the most frequent byte is right; so also after the mean of each position is taken away. "
        "With some of the three, *partly*. Not testable unless the probe on the sem stream gains 0.2.",
        parts=True,
        unless=Unless([Ask(f"{LEARNED}:byte/sem", low=0.2)], "the probe finds no bytes where they are"),
    ),
    "content-hides-the-position": _inside(
        "The semantic stream hardly tells where a token stands",
        levels(LEARNED, "known/sem", high=0.1),
        rule="In separated learned a linear probe on the sem stream, at its best layer, explains less than "
        "0.1 of the variance of the index, even at positions that it was fitted on, in unseen documents. "
        "Not testable unless it explains more than 0.5 on the pos stream.",
        unless=Unless([Ask(f"{LEARNED}:known/pos", low=0.5)], "the probe finds no index where it is"),
    ),
}
