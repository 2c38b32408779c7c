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

ALL, SEPARATED = "rope", "separated-sinusoidal"
SHARES = ("rope-16th", "rope-8th", "rope-partial", "rope-half")
"""RoPE on a sixteenth to half of the columns."""
OF_ALL = each(f"{{}} - {ALL}", SHARES)
OF_SMALL = OF_ALL[1:]
"""In the small models of the tasks a sixteenth of a head is less than a pair."""
LEVEL = 0.01
"""Bits per byte within which an arm is as good as its partner inside the trained length."""
NOPE = each(f"{{}} - {ALL}", ("rope-nope-4", "rope-nope-2"))
"""RoPE in three of four layers, and in every second one."""
READ = "adapted-1/1x"
"""Inside the trained length, after the tuning."""
NATIVE, GAP = "gap/native/8x", "gap/slowed/8x"
UNCHANGED, STRETCHED = "accuracy/native/16x", "accuracy/stretched/16x"
INSIDE, FAST_STOPPED, SLOW_STOPPED = "accuracy/native/1x", "accuracy/stopped-1/1x", "accuracy/stopped-2/1x"
TWO_PAIRS = "rope-partial"
REMOVED = each("{}/removed - {}/kept", (ALL, SEPARATED))

SWEPT = (
    "Written before any of these runs. Seen had been, of one seed each, the losses inside the trained length "
    "by which their learning rates were chosen."
)
SEEN = (
    "Written when one or two seeds of RoPE on an eighth, a quarter and half of the columns had been seen, "
    "and none of these models."
)
GATED = "Written when one seed of such a model had been seen in novels, and none in a task."
SLOWED_GATES = (
    "Written when it had been seen what such a model finds unchanged (42 % at sixteen lengths), and by none "
    "with gates slowed down or logits scaled."
)

SOME = "RoPE on a sixteenth, an eighth, a quarter or half of the columns"
SOME_OF_SMALL = "RoPE on an eighth, a quarter or half of the columns"
WITHOUT = "A trained model, RoPE or separated, that is tuned without position"
OWN_WINDOW = "each against its own sliding window"
AT_16X = "at sixteen trained lengths"

_text = partial(Claim, floors=(BAR,), parts=True)
_of = partial(_text, experiment="experiment/ladder_text")
_adapted = partial(_text, experiment="experiment/ladder_adapted_text")
_opened = partial(_text, experiment="experiment/opened_text")
_removed = partial(
    _text,
    experiment="experiment/removed_text",
    remark="One seed had been seen, of runs whose rates texts of 8 L had chosen.",
)
_task = partial(Claim, floors=(LEARNT,), higher_is_better=True, parts=True)
_recalled = partial(_task, experiment="experiment/stretched_mqar")
_latest = partial(
    _task,
    experiment="experiment/stretched_latest_value",
    remark="What the same models recall had been seen, and in this task no model with few columns.",
)
_each_pair = partial(
    _task,
    remark="What the same models find as trained and slowed down had been seen, none with a pair stopped.",
)


def slow_pair_alone(task: str) -> Claim:
    """Whether the slow pair is all that has to be slowed down."""
    alone = "accuracy/slowed-2/16x"
    return _each_pair(
        f"RoPE with a fast and a slow pair {DOES[task]} {AT_16X} as often with the slow pair alone slowed "
        f"down as with both, within 3 points, and more often than with neither, logits scaled by log n in "
        f"each",
        changes(TWO_PAIRS, [(alone, "accuracy/slowed-all/16x")], low=-0.03)
        + changes(TWO_PAIRS, [(alone, "accuracy/log/16x")], low=0.0),
        experiment=f"experiment/each_pair_{task}",
        remark="Foreseeable: with two pairs NTK-aware scaling and YaRN slow the slow one alone, and what "
        "they find had been seen.",
    )


def all_but_the_fastest(task: str) -> Claim:
    """Whether eight pairs are slowed down as four are best."""
    return _each_pair(
        f"RoPE on all columns {DOES[task]} {AT_16X} more often with all pairs but the fastest slowed down "
        f"than with all of them, logits scaled by log n in both",
        changes(ALL, [("accuracy/slowed-from-2/16x", "accuracy/slowed-all/16x")], low=0.0),
        experiment=f"experiment/each_pair_{task}",
        remark="Written when it had been seen that RoPE with four pairs does.",
    )


