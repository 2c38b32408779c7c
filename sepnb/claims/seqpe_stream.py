"""Rules on the experiment `seqpe_stream`: does a position stream of SeqPE reach further (chapter 16)?

Written before its records. Known were those of the methods beside it; one seed of each dense form at three
rates on validation text (`encoding_screen`); and, of one to three seeds, the model and training of
`dense-seqpe-score` on the same novels (`encodings`). *Gap*, *gain* and bins are those of `claims.recipes`.
*Covered* starts lie below the largest position of shift steps and losses, the others past
it, two at about twice it and two at more than ten times; *aligned* ones leave the low digits of a window as
they are in the trained one. Scores of the two starts of a kind are averaged before seeds are compared.
*SeqPE* is trained at shift steps and with both losses; the sinusoid beside it at the same shift steps.
Methods without either are those of `recipes`, with the same seeds on the same bytes. All bounds are in bits
per byte.

Methods with digit strings have the learning rate that `seqpe_stream_screen` chose for their mode with shift
steps and both losses, the sinusoid the one that it chose with shift steps, after the whole schedule. The
methods of other experiments have rates that were chosen after 500 of its 1,200 steps. What the stream is
worth beside others is in `seqpe_stream_quality`.
"""

import pandas as pd

from sepnb.claims import recipes
from sepnb.claims.evidence import RULES_OF_EVIDENCE, Comparison, _below_the_bar, _not_complete
from sepnb.claims.recipes import bins, gaps
from sepnb.claims.recipes_quality import LONG
from sepnb.claims.verdict import NOT_TESTABLE, Claim, Tables, Verdict

OURS = "ours, written before the records"
ABSTRACT = "seqpe-abstract"
TABLE = "experiment/seqpe_stream"
ENCODINGS = "experiment/encodings"


def kinds() -> tuple[str, str]:
    """Whether the starts of a group keep the low digits of a window."""
    return "aligned", "misaligned"


def joined(tables: Tables) -> pd.DataFrame | None:
    """The runs of this experiment and, of those tables that are given, the methods beside them: roots and
    RoPE of `recipes`, ALiBi of `extrapolation`. Past the trained length a seed reads the same bytes in all
    three; inside it, in the first two."""
    beside = {
        recipes.TABLE: ("sinusoidal", "separated-sinusoidal", "strict-sinusoidal", "rope"),
        LONG: ("alibi",),
    }
    found = [tables.get(TABLE)]
    for name, methods in beside.items():
        other = tables.get(name)
        found.append(None if other is None or other.empty else other[other.method.isin(methods)])
    found = [table for table in found if table is not None and not table.empty]
    return averaged(pd.concat(found, ignore_index=True)) if found else None


def averaged(table: pd.DataFrame) -> pd.DataFrame:
    """The table with a column for each kind of start, the mean over its two."""
    starts = [far(f"{group}-{kind}") for group in ("covered", "never-seen") for kind in kinds()]
    means = {
        one: table.reindex(columns=[f"{one}-1", f"{one}-2"]).astype(float).mean(axis=1, skipna=False)
        for one in starts
    }
    return pd.concat([table, pd.DataFrame(means, index=table.index)], axis=1)


def compared(tables: Tables, comparisons: list[Comparison]) -> Verdict:
    """As `recipes.compared`, bar included, on the models of this experiment and those beside them."""
    return recipes.compared({recipes.TABLE: joined(tables)}, comparisons)


def both() -> tuple[str, str]:
    """The two models that the experiment is about."""
    return "separated-seqpe", "strict-seqpe"


def far(group: str) -> str:
    """The column of the trained length at the starts of a kind, such as covered-aligned."""
    return f"native-at-{group}"


def moved(group: str, **bounds: float) -> list[Comparison]:
    """What the same bytes cost both models more at the starts of a group than from 0 on."""
    return [
        Comparison(f"{model}:{far(f'{group}-{kind}')}", f"{model}:native/1x", **bounds)
        for model in both()
        for kind in kinds()
    ]


def never_seen(a: str, b: str, **bounds: float) -> list[Comparison]:
    """One model less another at starts that no loss ever saw."""
    columns = [far(f"never-seen-{kind}") for kind in kinds()]
    return [Comparison(f"{a}:{column}", f"{b}:{column}", **bounds) for column in columns]


