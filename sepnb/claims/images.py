"""Rules on the experiment `images`: places in two dimensions, and images at grids never trained (chapter 15).

Written before its records. Scores are shares of right answers, and higher is better; a model is named by its
method and task. Columns are named by what was done to the test pictures, the patches along a side, and the
rule of the model: `canvas-14/grow` is a larger canvas of 14 x 14 patches on which the grid grows. `moved-` is
the trained grid, read elsewhere. *SeqPE* is trained at shift steps and with both losses, as a term of the
score with one map for all layers; *multiplied* SeqPE is injected as released, by a map of every layer. Where
larger grids are compared, the sinusoid and axial RoPE have the same shift steps. Bounds stand inside the
functions.
"""

import pandas as pd

from sepnb.claims import recipes, seqpe_geometry
from sepnb.claims.evidence import RULES_OF_EVIDENCE, Comparison
from sepnb.claims.verdict import NOT_TESTABLE, Claim, Tables, Verdict

OURS = "ours, written before the records"
TABLE = "experiment/images"
TASKS = ("class", "direction")


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


def rule_places_help_to_tell_images_apart(tables: Tables) -> Verdict:
    """At the trained grid the learned table, the sinusoid, axial RoPE and the separated sinusoid each answer
    more than 0.01 more of the class pictures rightly than the model without places."""
    names = ("learned", "sinusoidal", "axial-rope", "separated-sinusoidal")
    return compared(
        tables, [Comparison(f"{n}/class:accuracy", "none/class:accuracy", low=0.01) for n in names]
    )


def rule_axial_rope_survives_a_larger_canvas(tables: Tables) -> Verdict:
    """With axial RoPE and a grid that grows to 14 x 14, answers on the larger canvas are right less than 0.03
    less often than at the trained grid, in both tasks."""
    pairs = [(f"axial-rope/{t}:canvas-14/grow", f"axial-rope/{t}:accuracy") for t in TASKS]
    return compared(tables, [Comparison(a, b, low=-0.03) for a, b in pairs])


def rule_axial_rope_is_ahead_on_a_larger_canvas(tables: Tables) -> Verdict:
    """On the canvas of 14 x 14 patches, with a grid that grows, axial RoPE answers more rightly than the
    sinusoid, in both tasks."""
    pairs = [(f"axial-rope/{t}:canvas-14/grow", f"sinusoidal/{t}:canvas-14/grow") for t in TASKS]
    return compared(tables, [Comparison(a, b, low=0.0) for a, b in pairs])


def rule_upscaled_images_want_fitted_places(tables: Tables) -> Verdict:
    """On images upscaled to 14 x 14 patches, fitted places are more than 0.01 better than a grid that grows,
    for the class and for the sinusoid, axial RoPE and the separated sinusoid."""
    names = ("sinusoidal", "axial-rope", "separated-sinusoidal")
    return compared(
        tables,
        [Comparison(f"{n}/class:upscaled-14/fit", f"{n}/class:upscaled-14/grow", low=0.01) for n in names],
    )


def rule_a_stream_for_rows_and_one_for_columns_cost_nothing(tables: Tables) -> Verdict:
    """At the trained grid, separated sinusoid minus dense sinusoid is above -0.01 in both tasks, at equal
    width."""
    pairs = [(f"separated-sinusoidal/{t}:accuracy", f"sinusoidal/{t}:accuracy") for t in TASKS]
    return compared(tables, [Comparison(a, b, low=-0.01) for a, b in pairs])


def rule_seqpe_leads_in_image_classification(tables: Tables) -> Verdict:
    """At the trained grid SeqPE, multiplied as its image program does it, answers more of the class pictures
    rightly than the learned table, the sinusoid and axial RoPE, which have no shift steps to pay for
    (differences above 0). The encoder has 32 columns and the model is small: the released one is larger in
    both."""
    names = ("learned", "sinusoidal", "axial-rope")
    return compared(
        tables, [Comparison("seqpe-multiply/class:accuracy", f"{n}/class:accuracy", low=0.0) for n in names]
    )


