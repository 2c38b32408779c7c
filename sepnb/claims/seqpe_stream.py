"""Experiment `seqpe_stream` (chapter 16): a position stream of SeqPE.

Written before its records. Known were those of the methods beside it; one seed of each dense form at three
rates on validation text (`encoding_screen`); and, of one to three seeds, `dense-seqpe-score` on the same
novels (`encodings`). What the stream is worth beside others was asked when it was known that no model
trained at eight lengths gains from far text, so that `a-seqpe-stream-uses-the-far-past` is *not testable
here* whatever these models do.

*SeqPE* is trained at random offsets and with both losses; the sinusoid beside it at the same offsets. Methods
without either are those of `recipes`, and ALiBi of `extrapolation`, with the same seeds on the same bytes.
Rates of this experiment were chosen after the whole schedule, those of others after 500 of its 1,200 steps.
Starts never seen are at about twice the largest position and at more than ten times; scores of the two starts
of a kind are averaged before seeds are compared.
"""

from collections.abc import Sequence
from functools import partial

import pandas as pd

from sepnb.claims import extrapolation, recipes
from sepnb.claims.asks import FAR, Ask, Unless, against, changes, each, gap, levels, pairs
from sepnb.claims.claim import Claim
from sepnb.claims.extrapolation import FAR_TEXT_PAYS
from sepnb.claims.language_model import BAR
from sepnb.records.verdicts import SURVIVES

TABLE = "experiment/seqpe_stream"

MODES = ("separated", "strict")
BOTH = ("separated-seqpe", "strict-seqpe")
SCORE = "dense-seqpe-score"
GROUPS = ("covered", "never-seen")
KINDS = ("aligned", "misaligned")

WITHOUT = {"experiment/encodings": ("none",)}
BESIDE = {recipes.TABLE: ("sinusoidal", "separated-sinusoidal", "strict-sinusoidal", "rope")}
ALIBI = {extrapolation.TABLE: ("alibi",)}


def far(group: str, kinds: Sequence[str] = KINDS) -> list[str]:
    """The columns of the trained length at the starts of a group."""
    return [f"native-at-{group}-{kind}" for kind in kinds]