def positions_are_heard(tables: Tables) -> Verdict | None:
    """An obstacle unless separated and strict with SeqPE each pay more than 0.2 bits per byte less inside the
    trained length than the model without positions of `encodings`, in the mean over seeds: one that hears no
    positions reads all of them alike."""
    table, other = tables.get(TABLE), tables.get(ENCODINGS)
    if obstacle := _not_complete(table, list(both())) or _not_complete(other, ["none"]):
        return obstacle
    if obstacle := _below_the_bar(table, list(both()), 3.35):
        return obstacle
    means = table.astype({"bits_per_byte": float}).groupby("method")["bits_per_byte"].mean()
    without = float(other.loc[other.method == "none", "bits_per_byte"].astype(float).mean())
    deaf = {model: without - float(means[model]) for model in both()}
    deaf = {model: gain for model, gain in deaf.items() if not gain > 0.2}
    if not deaf:
        return None
    told = ", ".join(f"{model} {gain:+.3f}" for model, gain in deaf.items())
    return Verdict(NOT_TESTABLE, f"hardly better than a model without positions: {told}", deaf)


def digits_are_heard(tables: Tables, group: str, modes: tuple[str, ...]) -> Verdict | None:
    """An obstacle unless each of these models with digit strings alone, without shift steps and losses, pays
    more than 0.03 bits per byte more at the starts of this group than from 0 on, in the mean over starts and
    seeds: else such a model hardly hears its indices there, and to read them alike says nothing."""
    table, models = tables.get(TABLE), [f"{mode}-seqpe-plain" for mode in modes]
    if obstacle := _not_complete(table, models) or _below_the_bar(table, models, 3.35):
        return obstacle
    columns, deaf = [far(f"{group}-{kind}") for kind in kinds()], {}
    for model in models:
        runs = averaged(table[table.method == model])
        cost = runs[columns].mean(axis=1, skipna=False) - runs["native/1x"].astype(float)
        if not cost.mean() > 0.03:
            deaf[model] = float(cost.mean())
    if not deaf:
        return None
    told = ", ".join(f"{model} {cost:+.3f}" for model, cost in deaf.items())
    return Verdict(
        NOT_TESTABLE, f"digit strings alone cost hardly more there, {told}: nothing to repair", deaf
    )


def better_at_far_indices(tables: Tables, pairs: list[tuple[str, str]]) -> Verdict:
    """Of each pair the first model pays less than the second at starts that no loss ever saw (differences
    below 0). Not testable where, at those of a kind, neither model of a pair is below the entropy of single
    bytes: of two that know nothing none is better."""
    comparisons = [pair for a, b in pairs for pair in never_seen(a, b, high=0.0)]
    table, models = tables.get(TABLE), list(dict.fromkeys(name for pair in pairs for name in pair))
    if obstacle := _not_complete(table, models) or _below_the_bar(table, models, 3.35):
        return obstacle
    starts = [far(f"never-seen-{kind}") for kind in kinds()]
    runs = averaged(table[table.method.isin(models)]).set_index("method")
    means = runs[[*starts, "unigram_bits_per_byte"]].astype(float).groupby(level="method").mean()
    floor = means["unigram_bits_per_byte"].iloc[0]
    lost = [
        f"{a} and {b} at {start}"
        for a, b in pairs
        for start in starts
        if means.loc[[a, b], start].min() >= floor
    ]
    if lost:
        return Verdict(NOT_TESTABLE, f"not below {floor:.2f}, the entropy of single bytes: {'; '.join(lost)}")
    return compared(tables, comparisons)


def rule_seqpe_survives(tables: Tables) -> Verdict:
    """Separated and strict with SeqPE are less than +0.03 bits per byte above their own sliding windows at
    stride 1, at 2, 4 and 8 times the trained length, with all keys in sight. Not testable unless both are
    more than 0.2 below the model without positions inside the trained length."""
    return positions_are_heard(tables) or compared(tables, gaps(both(), "native", high=0.03))


def rule_seqpe_and_a_window_survive(tables: Tables) -> Verdict:
    """The same two models, each query held to the last keys of one trained length, are less than +0.03 above
    their own sliding windows at stride 1, at 2, 4 and 8 times the trained length. Not testable unless both
    are more than 0.2 below the model without positions inside the trained length."""
    return positions_are_heard(tables) or compared(tables, gaps(both(), "native-window", high=0.03))


def rule_seqpe_reads_covered_indices_alike(tables: Tables) -> Verdict:
    """The same bytes cost separated and strict with SeqPE less than 0.03 bits per byte more at covered
    starts, aligned and misaligned, than from 0 on. Not testable unless they cost each of the two with digit
    strings alone, without shift steps and losses, more than 0.03 more there, in the mean over the four; and
    unless both are more than 0.2 below the model without positions inside the trained length."""
    heard = positions_are_heard(tables) or digits_are_heard(tables, "covered", ("separated", "strict"))
    return heard or compared(tables, moved("covered", high=0.03))


