"""What the book found, in sentences that stand on verdicts, and the claims that come first."""

import re
from typing import NamedTuple

from sepnb.claims.verdict import HELD, NOT_REPRODUCED, REFUTED, REPRODUCED


class Found(NamedTuple):
    """A sentence of the finding, which links to claims, and the verdicts without which it is not so."""

    says: str
    stands_on: dict[str, str]


FOUND = (
    Found(
        "Dimensions of their own {ref}`keep position and content apart "
        "<claim-block-values-keep-streams-apart>`, exactly, while the attention weights are held fixed; "
        "{ref}`the norm must be split too <claim-values-output-and-mlp-suffice>`.",
        {
            "block-values-keep-streams-apart": REPRODUCED,
            "two-mlps-keep-streams-apart": REPRODUCED,
            "values-output-and-mlp-suffice": NOT_REPRODUCED,
        },
    ),
    Found(
        "With a plain sinusoid at random positions {ref}`order is learned sooner "
        "<claim-separation-learns-order-sooner>` with them; a lead in loss {ref}`vanishes with more training "
        "<claim-separation-ahead-at-every-budget>`.",
        {
            "separation-learns-order-sooner": HELD,
            "separation-ahead-at-every-budget": REFUTED,
            "separation-ahead-at-equal-parameters-and-every-budget": REFUTED,
        },
    ),
    Found(
        "They do not carry text further: {ref}`none of the five rules <claim-the-five-extrapolate>` "
        "continues a position past the trained length, and {ref}`separation does not make it easier "
        "<claim-separation-makes-extrapolation-easier>`, {ref}`nor where losses and parameters are the same "
        "<claim-separation-makes-extrapolation-easier-at-equal-size>`.",
        {
            "the-five-extrapolate": NOT_REPRODUCED,
            "only-the-position-needs-extrapolating": NOT_REPRODUCED,
            "separation-makes-extrapolation-easier": NOT_REPRODUCED,
            "separation-makes-extrapolation-easier-at-equal-size": REFUTED,
        },
    ),
    Found(
        "Better vectors are not enough. Even rows fitted to the frozen weights {ref}`do not carry a "
        "separated model on <claim-only-new-vectors-are-missing>`; a dense one, whose rows are longer, "
        "{ref}`they carry one length further <claim-fitted-rows-survive-dense>`. A norm on positions "
        "{ref}`has a part in that <claim-a-norm-makes-fitting-harder>`.",
        {
            "only-new-vectors-are-missing": NOT_REPRODUCED,
            "fitted-rows-survive-dense": HELD,
            "a-norm-makes-fitting-harder": HELD,
            "separation-makes-fitting-easier": REFUTED,
        },
    ),
    Found(
        "What carries models on is training for far distances. A separated model of RoPE's size so trained "
        "{ref}`matches RoPE behind a window <claim-a-separated-model-stands-beside-rope>`, but "
        "{ref}`does not beat a dense one <claim-separation-helps-the-survivor>`.",
        {
            "a-separated-model-stands-beside-rope": HELD,
            "separation-helps-the-survivor": REFUTED,
        },
    ),
    Found(
        "Needles far back {ref}`are found as well by a dense model of equal size "
        "<claim-needle-dense-twin-does-as-well-at-equal-parameters>`, trained likewise.",
        {"needle-dense-twin-does-as-well-at-equal-parameters": HELD},
    ),
    Found(
        "SeqPE's two losses {ref}`order distances <claim-the-losses-order-distances>` and "
        "{ref}`do not help a stream at indices never seen <claim-the-losses-carry-the-stream-further>`.",
        {
            "the-losses-order-distances": HELD,
            "the-losses-carry-the-stream-further": REFUTED,
        },
    ),
)
"""What separation earns and what it does not. A sentence stands on the page while all its verdicts do."""

HEADLINES = (
    *(name for one in FOUND for name in re.findall(r"<claim-([\w-]+)>", one.says)),
    "needle-a-separated-model-uses",
    "questions-a-separated-model-uses",
)
"""The claims that stand first on their page: those that the sentences link to, and who uses a far answer."""
