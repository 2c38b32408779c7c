"""Rules on the experiment `images`: places in two dimensions, and images at grids never trained (chapter 15).

Written before its records. Scores are shares of right answers, and higher is better; a model is named by its
method and task. Columns are named by what was done to the test pictures, the patches along a side, and the
rule of the model: `canvas-14/grow` is a larger canvas of 14 x 14 patches on which the grid grows. `moved-` is
the trained grid, read elsewhere. Bounds stand inside the functions. What is asked of SeqPE is in
`images_seqpe`.
"""

import pandas as pd

from sepnb.claims import recipes, seqpe_geometry
from sepnb.claims.evidence import RULES_OF_EVIDENCE, Comparison
from sepnb.claims.verdict import NOT_TESTABLE, Claim, Tables, Verdict

OURS = "ours, written before the records"
TABLE = "experiment/images"


def tasks() -> tuple[str, str]:
    """What is asked of a picture."""
    return "class", "direction"


def bar() -> float:
    """A share of right directions that a model must be above at the trained grid: what the place of one thing
    alone tells, 0.721, and half of what that leaves."""
    return 0.86


def guessed(task: str, view: str) -> float:
    """The share of right answers without what is asked for: by chance, or, of directions in upscaled and
    spread pictures of 14 x 14 patches, by the place of one of the two things alone."""
    if task == "class":
        return 0.1
    return {"upscaled-14": 0.721, "spread-14": 0.586}.get(view, 0.25)


def compared(tables: Tables, comparisons: list[Comparison]) -> Verdict:
    """As `seqpe_geometry.measured`, on the columns of this experiment. Not testable unless every model that
    is compared, but for those without places, answers more than half of the test pictures of the trained grid
    rightly: a tenth or a quarter is chance."""
    table = tables.get(TABLE)
    verdict = seqpe_geometry.measured({seqpe_geometry.TABLE: table}, comparisons)
    if not verdict.numbers:  # nothing was run, or something is missing
        return verdict
    names = {name.split(":")[0] for pair in comparisons for name in (pair.a, pair.b) if name != recipes.ZERO}
    means = table.assign(accuracy=pd.to_numeric(table["accuracy"])).groupby("method")["accuracy"].mean()
    low = {name: float(means[name]) for name in sorted(names) if not name.startswith("none/")}
    low = {name: mean for name, mean in low.items() if not mean > 0.5}
    if low:
        listed = ", ".join(f"{name} ({mean:.2f})" for name, mean in low.items())
        return Verdict(NOT_TESTABLE, f"at most half of the answers are right: {listed}", low)
    return verdict


def learned(tables: Tables, comparisons: list[Comparison]) -> Verdict:
    """As `compared`; and not testable unless every model that is compared on directions, but for those
    without places, tells more than 0.86 of them at the trained grid: one thing's place alone tells 0.721."""
    verdict = compared(tables, comparisons)
    if not verdict.numbers or verdict.word == NOT_TESTABLE:
        return verdict
    names = {name.split(":")[0] for pair in comparisons for name in (pair.a, pair.b)}
    table = tables[TABLE]
    means = {name: pd.to_numeric(table.loc[table.method == name, "accuracy"]).mean() for name in names}
    low = {
        name: float(mean)
        for name, mean in sorted(means.items())
        if name.endswith("/direction") and not name.startswith("none/") and not mean > bar()
    }
    if low:
        listed = ", ".join(f"{name} ({mean:.2f})" for name, mean in low.items())
        return Verdict(NOT_TESTABLE, f"not above {bar()} of the directions: {listed}", low)
    return verdict


def above_chance(tables: Tables, comparisons: list[Comparison]) -> Verdict:
    """As `learned`; and not testable where of two that are compared neither is 0.05 above what is `guessed`,
    in the mean over seeds: of two that guess none is better."""
    verdict = learned(tables, comparisons)
    if not verdict.numbers or verdict.word == NOT_TESTABLE:
        return verdict
    table = tables[TABLE]

    def gained(name: str) -> float:
        model, column = name.split(":")
        mean = pd.to_numeric(table.loc[table.method == model, column]).mean()
        return float(mean) - guessed(model.split("/")[1], column.split("/")[0])

    lost = [f"{pair.a} and {pair.b}" for pair in comparisons if max(map(gained, pair[:2])) < 0.05]
    if lost:
        return Verdict(NOT_TESTABLE, f"not 0.05 above guesses: {'; '.join(lost)}")
    return verdict


