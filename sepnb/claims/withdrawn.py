"""Claims that were withdrawn, openly: what each said, its last verdict, and why it is asked no more."""

from typing import NamedTuple


class Withdrawn(NamedTuple):
    """A claim of earlier editions, whose id is not used again."""

    title: str
    verdict: str
    reason: str


_BY_REASON: dict[str, dict[str, tuple[str, str]]] = {
    (
        "after this training there is no gap between RoPE and the separated sinusoid, so there is "
        "nothing to close; the rule was narrowed when its records were known"
    ): {
        "the-phase-read-closes-half-of-the-gap-to-rope": (
            "A content-to-position term closes half of the gap to RoPE",
            "not testable here",
        ),
    },
    (
        "no model tells these directions better than by the place of one of the two things alone, "
        "so no two can be compared; the claims on a larger canvas ask the same of pictures that "
        "models can read"
    ): {
        "seqpe-is-ahead-on-spread-images": (
            "Where things lie further apart SeqPE tells directions better than a sinusoid and axial RoPE",
            "not testable here",
        ),
    },
    "a pair of the ranking of six models, which `budget` shows at three lengths of training": {
        "alibi-level-with-separated-sinusoid": ("ALiBi is level with a separated sinusoid", "refuted"),
    },
    "pages hold an evolving stream against a constant one; a third way to feed it is level with both": {
        "a-pos-stream-needs-no-reinjection": (
            "A position stream need not be given its position again in every layer",
            "held",
        ),
    },
    "claims of the slides say both parts: no sinusoid reads on, and separation makes it no easier": {
        "separation-helps-the-sinusoid": (
            "With a sinusoid the separated model loses less past the trained length",
            "refuted",
        ),
    },
    "its two halves are in the table of methods, and that RoPE struggles alone is a claim of the article": {
        "rope-needs-a-window": ("A window over the keys repairs RoPE", "held"),
    },
    "one more model for the claims on fitted rows of the separated and of the dense one": {
        "fitted-rows-survive-strict": (
            "Fitted rows carry the strict model past its trained length",
            "refuted",
        ),
        "fitted-rows-survive-concatenated": (
            "Fitted rows carry a concatenated model past its trained length",
            "not testable here",
        ),
        "fitted-rows-survive-behind-a-window": (
            "Rows fitted behind a window carry a separated model on behind that window",
            "refuted",
        ),
        "separation-makes-fitting-a-sinusoid-easier": (
            "Rows fitted after a sinusoid lose less in a separated model than in a dense one",
            "not testable here",
        ),
    },
    "what fitted rows lose and what the five rules lose are claims of their own": {
        "fitted-rows-beat-every-formula": ("Fitted rows are better than every formula", "held"),
    },
    "one more model for the claim that the five rules extrapolate": {
        "the-five-survive-without-a-norm": (
            "Without a norm on positions the five approaches extrapolate",
            "refuted",
        ),
        "the-five-survive-on-a-smooth-table": (
            "On a smooth table the five approaches extrapolate",
            "refuted",
        ),
    },
    "one more way to read for the claim that random offsets survive": {
        "random-offsets-and-a-window-survive": (
            "With random offsets and a window, a separated sinusoid survives",
            "undecided",
        ),
    },
    "of the same model whether it survives is asked by another claim, and no page needs both": {
        "the-toeplitz-clamp-frees-of-the-index": (
            "Toeplitz distillation makes a model indifferent to where a text begins",
            "refuted",
        ),
    },
    "one more comparison on the larger canvas, where the claim on axial RoPE by itself says enough": {
        "axial-rope-is-ahead-on-a-larger-canvas": (
            "On a larger canvas axial RoPE is ahead of the sinusoid",
            "undecided",
        ),
    },
    "a control of the claims on windows that the losses move, which show it themselves": {
        "digit-strings-keep-an-aligned-window": (
            "Digit strings alone keep a window with the same low digits in place",
            "held",
        ),
    },
    "the cell of RoPE in the table of methods says the same, by the same rule": {
        "mqar-rope-uses": ("RoPE recalls values at eight trained lengths as it was trained", "refuted"),
        "latest-value-rope-uses": (
            "RoPE finds latest values at eight trained lengths as it was trained",
            "refuted",
        ),
        "needle-rope-uses": ("RoPE finds needles at eight trained lengths as it was trained", "refuted"),
    },
    "one pair of two, and its dense model did not learn the task; the other claims on questions say so": {
        "questions-separation-finds-more": (
            "A separated model answers questions further back than its dense twin",
            "not testable here",
        ),
    },
}
"""Why, and of each id its title and last verdict."""

WITHDRAWN = {
    claim: Withdrawn(title, verdict, reason)
    for reason, claims in _BY_REASON.items()
    for claim, (title, verdict) in claims.items()
}
