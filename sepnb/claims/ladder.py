"""How many dimensions does position need? In novels `ladder_text`, from no position to all columns;
`removed_text`, position taken away after training; `opened_text`, a separated model trained on as the dense
model that computes it; `ladder_adapted_text`, W_Q and W_K tuned at slower positions. In recall, and where the
latest of several values is asked for, RoPE on a share of the columns, in `stretched_mqar` and
`stretched_latest_value`; in `each_pair_mqar` and `each_pair_latest_value`, the same models with one pair
stopped, or slowed down alone.

Written before the records; but for what a remark says, no trial had been seen.
"""

from functools import partial

from sepnb.claims.asks import changes, each, levels, pairs
from sepnb.claims.claim import Claim
from sepnb.claims.language_model import BAR
from sepnb.claims.recall import DOES, LEARNT
from sepnb.records.verdicts import SURVIVES

ALL = "rope"
SHARES = ("rope-16th", "rope-8th", "rope-partial", "rope-half")
"""RoPE on a sixteenth to half of the columns."""
FAST = ("rope-fast", "separated-sinusoidal-fast")
OF_SMALL = SHARES[1:]
"""In the small models of the tasks a sixteenth of a head is less than a pair."""
LEVEL = 0.01
"""Bits per byte within which an arm is as good as its partner inside the trained length."""
MAPS = "maps-one-factor"
NATIVE, GAP, ORDER = "gap/native/8x", "gap/slowed/8x", "shuffled/8x"
NOPE = ("rope-nope-4", "rope-nope-2")
"""RoPE in three of four layers, and in every second one."""
OTHER_WIDTHS = each("separated-sinusoidal-pos-{}-wide", ("16th", "8th", "half"))
SWEPT = (
    "Written before any of these runs. Seen had been, of one seed each, the losses inside the trained length "
    "by which their learning rates were chosen."
)
READ = "adapted-1/1x"
"""Inside the trained length, after the tuning."""
SEPARATED = "separated-sinusoidal"
BOTH = (ALL, SEPARATED)
WRITTEN_OUT = f"{SEPARATED}-joint-norm"
UNCHANGED = "accuracy/native/16x"
SEEN = (
    "Written when one or two seeds of RoPE on an eighth, a quarter and half of the columns had been seen, "
    "and none of these models."
)
GATED = "Written when one seed of such a model had been seen in novels, and none in a task."
SLOWED_GATES = (
    "Written when it had been seen what such a model finds unchanged (42 % at sixteen lengths), and by none "
    "with gates slowed down or logits scaled."
)
ONE_LAYER = "rope-nope-2"
UNSEEN = "Written before any of these runs. In novels the same model, of four layers, had been seen."
IN_BLOCKS = 0.1
"""The largest share of squared weights beside the blocks of a matrix that still counts as block diagonal."""

_of = partial(Claim, experiment="experiment/ladder_text", floors=(BAR,), parts=True)
_recalled = partial(
    Claim, experiment="experiment/stretched_mqar", floors=(LEARNT,), higher_is_better=True, parts=True
)
_latest = partial(
    Claim,
    experiment="experiment/stretched_latest_value",
    floors=(LEARNT,),
    higher_is_better=True,
    parts=True,
    remark="What the same models recall had been seen, and in this task no model with few columns.",
)
_each_pair = partial(
    Claim,
    floors=(LEARNT,),
    higher_is_better=True,
    parts=True,
    remark="What the same models find as trained and slowed down had been seen, none with a pair stopped.",
)
_removed = partial(
    Claim,
    experiment="experiment/removed_text",
    floors=(BAR,),
    parts=True,
    remark="One seed had been seen, of runs whose rates texts of 8 L had chosen.",
)
_opened = partial(Claim, experiment="experiment/opened_text", floors=(BAR,), parts=True)
TWO_PAIRS = "rope-partial"
FAST_STOPPED, SLOW_STOPPED = "accuracy/stopped-1/1x", "accuracy/stopped-2/1x"
SLOW_SLOWED = "accuracy/slowed-2/16x"


def slow_pair_alone(task: str) -> dict[str, Claim]:
    """Whether the slow pair is all that has to be slowed down, in `each_pair_<task>`."""
    return {
        f"each-pair-{task.replace('_', '-')}-the-slow-pair-is-all-to-slow": _each_pair(
            f"RoPE with a fast and a slow pair {DOES[task]} at sixteen trained lengths as often with the "
            f"slow pair alone slowed down as with both, within 3 points, and more often than with neither, "
            f"logits scaled by log n in each",
            [
                *changes(TWO_PAIRS, [(SLOW_SLOWED, "accuracy/slowed-all/16x")], low=-0.03),
                *changes(TWO_PAIRS, [(SLOW_SLOWED, "accuracy/log/16x")], low=0.0),
            ],
            experiment=f"experiment/each_pair_{task}",
            remark="Foreseeable: with two pairs NTK-aware scaling and YaRN slow the slow one alone, and what "
            "they find had been seen.",
        )
    }


