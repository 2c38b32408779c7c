"""Positions slowed down in trained models (chapter 13): who reads further, and what has to be tuned for it?

First nothing is tuned: is it enough that position stands beside the content, and does the split add to it?
Then one part of a model is tuned on texts of eight trained lengths: is the position part of a separated model
all that it takes, as far as RoPE with YaRN goes, tuned alike, and further than a dense model with an adapter
of as many numbers?

Written before the records. Trials had been seen: one or two seeds of every model, at rates that were not
swept.
"""

from functools import partial

from sepnb.claims.asks import Names, changes, each, gap, levels, pairs
from sepnb.claims.claim import Claim
from sepnb.claims.language_model import BAR
from sepnb.claims.recall import DOES, LEARNT, uses_claim
from sepnb.claims.uses import FAR
from sepnb.records.verdicts import SURVIVES

DENSE, BESIDE, SEPARATED, ROPE = "sinusoidal", "concatenated-sinusoidal", "separated-sinusoidal", "rope"
CONSTANT = f"{SEPARATED}-constant"
"""A separated model in which every layer reads the position embeddings as they are."""
TUNED = f"{SEPARATED}/position"
AT_16X = ("accuracy/stretched/16x", "near/stretched/16x")
"""All answers in texts of sixteen trained lengths, and those less than one trained length back."""

REMARK = "Trials of one or two seeds had been seen."
SEEN = "Runs of all partners and of the untuned model had been seen, and no tuning of the model itself."
ONE = "Runs in which the factor was drawn had been seen, of every model that is compared."
ALL_OTHERS = "All other models had been seen, and no run of the one whose waves are projected."
LONGER = "After the shorter training both had been seen."

QUARTER, SQUEEZED = f"{DENSE}-quarter", f"{DENSE}-squeezed"
"""A quarter of the waves, added; all waves, projected onto as many directions as these take."""
FASTEST, SLOWER, WEAK = f"{DENSE}-quarter-fastest", f"{DENSE}-slower", f"{DENSE}-weak"
ADAPTER = "low-rank-one-factor"
BESIDE_TUNED, TUNED_AT_8 = f"{BESIDE}/position-one-factor", f"{TUNED}-one-factor"
"""Slowed down with the factor 8; tuned are the columns of W_Q and W_K that read position, and its norms."""

BESIDE_LESS = (
    "A model with position beside its content of which the position part is tuned, with the factor 8, loses "
    "less at eight trained lengths than"
)
SEPARATED_LESS = (
    "A separated model of which the position part is tuned with the factor 8 loses less at eight trained "
    "lengths than"
)
BY_EACH = (
    "By each of the ten ways of slowing positions down, a separated model recalls values at sixteen trained "
    "lengths"
)
MORE = "recalls values at sixteen trained lengths more often than"
OWN_WINDOW = "each against its own sliding window"

PAST = ("8x", "16x")
GAP = gap("slowed", PAST)
"""At slowed positions, minus the sliding window of the same model as it was trained."""
AT_8X = GAP[0]

READINGS = tuple(
    f"{name}{log}"
    for name in ("interpolation", "ntk", "parts-1-32", "parts-0.5-4", "yarn")
    for log in ("", "-log")
)
EACH = each("accuracy/{}/16x", READINGS)

_learnt = partial(Claim, higher_is_better=True, floors=(LEARNT,), remark=REMARK)
_mqar = partial(_learnt, experiment="experiment/stretched_mqar")
_every = partial(
    _learnt,
    experiment="experiment/every_reading",
    remark="What models recall by the reading that they chose had been seen, and no other reading.",
)
_text = partial(Claim, floors=(BAR,), experiment="experiment/adapted_text", remark=REMARK)
_left_alone = partial(_text, experiment="experiment/stretched_text")


def as_often(task: str, model: str, name: str, remark: str = REMARK) -> Claim:
    """A model whose weights are left alone finds as many answers as RoPE, both slowed down."""
    return _learnt(
        f"{model} {DOES[task]} at sixteen trained lengths as often as RoPE slowed down alike, within 3 "
        f"points",
        pairs(f"{name} - {ROPE}", AT_16X[0], low=-0.03),
        experiment=f"experiment/stretched_{task}",
        remark=remark,
    )


def slowed(of: Names, title: str, remark: str = REMARK) -> Claim:
    """Past its trained length a model loses less at slowed positions, which the title says at its `{}`."""
    title = f"Past its trained length {title.format('loses less at slowed positions')}"
    return _left_alone(title, pairs(of, *GAP, high=0.0), remark=remark)


def less(of: Names, title: str, remark: str, *columns: str, **fields) -> Claim:
    """A model loses less, by default at eight trained lengths."""
    return _text(title, pairs(of, *(columns or (AT_8X,)), high=0.0), remark=remark, **fields)


