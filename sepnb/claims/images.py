"""Experiments `images` and `volumes` (chapter 15): places on two axes and on three.

Written before their records (of cubes, one short trial of one seed had been seen of three methods, at half of
the steps). Scores are shares of right answers, and higher is better. In `images` a model is named by method
and task, `<method>/class` or `<method>/direction`, and a column by what was done to the test pictures, the
patches along a side, and the rule of the model: `canvas-14/grow` is a larger canvas of 14 x 14 patches on
which the grid grows; `moved-` is the trained grid, read elsewhere. *SeqPE* is trained at shift steps and with
both losses, as a term of the score with one map for all layers; *multiplied* SeqPE is injected as released,
by a map of every layer. Where larger grids are compared, the sinusoid and axial RoPE have the same shift
steps. Each task has a claim of its own, so that a model that fails at one says nothing of the other. In
`volumes` *canvas* is a trained cube somewhere in a larger one, *spread* are two things anywhere in it; a
sixth is chance.
"""

from collections.abc import Sequence
from functools import partial

from sepnb.claims.asks import Ask, Floor, Unless, against, changes, each, levels, pairs
from sepnb.claims.claim import Claim

TABLE = "experiment/images"
CUBES = "experiment/volumes"

PLACED = "sinusoidal, axial-rope, separated-sinusoidal"
TASKS = ("class", "direction")
LARGER = ("canvas-12", "spread-12")

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


def above_chance(asks: Sequence[Ask]) -> dict:
    """The asks, unless of some two that are compared neither is 0.05 above what is guessed: of two that guess
    none is better."""

    def gained(quantity: str) -> Ask:
        model, column = quantity.split(":")
        return Ask(quantity, low=guessed(model.split("/")[1], column.split("/")[0]) + 0.05)

    conditions = (
        Unless((gained(ask.a), gained(ask.b)), "neither is 0.05 above guesses", any=True) for ask in asks
    )
    return {"asks": tuple(asks), "unless": tuple(conditions)}


def larger(task: str, view: str, rule: str) -> dict:
    """SeqPE, a term of the score whose grid grows, minus the sinusoid and axial RoPE trained at the same
    shift steps and read by a rule, and minus the model without places, on larger test pictures."""
    others = [f"{name}-shifts/{task}:{view}/{rule}" for name in ("sinusoidal", "axial-rope")]
    others.append(f"none/{task}:{view}/grow")
    return above_chance([Ask(f"seqpe/{task}:{view}/grow", other, low=0.0) for other in others])


def with_and_without(task: str) -> dict:
    """SeqPE minus the same digit strings without losses and shift steps, at 14 x 14 patches."""
    return above_chance(
        pairs(f"seqpe/{task} - seqpe-plain/{task}", "canvas-14/grow", "upscaled-14/grow", low=0.0)
    )


def moved(task: str, group: str) -> dict:
    """SeqPE with the trained grid moved to places of a group, by tens and by no tens, minus the trained
    places; unless digit strings alone lose more than 0.03 there, and SeqPE itself once its patches are
    shuffled: else such a model hardly hears its places, and to read them alike says nothing."""
    columns = [f"moved-{group}-{how}" for how in ("aligned", "misaligned")]
    heard = Ask(f"seqpe/{task}:shuffled_accuracy", f"seqpe/{task}", high=-0.03)
    lost = Ask(f"seqpe-plain/{task}:{'+'.join(columns)}", f"seqpe-plain/{task}", high=-0.03)
    return {
        "asks": changes(f"seqpe/{task}", [(column, "accuracy") for column in columns], low=-0.03),
        "unless": (
            Unless((heard,), "shuffled patches cost SeqPE less than 0.03: it hardly uses places"),
            Unless((lost,), "digit strings alone lose less than 0.03 there: nothing to repair"),
        ),
    }


_rated = partial(Claim, metric="accuracy", higher_is_better=True)
_images = partial(_rated, experiments=(TABLE,), floors=(HALF, PLACES))
_cubes = partial(_rated, experiments=(CUBES,), floors=(HALF,))

