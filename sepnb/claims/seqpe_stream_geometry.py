"""Experiments `seqpe_stream_geometry` and `seqpe_cost` (chapter 16): where the embeddings of SeqPE lie, and
what they cost.

**Where embeddings lie.** *Moved* is how far a window of the stream lies from the trained one, place by place,
*narrowed* its spread, both in units of the spread of the trained window: its own places in an order drawn at
random have moved by 1.41. The unit shrinks with the resolution, so that the two are not independent. Rules on
windows were written when the bits per byte of one seed in `seqpe_stream` were known, and the same measures of
strict models of the size of a smoke test, trained for 240 steps with three seeds.

A position is *folded* where the curve of embeddings repeats itself: to some embedding a sixteenth of a
trained length or more before it a position is nearer than half of how near it is to the one exactly so far
before. Rules on folds were written when curves and costs of seeds 1 to 5 were known, and are about seeds 7 to
18, of which nothing was: those whose curve folds at eight positions or more between one and eight trained
lengths.

**Cost.** Written before its records. A record is one machine, timed in rounds.
"""

from functools import partial

import numpy as np
import pandas as pd

from sepnb.claims.asks import changes, levels, pairs
from sepnb.claims.claim import Claim
from sepnb.claims.evidence import incomplete, judge
from sepnb.claims.measured import by_rounds
from sepnb.claims.seqpe_stream import GROUPS, KINDS, SCORE, TABLE, averaged
from sepnb.claims.verdict import Tables, Verdict
from sepnb.records.verdicts import NOT_TESTABLE

GEOMETRY = "experiment/seqpe_stream_geometry"
COST = "experiment/seqpe_cost"

CHAIN = tuple(f"separated-seqpe{stage}" for stage in ("-plain", "-shifts", "-contrastive", ""))
"""The models of the geometry, each with one change of the one before."""


def logarithms(table: pd.DataFrame) -> pd.DataFrame:
    """`moved` and `narrowed` averaged over the two starts of a kind, and their logarithms to base
    2 as `log2 <column>`."""
    names = [f"{m}/{g}-{k}" for m in ("moved", "narrowed") for g in GROUPS for k in KINDS]
    means = averaged(table, names)
    return means.assign(**{f"log2 {one}": np.log2(means[one].where(means[one] > 0)) for one in names})


def ranks(claim: Claim, tables: Tables) -> Verdict:
    """Spearman's correlation, in each seed, of how far a window moved with what its start costs."""
    ours, costs = map(tables.get, claim.experiments)
    if obstacle := incomplete(ours, CHAIN) or incomplete(costs, CHAIN):
        return obstacle
    own = ours[ours.method.isin(CHAIN)]
    joined = own.merge(costs, on=["method", "seed"], suffixes=("", " of the costs"))
    at = [f"{group}-{kind}-{n}" for group in GROUPS for kind in KINDS for n in (1, 2)]
    found = []
    for seed, runs in joined.groupby("seed"):
        moved = runs[[f"moved/{one}" for one in at]].astype(float)
        paid = runs[[f"native-at-{one}" for one in at]].astype(float)
        paid = paid.sub(runs["native/1x"].astype(float), axis=0)
        one, other = (pd.Series(values.to_numpy().ravel()).rank() for values in (moved, paid))
        rank = one.corr(other) if one.notna().all() and other.notna().all() else float("nan")
        found.append({"method": "chain", "seed": seed, "status": "ok", "rank": rank})
    return judge(pd.DataFrame(found), claim.asks)


def where_curves_fold(claim: Claim, tables: Tables) -> Verdict:
    """Over the seeds from 7 on whose curve folds at eight positions or more."""
    table = tables.get(claim.experiments[0])
    if obstacle := incomplete(table, [SCORE]):
        return obstacle
    own = table[(table.method == SCORE) & (table.seed > 6) & (table.folded.astype(float) >= 8)]
    return Verdict(NOT_TESTABLE, "the curve of no model turns back") if own.empty else judge(own, claim.asks)