def averaged(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """A column for each kind of start, the mean over its two."""
    two = {one: table.reindex(columns=[f"{one}-1", f"{one}-2"]).astype(float) for one in columns}
    return pd.DataFrame({one: values.mean(axis=1, skipna=False) for one, values in two.items()})


def averaged_starts(table: pd.DataFrame) -> pd.DataFrame:
    """Each kind of start averaged, and `least`: of each run the smaller of 0.03 minus its largest
    gap and its gain minus 0.02."""
    read = table.reindex(columns=[*gap("native"), "gain/8x"]).astype(float)
    largest = read[gap("native")].max(axis=1, skipna=False)
    least = pd.DataFrame({"survives": 0.03 - largest, "uses": read["gain/8x"] - 0.02}).min(
        axis=1, skipna=False
    )
    return averaged(table, [*far("covered"), *far("never-seen")]).assign(least=least)


HEARD = Unless(
    tuple(Ask("none", model, low=0.2) for model in BOTH),
    "both are not 0.2 below the model without positions, which reads all of them alike",
)


def repairs(group: str, *modes: str) -> Unless:
    """Digit strings alone cost more than 0.03 more at the starts of this group than from 0 on: else such a
    model hardly uses its indices there, and to read them alike says nothing."""
    plain = [f"{mode}-seqpe-plain" for mode in modes]
    asks = changes(plain, [("+".join(far(group)), "native/1x")], low=0.03)
    return Unless(tuple(asks), "digit strings alone cost less than 0.03 more there: nothing to repair")


def better_far_away(*of: str) -> dict:
    """The first of each pair pays less than the second at starts that no loss ever saw. Where neither is
    below the entropy of single bytes none is better: of two that know nothing."""
    asks = pairs(of, *far("never-seen"), high=0.0)
    known = [
        [Ask(name, f"{name.partition(':')[0]}:unigram_bits_per_byte", high=0.0) for name in (ask.a, ask.b)]
        for ask in asks
    ]
    unless = [
        Unless(both, "neither is below the entropy of single bytes", any=True, of=ask)
        for ask, both in zip(asks, known, strict=True)
    ]
    return {"asks": asks, "unless": unless}


def starts(group: str) -> list[Ask]:
    """The same bytes cost both models less than 0.03 more at the starts of a group than from 0 on."""
    return changes(BOTH, [(column, "native/1x") for column in far(group)], high=0.03)


_of = partial(Claim, experiments=(TABLE,), floors=(BAR._replace(but="none"),), derive=averaged_starts)
_heard = partial(_of, beside=WITHOUT, unless=HEARD)
_beside = partial(_of, beside=BESIDE)

CLAIMS = {
    "seqpe-survives": _heard(
        "A position stream of SeqPE survives past the trained length",
        levels(BOTH, *gap("native"), high=SURVIVES),
    ),
    "seqpe-and-a-window-survive": _heard(
        "With a window a position stream of SeqPE survives",
        levels(BOTH, *gap("native-window"), high=SURVIVES),
    ),
    "seqpe-reads-covered-indices-alike": _heard(
        "SeqPE reads alike at all indices that its training covers",
        starts("covered"),
        unless=(HEARD, repairs("covered", "separated", "strict")),
    ),
    "seqpe-reaches-indices-never-seen": _heard(
        "SeqPE reads alike at indices that no loss ever saw",
        starts("never-seen"),
        unless=(HEARD, repairs("never-seen", "separated", "strict")),
    ),
    "shift-steps-help-a-stream-of-digit-strings": _of(
        "Random offsets help a stream of digit strings",
        pairs("separated-seqpe-shifts - separated-seqpe-plain", *far("covered"), high=-0.03),
        unless=repairs("covered", "separated"),
    ),
    "shift-steps-help-beside-the-losses": _of(
        "Random offsets help beside the losses",
        pairs("separated-seqpe - separated-seqpe-still", *far("covered"), high=-0.03),
        unless=repairs("covered", "separated"),
    ),
    "misaligned-starts-cost-more": _heard(
        "Starts that break the shared digits cost more",
        changes(BOTH, [("native-at-never-seen-misaligned", "native-at-never-seen-aligned")], low=0.03),
    ),
    "seqpe-beats-the-sinusoid-at-far-indices": _of(
        "At far indices SeqPE is better than a sinusoid",
        **better_far_away(*each("{}-seqpe - {}-sinusoidal-shifts", MODES)),
    ),
    "seqpe-beats-the-sinusoid-past-the-length": _of(
        "In longer texts SeqPE loses less than a sinusoid",
        pairs(each("{}-seqpe - {}-sinusoidal-shifts", MODES), *gap("native"), high=0.0),
    ),
    "distillation-carries-the-stream-further": _of(
        "The distillation helps at indices never seen",
        **better_far_away("separated-seqpe - separated-seqpe-contrastive"),
    ),
    "distillation-helps-past-the-length": _of(
        "The distillation helps the stream in longer texts",
        pairs("separated-seqpe - separated-seqpe-contrastive", *gap("native"), high=0.0),
        remark="As a position stream SeqPE was not released.",
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
    "a-seqpe-stream-stands-beside-rope": _beside(
        "A separated model with a stream of SeqPE matches RoPE",
        [
            Ask("separated-seqpe", "rope", high=0.02),
            *(Ask(f"separated-seqpe:native/{k}", f"rope:native-window/{k}", high=0.02) for k in FAR),
        ],
    ),
    "a-seqpe-stream-uses-the-far-past": _of(
        "With a stream of SeqPE a model uses the far past",
        levels(BOTH, "least", low=0.0),
        beside=recipes.LONG,
        unless=FAR_TEXT_PAYS,
        remark="A model's margin is, in each seed, the smaller of 0.03 minus the largest gap and the gain "
        "minus 0.02. A gain does not tell use from being disturbed by foreign text.",
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
        beside=BESIDE | ALIBI,
        remark="The rates of RoPE and ALiBi were chosen after 500 of 1,200 steps.",
    ),
}
