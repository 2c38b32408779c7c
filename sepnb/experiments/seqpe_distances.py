"""Chapter 14: do distances of embeddings follow distances of positions? Some encoders of `seqpe_geometry`,
drawn and trained with fresh seeds.

The records of `seqpe_geometry` showed that products and distances part: with both losses the products of a
window are hardly ordered, and the distances are. No rule asked for distances when that was seen. So rules
were written then, and these seeds drawn and trained afterwards.
"""

from dataclasses import dataclass
from typing import ClassVar

from .seqpe_geometry import BOTH, SeqPEGeometry, SeqPEGeometryRun


@dataclass(frozen=True)
class SeqPEDistancesRun(SeqPEGeometryRun):
    """A run of `seqpe_geometry` under this experiment's name."""

    @property
    def experiment(self) -> str:
        return SeqPEDistances.name


class SeqPEDistances(SeqPEGeometry):
    """Do the losses of SeqPE order the distances of embeddings?"""

    name: ClassVar[str] = "seqpe_distances"
    title: ClassVar[str] = "Two losses and distances, on fresh seeds"
    question: ClassVar[str] = (
        "Do the Euclidean distances of SeqPE's embeddings follow the distances of positions, and which of "
        "its losses sees to it?"
    )
    runs: ClassVar[type[SeqPEGeometryRun]] = SeqPEDistancesRun
    methods: ClassVar = (BOTH, "contrastive", "distillation")
    smoke: ClassVar = (BOTH,)
    seeds: ClassVar[tuple[int, ...]] = (7, 8, 9, 10, 11, 12)
