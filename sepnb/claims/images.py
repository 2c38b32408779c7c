"""Chapter 17: places on two axes. Experiment `images`.

The rules were written before the records. A model is named by method and task, and a column by what was done
to the test pictures, the patches along a side, and the rule of the model. *SeqPE* is trained at random
offsets and with both losses and is a term of the score with one map for all layers; *multiplied* it is
injected as released, by a map of every layer. Where larger grids are compared, the sinusoid and axial RoPE
have the same offsets.
"""

from functools import partial
from itertools import product

from sepnb.claims.asks import Ask, Floor, Unless, against, changes, each, pairs, unless_neither
from sepnb.claims.claim import Claim

PLACED = "sinusoidal, axial-rope, separated-sinusoidal"
TASKS = ("class", "direction")

HALF = Floor(0.5, "accuracy", but="none/")
"""A tenth or a quarter is chance; models without places need not clear it."""

PLACES = Floor(0.86, "accuracy", only="/direction", but="none/")
"""Of directions, what the place of one thing alone tells, 0.721, and half of what that leaves."""

GUESSED = {"upscaled-14": 0.721, "spread-14": 0.586}
"""The share of right directions, in larger pictures, by the place of one of the two things alone."""


def guessed(task: str, view: str) -> float:
    """The share of right answers without what is asked for: by chance, or by the place of one of two
    things."""
    return 0.1 if task == "class" else GUESSED.get(view, 0.25)


def gained(quantity: str) -> Ask:
    """More than 0.05 above what is guessed."""
    model, column = quantity.split(":")
    return Ask(quantity, low=guessed(model.split("/")[1], column.split("/")[0]) + 0.05)


above_chance = partial(unless_neither, known=gained, why="neither is 0.05 above guesses")


def larger(task: str, view: str, rule: str) -> dict:
    """SeqPE, a term of the score whose grid grows, minus the sinusoid and axial RoPE trained at the same
    offsets and read by a rule, and minus the model without places, on larger test pictures."""
    others = each(f"{{}}-shifts/{task}:{view}/{rule}", "sinusoidal, axial-rope")
    others.append(f"none/{task}:{view}/grow")
    return above_chance([Ask(f"seqpe/{task}:{view}/grow", other, low=0.0) for other in others])


def moved(group: str) -> dict:
    """Directions by SeqPE with the trained grid moved to places of a group, by tens and by no tens, minus the
    trained places; unless digit strings alone lose more than 0.03 there, and SeqPE itself once its patches
    are shuffled: else such a model hardly hears its places, and to read them alike says nothing."""
    columns = each(f"moved-{group}-{{}}", "aligned, misaligned")
    heard = Ask("seqpe/direction:shuffled_accuracy", "seqpe/direction", high=-0.03)
    lost = Ask(f"seqpe-plain/direction:{'+'.join(columns)}", "seqpe-plain/direction", high=-0.03)
    return {
        "asks": changes("seqpe/direction", [(column, "accuracy") for column in columns], low=-0.03),
        "unless": (
            Unless((heard,), "shuffled patches cost SeqPE less than 0.03: it hardly uses places"),
            Unless((lost,), "digit strings alone lose less than 0.03 there: nothing to repair"),
        ),
    }


_images = partial(
    Claim, experiment="experiment/images", metric="accuracy", higher_is_better=True, floors=(HALF, PLACES)
)

CLAIMS = {
    "axial-rope-survives-a-larger-canvas": _images(
        "Axial RoPE does as well on a larger canvas",
        changes(each("axial-rope/{}", TASKS), [("canvas-14/grow", "accuracy")], low=-0.03),
        remark="The class token stands at the origin: between patches axial RoPE knows differences alone, "
        "and what this token reads depends on where they are.",
    ),
    "upscaled-images-want-fitted-places": _images(
        "Upscaled images are read better with positions fitted into the trained square",
        **above_chance(
            changes(each("{}/class", PLACED), [("upscaled-14/fit", "upscaled-14/grow")], low=0.01)
        ),
    ),
    "a-stream-for-rows-and-one-for-columns-cost-nothing": _images(
        "Dimensions of their own for rows and columns cost nothing",
        pairs(each("separated-sinusoidal/{} - sinusoidal/{}", TASKS), low=-0.01),
        remark="Equal width is a third fewer parameters.",
    ),
    "seqpe-leads-in-image-classification": _images(
        "SeqPE leads in the classification of images",
        against("seqpe-multiply/class", each("{}/class", "learned, sinusoidal, axial-rope"), low=0.0),
        source="seqpe-abstract",
        remark="The others have no random offsets to pay for; all had less than one pass over the training "
        "pictures. The encoder has 32 columns and the model is small: the released one is larger in both.",
    ),
    "seqpe-is-ahead-on-a-larger-canvas-direction": _images(
        "On a larger canvas SeqPE tells directions better than a sinusoid, axial RoPE and no places",
        **larger("direction", "canvas-14", "grow"),
    ),
    "seqpe-is-ahead-on-upscaled-images-class": _images(
        "On upscaled images SeqPE tells classes better than a sinusoid, axial RoPE and no places",
        **larger("class", "upscaled-14", "fit"),
    ),
    "seqpe-is-ahead-of-an-interpolated-table": _images(
        "On larger grids SeqPE is ahead of an interpolated table",
        **above_chance(
            [
                Ask(f"seqpe/{task}:{view}/grow", f"learned/{task}:{view}/fit", low=0.0)
                for task, view in product(TASKS, ("canvas-14", "upscaled-14"))
            ]
        ),
        remark="The learned table is interpolated and has no random offsets: the comparison is not like with "
        "like.",
    ),
    "losses-and-shifts-carry-seqpe-class": _images(
        "Losses and random offsets carry SeqPE to larger grids, for classes",
        **above_chance(
            pairs("seqpe/class - seqpe-plain/class", "canvas-14/grow", "upscaled-14/grow", low=0.0)
        ),
        remark="Losses and offsets are not told apart.",
    ),
    "seqpe-reads-covered-places-alike-direction": _images(
        "SeqPE tells directions alike wherever its training covered the grid", **moved("covered")
    ),
    "seqpe-reaches-places-never-seen": _images(
        "SeqPE tells directions alike at coordinates never seen", **moved("never-seen")
    ),
}
