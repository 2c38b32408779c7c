"""Chapter 18: a position stream of SeqPE, and what it costs. Experiments `seqpe_stream` and `seqpe_cost`.

Written before its records. Known were those of the methods beside it; one seed of each dense form at three
rates on validation text (`encoding_screen`); and, of one to three seeds, `dense-seqpe-score` on the same
novels (`encodings`). What the stream is worth beside others was asked when it was known that no model
trained at eight lengths gains from far text.

*SeqPE* is trained at random offsets and with both losses; the sinusoid beside it at the same offsets. Methods
without either are those of `recipes`, and ALiBi of `extrapolation`, with the same seeds on the same bytes.
Rates of this experiment were chosen after the whole schedule, those of others after 500 of its 1,200 steps.
Starts never seen are at about twice the largest position and at more than ten times; scores of the two starts
of a kind are averaged before seeds are compared.

**Cost.** Written before its records. A record is one machine, timed in rounds.
"""

from collections.abc import Sequence
from functools import partial

import pandas as pd

from sepnb.claims import extrapolation, recipes
from sepnb.claims.asks import FAR, Ask, Unless, against, changes, each, gap, levels, pairs, unless_neither
from sepnb.claims.claim import Claim
from sepnb.claims.evidence import by_rounds
from sepnb.claims.language_model import BAR
from sepnb.records.verdicts import SURVIVES

TABLE, COST = "experiment/seqpe_stream", "experiment/seqpe_cost"

MODES = ("separated", "strict")
BOTH = ("separated-seqpe", "strict-seqpe")
SCORE = "dense-seqpe-score"
KINDS = ("aligned", "misaligned")

BESIDE = {recipes.TABLE: ("sinusoidal", "separated-sinusoidal", "strict-sinusoidal", "rope")}


def far(group: str, kinds: Sequence[str] = KINDS) -> list[str]:
    """The columns of the trained length at the starts of a group."""
    return [f"native-at-{group}-{kind}" for kind in kinds]


def averaged(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """A column for each kind of start, the mean over its two."""
    two = {one: table.reindex(columns=[f"{one}-1", f"{one}-2"]).astype(float) for one in columns}
    return pd.DataFrame({one: values.mean(axis=1, skipna=False) for one, values in two.items()})


def averaged_starts(table: pd.DataFrame) -> pd.DataFrame:
    """Each kind of start averaged."""
    return averaged(table, [*far("covered"), *far("never-seen")])


def as_shares(table: pd.DataFrame) -> pd.DataFrame:
    """`added`, the share of a step by which it is longer than without an encoding."""
    ends = ("", "_lower", "_upper")
    longer = table.reindex(columns=[f"longer{end}" for end in ends]).astype(float)
    return pd.DataFrame({f"added{end}": 1 - 1 / longer[f"longer{end}"] for end in ends})


HEARD = Unless(
    tuple(Ask("none", model, low=0.2) for model in BOTH),
    "both are not 0.2 below the model without positions, which reads all of them alike",
)

REPAIRS = Unless(
    changes(each("{}-seqpe-plain", MODES), [("+".join(far("covered")), "native/1x")], low=0.03),
    "digit strings alone cost less than 0.03 more there: nothing to repair",
)
"""Else such a model hardly uses the indices that training covers, and to read them alike says nothing."""


def knows_bytes(quantity: str) -> Ask:
    """Below the entropy of single bytes."""
    return Ask(quantity, f"{quantity.partition(':')[0]}:unigram_bits_per_byte", high=0.0)


def better_far_away(*of: str) -> dict:
    """The first of each pair pays less than the second at starts that no loss ever saw."""
    why = "neither is below the entropy of single bytes"
    return unless_neither(pairs(of, *far("never-seen"), high=0.0), knows_bytes, why)


_of = partial(Claim, experiment=TABLE, floors=(BAR._replace(but="none"),), derive=averaged_starts)
_heard = partial(_of, beside={"experiment/encodings": ("none",)}, unless=HEARD)
_beside = partial(_of, beside=BESIDE)
_cost = partial(Claim, experiment=COST, derive=as_shares, how=by_rounds)

CLAIMS = {
    "seqpe-survives": _heard(
        "A position stream of SeqPE survives past the trained length",
        levels(BOTH, *gap("native"), high=SURVIVES),
    ),
    "seqpe-reads-covered-indices-alike": _heard(
        "SeqPE reads alike at all indices that its training covers",
        changes(BOTH, [(column, "native/1x") for column in far("covered")], high=0.03),
        unless=(HEARD, REPAIRS),
    ),
    "seqpe-beats-the-sinusoid-at-far-indices": _of(
        "At far indices SeqPE is better than a sinusoid",
        **better_far_away(*each("{}-seqpe - {}-sinusoidal-shifts", MODES)),
    ),
    "distillation-further-enhances-extrapolation": _of(
        "The distillation helps SeqPE as a term of the score in longer texts",
        pairs(f"{SCORE} - {SCORE}-contrastive", *gap("native"), high=0.0),
        source="seqpe-abstract",
        remark="Both are trained at the same random offsets, at the rate that was swept with both losses.",
    ),
    "the-losses-carry-the-stream-further": _of(
        "The two losses help at indices never seen",
        **better_far_away("separated-seqpe - separated-seqpe-shifts"),
    ),
    "seqpe-is-free-in-window": _beside(
        "Inside the trained length a stream of SeqPE costs nothing",
        pairs(each("{}-seqpe - {}-sinusoidal", MODES), high=0.02),
    ),
    "separation-helps-seqpe": _of(
        "The separation carries SeqPE further",
        pairs("separated-seqpe - dense-seqpe", *gap("native"), high=0.0),
        remark="The distillation cuts the 128 columns of the dense model into two heads; the 32 of the "
        "stream are one.",
    ),
    "seqpe-surpasses-strong-baselines": _beside(
        "In language modelling SeqPE surpasses strong baselines",
        against(SCORE, "sinusoidal, rope", high=0.0),
        source="seqpe-abstract",
        remark="SeqPE has the rate that was best after the whole schedule, the other two that after 500 of "
        "its 1,200 steps. Encoder and training are not as released: the encoder has a quarter of the "
        "model's width, decays and is clipped with the model, and the contrastive loss is scaled.",
    ),
    "seqpe-surpasses-them-past-the-length": _of(
        "In longer texts SeqPE surpasses strong baselines",
        against(SCORE, "dense-sinusoidal-shifts, rope, alibi", *each("native/{}", FAR), high=0.0),
        source="seqpe-abstract",
        beside=BESIDE | {extrapolation.TABLE: ("alibi",)},
        remark="The rates of RoPE and ALiBi were chosen after 500 of 1,200 steps.",
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