def rule_seqpe_reaches_indices_never_seen(tables: Tables) -> Verdict:
    """The same bytes cost separated and strict with SeqPE less than 0.03 bits per byte more at starts that no
    loss ever saw, aligned and misaligned, than from 0 on. Not testable unless they cost each of the two with
    digit strings alone, without shift steps and losses, more than 0.03 more there, in the mean over the four;
    and unless both are more than 0.2 below the model without positions inside the trained length."""
    heard = positions_are_heard(tables) or digits_are_heard(tables, "never-seen", ("separated", "strict"))
    return heard or compared(tables, moved("never-seen", high=0.03))


def rule_shift_steps_help_a_stream_of_digit_strings(tables: Tables) -> Verdict:
    """At covered starts, aligned and misaligned, separated with digit strings and shift steps, without the
    losses, pays more than 0.03 bits per byte less than without shift steps. Not testable unless the latter
    pays more than 0.03 more there than from 0 on, in the mean over the four starts."""
    columns = [far(f"covered-{kind}") for kind in kinds()]
    ours, plain = "separated-seqpe-shifts", "separated-seqpe-plain"
    pairs = [Comparison(f"{ours}:{column}", f"{plain}:{column}", high=-0.03) for column in columns]
    return digits_are_heard(tables, "covered", ("separated",)) or compared(tables, pairs)


def rule_shift_steps_help_beside_the_losses(tables: Tables) -> Verdict:
    """At covered starts, aligned and misaligned, separated with both losses and shift steps pays more than
    0.03 bits per byte less than with both losses and no shift steps. Not testable unless digit strings alone
    pay more than 0.03 more there than from 0 on, in the mean over the four starts."""
    columns = [far(f"covered-{kind}") for kind in kinds()]
    ours, still = "separated-seqpe", "separated-seqpe-still"
    pairs = [Comparison(f"{ours}:{column}", f"{still}:{column}", high=-0.03) for column in columns]
    return digits_are_heard(tables, "covered", ("separated",)) or compared(tables, pairs)


def rule_misaligned_starts_cost_more(tables: Tables) -> Verdict:
    """Where no loss ever saw an index, the same bytes cost separated and strict with SeqPE more than 0.03
    bits per byte more at misaligned starts than at the aligned ones before them. Not testable unless both are
    more than 0.2 below the model without positions inside the trained length."""
    one, other = far("never-seen-misaligned"), far("never-seen-aligned")
    pairs = [Comparison(f"{model}:{one}", f"{model}:{other}", low=0.03) for model in both()]
    return positions_are_heard(tables) or compared(tables, pairs)


def rule_seqpe_beats_the_sinusoid_at_far_indices(tables: Tables) -> Verdict:
    """At starts that no loss ever saw, aligned and misaligned, separated with SeqPE pays less than separated
    with the sinusoid, and strict with SeqPE less than strict with the sinusoid (differences below 0). Not
    testable where, at those of a kind, neither of the two is below the entropy of single bytes."""
    pairs = [(f"{mode}-seqpe", f"{mode}-sinusoidal-shifts") for mode in ("separated", "strict")]
    return better_at_far_indices(tables, pairs)


def rule_seqpe_beats_the_sinusoid_past_the_length(tables: Tables) -> Verdict:
    """Separated and strict with SeqPE are less far above their own sliding windows at stride 1 than separated
    and strict with the sinusoid above theirs (differences below 0), at 2, 4 and 8 times the trained length,
    with all keys in sight."""
    pairs = [
        Comparison(f"{mode}-seqpe:gap/native/{k}", f"{mode}-sinusoidal-shifts:gap/native/{k}", high=0.0)
        for mode in ("separated", "strict")
        for k in bins()
    ]
    return compared(tables, pairs)


def rule_distillation_carries_the_stream_further(tables: Tables) -> Verdict:
    """At starts that no loss ever saw, aligned and misaligned, separated with both losses pays less than with
    the contrastive loss alone (differences below 0). Not testable where, at those of a kind, neither is below
    the entropy of single bytes."""
    return better_at_far_indices(tables, [("separated-seqpe", "separated-seqpe-contrastive")])


def rule_distillation_helps_past_the_length(tables: Tables) -> Verdict:
    """In a separated model whose position stream SeqPE is, which is not how it was released: with both losses
    it is less far above its own sliding window at stride 1 than with the contrastive loss alone above its own
    (differences below 0), at 2, 4 and 8 times the trained length, with all keys in sight."""
    ours, other = "separated-seqpe", "separated-seqpe-contrastive"
    pairs = [Comparison(f"{ours}:gap/native/{k}", f"{other}:gap/native/{k}", high=0.0) for k in bins()]
    return compared(tables, pairs)


def rule_distillation_further_enhances_extrapolation(tables: Tables) -> Verdict:
    """Dense with SeqPE as a term of the score, where the released text program has it, is less far above its
    own sliding window at stride 1 with both losses than with the contrastive loss alone (differences below
    0), at 2, 4 and 8 times the trained length, with all keys in sight. Both are trained at the same shift
    steps, and at the rate that was screened with both losses."""
    ours, other = "dense-seqpe-score", "dense-seqpe-score-contrastive"
    pairs = [Comparison(f"{ours}:gap/native/{k}", f"{other}:gap/native/{k}", high=0.0) for k in bins()]
    return compared(tables, pairs)


