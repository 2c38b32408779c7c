"""Positions slowed down in trained models (chapter 13): who reads further, and what has to be tuned for it?

First nothing is tuned: is it enough that position stands beside the content, and does the split add to it?
Then one part of a model is tuned on texts of eight trained lengths: is the position part of a separated model
all that it takes, as far as RoPE with YaRN goes, tuned alike, and further than a dense model with an adapter
of as many numbers?

Written before the records. Trials had been seen: one or two seeds of every model, at rates that were not
swept.
"""

from functools import partial

from sepnb.claims.asks import changes, gap, levels, pairs
from sepnb.claims.claim import Claim
from sepnb.claims.language_model import BAR
from sepnb.claims.recall import DOES, LEARNT, uses_claim
from sepnb.claims.uses import FAR
from sepnb.records.verdicts import SURVIVES

DENSE, BESIDE, SEPARATED, ROPE = "sinusoidal", "concatenated-sinusoidal", "separated-sinusoidal", "rope"
EQUAL = f"{SEPARATED}-wide"
"""A separated model with as many parameters as RoPE."""
CONSTANT = f"{SEPARATED}-constant"
"""A separated model in which every layer reads the position embeddings as they are."""
TUNED = f"{SEPARATED}/position"
AT_16X = ("accuracy/stretched/16x", "near/stretched/16x")
"""All answers in texts of sixteen trained lengths, and those less than one trained length back."""
ADAPTED = ("accuracy/adapted/16x", "accuracy/adapted/32x")

REMARK = "Trials of one or two seeds had been seen."

_of = partial(Claim, higher_is_better=True, floors=(LEARNT,), remark=REMARK)


def here(task: str) -> str:
    """What a model does in a task, in words."""
    return f"with positions slowed down {DOES[task]} at sixteen trained lengths"


RECALL = {
    "stretched-mqar-beside-can-be-slowed-added-cannot": _of(
        f"A model with position beside its content {here('mqar')} more often than one with position added to "
        f"it",
        pairs(f"{BESIDE} - {DENSE}", *AT_16X, low=0.0),
        experiment="experiment/stretched_mqar",
    ),
    "stretched-mqar-the-split-adds-to-it": _of(
        f"A separated model {here('mqar')} more often than one with position beside its content and no split",
        pairs(f"{SEPARATED} - {BESIDE}", *AT_16X, low=0.0),
        experiment="experiment/stretched_mqar",
    ),
}


def beside_rope(task: str) -> dict[str, Claim]:
    """What is asked of models in `stretched_<task>`, whose positions are slowed down and whose weights are
    left alone, beside RoPE."""
    return {
        f"stretched-{task.replace('_', '-')}-as-often-as-slowed-rope": _of(
            f"A separated model {here(task)} as often as RoPE slowed down alike, within 3 points",
            pairs(f"{SEPARATED} - {ROPE}", AT_16X[0], low=-0.03),
            experiment=f"experiment/stretched_{task}",
        ),
    }


def at_equal_size(task: str, seen: str) -> dict[str, Claim]:
    """What is asked of a separated model with as many parameters as RoPE, when the records of a smaller one
    had been `seen`."""
    return {
        f"stretched-{task.replace('_', '-')}-as-often-as-slowed-rope-at-equal-parameters": _of(
            f"A separated model with as many parameters as RoPE, with positions slowed down, {DOES[task]} at "
            f"sixteen trained lengths as often as RoPE slowed down alike, within 3 points",
            pairs(f"{EQUAL} - {ROPE}", AT_16X[0], low=-0.03),
            experiment=f"experiment/stretched_{task}",
            remark=f"A separated model with two thirds of these parameters had been seen, {seen} behind.",
        )
    }


TUNED_LATEST = {
    "adapted-latest-value-the-position-part-is-enough": uses_claim(
        "adapted_latest_value",
        f"A separated model of which the position part alone is tuned {DOES['latest_value']} at sixteen and "
        f"at thirty-two trained lengths",
        TUNED,
        f"{FAR}adapted/16x",
        f"{FAR}adapted/32x",
        remark=REMARK,
    ),
    "adapted-latest-value-as-often-as-rope-tuned-alike": _of(
        f"A separated model of which the position part is tuned {DOES['latest_value']} as often as RoPE with "
        f"YaRN of which everything is, W_Q and W_K are, or a low-rank adapter is, within 3 points",
        pairs([f"{TUNED} - {ROPE}/{arm}" for arm in ("all", "maps", "low-rank")], *ADAPTED, low=-0.03),
        experiment="experiment/adapted_latest_value",
    ),
}