CLAIMS = {
    "ladder-text-a-share-of-the-columns-is-enough": _of(
        f"{SOME} pays no more inside the trained length than RoPE on all of them, within 0.01 bits",
        pairs(OF_ALL, high=LEVEL),
    ),
    "ladder-text-slowed-a-share-loses-less": _of(
        f"With positions slowed down, {SOME} loses less at eight trained lengths than RoPE on all of them, "
        f"{OWN_WINDOW}",
        pairs(OF_ALL, GAP, high=0.0),
    ),
    "ladder-text-a-small-share-hears-more-of-the-order": _of(
        f"{SOME} hears more of the order of distant words at eight trained lengths than RoPE on all of them",
        pairs(OF_ALL, "shuffled/8x", low=0.0),
        remark="The column `shuffled/8x` is what it costs that the words further back than a trained length "
        "stand in another order.",
    ),
    "ladder-text-layers-without-position-cost-nothing": _of(
        "RoPE in three of four layers, or in every second one, pays no more inside the trained length than "
        "RoPE in all layers, within 0.01 bits",
        pairs(NOPE, high=LEVEL),
        remark=SWEPT,
    ),
    "ladder-text-layers-without-position-read-further": _of(
        f"RoPE in three of four layers, or in every second one, loses less at eight trained lengths than "
        f"RoPE in all layers, as trained and with positions slowed down, {OWN_WINDOW}",
        pairs(NOPE, NATIVE, GAP, high=0.0),
        remark=SWEPT,
    ),
    "ladder-text-one-rotated-key-is-enough": _of(
        "RoPE on a quarter of the columns with one rotated key for all heads pays no more than with a key "
        "for each head, inside the trained length and, with positions slowed down, at eight of them, within "
        "0.01 bits",
        pairs("rope-shared-key - rope-partial", "bits_per_byte", GAP, high=LEVEL),
        remark=SWEPT,
    ),
    "ladder-adapted-text-a-share-loses-no-more": _adapted(
        f"RoPE on an eighth or a quarter of the columns, slowed down by YaRN with W_Q and W_K tuned, loses "
        f"no more at eight trained lengths than RoPE on all of them, within 0.03 bits, {OWN_WINDOW}",
        pairs(each(f"{{}}/maps-one-factor - {ALL}/maps-one-factor", SHARES[1:3]), GAP, high=0.03),
        remark="Untuned all had been seen, and RoPE on all columns tuned alike from another learning rate.",
    ),
    "ladder-adapted-text-every-fourth-layer-without-position-loses-no-more": _adapted(
        f"RoPE in three of four layers, slowed down by YaRN with W_Q and W_K tuned, loses no more at eight "
        f"trained lengths than RoPE in all layers, within 0.03 bits, {OWN_WINDOW}",
        pairs(f"rope-nope-4/maps-one-factor - {ALL}/maps-one-factor", GAP, high=0.03),
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
        pairs(each(f"{SEPARATED}-pos-{{}}-wide - {SEPARATED}-wide", "16th, 8th, half"), high=LEVEL),
        remark=SWEPT,
    ),
    "ladder-mqar-slowed-a-share-recalls-as-often": _recalled(
        f"With positions slowed down, {SOME_OF_SMALL} recalls values {AT_16X} as often as RoPE on all of "
        f"them, within 3 points",
        pairs(OF_SMALL, STRETCHED, low=-0.03),
    ),
    "ladder-mqar-unchanged-a-share-recalls-more": _recalled(
        f"Read without changes, {SOME_OF_SMALL} recalls values at eight trained lengths more often than RoPE "
        f"on all of them",
        pairs(OF_SMALL, "accuracy/native/8x", low=0.0),
    ),
    "ladder-mqar-fast-pairs-need-no-slowing": _recalled(
        f"Read without changes, RoPE on the fastest quarter of the pairs recalls values {AT_16X} more often "
        f"than RoPE on a quarter of the columns, whose pairs are fast and slow",
        pairs("p-rope-quarter - rope-partial", UNCHANGED, low=0.0),
        remark=SEEN,
    ),
    "ladder-mqar-fast-waves-recall-unchanged": _recalled(
        f"RoPE and a separated model of which every wave turns within the trained length recall, without "
        f"changes, nine tenths of the values {AT_16X}",
        levels("rope-fast, separated-sinusoidal-fast", UNCHANGED, low=0.9),
        remark=SEEN,
    ),
    "ladder-mqar-one-wave-recalls-unchanged": _recalled(
        f"A separated model with one wave, of a radian a token, recalls, without changes, nine tenths of the "
        f"values {AT_16X}",
        levels("separated-sinusoidal-one", UNCHANGED, low=0.9),
        remark="Written when one seed of each model with several fast waves had been seen, which recalled "
        "less, and RoPE on an eighth of the columns, which has one pair.",
    ),
    "ladder-mqar-repeated-waves-recall-unchanged": _recalled(
        f"A separated model whose waves repeat every half of the trained length recalls, without changes, "
        f"values {AT_16X} as often as one with a single wave, within 3 points",
        pairs("separated-sinusoidal-repeated - separated-sinusoidal-one", UNCHANGED, low=-0.03),
        remark="Written when all other models with fewer or faster waves had been seen, RoPE with eight fast "
        "ones excepted.",
    ),
    "ladder-mqar-forget-gates-recall-unchanged": _recalled(
        f"A model with forget gates and without position recalls, without changes, nine tenths of the values "
        f"{AT_16X}",
        levels("forgetting", UNCHANGED, low=0.9),
        remark=GATED,
    ),
    "ladder-mqar-position-in-the-first-layer-recalls-unchanged": _recalled(
        f"RoPE in the first of two layers alone recalls, without changes, nine tenths of the values {AT_16X}",
        levels("rope-nope-2", UNCHANGED, low=0.9),
        remark="Written before any of these runs. In novels the same model, of four layers, had been seen.",
    ),
    "ladder-latest-value-forget-gates-find-unchanged": _latest(
        f"A model with forget gates and without position finds, without changes, nine tenths of the latest "
        f"values {AT_16X}",
        levels("forgetting", UNCHANGED, low=0.9),
        remark=GATED,
    ),
    "ladder-latest-value-slowed-gates-find": _latest(
        f"With its gates slowed down, a model with forget gates and without position finds nine tenths of "
        f"the latest values {AT_16X}",
        levels("forgetting", STRETCHED, low=0.9),
        remark=SLOWED_GATES,
    ),
    "ladder-latest-value-gates-have-to-be-slowed": _latest(
        f"A model with forget gates and without position finds more of the latest values {AT_16X} with gates "
        f"slowed down and logits scaled by log n than with log n alone",
        changes("forgetting", [("accuracy/interpolation-log/16x", "accuracy/log/16x")], low=0.0),
        experiment="experiment/every_reading_latest_value",
        remark=SLOWED_GATES,
    ),
    "ladder-latest-value-a-share-is-enough-inside": _latest(
        f"Inside the trained length {SOME_OF_SMALL} finds the latest value of a key as often as RoPE on all "
        f"of them, within 3 points",
        pairs(OF_SMALL, INSIDE, low=-0.03),
        floors=(),
        higher_is_better=False,
    ),
    "ladder-latest-value-unchanged-a-share-finds-more": _latest(
        f"Read without changes, {SOME_OF_SMALL} finds the latest value of a key at eight trained lengths "
        f"more often than RoPE on all of them",
        pairs(OF_SMALL, "accuracy/native/8x", low=0.0),
    ),
    "ladder-latest-value-slowed-a-share-finds-as-often": _latest(
        f"With positions slowed down, {SOME_OF_SMALL} finds the latest value of a key {AT_16X} as often as "
        f"RoPE on all of them, within 3 points",
        pairs(OF_SMALL, STRETCHED, low=-0.03),
    ),
    "each-pair-mqar-recall-needs-the-fast-pair": _each_pair(
        "RoPE with a fast and a slow pair recalls values inside the trained length as often with the slow "
        "pair stopped, within 3 points, and less than half of them with the fast pair stopped",
        changes(TWO_PAIRS, [(SLOW_STOPPED, INSIDE)], low=-0.03) + levels(TWO_PAIRS, FAST_STOPPED, high=0.5),
        experiment="experiment/each_pair_mqar",
    ),
    "each-pair-latest-value-order-needs-both-pairs": _each_pair(
        "RoPE with a fast and a slow pair finds, inside the trained length, at least 10 points fewer latest "
        "values with the slow pair stopped, and less than half of them with the fast pair stopped",
        changes(TWO_PAIRS, [(SLOW_STOPPED, INSIDE)], high=-0.1) + levels(TWO_PAIRS, FAST_STOPPED, high=0.5),
        experiment="experiment/each_pair_latest_value",
    ),
    "each-pair-mqar-the-slow-pair-is-all-to-slow": slow_pair_alone("mqar"),
    "each-pair-latest-value-the-slow-pair-is-all-to-slow": slow_pair_alone("latest_value"),
    "each-pair-mqar-the-fastest-pair-keeps-its-speed": all_but_the_fastest("mqar"),
    "each-pair-latest-value-the-fastest-pair-keeps-its-speed": all_but_the_fastest("latest_value"),
    "removed-text-costs-nothing-inside": _removed(
        f"{WITHOUT} pays no more inside the trained length than one that is tuned alike with it, within 0.01 "
        f"bits",
        pairs(REMOVED, READ, high=LEVEL),
    ),
    "removed-text-survives": _removed(
        f"{WITHOUT} survives at eight lengths",
        levels(each("{}/removed", (ALL, SEPARATED)), GAP, high=SURVIVES),
    ),
    "removed-text-reads-further-than-slowed": _removed(
        f"{WITHOUT} loses less at eight trained lengths than one that is tuned alike with it and slowed "
        f"down, each against the sliding window of the untuned model",
        pairs(REMOVED, GAP, high=0.0),
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
        pairs(f"{SEPARATED}-joint-norm/opened - {SEPARATED}-joint-norm/kept", low=-LEVEL),
    ),
    "opened-text-stays-in-its-blocks": _opened(
        "A separated model written out as a dense one and trained on has less than a tenth of its squared "
        "weights beside the blocks, in values, outputs and the maps of the MLP",
        levels(f"{SEPARATED}-joint-norm/opened", *each("beside/{}", "value, output, up, down"), high=0.1),
    ),
}
