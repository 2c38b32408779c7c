"""Rules on the experiment `images`: SeqPE in two dimensions (chapter 15).

Written before its records, in the words of `claims.images`. *SeqPE* is trained at shift steps and with both
losses, as a term of the score with one map for all layers; *multiplied* SeqPE is injected as released, by a
map of every layer. Where larger grids are compared, the sinusoid and axial RoPE have the same shift steps.
Each task has a claim of its own, so that a model that fails at one says nothing of the other.
"""

from sepnb.claims.evidence import Comparison
from sepnb.claims.images import _OURS as _OF_IMAGES
from sepnb.claims.images import above_chance, learned, tasks
from sepnb.claims.verdict import NOT_TESTABLE, Claim, Tables, Verdict


def larger(task: str, view: str, rule: str) -> list[Comparison]:
    """SeqPE, a term of the score whose grid grows, less the sinusoid and axial RoPE trained at the same shift
    steps and read by a rule, and less the model without places, on larger test pictures."""
    others = [f"{name}-shifts/{task}:{view}/{rule}" for name in ("sinusoidal", "axial-rope")]
    others.append(f"none/{task}:{view}/grow")
    return [Comparison(f"seqpe/{task}:{view}/grow", other, low=0.0) for other in others]


def moved(tables: Tables, task: str, group: str) -> Verdict:
    """SeqPE with the trained grid moved to places of a group, by tens and by no tens, is right less than 0.03
    less often than at the trained places. Not testable unless the same digit strings without losses and shift
    steps lose more than 0.03 there, in the mean over both and over seeds, and SeqPE itself loses more than
    0.03 once its patches are shuffled: else such a model hardly hears its places, and to read them alike says
    nothing."""
    columns = [f"moved-{group}-{how}" for how in ("aligned", "misaligned")]
    pairs = [Comparison(f"seqpe/{task}:{column}", f"seqpe/{task}:accuracy", low=-0.03) for column in columns]
    plain = [Comparison(f"seqpe-plain/{task}:{c}", f"seqpe-plain/{task}:accuracy", high=0.0) for c in columns]
    shuffled = Comparison(f"seqpe/{task}:shuffled_accuracy", f"seqpe/{task}:accuracy", high=0.0)
    found = learned(tables, [*pairs, *plain, shuffled])
    if not found.numbers or found.word == NOT_TESTABLE:
        return found
    heard = found.numbers[f"{shuffled.a} minus {shuffled.b}"]
    if not heard < -0.03:
        return Verdict(NOT_TESTABLE, f"shuffled patches cost SeqPE {-heard:.3f}: it hardly hears places")
    lost = sum(found.numbers[f"{pair.a} minus {pair.b}"] for pair in plain) / len(plain)
    if not lost < -0.03:
        return Verdict(NOT_TESTABLE, f"digit strings alone lose {-lost:.3f} there: nothing to repair")
    return learned(tables, pairs)


def rule_seqpe_leads_in_image_classification(tables: Tables) -> Verdict:
    """At the trained grid SeqPE, multiplied as its image program does it, answers more of the class pictures
    rightly than the learned table, the sinusoid and axial RoPE, which have no shift steps to pay for
    (differences above 0), all after less than one pass over the training pictures. The encoder has 32
    columns and the model is small: the released one is larger in both."""
    names = ("learned", "sinusoidal", "axial-rope")
    return learned(
        tables, [Comparison("seqpe-multiply/class:accuracy", f"{n}/class:accuracy", low=0.0) for n in names]
    )


def rule_seqpe_is_ahead_on_a_larger_canvas_class(tables: Tables) -> Verdict:
    """On the canvas of 14 x 14 patches, with a grid that grows, SeqPE, a term of the score with one map,
    tells more classes rightly than the sinusoid and axial RoPE trained at the same shift steps and than the
    model without places (differences above 0)."""
    return above_chance(tables, larger("class", "canvas-14", "grow"))


def rule_seqpe_is_ahead_on_a_larger_canvas_direction(tables: Tables) -> Verdict:
    """On the canvas of 14 x 14 patches, with a grid that grows, SeqPE, a term of the score with one map,
    tells more directions rightly than the sinusoid and axial RoPE trained at the same shift steps and than
    the model without places (differences above 0)."""
    return above_chance(tables, larger("direction", "canvas-14", "grow"))


