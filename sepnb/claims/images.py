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

    conditions = (Unless((gained(ask.a), gained(ask.b)), "not 0.05 above guesses", any=True) for ask in asks)
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
            Unless((heard,), "shuffled patches cost SeqPE little: it hardly hears places"),
            Unless((lost,), "digit strings alone lose little there: nothing to repair"),
        ),
    }


_rated = partial(Claim, metric="accuracy", higher_is_better=True)
_images = partial(_rated, experiments=(TABLE,), floors=(HALF, PLACES))
_cubes = partial(_rated, experiments=(CUBES,), floors=(HALF,))

CLAIMS = (
    _images(
        "places-help-to-tell-images-apart",
        "A classifier of images needs to know where its patches are",
        "A classifier of images needs to know where its patches are.",
        "At the trained grid the learned table, the sinusoid, axial RoPE and the separated sinusoid each "
        "answer more than 0.01 more of the class pictures rightly than the model without places.",
        against(each("{}/class", f"learned, {PLACED}"), "none/class", low=0.01),
    ),
    _images(
        "axial-rope-survives-a-larger-canvas",
        "Axial RoPE does as well on a larger canvas",
        "Axial RoPE with a class token at the origin does as well on a larger canvas. (Between patches it "
        "knows differences alone; what the class token reads depends on where they are.)",
        "With axial RoPE and a grid that grows to 14 x 14, answers on the larger canvas are right less than "
        "0.03 less often than at the trained grid, in both tasks.",
        changes(each("axial-rope/{}", TASKS), [("canvas-14/grow", "accuracy")], low=-0.03),
    ),
    _images(
        "axial-rope-is-ahead-on-a-larger-canvas",
        "On a larger canvas axial RoPE is ahead of the sinusoid",
        "On a larger canvas axial RoPE with a class token at the origin is ahead of the sinusoid.",
        "On the canvas of 14 x 14 patches, with a grid that grows, axial RoPE answers more rightly than the "
        "sinusoid, in both tasks.",
        **above_chance(pairs(each("axial-rope/{} - sinusoidal/{}", TASKS), "canvas-14/grow", low=0.0)),
    ),
    _images(
        "upscaled-images-want-fitted-places",
        "Upscaled images are read better with positions fitted into the trained square",
        "An upscaled image is read better with its patches fitted into the trained square.",
        "On images upscaled to 14 x 14 patches, fitted places are more than 0.01 better than a grid that "
        "grows, for the class and for the sinusoid, axial RoPE and the separated sinusoid.",
        **above_chance(
            changes(each("{}/class", PLACED), [("upscaled-14/fit", "upscaled-14/grow")], low=0.01)
        ),
    ),
    _images(
        "a-stream-for-rows-and-one-for-columns-cost-nothing",
        "Dimensions of their own for rows and columns cost nothing",
        "Giving rows and columns dimensions of their own costs nothing at the trained grid.",
        "At the trained grid, separated sinusoid minus dense sinusoid is above -0.01 in both tasks, at "
        "equal width, which is a third fewer parameters.",
        pairs(each("separated-sinusoidal/{} - sinusoidal/{}", TASKS), low=-0.01),
    ),
    _images(
        "streams-of-rows-and-columns-help-at-equal-parameters",
        "At equal parameters, dimensions of their own for rows and columns help",
        "At equal parameters, dimensions of their own for rows and columns help at the trained grid.",
        "At the trained grid, separated sinusoid, a quarter wider, answers more rightly than the dense "
        "sinusoid in both tasks, with about as many parameters (differences above 0).",
        pairs(each("separated-sinusoidal-wide/{} - sinusoidal/{}", TASKS), low=0.0),
    ),
    _images(
        "seqpe-leads-in-image-classification",
        "SeqPE leads in the classification of images",
        "In 2D image classification SeqPE surpasses strong baselines in accuracy.",
        "At the trained grid SeqPE, multiplied as its image program does it, answers more of the class "
        "pictures rightly than the learned table, the sinusoid and axial RoPE, which have no shift steps to "
        "pay for (differences above 0), all after less than one pass over the training pictures. The "
        "encoder has 32 columns and the model is small: the released one is larger in both.",
        against("seqpe-multiply/class", each("{}/class", "learned, sinusoidal, axial-rope"), low=0.0),
        source="seqpe-abstract",
    ),
    _images(
        "seqpe-is-ahead-on-a-larger-canvas-class",
        "On a larger canvas SeqPE tells classes better",
        "On a larger canvas SeqPE tells classes better than a sinusoid and axial RoPE trained at the same "
        "shift steps, and than no places at all.",
        "On the canvas of 14 x 14 patches, with a grid that grows, SeqPE, a term of the score with one map, "
        "tells more classes rightly than the sinusoid and axial RoPE trained at the same shift steps and "
        "than the model without places (differences above 0).",
        **larger("class", "canvas-14", "grow"),
    ),
    _images(
        "seqpe-is-ahead-on-a-larger-canvas-direction",
        "On a larger canvas SeqPE tells directions better",
        "So it does with directions.",
        "On the canvas of 14 x 14 patches, with a grid that grows, SeqPE, a term of the score with one map, "
        "tells more directions rightly than the sinusoid and axial RoPE trained at the same shift steps and "
        "than the model without places (differences above 0).",
        **larger("direction", "canvas-14", "grow"),
    ),
    _images(
        "seqpe-is-ahead-on-upscaled-images-class",
        "On upscaled images SeqPE tells classes better",
        "On upscaled images SeqPE tells classes better than a sinusoid and axial RoPE whose places are "
        "fitted, and than no places at all.",
        "On images upscaled to 14 x 14 patches SeqPE, a term of the score with one map, whose grid grows, "
        "tells more classes rightly than the sinusoid and axial RoPE trained at the same shift steps, whose "
        "places are fitted, and than the model without places (differences above 0).",
        **larger("class", "upscaled-14", "fit"),
    ),
    _images(
        "seqpe-is-ahead-on-upscaled-images-direction",
        "On upscaled images SeqPE tells directions better",
        "So it does with directions.",
        "On images upscaled to 14 x 14 patches SeqPE, a term of the score with one map, whose grid grows, "
        "tells more directions rightly than the sinusoid and axial RoPE trained at the same shift steps, "
        "whose places are fitted, and than the model without places (differences above 0).",
        **larger("direction", "upscaled-14", "fit"),
    ),
    _images(
        "seqpe-is-ahead-on-spread-images",
        "Where things lie further apart SeqPE tells directions better",
        "Where things lie further apart than in training SeqPE tells directions better than a sinusoid and "
        "axial RoPE trained at the same shift steps.",
        "With the two things spread over 14 x 14 patches, and a grid that grows, SeqPE, a term of the score "
        "with one map, tells more directions rightly than the sinusoid and axial RoPE trained at the same "
        "shift steps and than the model without places (differences above 0).",
        **larger("direction", "spread-14", "grow"),
    ),
    _images(
        "seqpe-is-ahead-of-an-interpolated-table",
        "On larger grids SeqPE is ahead of an interpolated table",
        "At grids larger than the trained one SeqPE is ahead of an interpolated table.",
        "At 14 x 14 patches SeqPE, a term of the score with one map, whose grid grows, answers more rightly "
        "than the learned table (interpolated), in both tasks, on the larger canvas and on upscaled "
        "pictures (differences above 0). A table has no shift steps: the comparison is not like with like.",
        **above_chance(
            [
                Ask(f"seqpe/{task}:{view}/grow", f"learned/{task}:{view}/fit", low=0.0)
                for task in TASKS
                for view in ("canvas-14", "upscaled-14")
            ]
        ),
    ),
    _images(
        "losses-and-shifts-carry-seqpe-class",
        "Losses and shift steps carry SeqPE to larger grids, for classes",
        "It is the two losses and the shift steps that carry SeqPE to larger grids, and not the digit "
        "strings alone, where classes are told.",
        "At 14 x 14 patches, with a grid that grows, SeqPE, a term of the score with one map, tells more "
        "classes rightly than the same digit strings without the two losses and without shift steps, on the "
        "larger canvas and on upscaled pictures (differences above 0). Losses and shift steps are not told "
        "apart.",
        **with_and_without("class"),
    ),
    _images(
        "losses-and-shifts-carry-seqpe-direction",
        "Losses and shift steps carry SeqPE to larger grids, for directions",
        "So it is where directions are told.",
        "At 14 x 14 patches, with a grid that grows, SeqPE, a term of the score with one map, tells more "
        "directions rightly than the same digit strings without the two losses and without shift steps, on "
        "the larger canvas and on upscaled pictures (differences above 0). Losses and shift steps are not "
        "told apart.",
        **with_and_without("direction"),
    ),
    _images(
        "digits-do-more-than-shift-steps",
        "SeqPE as released is ahead of a sinusoid with the same shift steps",
        "On a larger canvas SeqPE as released, multiplied, is ahead of a sinusoid that is trained at the "
        "same shift steps.",
        "On the canvas of 14 x 14 patches, with a grid that grows, SeqPE multiplied as released answers "
        "more rightly than the sinusoid trained at the same shift steps, in both tasks (differences above "
        "0).",
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
        "Shift steps and losses make SeqPE indifferent to where, among the coordinates that they cover, a "
        "grid of patches stands, as far as classes go.",
        "With the trained grid moved to coordinates that shift steps and losses cover, by tens and by no "
        "tens, SeqPE tells the class rightly less than 0.03 less often than at the trained places. Not "
        "testable unless digit strings without losses and shift steps lose more than 0.03 there, in the "
        "mean over both.",
        **moved("class", "covered"),
    ),
    _images(
        "seqpe-reads-covered-places-alike-direction",
        "SeqPE tells directions alike wherever its training covered the grid",
        "So they do as far as directions go.",
        "With the trained grid moved to coordinates that shift steps and losses cover, by tens and by no "
        "tens, SeqPE tells the direction rightly less than 0.03 less often than at the trained places. Not "
        "testable unless digit strings without losses and shift steps lose more than 0.03 there, in the "
        "mean over both.",
        **moved("direction", "covered"),
    ),
    _images(
        "seqpe-reaches-places-never-seen",
        "SeqPE tells directions alike at coordinates never seen",
        "SeqPE tells directions at coordinates that no step and no loss had as well as at the trained ones.",
        "With the trained grid moved to coordinates that no step and no loss had, by tens and by no tens, "
        "SeqPE tells the direction rightly less than 0.03 less often than at the trained places. Not "
        "testable unless digit strings without losses and shift steps lose more than 0.03 there, in the "
        "mean over both.",
        **moved("direction", "never-seen"),
    ),
    _rated(
        "three-axes-are-learned",
        "Places on three axes are learned",
        "Sinusoid, axial RoPE and SeqPE tell places in a cube as soon as they are told that there are three "
        "axes.",
        "In the trained cube the sinusoid, axial RoPE and SeqPE each answer more than 0.9 of the questions "
        "rightly.",
        levels("sinusoidal, axial-rope, seqpe", "accuracy", low=0.9),
        experiments=(CUBES,),
    ),
    _cubes(
        "seqpe-is-ahead-in-larger-cubes",
        "In larger cubes SeqPE is ahead of the sinusoid and of axial RoPE",
        "In cubes larger than the trained one SeqPE is ahead of the sinusoid and of axial RoPE.",
        "In cubes of 12 cells along an edge, on the canvas and spread, SeqPE answers more rightly than the "
        "sinusoid and than axial RoPE (differences above 0).",
        against("seqpe", "sinusoidal, axial-rope", *LARGER, low=0.0),
    ),
    _cubes(
        "losses-and-shifts-carry-seqpe-to-larger-cubes",
        "Losses and shift steps carry SeqPE to larger cubes",
        "It is the two losses and the shift steps that carry SeqPE to larger cubes, and not the digit "
        "strings alone.",
        "In cubes of 12 cells along an edge, on the canvas and spread, SeqPE answers more rightly than the "
        "same digit strings without the two losses and without shift steps (differences above 0).",
        pairs("seqpe - seqpe-plain", *LARGER, low=0.0),
    ),
    _cubes(
        "digits-do-more-than-shift-steps-in-a-cube",
        "In larger cubes SeqPE is ahead of a sinusoid with the same shift steps",
        "In larger cubes SeqPE is ahead of a sinusoid that is trained at the same shift steps.",
        "In cubes of 12 cells along an edge, on the canvas and spread, SeqPE answers more rightly than the "
        "sinusoid trained at the same shift steps (differences above 0).",
        pairs("seqpe - sinusoidal-shifts", *LARGER, low=0.0),
    ),
)