def rule_places_help_to_tell_images_apart(tables: Tables) -> Verdict:
    """At the trained grid the learned table, the sinusoid, axial RoPE and the separated sinusoid each answer
    more than 0.01 more of the class pictures rightly than the model without places."""
    names = ("learned", "sinusoidal", "axial-rope", "separated-sinusoidal")
    return learned(
        tables, [Comparison(f"{n}/class:accuracy", "none/class:accuracy", low=0.01) for n in names]
    )


def rule_axial_rope_survives_a_larger_canvas(tables: Tables) -> Verdict:
    """With axial RoPE and a grid that grows to 14 x 14, answers on the larger canvas are right less than 0.03
    less often than at the trained grid, in both tasks."""
    pairs = [(f"axial-rope/{t}:canvas-14/grow", f"axial-rope/{t}:accuracy") for t in tasks()]
    return learned(tables, [Comparison(a, b, low=-0.03) for a, b in pairs])


def rule_axial_rope_is_ahead_on_a_larger_canvas(tables: Tables) -> Verdict:
    """On the canvas of 14 x 14 patches, with a grid that grows, axial RoPE answers more rightly than the
    sinusoid, in both tasks."""
    pairs = [(f"axial-rope/{t}:canvas-14/grow", f"sinusoidal/{t}:canvas-14/grow") for t in tasks()]
    return above_chance(tables, [Comparison(a, b, low=0.0) for a, b in pairs])


def rule_upscaled_images_want_fitted_places(tables: Tables) -> Verdict:
    """On images upscaled to 14 x 14 patches, fitted places are more than 0.01 better than a grid that grows,
    for the class and for the sinusoid, axial RoPE and the separated sinusoid."""
    names = ("sinusoidal", "axial-rope", "separated-sinusoidal")
    return above_chance(
        tables,
        [Comparison(f"{n}/class:upscaled-14/fit", f"{n}/class:upscaled-14/grow", low=0.01) for n in names],
    )


def rule_a_stream_for_rows_and_one_for_columns_cost_nothing(tables: Tables) -> Verdict:
    """At the trained grid, separated sinusoid minus dense sinusoid is above -0.01 in both tasks, at equal
    width, which is a third fewer parameters."""
    pairs = [(f"separated-sinusoidal/{t}:accuracy", f"sinusoidal/{t}:accuracy") for t in tasks()]
    return learned(tables, [Comparison(a, b, low=-0.01) for a, b in pairs])


def rule_streams_of_rows_and_columns_help_at_equal_parameters(tables: Tables) -> Verdict:
    """At the trained grid, separated sinusoid, a quarter wider, answers more rightly than the dense sinusoid
    in both tasks, with about as many parameters (differences above 0)."""
    pairs = [(f"separated-sinusoidal-wide/{t}:accuracy", f"sinusoidal/{t}:accuracy") for t in tasks()]
    return learned(tables, [Comparison(a, b, low=0.0) for a, b in pairs])


_OURS = {
    "source": OURS,
    "needs": (TABLE,),
    "stands_on": (
        tasks,
        bar,
        guessed,
        compared,
        learned,
        above_chance,
        seqpe_geometry.measured,
        recipes.compared,
        *RULES_OF_EVIDENCE,
    ),
}

CLAIMS = (
    Claim(
        id="places-help-to-tell-images-apart",
        statement="A classifier of images needs to know where its patches are.",
        rule=rule_places_help_to_tell_images_apart,
        **_OURS,
    ),
    Claim(
        id="axial-rope-survives-a-larger-canvas",
        statement="Axial RoPE with a class token at the origin does as well on a larger canvas. (Between "
        "patches it knows differences alone; what the class token reads depends on where they are.)",
        rule=rule_axial_rope_survives_a_larger_canvas,
        **_OURS,
    ),
    Claim(
        id="axial-rope-is-ahead-on-a-larger-canvas",
        statement="On a larger canvas axial RoPE with a class token at the origin is ahead of the sinusoid.",
        rule=rule_axial_rope_is_ahead_on_a_larger_canvas,
        **_OURS,
    ),
    Claim(
        id="upscaled-images-want-fitted-places",
        statement="An upscaled image is read better with its patches fitted into the trained square.",
        rule=rule_upscaled_images_want_fitted_places,
        **_OURS,
    ),
    Claim(
        id="a-stream-for-rows-and-one-for-columns-cost-nothing",
        statement="Giving rows and columns dimensions of their own costs nothing at the trained grid.",
        rule=rule_a_stream_for_rows_and_one_for_columns_cost_nothing,
        **_OURS,
    ),
    Claim(
        id="streams-of-rows-and-columns-help-at-equal-parameters",
        statement="At equal parameters, dimensions of their own for rows and columns help at the trained "
        "grid.",
        rule=rule_streams_of_rows_and_columns_help_at_equal_parameters,
        **_OURS,
    ),
)