def all_but_the_fastest(task: str) -> dict[str, Claim]:
    """Whether eight pairs are slowed down as four are best."""
    return {
        f"each-pair-{task.replace('_', '-')}-the-fastest-pair-keeps-its-speed": _each_pair(
            f"RoPE on all columns {DOES[task]} at sixteen trained lengths more often with all pairs but the "
            f"fastest slowed down than with all of them, logits scaled by log n in both",
            changes(ALL, [("accuracy/slowed-from-2/16x", "accuracy/slowed-all/16x")], low=0.0),
            experiment=f"experiment/each_pair_{task}",
            remark="Written when it had been seen that RoPE with four pairs does.",
        )
    }


CLAIMS = {
    "ladder-text-a-share-of-the-columns-is-enough": _of(
        "RoPE on a sixteenth, an eighth, a quarter or half of the columns pays no more inside the trained "
        "length than RoPE on all of them, within 0.01 bits",
        pairs(each(f"{{}} - {ALL}", SHARES), high=LEVEL),
    ),
    "ladder-text-slowed-a-share-loses-less": _of(
        "With positions slowed down, RoPE on a sixteenth, an eighth, a quarter or half of the columns loses "
        "less at eight trained lengths than RoPE on all of them, each against its own sliding window",
        pairs(each(f"{{}} - {ALL}", SHARES), GAP, high=0.0),
    ),
    "ladder-text-a-small-share-hears-more-of-the-order": _of(
        "RoPE on a sixteenth, an eighth, a quarter or half of the columns hears more of the order of distant "
        "words at eight trained lengths than RoPE on all of them",
        pairs(each(f"{{}} - {ALL}", SHARES), ORDER, low=0.0),
        remark="The column `shuffled/8x` is what it costs that the words further back than a trained length "
        "stand in another order.",
    ),
    "ladder-text-layers-without-position-cost-nothing": _of(
        "RoPE in three of four layers, or in every second one, pays no more inside the trained length than "
        "RoPE in all layers, within 0.01 bits",
        pairs(each(f"{{}} - {ALL}", NOPE), high=LEVEL),
        remark=SWEPT,
    ),
    "ladder-text-layers-without-position-read-further": _of(
        "RoPE in three of four layers, or in every second one, loses less at eight trained lengths than RoPE "
        "in all layers, as trained and with positions slowed down, each against its own sliding window",
        pairs(each(f"{{}} - {ALL}", NOPE), NATIVE, GAP, high=0.0),
        remark=SWEPT,
    ),
    "ladder-text-one-rotated-key-is-enough": _of(
        "RoPE on a quarter of the columns with one rotated key for all heads pays no more than with a key "
        "for each head, inside the trained length and, with positions slowed down, at eight of them, within "
        "0.01 bits",
        pairs("rope-shared-key - rope-partial", "bits_per_byte", GAP, high=LEVEL),
        remark=SWEPT,
    ),
    "ladder-adapted-text-a-share-loses-no-more": _of(
        "RoPE on an eighth or a quarter of the columns, slowed down by YaRN with W_Q and W_K tuned, loses no "
        "more at eight trained lengths than RoPE on all of them, within 0.03 bits, each against its own "
        "sliding window",
        pairs(
            [f"rope-{share}/{MAPS} - {ALL}/{MAPS}" for share in ("8th", "partial")],
            GAP,
            high=0.03,
        ),
        experiment="experiment/ladder_adapted_text",
        remark="Untuned all had been seen, and RoPE on all columns tuned alike from another learning rate.",
    ),
    "ladder-adapted-text-every-fourth-layer-without-position-loses-no-more": _of(
        "RoPE in three of four layers, slowed down by YaRN with W_Q and W_K tuned, loses no more at eight "
        "trained lengths than RoPE in all layers, within 0.03 bits, each against its own sliding window",
        pairs(f"rope-nope-4/{MAPS} - {ALL}/{MAPS}", GAP, high=0.03),
        experiment="experiment/ladder_adapted_text",
        remark="Untuned both had been seen.",
    ),
    "ladder-text-forget-gates-survive": _of(
        "A model with forget gates and without position survives at eight lengths, as trained",
        levels("forgetting", NATIVE, high=SURVIVES),
        remark=SWEPT,
    ),
    "ladder-text-a-sixteenth-of-the-width-is-enough": _of(
        "A separated model with a sixteenth, an eighth or half of its width for position pays no more inside "
        "the trained length than one with a quarter, within 0.01 bits",
        pairs(each("{} - separated-sinusoidal-wide", OTHER_WIDTHS), high=LEVEL),
        remark=SWEPT,
    ),
    "ladder-mqar-slowed-a-share-recalls-as-often": _recalled(
        "With positions slowed down, RoPE on an eighth, a quarter or half of the columns recalls values at "
        "sixteen trained lengths as often as RoPE on all of them, within 3 points",
        pairs(each(f"{{}} - {ALL}", OF_SMALL), "accuracy/stretched/16x", low=-0.03),
    ),
    "ladder-mqar-unchanged-a-share-recalls-more": _recalled(
        "Read without changes, RoPE on an eighth, a quarter or half of the columns recalls values at eight "
        "trained lengths more often than RoPE on all of them",
        pairs(each(f"{{}} - {ALL}", OF_SMALL), "accuracy/native/8x", low=0.0),
    ),
    "ladder-mqar-fast-pairs-need-no-slowing": _recalled(
        "Read without changes, RoPE on the fastest quarter of the pairs recalls values at sixteen trained "
        "lengths more often than RoPE on a quarter of the columns, whose pairs are fast and slow",
        pairs("p-rope-quarter - rope-partial", UNCHANGED, low=0.0),
        remark=SEEN,
    ),
    "ladder-mqar-fast-waves-recall-unchanged": _recalled(
        "RoPE and a separated model of which every wave turns within the trained length recall, without "
        "changes, nine tenths of the values at sixteen trained lengths",
        levels(FAST, UNCHANGED, low=0.9),
        remark=SEEN,
    ),
    "ladder-mqar-one-wave-recalls-unchanged": _recalled(
        "A separated model with one wave, of a radian a token, recalls, without changes, nine tenths of the "
        "values at sixteen trained lengths",
        levels("separated-sinusoidal-one", UNCHANGED, low=0.9),
        remark="Written when one seed of each model with several fast waves had been seen, which recalled "
        "less, and RoPE on an eighth of the columns, which has one pair.",
    ),
    "ladder-mqar-repeated-waves-recall-unchanged": _recalled(
        "A separated model whose waves repeat every half of the trained length recalls, without changes, "
        "values at sixteen trained lengths as often as one with a single wave, within 3 points",
        pairs("separated-sinusoidal-repeated - separated-sinusoidal-one", UNCHANGED, low=-0.03),
        remark="Written when all other models with fewer or faster waves had been seen, RoPE with eight fast "
        "ones excepted.",
    ),
    "ladder-mqar-forget-gates-recall-unchanged": _recalled(
        "A model with forget gates and without position recalls, without changes, nine tenths of the values "
        "at sixteen trained lengths",
        levels("forgetting", UNCHANGED, low=0.9),
        remark=GATED,
    ),
    "ladder-mqar-position-in-the-first-layer-recalls-unchanged": _recalled(
        "RoPE in the first of two layers alone recalls, without changes, nine tenths of the values at "
        "sixteen trained lengths",
        levels(ONE_LAYER, UNCHANGED, low=0.9),
        remark=UNSEEN,
    ),
    "ladder-latest-value-forget-gates-find-unchanged": _latest(
        "A model with forget gates and without position finds, without changes, nine tenths of the latest "
        "values at sixteen trained lengths",
        levels("forgetting", UNCHANGED, low=0.9),
        remark=GATED,
    ),
    "ladder-latest-value-slowed-gates-find": _latest(
        "With its gates slowed down, a model with forget gates and without position finds nine tenths of the "
        "latest values at sixteen trained lengths",
        levels("forgetting", "accuracy/stretched/16x", low=0.9),
        remark=SLOWED_GATES,
    ),
    "ladder-latest-value-gates-have-to-be-slowed": _latest(
        "A model with forget gates and without position finds more of the latest values at sixteen trained "
        "lengths with gates slowed down and logits scaled by log n than with log n alone",
        changes("forgetting", [("accuracy/interpolation-log/16x", "accuracy/log/16x")], low=0.0),
        experiment="experiment/every_reading_latest_value",
        remark=SLOWED_GATES,
    ),
    "ladder-latest-value-a-share-is-enough-inside": _latest(
        "Inside the trained length RoPE on an eighth, a quarter or half of the columns finds the latest "
        "value of a key as often as RoPE on all of them, within 3 points",
        pairs(each(f"{{}} - {ALL}", OF_SMALL), "accuracy/native/1x", low=-0.03),
        floors=(),
        higher_is_better=False,
    ),
    "ladder-latest-value-unchanged-a-share-finds-more": _latest(
        "Read without changes, RoPE on an eighth, a quarter or half of the columns finds the latest value "
        "of a key at eight trained lengths more often than RoPE on all of them",
        pairs(each(f"{{}} - {ALL}", OF_SMALL), "accuracy/native/8x", low=0.0),
    ),
    "ladder-latest-value-slowed-a-share-finds-as-often": _latest(
        "With positions slowed down, RoPE on an eighth, a quarter or half of the columns finds the latest "
        "value of a key at sixteen trained lengths as often as RoPE on all of them, within 3 points",
        pairs(each(f"{{}} - {ALL}", OF_SMALL), "accuracy/stretched/16x", low=-0.03),
    ),
    "each-pair-mqar-recall-needs-the-fast-pair": _each_pair(
        "RoPE with a fast and a slow pair recalls values inside the trained length as often with the slow "
        "pair stopped, within 3 points, and less than half of them with the fast pair stopped",
        [
            *changes(TWO_PAIRS, [(SLOW_STOPPED, "accuracy/native/1x")], low=-0.03),
            *levels(TWO_PAIRS, FAST_STOPPED, high=0.5),
        ],
        experiment="experiment/each_pair_mqar",
    ),
    "each-pair-latest-value-order-needs-both-pairs": _each_pair(
        "RoPE with a fast and a slow pair finds, inside the trained length, at least 10 points fewer latest "
        "values with the slow pair stopped, and less than half of them with the fast pair stopped",
        [
            *changes(TWO_PAIRS, [(SLOW_STOPPED, "accuracy/native/1x")], high=-0.1),
            *levels(TWO_PAIRS, FAST_STOPPED, high=0.5),
        ],
        experiment="experiment/each_pair_latest_value",
    ),
    **slow_pair_alone("mqar"),
    **slow_pair_alone("latest_value"),
    **all_but_the_fastest("mqar"),
    **all_but_the_fastest("latest_value"),
    "removed-text-costs-nothing-inside": _removed(
        "A trained model, RoPE or separated, that is tuned without position pays no more inside the trained "
        "length than one that is tuned alike with it, within 0.01 bits",
        pairs(each("{}/removed - {}/kept", BOTH), READ, high=LEVEL),
    ),
    "removed-text-survives": _removed(
        "A trained model, RoPE or separated, that is tuned without position survives at eight lengths",
        levels(each("{}/removed", BOTH), GAP, high=SURVIVES),
    ),
    "removed-text-reads-further-than-slowed": _removed(
        "A trained model, RoPE or separated, that is tuned without position loses less at eight trained "
        "lengths than one that is tuned alike with it and slowed down, each against the sliding window of "
        "the untuned model",
        pairs(each("{}/removed - {}/kept", BOTH), GAP, high=0.0),
    ),
    "removed-text-content-is-all-to-tune": _removed(
        "A separated model without position pays no more, inside the trained length and at eight of them, "
        "where the content part alone is tuned than where everything is, within 0.01 bits",
        pairs(f"{SEPARATED}/content-removed - {SEPARATED}/removed", READ, GAP, high=LEVEL),
    ),
    "removed-text-position-comes-back": _removed(
        "A separated model whose content was tuned without position, and then its position part alone with "
        "it, pays no more inside the trained length than one that never lost it, within 0.01 bits",
        pairs(f"{SEPARATED}/position-back - {SEPARATED}/kept", READ, high=LEVEL),
    ),
    "opened-text-a-dense-model-gains-nothing": _opened(
        "A separated model written out as a dense one and trained on pays no less than the separated model "
        "trained on as long, within 0.01 bits",
        pairs(f"{WRITTEN_OUT}/opened - {WRITTEN_OUT}/kept", low=-LEVEL),
    ),
    "opened-text-stays-in-its-blocks": _opened(
        "A separated model written out as a dense one and trained on has less than a tenth of its squared "
        "weights beside the blocks, in values, outputs and the maps of the MLP",
        levels(
            f"{WRITTEN_OUT}/opened",
            *(f"beside/{kind}" for kind in ("value", "output", "up", "down")),
            high=IN_BLOCKS,
        ),
    ),
}