def as_shares(table: pd.DataFrame) -> pd.DataFrame:
    """`added`, the share of a step by which it is longer than without an encoding."""
    ends = ("", "_lower", "_upper")
    longer = table.reindex(columns=[f"longer{end}" for end in ends]).astype(float)
    return pd.DataFrame({f"added{end}": 1 - 1 / longer[f"longer{end}"] for end in ends})


_geometry = partial(Claim, experiments=(GEOMETRY,), derive=logarithms)
_folds = partial(Claim, experiments=(GEOMETRY,), how=where_curves_fold)
_cost = partial(Claim, experiments=(COST,), derive=as_shares, how=by_rounds)

CLAIMS = {
    "the-losses-move-an-aligned-window": _geometry(
        "The losses move a window that random offsets leave in place",
        pairs("separated-seqpe - separated-seqpe-shifts", "log2 moved/covered-aligned", low=1.0),
        remark="One more is twice as far.",
    ),
    "the-losses-narrow-far-windows": _geometry(
        "The losses narrow windows elsewhere",
        pairs(
            "separated-seqpe - separated-seqpe-shifts",
            *(f"log2 narrowed/covered-{kind}" for kind in KINDS),
            high=-1.0,
        ),
        remark="One less is half.",
    ),
    "the-losses-cost-resolution": _geometry(
        "The losses cost resolution in the trained window",
        pairs("separated-seqpe - separated-seqpe-shifts", "resolution", high=0.0),
        remark="Resolution is the spread of the window over the mean length of its embeddings.",
    ),
    "a-start-costs-what-its-window-moved": _geometry(
        "A start costs the more the farther its window moved",
        levels("chain", "rank", low=0.5),
        rule="Over the eight starts of the four models of a seed, the rank correlation of how far a window "
        "moved with what the same bytes cost more there than from 0 on, in the same model, is above 0.5 "
        "(Spearman, one value a seed).",
        experiments=(GEOMETRY, TABLE),
        how=ranks,
    ),
    "seqpe-fails-where-its-curve-turns-back": _folds(
        "SeqPE fails where the curve of its embeddings turns back",
        changes(SCORE, [("bits/folded", "bits/others")], low=0.5),
        rule="In a long text, past the trained length, bytes at folded positions cost dense with SeqPE as a "
        "term of the score more than 0.5 bits per byte more than bytes at the others, in the mean over each.",
    ),
    "it-is-the-look-alike-in-sight": _folds(
        "SeqPE fails at folded positions because of a look-alike that is visible",
        changes(SCORE, [("alone/folded", "alone/first")], high=0.1),
        rule="Of the same models: read from the first folded position on, at that index and with nothing "
        "before it, the bytes of its run of folded positions cost less than 0.1 bits per byte more than "
        "read from 0 on.",
    ),
    "positions-that-are-not-folded-mend-it": _folds(
        "Read at positions that do not fold, the same models of SeqPE do not fail",
        changes(SCORE, [("mended/past", "past")], high=0.0)
        + changes(SCORE, [("mended/past", "bits/others")], high=0.05),
        rule="Of the same models: where the text is read at the positions that are not folded, in their "
        "order, all bytes past the trained length together cost less than as first read (difference below "
        "0), and less than 0.05 bits per byte more than those that first stood at positions that are not "
        "folded.",
    ),
    "the-encoder-is-lightweight": _cost(
        "SeqPE's encoder is lightweight",
        levels("width-32-every-1", "share", high=0.05),
        rule="With an encoder of 32 columns and both losses in every step, on the profile's batch of "
        "sequences of 512 tokens, what is done for positions alone takes less than 5 % of the time of a "
        "training step, in three quarters of the rounds. Left out is that the term of the score makes "
        "queries and keys longer.",
        source="seqpe-abstract",
    ),
    "all-that-seqpe-adds-is-light": _cost(
        "All that SeqPE adds to a training step is light",
        levels("width-32-every-1", "added", high=0.05),
        rule="With the same encoder and losses on the same batch, everything by which the step is longer "
        "than without an encoding takes less than 5 % of its time, in three quarters of the rounds.",
    ),
}
