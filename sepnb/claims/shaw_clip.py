"""Experiment `shaw_clip` (chapter 3): precise position near the query. Written before its records."""

from sepnb.claims.asks import Floor, pairs
from sepnb.claims.claim import Claim

CLAIMS = {
    "precise-position-helps-nearby": Claim(
        "Precise position helps nearby",
        pairs("keys-8 - keys-1", high=0.0),
        experiment="experiment/shaw_clip",
        floors=(Floor(4.0),),
        remark="One has labels of their own for the nearest eight distances, the other one for the token "
        "itself and one for all earlier tokens. The bar is 4.0, below the entropy of single bytes (about "
        "4.48): a model that its clip holds back is to be judged and not refused.",
    )
}