CLAIMS = {
    "every-reading-separated-more-than-dense": _every(
        f"{BY_EACH} more often than a dense one", pairs(f"{SEPARATED} - {DENSE}", *EACH, low=0.0)
    ),
    "every-reading-as-often-as-slowed-rope": _every(
        f"{BY_EACH} as often as RoPE slowed down alike, within 3 points",
        pairs(f"{SEPARATED} - {ROPE}", *EACH, low=-0.03),
    ),
    "every-reading-log-alone-is-not-enough": _every(
        "A separated model recalls values at sixteen trained lengths more often with slowed positions and "
        "logits scaled by log n than with log n alone",
        changes(SEPARATED, [("accuracy/parts-1-32-log/16x", "accuracy/log/16x")], low=0.0),
    ),
    "stretched-mqar-a-larger-base-recalls-more": _mqar(
        f"A dense model with the base 10^16 and positions slowed down {MORE} one with the base 10,000",
        pairs(f"{SLOWER} - {DENSE}", *AT_16X, low=0.0),
        remark="In novels both had been seen, and in recall the one with the base 10,000.",
    ),
    "stretched-mqar-it-is-not-the-number-of-waves": _mqar(
        f"A separated model with positions slowed down {MORE} a dense one to which as few waves are added",
        pairs(f"{SEPARATED} - {QUARTER}", *AT_16X, low=0.0),
    ),
    "stretched-mqar-beside-beats-as-few-waves-added": _mqar(
        f"A model with position beside its content, slowed down, {MORE} one to which as few waves are added",
        pairs(f"{BESIDE} - {QUARTER}", *AT_16X, low=0.0),
    ),
    "stretched-text-beside-can-be-slowed-added-cannot": slowed(
        f"{BESIDE} - {DENSE}",
        "a model with position beside its content {} than one with position added to it",
    ),
    "stretched-text-the-split-adds-to-it": slowed(
        f"{SEPARATED} - {BESIDE}",
        "a separated model {} than one with position beside its content and no split",
    ),
    "stretched-text-it-is-not-the-number-of-waves": slowed(
        f"{BESIDE} - {QUARTER}",
        "a model with position beside its content {} than a dense one to which as few waves are added",
        "The other models had been seen.",
    ),
    "stretched-text-few-waves-lose-less": slowed(
        [f"{QUARTER} - {WEAK}", f"{QUARTER}-strong - {DENSE}"],
        "a dense model to which few waves are added {} than one to which all are added, both if content is "
        "as large beside position as in the first and if it is as large as in the second",
        "Both dense models had been seen with content drawn alike.",
    ),
    "stretched-text-own-columns-beat-few-large-waves": slowed(
        f"{BESIDE} - {QUARTER}-strong",
        "a model with position beside its content {} than a dense one to which as few waves are added, "
        "beside content half as large",
        "The first model had been seen, and one run of the second.",
    ),
    "stretched-text-few-directions-lose-less": slowed(
        [f"{SQUEEZED} - {DENSE}", f"{SQUEEZED} - {WEAK}"],
        "a dense model to which all waves are added {} if they are projected onto a quarter of the "
        "directions, and less than one in which position is as small beside content in all directions",
        ALL_OTHERS,
    ),
    "stretched-text-few-waves-lose-less-in-as-few-directions": slowed(
        f"{QUARTER} - {SQUEEZED}",
        "a dense model to which few waves are added {} than one to which all are added in as few directions",
        ALL_OTHERS,
    ),
    "stretched-text-the-fastest-waves-lose-less": slowed(
        [f"{FASTEST} - {DENSE}", f"{FASTEST} - {WEAK}"],
        "a dense model to which the fastest quarter of the waves is added {} than those to which all are "
        "added, with content drawn alike and with content as large beside position",
        "All other models had been seen, and no run of this one.",
    ),
    "stretched-text-a-larger-base-loses-less": slowed(
        f"{SLOWER} - {DENSE}",
        "a dense model to which all waves are added, with the base 10^16, {} than one with the base 10,000",
        "All other models had been seen, of the one with the fastest waves four runs, and no run of "
        "this one.",
    ),
    "stretched-text-two-more-bases-lose-less": _left_alone(
        "At eight trained lengths a dense model to which all waves are added loses less at slowed positions "
        "with the base 10^8, and with 10^32, than with the base 10,000",
        pairs(each(f"{DENSE}-base-{{}} - {DENSE}", "8, 32"), AT_8X, high=0.0),
        parts=True,
        remark="Written when it had been seen that the base 10^16 does, by .32 in the mean of six seeds.",
    ),
    "stretched-text-longer-a-larger-base-loses-less": less(
        f"{SLOWER} - {DENSE}",
        "After four times the training, too, a dense model to which all waves are added loses less at eight "
        "trained lengths and slowed positions with the base 10^16 than with 10,000",
        LONGER,
        experiment="experiment/stretched_text_longer",
    ),
    "adapted-text-a-larger-base-loses-less": less(
        f"{SLOWER}/{ADAPTER}-yarn - {DENSE}/{ADAPTER}-yarn",
        f"A dense model with the base 10^16 and a low-rank adapter loses less at eight trained lengths than "
        f"one with the base 10,000 tuned alike, with the factor 8 and by YaRN, {OWN_WINDOW}",
        "Untuned both had been seen, and the one with the base 10,000 tuned.",
    ),
    "trained-directions-all-waves-lose-less-within": _text(
        "Past its trained length a dense model to which all waves are added, slowed down by YaRN, loses less "
        "if its position embeddings are kept within the directions that they had in training",
        changes(DENSE, [(f"gap/within/{k}", f"gap/slowed/{k}") for k in PAST], high=0.0),
        experiment="experiment/trained_directions",
        floors=(BAR._replace(column="oracle/8x"),),
        remark="Two seeds had been seen, on validation text.",
    ),
    "stretched-text-longer-few-waves-lose-less": less(
        f"{QUARTER} - {DENSE}",
        "After four times the training, too, a dense model to which few waves are added loses less at slowed "
        "positions past its trained length than one to which all are added",
        LONGER,
        *GAP,
        experiment="experiment/stretched_text_longer",
    ),
    "stretched-text-every-halving-of-waves-helps": _left_alone(
        "From all waves to half of them, to a quarter and to an eighth, a dense model loses less at eight "
        "trained lengths and slowed positions with every halving of the waves that are added",
        pairs(
            [f"{DENSE}-half - {DENSE}", f"{QUARTER} - {DENSE}-half", f"{DENSE}-8th - {QUARTER}"],
            AT_8X,
            high=0.0,
        ),
        parts=True,
        remark="The models with all waves and with a quarter of them had been seen.",
    ),
    "adapted-text-it-is-not-the-number-of-waves": less(
        f"{BESIDE_TUNED} - {QUARTER}/{ADAPTER}",
        f"{BESIDE_LESS} a dense one to which as few waves are added, with a low-rank adapter of more "
        f"numbers, {OWN_WINDOW}",
        "Four runs of the first model had been seen, and all runs of a dense one with more waves.",
    ),
    "adapted-text-beside-loses-less-slowed-by-yarn": less(
        [f"{BESIDE_TUNED}-yarn - {dense}/{ADAPTER}-yarn" for dense in (DENSE, QUARTER)],
        f"{BESIDE_LESS} dense ones, with all waves or with as few, that have a low-rank adapter of more "
        f"numbers, if all are slowed down by YaRN, {OWN_WINDOW}",
        "Written when it had been seen that untuned all three lose least in novels by YaRN, and that "
        "by parts the first loses nothing once it is tuned.",
    ),
    "stretched-text-a-constant-stream-loses-less": slowed(
        f"{CONSTANT} - {SEPARATED}",
        "a separated model whose position stream stays as it is {} than one whose position stream evolves "
        "from layer to layer",
    ),
    "adapted-text-a-constant-stream-survives-with-one-factor": _text(
        "A separated model whose position stream stays as it is, and of which the position part is tuned "
        "with the factor 8, survives at eight trained lengths",
        levels(f"{CONSTANT}/position-one-factor", AT_8X, high=SURVIVES),
    ),
    "adapted-text-beside-survives-with-one-factor": _text(
        "A model with position beside its content of which the position part is tuned, with the factor 8, "
        "survives at eight trained lengths",
        levels(BESIDE_TUNED, AT_8X, high=SURVIVES),
        remark=SEEN,
    ),
    "adapted-text-tuning-without-slowing-is-not-enough": less(
        f"{BESIDE_TUNED} - {BESIDE}/position-not-slowed",
        f"{BESIDE_LESS} the same model with this part tuned at positions that are not slowed down",
        "Runs of the first model had been seen, and a trial of one seed of a separated model.",
    ),
    "adapted-text-tuning-few-waves-without-slowing-is-not-enough": less(
        f"{QUARTER}/{ADAPTER} - {QUARTER}/low-rank-not-slowed",
        f"A dense model to which few waves are added, with a low-rank adapter tuned with the factor 8, loses "
        f"less at eight and at sixteen trained lengths than the same model with an adapter tuned at "
        f"positions that are not slowed down, {OWN_WINDOW}",
        "All runs of the first had been seen, and both tunings of the model with position beside its "
        "content.",
        *GAP,
    ),
    "adapted-text-beside-loses-less-than-a-dense-adapter": less(
        each(f"{BESIDE_TUNED} - {DENSE}/{ADAPTER}{{}}", ("", "-evenly")),
        f"{BESIDE_LESS} one with position added to it and a low-rank adapter of more numbers, in both ways "
        f"of slowing it down, {OWN_WINDOW}",
        SEEN,
    ),
    "adapted-text-beside-loses-no-more-than-rope": _text(
        f"A model with position beside its content of which the position part is tuned, with the factor 8, "
        f"loses no more at eight trained lengths than RoPE with YaRN of which W_Q and W_K are tuned alike, "
        f"within 0.03 bits, {OWN_WINDOW}",
        pairs(f"{BESIDE_TUNED} - {ROPE}/maps-one-factor", AT_8X, high=0.03),
        remark=SEEN,
    ),
    "adapted-text-beside-loses-less-than-separated": less(
        f"{BESIDE_TUNED} - {TUNED_AT_8}",
        f"A model with position beside its content of which the position part is tuned, with the factor 8, "
        f"loses less at two and at eight trained lengths than a separated one tuned alike, {OWN_WINDOW}",
        SEEN,
        *gap("slowed", ("2x", "8x")),
    ),
    "adapted-text-position-part-survives": _text(
        "A separated model of which the position part alone is tuned survives at eight and at sixteen "
        "trained lengths",
        levels(TUNED, *GAP, high=SURVIVES),
    ),
    "adapted-text-position-part-survives-with-one-factor": _text(
        "A separated model of which the position part alone is tuned, with the factor 8, survives at eight "
        "trained lengths",
        levels(TUNED_AT_8, AT_8X, high=SURVIVES),
        remark=f"{REMARK} So had two runs in which the factor was drawn: they lost more.",
    ),
    "adapted-text-no-dense-adapter-of-its-size-with-one-factor": less(
        f"{TUNED_AT_8} - {DENSE}/{ADAPTER}",
        f"{SEPARATED_LESS} a dense one with a low-rank adapter of as many numbers, tuned alike, {OWN_WINDOW}",
        ONE,
    ),
    "adapted-text-less-than-a-dense-model-tuned-whole": less(
        f"{TUNED_AT_8} - {DENSE}/all-one-factor",
        f"{SEPARATED_LESS} a dense one of which everything is, {OWN_WINDOW}",
        "A trial of one seed had been seen, in which the dense model lost about as little, and one "
        "seed of a dense model that is slowed down evenly and tuned whole.",
    ),
    "adapted-text-as-good-as-rope-tuned-alike-with-one-factor": _text(
        "A separated model of which the position part is tuned with the factor 8 pays no more at eight "
        "trained lengths than RoPE with YaRN of which W_Q and W_K are tuned alike, within 0.03 bits",
        pairs(f"{TUNED_AT_8} - {ROPE}/maps-one-factor", "slowed/8x", high=0.03),
        remark=ONE,
    ),
    "stretched-mqar-beside-can-be-slowed-added-cannot": _mqar(
        f"A model with position beside its content with positions slowed down {MORE} one with position added "
        f"to it",
        pairs(f"{BESIDE} - {DENSE}", *AT_16X, low=0.0),
    ),
    "stretched-mqar-the-split-adds-to-it": _mqar(
        f"A separated model with positions slowed down {MORE} one with position beside its content and no "
        f"split",
        pairs(f"{SEPARATED} - {BESIDE}", *AT_16X, low=0.0),
    ),
    **{
        f"stretched-{task.replace('_', '-')}-as-often-as-slowed-rope": as_often(
            task, "A separated model with positions slowed down", SEPARATED
        )
        for task in ("mqar", "latest_value")
    },
    **{
        f"stretched-{task.replace('_', '-')}-as-often-as-slowed-rope-at-equal-parameters": as_often(
            task,
            "A separated model with as many parameters as RoPE, with positions slowed down,",
            f"{SEPARATED}-wide",
            f"A separated model with two thirds of these parameters had been seen, {behind} points behind.",
        )
        for task, behind in (("mqar", 2), ("latest_value", 17))
    },
    "adapted-latest-value-the-position-part-is-enough": uses_claim(
        "adapted_latest_value",
        f"A separated model of which the position part alone is tuned {DOES['latest_value']} at sixteen and "
        f"at thirty-two trained lengths",
        TUNED,
        f"{FAR}adapted/16x",
        f"{FAR}adapted/32x",
        remark=REMARK,
    ),
    "adapted-latest-value-as-often-as-rope-tuned-alike": _learnt(
        f"A separated model of which the position part is tuned {DOES['latest_value']} as often as RoPE with "
        f"YaRN of which everything is, W_Q and W_K are, or a low-rank adapter is, within 3 points",
        pairs(
            each(f"{TUNED} - {ROPE}/{{}}", "all, maps, low-rank"),
            *each("accuracy/adapted/{}", "16x, 32x"),
            low=-0.03,
        ),
        experiment="experiment/adapted_latest_value",
    ),
}
