"""What the book found, in sentences that stand on verdicts, and the claims that come first."""

import re
from typing import NamedTuple

from sepnb.records.verdicts import HELD, NOT_REPRODUCED, REFUTED, REPRODUCED


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
        "With a plain sinusoid at random positions {ref}`order is learned in fewer steps "
        "<claim-separation-learns-order-sooner>` with them than without. A lead in loss over a dense model "
        "that adds the same sinusoid {ref}`vanishes with more training "
        "<claim-separation-ahead-at-every-budget>`.",
        {
            "separation-learns-order-sooner": HELD,
            "separation-ahead-at-every-budget": REFUTED,
            "separation-ahead-at-equal-parameters-and-every-budget": REFUTED,
        },
    ),
    Found(
        "The position stream {ref}`need not evolve "
        "<claim-a-constant-untied-table-needs-no-evolving-stream>`: a constant one is as good.",
        {"a-constant-untied-table-needs-no-evolving-stream": HELD},
    ),
    Found(
        "They do not let text survive past the trained length: {ref}`none of the five rules "
        "<claim-the-five-extrapolate>` continues a position, and {ref}`separation does not make it easier "
        "<claim-separation-makes-extrapolation-easier>` under all of them. Where losses and parameters are "
        "the same {ref}`one comparison fails and the others are open "
        "<claim-separation-makes-extrapolation-easier-at-equal-size>`.",
        {
            "the-five-extrapolate": NOT_REPRODUCED,
            "only-the-position-needs-extrapolating": NOT_REPRODUCED,
            "separation-makes-extrapolation-easier": NOT_REPRODUCED,
            "separation-makes-extrapolation-easier-at-equal-size": REFUTED,
        },
    ),
    Found(
        "Better vectors are not enough. Even rows fitted to the frozen weights {ref}`do not let a separated "
        "model read on <claim-only-new-vectors-are-missing>`, although they let a dense one read {ref}`one "
        "length further <claim-fitted-rows-survive-dense>`. Short rows are not the reason: where position is "
        "only concatenated, rows as short {ref}`lose less <claim-splitting-makes-fitting-harder>`. A norm on "
        "positions {ref}`has a part in it <claim-a-norm-makes-fitting-harder>`.",
        {
            "only-new-vectors-are-missing": NOT_REPRODUCED,
            "fitted-rows-survive-dense": HELD,
            "splitting-makes-fitting-harder": HELD,
            "a-norm-makes-fitting-harder": HELD,
            "separation-makes-fitting-easier": REFUTED,
        },
    ),
    Found(
        "Training for far distances lets models survive. A separated model of RoPE's size so trained "
        "{ref}`matches RoPE with a window <claim-a-separated-model-stands-beside-rope>`, but "
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