def rule_the_losses_carry_the_stream_further(tables: Tables) -> Verdict:
    """At starts that no loss ever saw, aligned and misaligned, separated with both losses pays less than with
    shift steps alone (differences below 0). Not testable where, at those of a kind, neither is below the
    entropy of single bytes."""
    return better_at_far_indices(tables, [("separated-seqpe", "separated-seqpe-shifts")])


STANDS_ON = (
    kinds,
    joined,
    averaged,
    compared,
    both,
    far,
    moved,
    never_seen,
    positions_are_heard,
    digits_are_heard,
    better_at_far_indices,
    recipes.compared,
    bins,
    gaps,
    *RULES_OF_EVIDENCE,
)
_OURS = {"source": OURS, "needs": (TABLE,), "stands_on": STANDS_ON}
_HEARD = _OURS | {"needs": (TABLE, ENCODINGS)}

CLAIMS = (
    Claim(
        id="seqpe-survives",
        statement="A position stream of SeqPE, trained at shift steps and with both losses, reads texts of "
        "eight times the trained length as well as through a sliding window.",
        rule=rule_seqpe_survives,
        **_HEARD,
    ),
    Claim(
        id="seqpe-and-a-window-survive",
        statement="It survives at least where each query sees no more keys than in training.",
        rule=rule_seqpe_and_a_window_survive,
        **_HEARD,
    ),
    Claim(
        id="seqpe-reads-covered-indices-alike",
        statement="Shift steps and losses make a position stream of SeqPE indifferent to where, among the "
        "indices that they cover, a text begins.",
        rule=rule_seqpe_reads_covered_indices_alike,
        **_HEARD,
    ),
    Claim(
        id="seqpe-reaches-indices-never-seen",
        statement="A position stream of SeqPE reads a text at indices past the largest that any loss saw as "
        "well as from the first on.",
        rule=rule_seqpe_reaches_indices_never_seen,
        **_HEARD,
    ),
    Claim(
        id="shift-steps-help-a-stream-of-digit-strings",
        statement="Among the indices that they cover, shift steps alone make a position stream of digit "
        "strings less sensitive to where a text begins.",
        rule=rule_shift_steps_help_a_stream_of_digit_strings,
        **_OURS,
    ),
    Claim(
        id="shift-steps-help-beside-the-losses",
        statement="Among the indices that they cover, shift steps make a position stream of SeqPE less "
        "sensitive to where a text begins, although its losses cover these indices too.",
        rule=rule_shift_steps_help_beside_the_losses,
        **_OURS,
    ),
    Claim(
        id="misaligned-starts-cost-more",
        statement="What SeqPE carries to new indices hangs on digits that windows share.",
        rule=rule_misaligned_starts_cost_more,
        **_HEARD,
    ),
    Claim(
        id="seqpe-beats-the-sinusoid-at-far-indices",
        statement="At indices that no training reached, a position stream of SeqPE is better than one of a "
        "sinusoid trained at the same shift steps.",
        rule=rule_seqpe_beats_the_sinusoid_at_far_indices,
        **_OURS,
    ),
    Claim(
        id="seqpe-beats-the-sinusoid-past-the-length",
        statement="Past the trained length, a position stream of SeqPE loses less against its own sliding "
        "window than one of a sinusoid trained at the same shift steps.",
        rule=rule_seqpe_beats_the_sinusoid_past_the_length,
        **_OURS,
    ),
    Claim(
        id="distillation-carries-the-stream-further",
        statement="At indices never seen, a position stream of SeqPE costs less with the distillation than "
        "with the contrastive loss alone.",
        rule=rule_distillation_carries_the_stream_further,
        **_OURS,
    ),
    Claim(
        id="distillation-helps-past-the-length",
        statement="Past the trained length a separated model with a position stream of SeqPE loses less with "
        "the distillation than with the contrastive loss alone.",
        rule=rule_distillation_helps_past_the_length,
        **_OURS,
    ),
    Claim(
        id="distillation-further-enhances-extrapolation",
        statement="The distillation further enhances extrapolation: past the trained length SeqPE in a term "
        "of the score loses less with it than with the contrastive loss alone.",
        rule=rule_distillation_further_enhances_extrapolation,
        **_OURS | {"source": ABSTRACT},
    ),
    Claim(
        id="the-losses-carry-the-stream-further",
        statement="At indices never seen, a position stream of SeqPE costs less with its two losses than "
        "with shift steps alone.",
        rule=rule_the_losses_carry_the_stream_further,
        **_OURS,
    ),
)