READINGS = tuple(
    f"{name}{log}"
    for name in ("interpolation", "ntk", "parts-1-32", "parts-0.5-4", "yarn")
    for log in ("", "-log")
)
EACH = [f"accuracy/{reading}/16x" for reading in READINGS]
_every = partial(
    Claim,
    higher_is_better=True,
    floors=(LEARNT,),
    experiment="experiment/every_reading",
    remark="What models recall by the reading that they chose had been seen, and no other reading.",
)
EVERY = {
    "every-reading-separated-more-than-dense": _every(
        "By each of the ten ways of slowing positions down, a separated model recalls values at sixteen "
        "trained lengths more often than a dense one",
        pairs(f"{SEPARATED} - {DENSE}", *EACH, low=0.0),
    ),
    "every-reading-as-often-as-slowed-rope": _every(
        "By each of the ten ways of slowing positions down, a separated model recalls values at sixteen "
        "trained lengths as often as RoPE slowed down alike, within 3 points",
        pairs(f"{SEPARATED} - {ROPE}", *EACH, low=-0.03),
    ),
    "every-reading-log-alone-is-not-enough": _every(
        "A separated model recalls values at sixteen trained lengths more often with slowed positions and "
        "logits scaled by log n than with log n alone",
        changes(SEPARATED, [("accuracy/parts-1-32-log/16x", "accuracy/log/16x")], low=0.0),
    ),
}

FEW_WAVES = {
    "stretched-mqar-a-larger-base-recalls-more": _of(
        "A dense model with the base 10^16 and positions slowed down recalls values at sixteen trained "
        "lengths more often than one with the base 10,000",
        pairs(f"{DENSE}-slower - {DENSE}", *AT_16X, low=0.0),
        experiment="experiment/stretched_mqar",
        remark="In novels both had been seen, and in recall the one with the base 10,000.",
    ),
    "stretched-mqar-it-is-not-the-number-of-waves": _of(
        "A separated model with positions slowed down recalls values at sixteen trained lengths more often "
        "than a dense one to which as few waves are added",
        pairs(f"{SEPARATED} - {DENSE}-quarter", *AT_16X, low=0.0),
        experiment="experiment/stretched_mqar",
    ),
    "stretched-mqar-beside-beats-as-few-waves-added": _of(
        "A model with position beside its content, slowed down, recalls values at sixteen trained lengths "
        "more often than one to which as few waves are added",
        pairs(f"{BESIDE} - {DENSE}-quarter", *AT_16X, low=0.0),
        experiment="experiment/stretched_mqar",
    ),
}

TUNED_BESIDE = f"{BESIDE}/position"
"""Position beside the content, slowed down; tuned are the columns of W_Q and W_K that read it, and its
norms."""
SEEN = "Runs of all partners and of the untuned model had been seen, and no tuning of the model itself."

PAST = ("8x", "16x")
GAP = gap("slowed", PAST)
"""At slowed positions, minus the sliding window of the same model as it was trained."""
AT_8X = gap("slowed", ("8x",))[0]

SQUEEZED = f"{DENSE}-squeezed"
"""All waves, projected onto as many directions as few waves take."""
FASTEST = f"{DENSE}-quarter-fastest"
ALL_OTHERS = "All other models had been seen, and no run of the one whose waves are projected."

ADAPTER_BY_YARN = "low-rank-one-factor-yarn"

ONE = "Runs in which the factor was drawn had been seen, of every model that is compared."