def rule_seqpe_is_ahead_on_upscaled_images_class(tables: Tables) -> Verdict:
    """On images upscaled to 14 x 14 patches SeqPE, a term of the score with one map, whose grid grows, tells
    more classes rightly than the sinusoid and axial RoPE trained at the same shift steps, whose places are
    fitted, and than the model without places (differences above 0)."""
    return above_chance(tables, larger("class", "upscaled-14", "fit"))


def rule_seqpe_is_ahead_on_upscaled_images_direction(tables: Tables) -> Verdict:
    """On images upscaled to 14 x 14 patches SeqPE, a term of the score with one map, whose grid grows, tells
    more directions rightly than the sinusoid and axial RoPE trained at the same shift steps, whose places are
    fitted, and than the model without places (differences above 0)."""
    return above_chance(tables, larger("direction", "upscaled-14", "fit"))


def rule_seqpe_is_ahead_on_spread_images(tables: Tables) -> Verdict:
    """With the two things spread over 14 x 14 patches, and a grid that grows, SeqPE, a term of the score with
    one map, tells more directions rightly than the sinusoid and axial RoPE trained at the same shift steps
    and than the model without places (differences above 0)."""
    return above_chance(tables, larger("direction", "spread-14", "grow"))


def rule_seqpe_is_ahead_of_an_interpolated_table(tables: Tables) -> Verdict:
    """At 14 x 14 patches SeqPE, a term of the score with one map, whose grid grows, answers more rightly than
    the learned table (interpolated), in both tasks, on the larger canvas and on upscaled pictures
    (differences above 0). A table has no shift steps: the comparison is not like with like."""
    return above_chance(
        tables,
        [
            Comparison(f"seqpe/{t}:{view}/grow", f"learned/{t}:{view}/fit", low=0.0)
            for t in tasks()
            for view in ("canvas-14", "upscaled-14")
        ],
    )


def rule_losses_and_shifts_carry_seqpe_class(tables: Tables) -> Verdict:
    """At 14 x 14 patches, with a grid that grows, SeqPE, a term of the score with one map, tells more classes
    rightly than the same digit strings without the two losses and without shift steps, on the larger canvas
    and on upscaled pictures (differences above 0). Losses and shift steps are not told apart."""
    return above_chance(tables, _with_and_without("class"))


def rule_losses_and_shifts_carry_seqpe_direction(tables: Tables) -> Verdict:
    """At 14 x 14 patches, with a grid that grows, SeqPE, a term of the score with one map, tells more
    directions rightly than the same digit strings without the two losses and without shift steps, on the
    larger canvas and on upscaled pictures (differences above 0). Losses and shift steps are not told
    apart."""
    return above_chance(tables, _with_and_without("direction"))


def _with_and_without(task: str) -> list[Comparison]:
    views = ("canvas-14/grow", "upscaled-14/grow")
    return [Comparison(f"seqpe/{task}:{view}", f"seqpe-plain/{task}:{view}", low=0.0) for view in views]


def rule_digits_do_more_than_shift_steps(tables: Tables) -> Verdict:
    """On the canvas of 14 x 14 patches, with a grid that grows, SeqPE multiplied as released answers more
    rightly than the sinusoid trained at the same shift steps, in both tasks (differences above 0)."""
    pairs = [(f"seqpe-multiply/{t}:canvas-14/grow", f"sinusoidal-shifts/{t}:canvas-14/grow") for t in tasks()]
    return above_chance(tables, [Comparison(a, b, low=0.0) for a, b in pairs])


def rule_seqpe_reads_covered_places_alike_class(tables: Tables) -> Verdict:
    """With the trained grid moved to coordinates that shift steps and losses cover, by tens and by no tens,
    SeqPE tells the class rightly less than 0.03 less often than at the trained places. Not testable unless
    digit strings without losses and shift steps lose more than 0.03 there, in the mean over both."""
    return moved(tables, "class", "covered")


def rule_seqpe_reads_covered_places_alike_direction(tables: Tables) -> Verdict:
    """With the trained grid moved to coordinates that shift steps and losses cover, by tens and by no tens,
    SeqPE tells the direction rightly less than 0.03 less often than at the trained places. Not testable
    unless digit strings without losses and shift steps lose more than 0.03 there, in the mean over both."""
    return moved(tables, "direction", "covered")


