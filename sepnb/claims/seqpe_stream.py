"""Experiment `seqpe_stream` (chapter 16): a position stream of SeqPE.

Written before its records. Known were those of the methods beside it; one seed of each dense
form at three rates on validation text (`encoding_screen`); and, of one to three seeds, the model and training
of `dense-seqpe-score` on the same novels (`encodings`). *Gap*, *gain* and bins are those of `claims.recipes`.
*Covered* starts lie below the largest position of shift steps and losses, the others past it, two at about
twice it and two at more than ten times; *aligned* ones leave the low digits of a window as they are in the
trained one. Scores of the two starts of a kind are averaged before seeds are compared. *SeqPE* is trained at
shift steps and with both losses; the sinusoid beside it at the same shift steps. Methods without either are
those of `recipes`, with the same seeds on the same bytes; past the trained length ALiBi of `extrapolation`
reads the same bytes too.

Methods with digit strings have the learning rate that `seqpe_stream_screen` chose for their mode with shift
steps and both losses, the sinusoid the one that it chose with shift steps, after the whole schedule. The
methods of other experiments have rates that were chosen after 500 of its 1,200 steps. What the stream is
worth beside others was asked when it was known that the text has nothing to give past the trained length, by
the records of `extrapolation`, so that `a-seqpe-stream-uses-the-far-past` is *not testable here* whatever
these models do.
"""

from collections.abc import Sequence
from functools import partial

import pandas as pd

from sepnb.claims import extrapolation, recipes
from sepnb.claims.asks import FAR, Ask, Unless, against, changes, each, gap, levels, pairs
from sepnb.claims.claim import Claim
from sepnb.claims.extrapolation import TEXT_HAS_MORE
from sepnb.claims.language_model import BAR

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
"""Both models are more than 0.2 below the model without positions of `encodings`, inside the trained
length."""


def repairs(group: str, *modes: str) -> Unless:
    """Digit strings alone, without shift steps and losses, cost more than 0.03 more at the starts of this
    group than from 0 on: else such a model hardly hears its indices there, and to read them alike says
    nothing."""
    plain = [f"{mode}-seqpe-plain" for mode in modes]
    asks = changes(plain, [("+".join(far(group)), "native/1x")], low=0.03)
    return Unless(tuple(asks), "digit strings alone cost less than 0.03 more there: nothing to repair")


def better_far_away(*of: str) -> dict:
    """The first of each pair pays less than the second at starts that no loss ever saw; unless, at those of a
    kind, neither is below the entropy of single bytes: of two that know nothing none is better."""
    known = (
        Unless(
            tuple(
                Ask(f"{model}:{start}", f"{model}:unigram_bits_per_byte", high=0.0)
                for model in pair.split(" - ")
            ),
            "neither is below the entropy of single bytes",
            any=True,
        )
        for pair in of
        for start in far("never-seen")
    )
    return {"asks": pairs(of, *far("never-seen"), high=0.0), "unless": tuple(known)}


def starts(group: str) -> list[Ask]:
    """The same bytes cost both models less than 0.03 more at the starts of a group than from 0 on."""
    return changes(BOTH, [(column, "native/1x") for column in far(group)], high=0.03)


_of = partial(Claim, experiments=(TABLE,), floors=(BAR._replace(but="none"),), derive=averaged_starts)
_heard = partial(_of, beside=WITHOUT)
_beside = partial(_of, beside=BESIDE)

