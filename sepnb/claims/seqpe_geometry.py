"""Experiments `seqpe_geometry` and `seqpe_distances` (chapter 16): what SeqPE's losses make of the space of
positions. Each measure is the mean over the windows of a group; *drawn* is the same encoder before training.

Rules on `seqpe_geometry` were written before its records. Those on `seqpe_distances` were written with the
records of `seqpe_geometry` in view, seeds 1 to 6, and before those that they judge, seeds 7 to 12. *Distance*
is Spearman's rank correlation of the Euclidean distance of two embeddings with the distance of their
positions, over all pairs of a window.
"""

from functools import partial

from sepnb.claims.asks import Ask, changes, pairs
from sepnb.claims.claim import Claim

MISALIGNED = "misaligned"
UNSEEN = "misaligned, never seen"


def over_drawn(method: str, measure: str, *groups: str) -> list[Ask]:
    """A measure is more than 0.1 above that of the same encoder before its training."""
    columns = [f"{measure}/{group}" for group in groups]
    return changes(method, [(one, f"drawn/{one}") for one in columns], low=0.1)


_geometry = partial(Claim, experiment="experiment/seqpe_geometry", higher_is_better=True)
_distances = partial(_geometry, experiment="experiment/seqpe_distances")

CLAIMS = {
    "the-losses-order-positions": _geometry(
        "SeqPE's losses order the positions of a window", over_drawn("both", "order", "trained", MISALIGNED)
    ),
    "distillation-carries-the-geometry": _geometry(
        "It is the distillation that repeats the geometry elsewhere",
        pairs("both - contrastive", f"likeness/{MISALIGNED}", f"likeness/{UNSEEN}", low=0.1),
        source="seqpe-abstract",
    ),
    "shared-digits-look-like-geometry": _geometry(
        "Shared digits look like geometry to an untrained encoder",
        changes(
            "both, base-2, base-16", [("drawn/likeness/aligned", f"drawn/likeness/{MISALIGNED}")], low=0.2
        ),
    ),
    "the-losses-order-distances": _distances(
        "SeqPE's losses order the distances in a window",
        over_drawn("both", "distance", "trained", MISALIGNED),
    ),
    "the-contrast-aligns-distances": _distances(
        "It is the contrastive loss that aligns distances",
        pairs("contrastive - distillation", f"distance/{MISALIGNED}", low=0.1)
        + over_drawn("contrastive", "distance", MISALIGNED),
        source="seqpe-abstract",
    ),
}
