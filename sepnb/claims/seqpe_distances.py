"""Rules on the experiment `seqpe_distances`: the distances of SeqPE's embeddings (chapter 14).

Written with the records of `seqpe_geometry` in view, seeds 1 to 6, and before those that they judge, seeds 7
to 12. *Distance* is Spearman's rank correlation of the Euclidean distance of two embeddings with the distance
of their positions, over all pairs of a window; otherwise words are those of `claims.seqpe_geometry`.
"""

from sepnb.claims import recipes, seqpe_geometry
from sepnb.claims.evidence import RULES_OF_EVIDENCE, Comparison
from sepnb.claims.verdict import Claim, Tables, Verdict

TABLE = "experiment/seqpe_distances"


def compared(tables: Tables, comparisons: list[Comparison]) -> Verdict:
    """As `seqpe_geometry.measured`, on the runs of this experiment."""
    return seqpe_geometry.measured({seqpe_geometry.TABLE: tables.get(TABLE)}, comparisons)


def rule_the_losses_order_distances(tables: Tables) -> Verdict:
    """With both losses the distance is more than 0.1 above that of the encoder as drawn, in the trained
    window and in misaligned windows below the largest position."""
    groups = ("trained", "misaligned")
    return compared(
        tables, [Comparison(f"both:distance/{g}", f"both:drawn/distance/{g}", low=0.1) for g in groups]
    )


def rule_the_contrast_aligns_distances(tables: Tables) -> Verdict:
    """In misaligned windows below the largest position the distance with the contrastive loss alone is more
    than 0.1 above that with the distillation alone, and above that of the encoder as drawn."""
    others = ("distillation:distance/misaligned", "contrastive:drawn/distance/misaligned")
    return compared(
        tables, [Comparison("contrastive:distance/misaligned", other, low=0.1) for other in others]
    )


_FROM_THE_TABLE = {
    "needs": (TABLE,),
    "stands_on": (compared, seqpe_geometry.measured, recipes.compared, *RULES_OF_EVIDENCE),
}

CLAIMS = (
    Claim(
        id="the-losses-order-distances",
        source=seqpe_geometry.OURS,
        statement="Trained on its two losses, the encoder of SeqPE puts positions of a window the farther "
        "apart the farther they are.",
        rule=rule_the_losses_order_distances,
        **_FROM_THE_TABLE,
    ),
    Claim(
        id="the-contrast-aligns-distances",
        source="seqpe-abstract",
        statement="It is the contrastive loss that aligns distances of embeddings with those of positions.",
        rule=rule_the_contrast_aligns_distances,
        **_FROM_THE_TABLE,
    ),
)