CLAIMS = (
    _heard(
        "seqpe-survives",
        "A position stream of SeqPE survives past the trained length",
        levels(BOTH, *gap("native"), high=0.03),
        statement="A position stream of SeqPE, trained at shift steps and with both losses, reads texts of "
        "eight times the trained length as well as through a sliding window.",
        unless=(HEARD,),
    ),
    _heard(
        "seqpe-and-a-window-survive",
        "With a window a position stream of SeqPE survives",
        levels(BOTH, *gap("native-window"), high=0.03),
        unless=(HEARD,),
    ),
    _heard(
        "seqpe-reads-covered-indices-alike",
        "SeqPE reads alike at all indices that its training covers",
        starts("covered"),
        unless=(HEARD, repairs("covered", "separated", "strict")),
    ),
    _heard(
        "seqpe-reaches-indices-never-seen",
        "SeqPE reads alike at indices that no loss ever saw",
        starts("never-seen"),
        unless=(HEARD, repairs("never-seen", "separated", "strict")),
    ),
    _of(
        "shift-steps-help-a-stream-of-digit-strings",
        "Shift steps help a stream of digit strings",
        pairs("separated-seqpe-shifts - separated-seqpe-plain", *far("covered"), high=-0.03),
        unless=(repairs("covered", "separated"),),
    ),
    _of(
        "shift-steps-help-beside-the-losses",
        "Shift steps help beside the losses",
        pairs("separated-seqpe - separated-seqpe-still", *far("covered"), high=-0.03),
        unless=(repairs("covered", "separated"),),
    ),
    _heard(
        "misaligned-starts-cost-more",
        "Starts that break the shared digits cost more",
        changes(BOTH, [("native-at-never-seen-misaligned", "native-at-never-seen-aligned")], low=0.03),
        unless=(HEARD,),
    ),
    _of(
        "seqpe-beats-the-sinusoid-at-far-indices",
        "At far indices SeqPE is better than a sinusoid",
        **better_far_away(*each("{}-seqpe - {}-sinusoidal-shifts", MODES)),
    ),
    _of(
        "seqpe-beats-the-sinusoid-past-the-length",
        "In longer texts SeqPE loses less than a sinusoid",
        pairs(each("{}-seqpe - {}-sinusoidal-shifts", MODES), *gap("native"), high=0.0),
    ),
    _of(
        "distillation-carries-the-stream-further",
        "The distillation helps at indices never seen",
        **better_far_away("separated-seqpe - separated-seqpe-contrastive"),
    ),
    _of(
        "distillation-helps-past-the-length",
        "The distillation helps the stream in longer texts",
        pairs("separated-seqpe - separated-seqpe-contrastive", *gap("native"), high=0.0),
        remark="As a position stream SeqPE was not released.",
    ),
    _of(
        "distillation-further-enhances-extrapolation",
        "The distillation helps SeqPE as a term of the score in longer texts",
        pairs(f"{SCORE} - {SCORE}-contrastive", *gap("native"), high=0.0),
        statement="The distillation further enhances extrapolation: past the trained length SeqPE in a term "
        "of the score loses less with it than with the contrastive loss alone.",
        source="seqpe-abstract",
        remark="Both are trained at the same shift steps, and at the rate that was swept with both losses.",
    ),
    _of(
        "the-losses-carry-the-stream-further",
        "The two losses help at indices never seen",
        **better_far_away("separated-seqpe - separated-seqpe-shifts"),
    ),
    _beside(
        "seqpe-is-free-in-window",
        "Inside the trained length a stream of SeqPE costs nothing",
        pairs(each("{}-seqpe - {}-sinusoidal", MODES), high=0.02),
    ),
    _beside(
        "a-seqpe-stream-stands-beside-rope",
        "A separated model with a stream of SeqPE matches RoPE",
        [
            Ask("separated-seqpe", "rope", high=0.02),
            *(Ask(f"separated-seqpe:native/{k}", f"rope:native-window/{k}", high=0.02) for k in FAR),
        ],
    ),
    _of(
        "a-seqpe-stream-uses-the-far-past",
        "With a stream of SeqPE a model uses the far past",
        levels(BOTH, "least", low=0.0),
        beside=recipes.LONG,
        unless=(TEXT_HAS_MORE,),
        remark="A model's margin is, in each seed, the smaller of 0.03 minus the largest gap and the gain "
        "minus 0.02. A gain does not tell use from being disturbed by foreign text.",
    ),
    _of(
        "separation-helps-seqpe",
        "The separation carries SeqPE further",
        pairs("separated-seqpe - dense-seqpe", *gap("native"), high=0.0),
        remark="The distillation cuts the 128 columns of the dense model into two heads; the 32 of the "
        "stream are one.",
    ),
    _beside(
        "seqpe-surpasses-strong-baselines",
        "In language modelling SeqPE surpasses strong baselines",
        against(SCORE, "sinusoidal, rope", high=0.0),
        statement="In language modelling SeqPE surpasses strong baselines in perplexity.",
        source="seqpe-abstract",
        remark="SeqPE has the rate that was best after the whole schedule, the other two that after 500 of "
        "its 1,200 steps. Encoder and training are not as released: the encoder has a quarter of the "
        "model's width, decays and is clipped with the model, and the contrastive loss is scaled.",
    ),
    _of(
        "seqpe-surpasses-them-past-the-length",
        "In longer texts SeqPE surpasses strong baselines",
        against(SCORE, "dense-sinusoidal-shifts, rope, alibi", *each("native/{}", FAR), high=0.0),
        statement="SeqPE surpasses strong baselines where texts are longer than in training.",
        source="seqpe-abstract",
        beside=BESIDE | ALIBI,
        remark="The rates of RoPE and ALiBi were chosen after 500 of 1,200 steps.",
    ),
)
