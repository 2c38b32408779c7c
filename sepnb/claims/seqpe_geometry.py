"""Rules on the experiment `seqpe_geometry`: what SeqPE's losses make of the space of positions (chapter 14).

Written before its records. *Order* is Spearman's rank correlation of nearness with the inner product,
*adjacency* how often the largest product is that of a nearest neighbour, *likeness* the correlation of a
window's inner products with those of the trained window; each is the mean over the windows of a group.
*Drawn* is the same encoder before its training. Of the rule on far positions one trial of another size had
been seen, a thousand positions and one seed; of the others none. No quantity here is in bits per byte, and
there is no bar.
"""

import pandas as pd

from sepnb.claims import recipes
from sepnb.claims.evidence import RULES_OF_EVIDENCE, Comparison, _not_complete
from sepnb.claims.verdict import NOT_RUN, NOT_TESTABLE, Claim, Tables, Verdict

OURS = "ours, written before the records"
TABLE = "experiment/seqpe_geometry"


def measured(tables: Tables, comparisons: list[Comparison]) -> Verdict:
    """As `recipes.compared`, on the measures of this experiment, which need to clear no bar. A measure that
    some run has not, because it diverged or its embeddings are all alike, makes a claim not testable."""
    table = tables.get(TABLE)
    names = [name for pair in comparisons for name in (pair.a, pair.b) if name != recipes.ZERO]
    models = list(dict.fromkeys(name.split(":")[0] for name in names))
    if obstacle := _not_complete(table, models):
        return obstacle
    for name in names:
        model, column = name.split(":")
        own = table[table.method == model].reindex(columns=[column])[column]
        if pd.to_numeric(own).isna().any():
            return Verdict(NOT_TESTABLE, f"{name} is missing in {int(own.isna().sum())} of {len(own)} runs")
    return recipes.compared({recipes.TABLE: table.assign(bits_per_byte=0.0)}, comparisons)


def rule_the_losses_order_positions(tables: Tables) -> Verdict:
    """With both losses the order is more than 0.1 above that of the encoder as drawn, in the trained window
    and in misaligned windows below the largest position."""
    groups = ("trained", "misaligned")
    return measured(tables, [Comparison(f"both:order/{g}", f"both:drawn/order/{g}", low=0.1) for g in groups])


def rule_the_losses_order_far_positions(tables: Tables) -> Verdict:
    """With both losses the order of 128 positions spread evenly below the largest is more than 0.1 above that
    of the encoder as drawn."""
    return measured(tables, [Comparison("both:order/spread", "both:drawn/order/spread", low=0.1)])


def rule_contrast_alone_orders_positions(tables: Tables) -> Verdict:
    """In misaligned windows below the largest position the order with the contrastive loss alone is more than
    0.1 above that with the distillation alone, and above that of the encoder as drawn."""
    others = ("distillation:order/misaligned", "contrastive:drawn/order/misaligned")
    return measured(tables, [Comparison("contrastive:order/misaligned", other, low=0.1) for other in others])


def rule_distillation_carries_the_geometry(tables: Tables) -> Verdict:
    """In misaligned windows the likeness to the trained window is more than 0.1 higher with both losses than
    with the contrastive one alone: below the largest position, and where no loss ever was."""
    groups = ("misaligned", "misaligned, never seen")
    return measured(
        tables, [Comparison(f"both:likeness/{g}", f"contrastive:likeness/{g}", low=0.1) for g in groups]
    )


def rule_the_geometry_reaches_positions_never_seen(tables: Tables) -> Verdict:
    """With both losses, order and likeness in misaligned windows where no loss ever was are less than 0.1
    below those in misaligned windows below the largest position. Not testable unless the means of these are
    more than 0.1 above those of the encoder as drawn: else there is nothing to reach further."""
    measures = ("order", "likeness")
    reached = [
        Comparison(f"both:{m}/misaligned, never seen", f"both:{m}/misaligned", low=-0.1) for m in measures
    ]
    learned = [Comparison(f"both:{m}/misaligned", f"both:drawn/{m}/misaligned", low=0.1) for m in measures]
    verdict, gained = measured(tables, reached), measured(tables, learned)
    for one in (verdict, gained):
        if one.word in (NOT_RUN, NOT_TESTABLE):
            return one
    if least := {name: mean for name, mean in gained.numbers.items() if not mean > 0.1}:
        told = ", ".join(f"{name} {mean:+.3f}" for name, mean in least.items())
        return Verdict(NOT_TESTABLE, f"nothing learned that could reach further: {told}", least)
    return verdict


def rule_neighbours_are_hardly_asked_for(tables: Tables) -> Verdict:
    """In misaligned windows below the largest position the adjacency is more than 0.1 higher where half of
    the anchors take their candidates from around themselves than with the released mixture."""
    return measured(tables, [Comparison("around:adjacency/misaligned", "both:adjacency/misaligned", low=0.1)])


def rule_shared_digits_look_like_geometry(tables: Tables) -> Verdict:
    """Before any training, aligned windows are more than 0.2 more like the trained window than misaligned
    ones, with digits of base 10, 2 and 16."""
    return measured(
        tables,
        [
            Comparison(f"{m}:drawn/likeness/aligned", f"{m}:drawn/likeness/misaligned", low=0.2)
            for m in ("both", "base-2", "base-16")
        ],
    )


_FROM_THE_TABLE = {"needs": (TABLE,), "stands_on": (measured, recipes.compared, *RULES_OF_EVIDENCE)}
_SEQPE = {"source": "seqpe-abstract", **_FROM_THE_TABLE}
_OURS = {"source": OURS, **_FROM_THE_TABLE}

CLAIMS = (
    Claim(
        id="the-losses-order-positions",
        statement="Trained on its two losses, the encoder of SeqPE orders the positions of a window: the "
        "nearer, the more alike.",
        rule=rule_the_losses_order_positions,
        **_OURS,
    ),
    Claim(
        id="the-losses-order-far-positions",
        statement="Trained on its two losses, the encoder of SeqPE orders positions that lie far apart.",
        rule=rule_the_losses_order_far_positions,
        **_OURS,
    ),
    Claim(
        id="contrast-alone-orders-positions",
        statement="It is the contrastive loss that orders positions of a window: the nearer, the more alike.",
        rule=rule_contrast_alone_orders_positions,
        **_OURS,
    ),
    Claim(
        id="distillation-carries-the-geometry",
        statement="It is the distillation that repeats the geometry of the trained window elsewhere.",
        rule=rule_distillation_carries_the_geometry,
        **_SEQPE,
    ),
    Claim(
        id="the-geometry-reaches-positions-never-seen",
        statement="What the losses teach holds for positions past the largest that they see.",
        rule=rule_the_geometry_reaches_positions_never_seen,
        **_OURS,
    ),
    Claim(
        id="neighbours-are-hardly-asked-for",
        statement="The released candidates teach a coarse order: neighbours are told apart better where they "
        "are asked for.",
        rule=rule_neighbours_are_hardly_asked_for,
        **_OURS,
    ),
    Claim(
        id="shared-digits-look-like-geometry",
        statement="Positions that share their low digits look alike to an untrained encoder; shifts that "
        "keep them must be told from those that do not.",
        rule=rule_shared_digits_look_like_geometry,
        **_OURS,
    ),
)