CLAIMS = (
    _images(
        "places-help-to-tell-images-apart",
        "A classifier of images needs to know where its patches are",
        against(each("{}/class", f"learned, {PLACED}"), "none/class", low=0.01),
    ),
    _images(
        "axial-rope-survives-a-larger-canvas",
        "Axial RoPE does as well on a larger canvas",
        changes(each("axial-rope/{}", TASKS), [("canvas-14/grow", "accuracy")], low=-0.03),
        remark="The class token stands at the origin: between patches axial RoPE knows differences alone, "
        "and what this token reads depends on where they are.",
    ),
    _images(
        "axial-rope-is-ahead-on-a-larger-canvas",
        "On a larger canvas axial RoPE is ahead of the sinusoid",
        **above_chance(pairs(each("axial-rope/{} - sinusoidal/{}", TASKS), "canvas-14/grow", low=0.0)),
    ),
    _images(
        "upscaled-images-want-fitted-places",
        "Upscaled images are read better with positions fitted into the trained square",
        **above_chance(
            changes(each("{}/class", PLACED), [("upscaled-14/fit", "upscaled-14/grow")], low=0.01)
        ),
    ),
    _images(
        "a-stream-for-rows-and-one-for-columns-cost-nothing",
        "Dimensions of their own for rows and columns cost nothing",
        pairs(each("separated-sinusoidal/{} - sinusoidal/{}", TASKS), low=-0.01),
        remark="Equal width is a third fewer parameters.",
    ),
    _images(
        "streams-of-rows-and-columns-help-at-equal-parameters",
        "At equal parameters, dimensions of their own for rows and columns help",
        pairs(each("separated-sinusoidal-wide/{} - sinusoidal/{}", TASKS), low=0.0),
        remark="A quarter wider, the separated model has about as many parameters.",
    ),
    _images(
        "seqpe-leads-in-image-classification",
        "SeqPE leads in the classification of images",
        against("seqpe-multiply/class", each("{}/class", "learned, sinusoidal, axial-rope"), low=0.0),
        statement="In 2D image classification SeqPE surpasses strong baselines in accuracy.",
        source="seqpe-abstract",
        remark="The others have no shift steps to pay for, and all had less than one pass over the training "
        "pictures. The encoder has 32 columns and the model is small: the released one is larger in both.",
    ),
    _images(
        "seqpe-is-ahead-on-a-larger-canvas-class",
        "On a larger canvas SeqPE tells classes better than a sinusoid, axial RoPE and no places",
        **larger("class", "canvas-14", "grow"),
    ),
    _images(
        "seqpe-is-ahead-on-a-larger-canvas-direction",
        "On a larger canvas SeqPE tells directions better than a sinusoid, axial RoPE and no places",
        **larger("direction", "canvas-14", "grow"),
    ),
    _images(
        "seqpe-is-ahead-on-upscaled-images-class",
        "On upscaled images SeqPE tells classes better than a sinusoid, axial RoPE and no places",
        **larger("class", "upscaled-14", "fit"),
    ),
    _images(
        "seqpe-is-ahead-on-upscaled-images-direction",
        "On upscaled images SeqPE tells directions better than a sinusoid, axial RoPE and no places",
        **larger("direction", "upscaled-14", "fit"),
    ),
    _images(
        "seqpe-is-ahead-on-spread-images",
        "Where things lie further apart SeqPE tells directions better than a sinusoid and axial RoPE",
        **larger("direction", "spread-14", "grow"),
    ),
    _images(
        "seqpe-is-ahead-of-an-interpolated-table",
        "On larger grids SeqPE is ahead of an interpolated table",
        **above_chance(
            [
                Ask(f"seqpe/{task}:{view}/grow", f"learned/{task}:{view}/fit", low=0.0)
                for task in TASKS
                for view in ("canvas-14", "upscaled-14")
            ]
        ),
        remark="The learned table is interpolated and has no shift steps: the comparison is not like with "
        "like.",
    ),
    _images(
        "losses-and-shifts-carry-seqpe-class",
        "Losses and shift steps carry SeqPE to larger grids, for classes",
        **with_and_without("class"),
        remark="Losses and shift steps are not told apart.",
    ),
    _images(
        "losses-and-shifts-carry-seqpe-direction",
        "Losses and shift steps carry SeqPE to larger grids, for directions",
        **with_and_without("direction"),
        remark="Losses and shift steps are not told apart.",
    ),
    _images(
        "digits-do-more-than-shift-steps",
        "SeqPE as released is ahead of a sinusoid with the same shift steps",
        **above_chance(
            pairs(
                each("seqpe-multiply/{} - sinusoidal-shifts/{}", TASKS),
                "canvas-14/grow",
                low=0.0,
            )
        ),
    ),
    _images(
        "seqpe-reads-covered-places-alike-class",
        "SeqPE tells classes alike wherever its training covered the grid",
        **moved("class", "covered"),
    ),
    _images(
        "seqpe-reads-covered-places-alike-direction",
        "SeqPE tells directions alike wherever its training covered the grid",
        **moved("direction", "covered"),
    ),
    _images(
        "seqpe-reaches-places-never-seen",
        "SeqPE tells directions alike at coordinates never seen",
        **moved("direction", "never-seen"),
    ),
    _rated(
        "three-axes-are-learned",
        "Places on three axes are learned",
        levels("sinusoidal, axial-rope, seqpe", "accuracy", low=0.9),
        experiments=(CUBES,),
    ),
    _cubes(
        "seqpe-is-ahead-in-larger-cubes",
        "In larger cubes SeqPE is ahead of the sinusoid and of axial RoPE",
        against("seqpe", "sinusoidal, axial-rope", *LARGER, low=0.0),
    ),
    _cubes(
        "losses-and-shifts-carry-seqpe-to-larger-cubes",
        "Losses and shift steps carry SeqPE to larger cubes",
        pairs("seqpe - seqpe-plain", *LARGER, low=0.0),
    ),
    _cubes(
        "digits-do-more-than-shift-steps-in-a-cube",
        "In larger cubes SeqPE is ahead of a sinusoid with the same shift steps",
        pairs("seqpe - sinusoidal-shifts", *LARGER, low=0.0),
    ),
)