_text = partial(Claim, floors=(BAR,), experiment="experiment/adapted_text")
_left_alone = partial(_text, experiment="experiment/stretched_text")
TEXTS = {
    "stretched-text-beside-can-be-slowed-added-cannot": _left_alone(
        "Past its trained length a model with position beside its content loses less at slowed positions "
        "than one with position added to it",
        pairs(f"{BESIDE} - {DENSE}", *GAP, high=0.0),
        remark=REMARK,
    ),
    "stretched-text-the-split-adds-to-it": _left_alone(
        "Past its trained length a separated model loses less at slowed positions than one with position "
        "beside its content and no split",
        pairs(f"{SEPARATED} - {BESIDE}", *GAP, high=0.0),
        remark=REMARK,
    ),
    "stretched-text-it-is-not-the-number-of-waves": _left_alone(
        "Past its trained length a model with position beside its content loses less at slowed positions "
        "than a dense one to which as few waves are added",
        pairs(f"{BESIDE} - {DENSE}-quarter", *GAP, high=0.0),
        remark="The other models had been seen.",
    ),
    "stretched-text-few-waves-lose-less": _left_alone(
        "Past its trained length a dense model to which few waves are added loses less at slowed positions "
        "than one to which all are added, both if content is as large beside position as in the first and if "
        "it is as large as in the second",
        pairs(
            [f"{DENSE}-quarter - {DENSE}-weak", f"{DENSE}-quarter-strong - {DENSE}"],
            *GAP,
            high=0.0,
        ),
        remark="Both dense models had been seen with content drawn alike.",
    ),
    "stretched-text-own-columns-beat-few-large-waves": _left_alone(
        "Past its trained length a model with position beside its content loses less at slowed positions "
        "than a dense one to which as few waves are added, beside content half as large",
        pairs(f"{BESIDE} - {DENSE}-quarter-strong", *GAP, high=0.0),
        remark="The first model had been seen, and one run of the second.",
    ),
    "stretched-text-few-directions-lose-less": _left_alone(
        "Past its trained length a dense model to which all waves are added loses less at slowed positions "
        "if they are projected onto a quarter of the directions, and less than one in which position is as "
        "small beside content in all directions",
        pairs([f"{SQUEEZED} - {DENSE}", f"{SQUEEZED} - {DENSE}-weak"], *GAP, high=0.0),
        remark=ALL_OTHERS,
    ),
    "stretched-text-few-waves-lose-less-in-as-few-directions": _left_alone(
        "Past its trained length a dense model to which few waves are added loses less at slowed positions "
        "than one to which all are added in as few directions",
        pairs(f"{DENSE}-quarter - {SQUEEZED}", *GAP, high=0.0),
        remark=ALL_OTHERS,
    ),
    "stretched-text-the-fastest-waves-lose-less": _left_alone(
        "Past its trained length a dense model to which the fastest quarter of the waves is added loses less "
        "at slowed positions than those to which all are added, with content drawn alike and with content as "
        "large beside position",
        pairs([f"{FASTEST} - {DENSE}", f"{FASTEST} - {DENSE}-weak"], *GAP, high=0.0),
        remark="All other models had been seen, and no run of this one.",
    ),
    "stretched-text-a-larger-base-loses-less": _left_alone(
        "Past its trained length a dense model to which all waves are added, with the base 10^16, loses less "
        "at slowed positions than one with the base 10,000",
        pairs(f"{DENSE}-slower - {DENSE}", *GAP, high=0.0),
        remark="All other models had been seen, of the one with the fastest waves four runs, and no run of "
        "this one.",
    ),
    "stretched-text-two-more-bases-lose-less": _left_alone(
        "At eight trained lengths a dense model to which all waves are added loses less at slowed positions "
        "with the base 10^8, and with 10^32, than with the base 10,000",
        pairs([f"{DENSE}-base-{power} - {DENSE}" for power in (8, 32)], AT_8X, high=0.0),
        parts=True,
        remark="Written when it had been seen that the base 10^16 does, by .32 in the mean of six seeds.",
    ),
    "stretched-text-longer-a-larger-base-loses-less": _text(
        "After four times the training, too, a dense model to which all waves are added loses less at eight "
        "trained lengths and slowed positions with the base 10^16 than with 10,000",
        pairs(f"{DENSE}-slower - {DENSE}", AT_8X, high=0.0),
        experiment="experiment/stretched_text_longer",
        remark="After the shorter training both had been seen.",
    ),
    "adapted-text-a-larger-base-loses-less": _text(
        "A dense model with the base 10^16 and a low-rank adapter loses less at eight trained lengths than "
        "one with the base 10,000 tuned alike, with the factor 8 and by YaRN, each against its own sliding "
        "window",
        pairs(f"{DENSE}-slower/{ADAPTER_BY_YARN} - {DENSE}/{ADAPTER_BY_YARN}", AT_8X, high=0.0),
        remark="Untuned both had been seen, and the one with the base 10,000 tuned.",
    ),
    "trained-directions-all-waves-lose-less-within": _text(
        "Past its trained length a dense model to which all waves are added, slowed down by YaRN, loses less "
        "if its position embeddings are kept within the directions that they had in training",
        changes(DENSE, [(f"gap/within/{k}", f"gap/slowed/{k}") for k in PAST], high=0.0),
        experiment="experiment/trained_directions",
        floors=(BAR._replace(column="oracle/8x"),),
        remark="Two seeds had been seen, on validation text.",
    ),
    "stretched-text-longer-few-waves-lose-less": _text(
        "After four times the training, too, a dense model to which few waves are added loses less at slowed "
        "positions past its trained length than one to which all are added",
        pairs(f"{DENSE}-quarter - {DENSE}", *GAP, high=0.0),
        experiment="experiment/stretched_text_longer",
        remark="After the shorter training both had been seen.",
    ),
    "stretched-text-every-halving-of-waves-helps": _left_alone(
        "From all waves to half of them, to a quarter and to an eighth, a dense model loses less at eight "
        "trained lengths and slowed positions with every halving of the waves that are added",
        pairs(
            [
                f"{DENSE}-half - {DENSE}",
                f"{DENSE}-quarter - {DENSE}-half",
                f"{DENSE}-8th - {DENSE}-quarter",
            ],
            AT_8X,
            high=0.0,
        ),
        parts=True,
        remark="The models with all waves and with a quarter of them had been seen.",
    ),
    "adapted-text-it-is-not-the-number-of-waves": _text(
        "A model with position beside its content of which the position part is tuned, with the factor 8, "
        "loses less at eight trained lengths than a dense one to which as few waves are added, with a "
        "low-rank adapter of more numbers, each against its own sliding window",
        pairs(
            f"{TUNED_BESIDE}-one-factor - {DENSE}-quarter/low-rank-one-factor",
            AT_8X,
            high=0.0,
        ),
        remark="Four runs of the first model had been seen, and all runs of a dense one with more waves.",
    ),
    "adapted-text-beside-loses-less-slowed-by-yarn": _text(
        "A model with position beside its content of which the position part is tuned, with the factor 8, "
        "loses less at eight trained lengths than dense ones, with all waves or with as few, that have a "
        "low-rank adapter of more numbers, if all are slowed down by YaRN, each against its own sliding "
        "window",
        pairs(
            [
                f"{TUNED_BESIDE}-one-factor-yarn - {DENSE}{waves}/low-rank-one-factor-yarn"
                for waves in ("", "-quarter")
            ],
            AT_8X,
            high=0.0,
        ),
        remark="Written when it had been seen that untuned all three lose least in novels by YaRN, and that "
        "by parts the first loses nothing once it is tuned.",
    ),
    "stretched-text-a-constant-stream-loses-less": _left_alone(
        "Past its trained length a separated model whose position stream stays as it is loses less at slowed "
        "positions than one whose position stream evolves from layer to layer",
        pairs(f"{CONSTANT} - {SEPARATED}", *GAP, high=0.0),
        remark=REMARK,
    ),
    "adapted-text-a-constant-stream-survives-with-one-factor": _text(
        "A separated model whose position stream stays as it is, and of which the position part is tuned "
        "with the factor 8, survives at eight trained lengths",
        levels(f"{CONSTANT}/position-one-factor", AT_8X, high=SURVIVES),
        remark=REMARK,
    ),
    "adapted-text-beside-survives-with-one-factor": _text(
        "A model with position beside its content of which the position part is tuned, with the factor 8, "
        "survives at eight trained lengths",
        levels(f"{TUNED_BESIDE}-one-factor", AT_8X, high=SURVIVES),
        remark=SEEN,
    ),
    "adapted-text-tuning-without-slowing-is-not-enough": _text(
        "A model with position beside its content of which the position part is tuned, with the factor 8, "
        "loses less at eight trained lengths than the same model with this part tuned at positions that are "
        "not slowed down",
        pairs(f"{TUNED_BESIDE}-one-factor - {TUNED_BESIDE}-not-slowed", AT_8X, high=0.0),
        remark="Runs of the first model had been seen, and a trial of one seed of a separated model.",
    ),
    "adapted-text-tuning-few-waves-without-slowing-is-not-enough": _text(
        "A dense model to which few waves are added, with a low-rank adapter tuned with the factor 8, loses "
        "less at eight and at sixteen trained lengths than the same model with an adapter tuned at positions "
        "that are not slowed down, each against its own sliding window",
        pairs(f"{DENSE}-quarter/low-rank-one-factor - {DENSE}-quarter/low-rank-not-slowed", *GAP, high=0.0),
        remark="All runs of the first had been seen, and both tunings of the model with position beside its "
        "content.",
    ),
    "adapted-text-beside-loses-less-than-a-dense-adapter": _text(
        "A model with position beside its content of which the position part is tuned, with the factor 8, "
        "loses less at eight trained lengths than one with position added to it and a low-rank adapter of "
        "more numbers, in both ways of slowing it down, each against its own sliding window",
        pairs(
            [f"{TUNED_BESIDE}-one-factor - {DENSE}/low-rank-one-factor{way}" for way in ("", "-evenly")],
            AT_8X,
            high=0.0,
        ),
        remark=SEEN,
    ),
    "adapted-text-beside-loses-no-more-than-rope": _text(
        "A model with position beside its content of which the position part is tuned, with the factor 8, "
        "loses no more at eight trained lengths than RoPE with YaRN of which W_Q and W_K are tuned alike, "
        "within 0.03 bits, each against its own sliding window",
        pairs(
            f"{TUNED_BESIDE}-one-factor - {ROPE}/maps-one-factor",
            AT_8X,
            high=0.03,
        ),
        remark=SEEN,
    ),
    "adapted-text-beside-loses-less-than-separated": _text(
        "A model with position beside its content of which the position part is tuned, with the factor 8, "
        "loses less at two and at eight trained lengths than a separated one tuned alike, each against its "
        "own sliding window",
        pairs(f"{TUNED_BESIDE}-one-factor - {TUNED}-one-factor", *gap("slowed", ("2x", "8x")), high=0.0),
        remark=SEEN,
    ),
    "adapted-text-position-part-survives": _text(
        "A separated model of which the position part alone is tuned survives at eight and at sixteen "
        "trained lengths",
        levels(TUNED, *GAP, high=SURVIVES),
        remark=REMARK,
    ),
    "adapted-text-position-part-survives-with-one-factor": _text(
        "A separated model of which the position part alone is tuned, with the factor 8, survives at eight "
        "trained lengths",
        levels(f"{TUNED}-one-factor", AT_8X, high=SURVIVES),
        remark=f"{REMARK} So had two runs in which the factor was drawn: they lost more.",
    ),
    "adapted-text-no-dense-adapter-of-its-size-with-one-factor": _text(
        "A separated model of which the position part is tuned with the factor 8 loses less at eight trained "
        "lengths than a dense one with a low-rank adapter of as many numbers, tuned alike, each against its "
        "own sliding window",
        pairs(f"{TUNED}-one-factor - {DENSE}/low-rank-one-factor", AT_8X, high=0.0),
        remark=ONE,
    ),
    "adapted-text-less-than-a-dense-model-tuned-whole": _text(
        "A separated model of which the position part is tuned with the factor 8 loses less at eight trained "
        "lengths than a dense one of which everything is, each against its own sliding window",
        pairs(f"{TUNED}-one-factor - {DENSE}/all-one-factor", AT_8X, high=0.0),
        remark="A trial of one seed had been seen, in which the dense model lost about as little, and one "
        "seed of a dense model that is slowed down evenly and tuned whole.",
    ),
    "adapted-text-as-good-as-rope-tuned-alike-with-one-factor": _text(
        "A separated model of which the position part is tuned with the factor 8 pays no more at eight "
        "trained lengths than RoPE with YaRN of which W_Q and W_K are tuned alike, within 0.03 bits",
        pairs(f"{TUNED}-one-factor - {ROPE}/maps-one-factor", "slowed/8x", high=0.03),
        remark=ONE,
    ),
}

CLAIMS = {
    **EVERY,
    **FEW_WAVES,
    **TEXTS,
    **RECALL,
    **beside_rope("mqar"),
    **beside_rope("latest_value"),
    **at_equal_size("mqar", "2 points"),
    **at_equal_size("latest_value", "17 points"),
    **TUNED_LATEST,
}
