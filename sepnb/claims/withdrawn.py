"""Claims that were withdrawn, openly: what each said, its last verdict, and why it is asked no more."""

from typing import NamedTuple


class Withdrawn(NamedTuple):
    """A claim of earlier editions, whose id is not used again."""

    title: str
    verdict: str
    reason: str


WITHDRAWN = {
    "the-phase-read-closes-half-of-the-gap-to-rope": Withdrawn(
        "A content-to-position term closes half of the gap to RoPE",
        "not testable here",
        "after this training there is no gap between RoPE and the separated sinusoid, so there is nothing to "
        "close; the rule was narrowed when its records were known",
    ),
    "seqpe-is-ahead-on-spread-images": Withdrawn(
        "Where things lie further apart SeqPE tells directions better than a sinusoid and axial RoPE",
        "not testable here",
        "no model tells these directions better than by the place of one of the two things alone, so no two "
        "can be compared; the claims on a larger canvas ask the same of pictures that models can read",
    ),
}
