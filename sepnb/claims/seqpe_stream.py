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
    "hardly better than a model without positions, which reads all of them alike",
)
"""Both models are more than 0.2 below the model without positions of `encodings`, inside the trained
length."""


def repairs(group: str, *modes: str) -> Unless:
    """Digit strings alone, without shift steps and losses, cost more than 0.03 more at the starts of this
    group than from 0 on: else such a model hardly hears its indices there, and to read them alike says
    nothing."""
    plain = [f"{mode}-seqpe-plain" for mode in modes]
    asks = changes(plain, [("+".join(far(group)), "native/1x")], low=0.03)
    return Unless(tuple(asks), "digit strings alone cost hardly more there: nothing to repair")


def better_far_away(*of: str) -> dict:
    """The first of each pair pays less than the second at starts that no loss ever saw; unless, at those of a
    kind, neither is below the entropy of single bytes: of two that know nothing none is better."""
    known = (
        Unless(
            tuple(
                Ask(f"{model}:{start}", f"{model}:unigram_bits_per_byte", high=0.0)
                for model in pair.split(" - ")
            ),
            "not below the entropy of single bytes",
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
        "A position stream of SeqPE, trained at shift steps and with both losses, reads texts of eight "
        "times the trained length as well as through a sliding window.",
        "Separated and strict with SeqPE are less than +0.03 bits per byte above their own sliding windows "
        "at stride 1, at 2, 4 and 8 times the trained length, with all keys in sight. Not testable unless "
        "both are more than 0.2 below the model without positions inside the trained length.",
        levels(BOTH, *gap("native"), high=0.03),
        unless=(HEARD,),
    ),
    _heard(
        "seqpe-and-a-window-survive",
        "With a window a position stream of SeqPE survives",
        "It survives at least where each query sees no more keys than in training.",
        "The same two models, each query held to the last keys of one trained length, are less than +0.03 "
        "above their own sliding windows at stride 1, at 2, 4 and 8 times the trained length. Not testable "
        "unless both are more than 0.2 below the model without positions inside the trained length.",
        levels(BOTH, *gap("native-window"), high=0.03),
        unless=(HEARD,),
    ),
    _heard(
        "seqpe-reads-covered-indices-alike",
        "SeqPE reads alike at all indices that its training covers",
        "Shift steps and losses make a position stream of SeqPE indifferent to where, among the indices "
        "that they cover, a text begins.",
        "The same bytes cost separated and strict with SeqPE less than 0.03 bits per byte more at covered "
        "starts, aligned and misaligned, than from 0 on. Not testable unless they cost each of the two with "
        "digit strings alone, without shift steps and losses, more than 0.03 more there, in the mean over "
        "the four; and unless both are more than 0.2 below the model without positions inside the trained "
        "length.",
        starts("covered"),
        unless=(HEARD, repairs("covered", "separated", "strict")),
    ),
    _heard(
        "seqpe-reaches-indices-never-seen",
        "SeqPE reads alike at indices that no loss ever saw",
        "A position stream of SeqPE reads a text at indices past the largest that any loss saw as well as "
        "from the first on.",
        "The same bytes cost separated and strict with SeqPE less than 0.03 bits per byte more at starts "
        "that no loss ever saw, aligned and misaligned, than from 0 on. Not testable unless they cost each "
        "of the two with digit strings alone, without shift steps and losses, more than 0.03 more there, in "
        "the mean over the four; and unless both are more than 0.2 below the model without positions inside "
        "the trained length.",
        starts("never-seen"),
        unless=(HEARD, repairs("never-seen", "separated", "strict")),
    ),
    _of(
        "shift-steps-help-a-stream-of-digit-strings",
        "Shift steps help a stream of digit strings",
        "Among the indices that they cover, shift steps alone make a position stream of digit strings less "
        "sensitive to where a text begins.",
        "At covered starts, aligned and misaligned, separated with digit strings and shift steps, without "
        "the losses, pays more than 0.03 bits per byte less than without shift steps. Not testable unless "
        "the latter pays more than 0.03 more there than from 0 on, in the mean over the four starts.",
        pairs("separated-seqpe-shifts - separated-seqpe-plain", *far("covered"), high=-0.03),
        unless=(repairs("covered", "separated"),),
    ),
    _of(
        "shift-steps-help-beside-the-losses",
        "Shift steps help beside the losses",
        "Among the indices that they cover, shift steps make a position stream of SeqPE less sensitive to "
        "where a text begins, although its losses cover these indices too.",
        "At covered starts, aligned and misaligned, separated with both losses and shift steps pays more "
        "than 0.03 bits per byte less than with both losses and no shift steps. Not testable unless digit "
        "strings alone pay more than 0.03 more there than from 0 on, in the mean over the four starts.",
        pairs("separated-seqpe - separated-seqpe-still", *far("covered"), high=-0.03),
        unless=(repairs("covered", "separated"),),
    ),
    _heard(
        "misaligned-starts-cost-more",
        "Starts that break the shared digits cost more",
        "What SeqPE carries to new indices hangs on digits that windows share.",
        "Where no loss ever saw an index, the same bytes cost separated and strict with SeqPE more than "
        "0.03 bits per byte more at misaligned starts than at the aligned ones before them. Not testable "
        "unless both are more than 0.2 below the model without positions inside the trained length.",
        changes(BOTH, [("native-at-never-seen-misaligned", "native-at-never-seen-aligned")], low=0.03),
        unless=(HEARD,),
    ),
    _of(
        "seqpe-beats-the-sinusoid-at-far-indices",
        "At far indices SeqPE is better than a sinusoid",
        "At indices that no training reached, a position stream of SeqPE is better than one of a sinusoid "
        "trained at the same shift steps.",
        "At starts that no loss ever saw, aligned and misaligned, separated with SeqPE pays less than "
        "separated with the sinusoid, and strict with SeqPE less than strict with the sinusoid (differences "
        "below 0). Not testable where, at those of a kind, neither of the two is below the entropy of "
        "single bytes.",
        **better_far_away(*each("{}-seqpe - {}-sinusoidal-shifts", MODES)),
    ),
    _of(
        "seqpe-beats-the-sinusoid-past-the-length",
        "In longer texts SeqPE loses less than a sinusoid",
        "Past the trained length, a position stream of SeqPE loses less against its own sliding window than "
        "one of a sinusoid trained at the same shift steps.",
        "Separated and strict with SeqPE are less far above their own sliding windows at stride 1 than "
        "separated and strict with the sinusoid above theirs (differences below 0), at 2, 4 and 8 times the "
        "trained length, with all keys in sight.",
        pairs(each("{}-seqpe - {}-sinusoidal-shifts", MODES), *gap("native"), high=0.0),
    ),
    _of(
        "distillation-carries-the-stream-further",
        "The distillation helps at indices never seen",
        "At indices never seen, a position stream of SeqPE costs less with the distillation than with the "
        "contrastive loss alone.",
        "At starts that no loss ever saw, aligned and misaligned, separated with both losses pays less than "
        "with the contrastive loss alone (differences below 0). Not testable where, at those of a kind, "
        "neither is below the entropy of single bytes.",
        **better_far_away("separated-seqpe - separated-seqpe-contrastive"),
    ),
    _of(
        "distillation-helps-past-the-length",
        "The distillation helps the stream in longer texts",
        "Past the trained length a separated model with a position stream of SeqPE loses less with the "
        "distillation than with the contrastive loss alone.",
        "In a separated model whose position stream SeqPE is, which is not how it was released: with both "
        "losses it is less far above its own sliding window at stride 1 than with the contrastive loss "
        "alone above its own (differences below 0), at 2, 4 and 8 times the trained length, with all keys "
        "in sight.",
        pairs("separated-seqpe - separated-seqpe-contrastive", *gap("native"), high=0.0),
    ),
    _of(
        "distillation-further-enhances-extrapolation",
        "The distillation helps SeqPE as a term of the score in longer texts",
        "The distillation further enhances extrapolation: past the trained length SeqPE in a term of the "
        "score loses less with it than with the contrastive loss alone.",
        "Dense with SeqPE as a term of the score, where the released text program has it, is less far above "
        "its own sliding window at stride 1 with both losses than with the contrastive loss alone "
        "(differences below 0), at 2, 4 and 8 times the trained length, with all keys in sight. Both are "
        "trained at the same shift steps, and at the rate that was screened with both losses.",
        pairs(f"{SCORE} - {SCORE}-contrastive", *gap("native"), high=0.0),
        source="seqpe-abstract",
    ),
    _of(
        "the-losses-carry-the-stream-further",
        "The two losses help at indices never seen",
        "At indices never seen, a position stream of SeqPE costs less with its two losses than with shift "
        "steps alone.",
        "At starts that no loss ever saw, aligned and misaligned, separated with both losses pays less than "
        "with shift steps alone (differences below 0). Not testable where, at those of a kind, neither is "
        "below the entropy of single bytes.",
        **better_far_away("separated-seqpe - separated-seqpe-shifts"),
    ),
    _beside(
        "seqpe-is-free-in-window",
        "Inside the trained length a stream of SeqPE costs nothing",
        "Inside the trained length a position stream of SeqPE costs nothing.",
        "Inside the trained length separated and strict with SeqPE are less than +0.02 bits per byte above "
        "separated and strict with a sinusoid and no recipe.",
        pairs(each("{}-seqpe - {}-sinusoidal", MODES), high=0.02),
    ),
    _beside(
        "a-seqpe-stream-stands-beside-rope",
        "A separated model with a stream of SeqPE matches RoPE",
        "A separated model with a position stream of SeqPE stands beside RoPE.",
        "Separated with SeqPE is less than +0.02 bits per byte above RoPE inside the trained length, and in "
        "the bins that end at 2, 4 and 8 times it, all keys in sight, above RoPE with a window of one "
        "trained length.",
        [
            Ask("separated-seqpe", "rope", high=0.02),
            *(Ask(f"separated-seqpe:native/{k}", f"rope:native-window/{k}", high=0.02) for k in FAR),
        ],
    ),
    _of(
        "a-seqpe-stream-uses-the-far-past",
        "With a stream of SeqPE a model uses the far past",
        "With a position stream of SeqPE a model uses text further back than its trained length.",
        "In the bins that end at 2, 4 and 8 times the trained length separated and strict with SeqPE are "
        "less than +0.03 bits per byte above their own sliding windows at stride 1, all keys in sight, and "
        "in the last pay more than 0.02 more once their far past is foreign (gain). One comparison a model: "
        "of each seed the smaller of two margins, 0.03 less the largest gap and the gain less 0.02; its "
        "mean is above 0. A gain does not tell use from being disturbed by foreign text. Not testable "
        "unless RoPE or separated sinusoidal, trained at eight lengths, gains more than 0.02 over its own "
        "sliding window there.",
        levels(BOTH, "least", low=0.0),
        beside=recipes.LONG,
        unless=(TEXT_HAS_MORE,),
    ),
    _of(
        "separation-helps-seqpe",
        "The separation carries SeqPE further",
        "SeqPE carries a separated model further than one to whose embedding it is added.",
        "With the same shift steps and losses, separated with SeqPE is less far above its own sliding "
        "window at stride 1 than dense with SeqPE added to the embedding above its own (differences below "
        "0), at 2, 4 and 8 times the trained length, with all keys in sight, each at its screened rate. The "
        "distillation cuts the 128 columns of the dense model into two heads, the 32 of the stream are one.",
        pairs("separated-seqpe - dense-seqpe", *gap("native"), high=0.0),
    ),
    _beside(
        "seqpe-surpasses-strong-baselines",
        "In language modelling SeqPE surpasses strong baselines",
        "In language modelling SeqPE surpasses strong baselines in perplexity.",
        "Inside the trained length dense with SeqPE as a term of the score, where the released text program "
        "has it, pays less than dense sinusoidal and than RoPE (differences below 0), each at its screened "
        "learning rate: that of SeqPE after the whole schedule, those of the other two after 500 of its "
        "1,200 steps. Encoder and training are not as released: the encoder has a quarter of the model's "
        "width, decays and is clipped with the model, and the contrastive loss is scaled.",
        against(SCORE, "sinusoidal, rope", high=0.0),
        source="seqpe-abstract",
    ),
    _of(
        "seqpe-surpasses-them-past-the-length",
        "In longer texts SeqPE surpasses strong baselines",
        "It surpasses them where texts are longer than in training.",
        "In the bins that end at 2, 4 and 8 times the trained length dense with SeqPE as a term of the "
        "score, as above, pays less than dense sinusoidal with the same shift steps, than RoPE and than "
        "ALiBi (differences below 0), with all keys in sight, each at its screened learning rate, that of "
        "RoPE and ALiBi after 500 of 1,200 steps.",
        against(SCORE, "dense-sinusoidal-shifts, rope, alibi", *each("native/{}", FAR), high=0.0),
        source="seqpe-abstract",
        beside=BESIDE | ALIBI,
    ),
)
