"""Experiments `seqpe_geometry` and `seqpe_distances` (chapter 14): what SeqPE's losses make of the space of
positions.

Rules on `seqpe_geometry` were written before its records. *Order* is Spearman's rank correlation of nearness
with the inner product, *adjacency* how often the largest product is that of a nearest neighbour, *likeness*
the correlation of a window's inner products with those of the trained window; each is the mean over the
windows of a group. *Drawn* is the same encoder before its training. Of the rule on far positions one trial of
another size had been seen, a thousand positions and one seed; of the others none.

Rules on `seqpe_distances` were written with the records of `seqpe_geometry` in view, seeds 1 to 6, and before
those that they judge, seeds 7 to 12. *Distance* is Spearman's rank correlation of the Euclidean distance of
two embeddings with the distance of their positions, over all pairs of a window.

No quantity here is in bits per byte, and there is no floor.
"""

from functools import partial

from sepnb.claims.asks import Ask, Unless, changes, pairs
from sepnb.claims.claim import Claim

MISALIGNED = "misaligned"
UNSEEN = "misaligned, never seen"


def over_drawn(method: str, measure: str, *groups: str, low: float = 0.1) -> list[Ask]:
    """A measure is more than `low` above that of the same encoder before its training."""
    return changes(
        [method], [(f"{measure}/{group}", f"drawn/{measure}/{group}") for group in groups], low=low
    )


_geometry = partial(Claim, experiments=("experiment/seqpe_geometry",), higher_is_better=True)
_distances = partial(_geometry, experiments=("experiment/seqpe_distances",))

CLAIMS = (
    _geometry(
        "the-losses-order-positions",
        "SeqPE's losses order the positions of a window",
        "Trained on its two losses, the encoder of SeqPE orders the positions of a window: the nearer, the "
        "more alike.",
        "With both losses the order is more than 0.1 above that of the encoder as drawn, in the trained "
        "window and in misaligned windows below the largest position.",
        over_drawn("both", "order", "trained", MISALIGNED),
    ),
    _geometry(
        "the-losses-order-far-positions",
        "SeqPE's losses order positions that lie far apart",
        "Trained on its two losses, the encoder of SeqPE orders positions that lie far apart.",
        "With both losses the order of 128 positions spread evenly below the largest is more than 0.1 above "
        "that of the encoder as drawn.",
        over_drawn("both", "order", "spread"),
    ),
    _geometry(
        "contrast-alone-orders-positions",
        "It is the contrastive loss that orders positions",
        "It is the contrastive loss that orders positions of a window: the nearer, the more alike.",
        "In misaligned windows below the largest position the order with the contrastive loss alone is more "
        "than 0.1 above that with the distillation alone, and above that of the encoder as drawn.",
        [
            Ask(f"contrastive:order/{MISALIGNED}", f"distillation:order/{MISALIGNED}", low=0.1),
            *over_drawn("contrastive", "order", MISALIGNED),
        ],
    ),
    _geometry(
        "distillation-carries-the-geometry",
        "It is the distillation that repeats the geometry elsewhere",
        "It is the distillation that repeats the geometry of the trained window elsewhere.",
        "In misaligned windows the likeness to the trained window is more than 0.1 higher with both losses "
        "than with the contrastive one alone: below the largest position, and where no loss ever was.",
        pairs("both - contrastive", f"likeness/{MISALIGNED}", f"likeness/{UNSEEN}", low=0.1),
        source="seqpe-abstract",
    ),
    _geometry(
        "the-geometry-reaches-positions-never-seen",
        "What the losses teach reaches positions never seen",
        "What the losses teach holds for positions past the largest that they see.",
        "With both losses, order and likeness in misaligned windows where no loss ever was are less than "
        "0.1 below those in misaligned windows below the largest position. Not testable unless the means of "
        "these are more than 0.1 above those of the encoder as drawn: else there is nothing to reach "
        "further.",
        changes(
            "both",
            [(f"{name}/{UNSEEN}", f"{name}/{MISALIGNED}") for name in ("order", "likeness")],
            low=-0.1,
        ),
        unless=(
            Unless(
                (*over_drawn("both", "order", MISALIGNED), *over_drawn("both", "likeness", MISALIGNED)),
                "nothing learned that could reach further",
            ),
        ),
    ),
    _geometry(
        "neighbours-are-hardly-asked-for",
        "Neighbours are told apart better where they are asked for",
        "The released candidates teach a coarse order: neighbours are told apart better where they are "
        "asked for.",
        "In misaligned windows below the largest position the adjacency is more than 0.1 higher where half "
        "of the anchors take their candidates from around themselves than with the released mixture.",
        pairs("around - both", f"adjacency/{MISALIGNED}", low=0.1),
    ),
    _geometry(
        "shared-digits-look-like-geometry",
        "Shared digits look like geometry to an untrained encoder",
        "Positions that share their low digits look alike to an untrained encoder; shifts that keep them "
        "must be told from those that do not.",
        "Before any training, aligned windows are more than 0.2 more like the trained window than "
        "misaligned ones, with digits of base 10, 2 and 16.",
        changes(
            "both, base-2, base-16",
            [("drawn/likeness/aligned", f"drawn/likeness/{MISALIGNED}")],
            low=0.2,
        ),
    ),
    _distances(
        "the-losses-order-distances",
        "SeqPE's losses order the distances in a window",
        "Trained on its two losses, the encoder of SeqPE puts positions of a window the farther apart the "
        "farther they are.",
        "With both losses the distance is more than 0.1 above that of the encoder as drawn, in the trained "
        "window and in misaligned windows below the largest position.",
        over_drawn("both", "distance", "trained", MISALIGNED),
    ),
    _distances(
        "the-contrast-aligns-distances",
        "It is the contrastive loss that aligns distances",
        "It is the contrastive loss that aligns distances of embeddings with those of positions.",
        "In misaligned windows below the largest position the distance with the contrastive loss alone is "
        "more than 0.1 above that with the distillation alone, and above that of the encoder as drawn.",
        [
            Ask(f"contrastive:distance/{MISALIGNED}", f"distillation:distance/{MISALIGNED}", low=0.1),
            *over_drawn("contrastive", "distance", MISALIGNED),
        ],
        source="seqpe-abstract",
    ),
)