def rule_seqpe_is_ahead_at_larger_grids(tables: Tables) -> Verdict:
    """At 14 x 14 patches SeqPE, a term of the score with one map, whose grid grows, answers more rightly than
    the learned table (interpolated) and than the sinusoid and axial RoPE trained at the same shift steps, in
    both tasks: on the larger canvas, where the grid of the last two grows, and on upscaled pictures, where
    their places are fitted (differences above 0). A table has no shift steps: that comparison is not like
    with like."""
    rules = {"canvas-14": ("fit", "grow", "grow"), "upscaled-14": ("fit", "fit", "fit")}
    names = ("learned", "sinusoidal-shifts", "axial-rope-shifts")
    return compared(
        tables,
        [
            Comparison(f"seqpe/{t}:{view}/grow", f"{name}/{t}:{view}/{rule}", low=0.0)
            for t in TASKS
            for view, own in rules.items()
            for name, rule in zip(names, own, strict=True)
        ],
    )


def rule_losses_and_shifts_carry_seqpe_to_larger_grids(tables: Tables) -> Verdict:
    """At 14 x 14 patches, with a grid that grows, SeqPE, a term of the score with one map, answers more
    rightly than the same digit strings without the two losses and without shift steps, in both tasks, on the
    larger canvas and on upscaled pictures (differences above 0). Losses and shift steps are not told
    apart."""
    views = ("canvas-14/grow", "upscaled-14/grow")
    return compared(
        tables,
        [Comparison(f"seqpe/{t}:{v}", f"seqpe-plain/{t}:{v}", low=0.0) for t in TASKS for v in views],
    )


def rule_digits_do_more_than_shift_steps(tables: Tables) -> Verdict:
    """On the canvas of 14 x 14 patches, with a grid that grows, SeqPE, both as a term of the score and
    multiplied as released, answers more rightly than the sinusoid trained at the same shift steps, in both
    tasks (differences above 0)."""
    pairs = [
        (f"{form}/{t}:canvas-14/grow", f"sinusoidal-shifts/{t}:canvas-14/grow")
        for form in ("seqpe", "seqpe-multiply")
        for t in TASKS
    ]
    return compared(tables, [Comparison(a, b, low=0.0) for a, b in pairs])


def rule_seqpe_reads_covered_places_alike(tables: Tables) -> Verdict:
    """With the trained grid moved to coordinates that shift steps and losses cover, by tens and by no tens,
    SeqPE is right less than 0.03 less often than at the trained places, in both tasks."""
    return compared(
        tables,
        [
            Comparison(f"seqpe/{t}:moved-{how}", f"seqpe/{t}:accuracy", low=-0.03)
            for t in TASKS
            for how in ("aligned", "misaligned")
        ],
    )


_OURS = {
    "source": OURS,
    "needs": (TABLE,),
    "stands_on": (compared, seqpe_geometry.measured, recipes.compared, *RULES_OF_EVIDENCE),
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
        id="seqpe-leads-in-image-classification",
        statement="In 2D image classification SeqPE surpasses strong baselines in accuracy.",
        rule=rule_seqpe_leads_in_image_classification,
        **_OURS | {"source": "seqpe-abstract"},
    ),
    Claim(
        id="seqpe-is-ahead-at-larger-grids",
        statement="At grids larger than the trained one SeqPE is ahead of an interpolated table, and of the "
        "sinusoid and axial RoPE trained at the same shift steps.",
        rule=rule_seqpe_is_ahead_at_larger_grids,
        **_OURS,
    ),
    Claim(
        id="losses-and-shifts-carry-seqpe-to-larger-grids",
        statement="It is the two losses and the shift steps that carry SeqPE to larger grids, and not the "
        "digit strings alone.",
        rule=rule_losses_and_shifts_carry_seqpe_to_larger_grids,
        **_OURS,
    ),
    Claim(
        id="digits-do-more-than-shift-steps",
        statement="On a larger canvas SeqPE is ahead of a sinusoid that is trained at the same shift steps.",
        rule=rule_digits_do_more_than_shift_steps,
        **_OURS,
    ),
    Claim(
        id="seqpe-reads-covered-places-alike",
        statement="Shift steps and losses make SeqPE indifferent to where, among the coordinates that they "
        "cover, a grid of patches stands.",
        rule=rule_seqpe_reads_covered_places_alike,
        **_OURS,
    ),
)