def rule_seqpe_reaches_places_never_seen(tables: Tables) -> Verdict:
    """With the trained grid moved to coordinates that no step and no loss had, by tens and by no tens, SeqPE
    tells the direction rightly less than 0.03 less often than at the trained places. Not testable unless
    digit strings without losses and shift steps lose more than 0.03 there, in the mean over both."""
    return moved(tables, "direction", "never-seen")


_OURS = _OF_IMAGES | {"stands_on": (larger, moved, _with_and_without, *_OF_IMAGES["stands_on"])}

CLAIMS = (
    Claim(
        id="seqpe-leads-in-image-classification",
        statement="In 2D image classification SeqPE surpasses strong baselines in accuracy.",
        rule=rule_seqpe_leads_in_image_classification,
        **_OURS | {"source": "seqpe-abstract"},
    ),
    Claim(
        id="seqpe-is-ahead-on-a-larger-canvas-class",
        statement="On a larger canvas SeqPE tells classes better than a sinusoid and axial RoPE trained at "
        "the same shift steps, and than no places at all.",
        rule=rule_seqpe_is_ahead_on_a_larger_canvas_class,
        **_OURS,
    ),
    Claim(
        id="seqpe-is-ahead-on-a-larger-canvas-direction",
        statement="So it does with directions.",
        rule=rule_seqpe_is_ahead_on_a_larger_canvas_direction,
        **_OURS,
    ),
    Claim(
        id="seqpe-is-ahead-on-upscaled-images-class",
        statement="On upscaled images SeqPE tells classes better than a sinusoid and axial RoPE whose places "
        "are fitted, and than no places at all.",
        rule=rule_seqpe_is_ahead_on_upscaled_images_class,
        **_OURS,
    ),
    Claim(
        id="seqpe-is-ahead-on-upscaled-images-direction",
        statement="So it does with directions.",
        rule=rule_seqpe_is_ahead_on_upscaled_images_direction,
        **_OURS,
    ),
    Claim(
        id="seqpe-is-ahead-on-spread-images",
        statement="Where things lie further apart than in training SeqPE tells directions better than a "
        "sinusoid and axial RoPE trained at the same shift steps.",
        rule=rule_seqpe_is_ahead_on_spread_images,
        **_OURS,
    ),
    Claim(
        id="seqpe-is-ahead-of-an-interpolated-table",
        statement="At grids larger than the trained one SeqPE is ahead of an interpolated table.",
        rule=rule_seqpe_is_ahead_of_an_interpolated_table,
        **_OURS,
    ),
    Claim(
        id="losses-and-shifts-carry-seqpe-class",
        statement="It is the two losses and the shift steps that carry SeqPE to larger grids, and not the "
        "digit strings alone, where classes are told.",
        rule=rule_losses_and_shifts_carry_seqpe_class,
        **_OURS,
    ),
    Claim(
        id="losses-and-shifts-carry-seqpe-direction",
        statement="So it is where directions are told.",
        rule=rule_losses_and_shifts_carry_seqpe_direction,
        **_OURS,
    ),
    Claim(
        id="digits-do-more-than-shift-steps",
        statement="On a larger canvas SeqPE as released, multiplied, is ahead of a sinusoid that is trained "
        "at the same shift steps.",
        rule=rule_digits_do_more_than_shift_steps,
        **_OURS,
    ),
    Claim(
        id="seqpe-reads-covered-places-alike-class",
        statement="Shift steps and losses make SeqPE indifferent to where, among the coordinates that they "
        "cover, a grid of patches stands, as far as classes go.",
        rule=rule_seqpe_reads_covered_places_alike_class,
        **_OURS,
    ),
    Claim(
        id="seqpe-reads-covered-places-alike-direction",
        statement="So they do as far as directions go.",
        rule=rule_seqpe_reads_covered_places_alike_direction,
        **_OURS,
    ),
    Claim(
        id="seqpe-reaches-places-never-seen",
        statement="SeqPE tells directions at coordinates that no step and no loss had as well as at the "
        "trained ones.",
        rule=rule_seqpe_reaches_places_never_seen,
        **_OURS,
    ),
)
