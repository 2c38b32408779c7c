"""Rules on the experiment `seqpe_stream`: what is a position stream of SeqPE worth beside others?

Written before its records, in the words of `claims.seqpe_stream`, which says what was known. Known beside
that: the text has nothing to give past the trained length, by the records of `extrapolation`, so that
`a-seqpe-stream-uses-the-far-past` is *not testable here* whatever these models do.
"""

import pandas as pd

from sepnb.claims import recipes
from sepnb.claims.evidence import Comparison, _below_the_bar, _not_complete
from sepnb.claims.recipes import bins, in_window
from sepnb.claims.recipes_quality import LONG, _text_has_nothing_to_give
from sepnb.claims.seqpe_stream import ABSTRACT, OURS, TABLE, both, compared
from sepnb.claims.seqpe_stream import STANDS_ON as OF_THE_STREAM
from sepnb.claims.verdict import Claim, Tables, Verdict


def rule_seqpe_is_free_in_window(tables: Tables) -> Verdict:
    """Inside the trained length separated and strict with SeqPE are less than +0.02 bits per byte above
    separated and strict with a sinusoid and no recipe."""
    pairs = [(f"{mode}-seqpe", f"{mode}-sinusoidal") for mode in ("separated", "strict")]
    return compared(tables, in_window(pairs, high=0.02))


def rule_a_seqpe_stream_stands_beside_rope(tables: Tables) -> Verdict:
    """Separated with SeqPE is less than +0.02 bits per byte above RoPE inside the trained length, and in the
    bins that end at 2, 4 and 8 times it, all keys in sight, above RoPE with a window of one trained
    length."""
    model = "separated-seqpe"
    longer = [Comparison(f"{model}:native/{k}", f"rope:native-window/{k}", high=0.02) for k in bins()]
    return compared(tables, [*in_window([(model, "rope")], high=0.02), *longer])


def rule_a_seqpe_stream_uses_the_far_past(tables: Tables) -> Verdict:
    """In the bins that end at 2, 4 and 8 times the trained length separated and strict with SeqPE are less
    than +0.03 bits per byte above their own sliding windows at stride 1, all keys in sight, and in the last
    pay more than 0.02 more once their far past is foreign (gain). One comparison a model: of each seed the
    smaller of two margins, 0.03 less the largest gap and the gain less 0.02; its mean is above 0. A gain does
    not tell use from being disturbed by foreign text. Not testable unless RoPE or separated sinusoidal,
    trained at eight lengths, gains more than 0.02 over its own sliding window there."""
    if obstacle := _text_has_nothing_to_give(tables):
        return obstacle
    table, models = tables.get(TABLE), list(both())
    if obstacle := _not_complete(table, models) or _below_the_bar(table, models, 3.35):
        return obstacle
    largest = table[[f"gap/native/{k}" for k in bins()]].astype(float).max(axis=1, skipna=False)
    margins = pd.DataFrame({"survives": 0.03 - largest, "uses": table["gain/8x"] - 0.02})
    least = table.assign(margin=margins.astype(float).min(axis=1, skipna=False))
    return compared({TABLE: least}, [Comparison(f"{name}:margin", recipes.ZERO, low=0.0) for name in models])


def rule_separation_helps_seqpe(tables: Tables) -> Verdict:
    """With the same shift steps and losses, separated with SeqPE is less far above its own sliding window at
    stride 1 than dense with SeqPE added to the embedding above its own (differences below 0), at 2, 4 and 8
    times the trained length, with all keys in sight, each at its screened rate. The distillation cuts the
    128 columns of the dense model into two heads, the 32 of the stream are one."""
    pairs = [
        Comparison(f"separated-seqpe:gap/native/{k}", f"dense-seqpe:gap/native/{k}", high=0.0) for k in bins()
    ]
    return compared(tables, pairs)


def rule_seqpe_surpasses_strong_baselines(tables: Tables) -> Verdict:
    """Inside the trained length dense with SeqPE as a term of the score, where the released text program has
    it, pays less than dense sinusoidal and than RoPE (differences below 0), each at its screened learning
    rate: that of SeqPE after the whole schedule, those of the other two after 500 of its 1,200 steps. Encoder
    and training are not as released: the encoder has a quarter of the model's width, decays and is clipped
    with the model, and the contrastive loss is scaled."""
    pairs = [("dense-seqpe-score", other) for other in ("sinusoidal", "rope")]
    return compared(tables, in_window(pairs, high=0.0))


def rule_seqpe_surpasses_them_past_the_length(tables: Tables) -> Verdict:
    """In the bins that end at 2, 4 and 8 times the trained length dense with SeqPE as a term of the score, as
    above, pays less than dense sinusoidal with the same shift steps, than RoPE and than ALiBi (differences
    below 0), with all keys in sight, each at its screened learning rate, that of RoPE and ALiBi after 500 of
    1,200 steps."""
    others = ("dense-sinusoidal-shifts", "rope", "alibi")
    model = "dense-seqpe-score"
    pairs = [Comparison(f"{model}:native/{k}", f"{o}:native/{k}", high=0.0) for o in others for k in bins()]
    return compared(tables, pairs)


STANDS_ON = (*OF_THE_STREAM, in_window, _text_has_nothing_to_give)
_OURS = {"source": OURS, "needs": (TABLE,), "stands_on": STANDS_ON}
_BESIDE = _OURS | {"needs": (TABLE, recipes.TABLE)}

CLAIMS = (
    Claim(
        id="seqpe-is-free-in-window",
        statement="Inside the trained length a position stream of SeqPE costs nothing.",
        rule=rule_seqpe_is_free_in_window,
        **_BESIDE,
    ),
    Claim(
        id="a-seqpe-stream-stands-beside-rope",
        statement="A separated model with a position stream of SeqPE stands beside RoPE.",
        rule=rule_a_seqpe_stream_stands_beside_rope,
        **_BESIDE,
    ),
    Claim(
        id="a-seqpe-stream-uses-the-far-past",
        source=OURS,
        statement="With a position stream of SeqPE a model uses text further back than its trained length.",
        rule=rule_a_seqpe_stream_uses_the_far_past,
        needs=(TABLE, LONG),
        stands_on=STANDS_ON,
    ),
    Claim(
        id="separation-helps-seqpe",
        statement="SeqPE carries a separated model further than one to whose embedding it is added.",
        rule=rule_separation_helps_seqpe,
        **_OURS,
    ),
    Claim(
        id="seqpe-surpasses-strong-baselines",
        statement="In language modelling SeqPE surpasses strong baselines in perplexity.",
        rule=rule_seqpe_surpasses_strong_baselines,
        **_BESIDE | {"source": ABSTRACT},
    ),
    Claim(
        id="seqpe-surpasses-them-past-the-length",
        statement="It surpasses them where texts are longer than in training.",
        rule=rule_seqpe_surpasses_them_past_the_length,
        **_BESIDE | {"source": ABSTRACT, "needs": (TABLE, recipes.TABLE, LONG)},
    ),
)
