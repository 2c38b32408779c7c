"""Rules on the experiment `volumes`: places on three axes, and larger cubes (chapter 15).

Written before its records; one short trial of one seed had been seen of three methods, at half of the steps.
Scores are shares of right answers, and higher is better; a sixth is chance. *Canvas* is a trained cube
somewhere in a larger one, *spread* are two things anywhere in it; `canvas-12` is a larger cube of 12 cells
along an edge. *SeqPE* is trained at shift steps and with both losses. Bounds stand inside the functions.
"""

from sepnb.claims import images, recipes, seqpe_geometry
from sepnb.claims.evidence import RULES_OF_EVIDENCE, Comparison
from sepnb.claims.verdict import Claim, Tables, Verdict

OURS = "ours, written before the records"
TABLE = "experiment/volumes"
LARGER = ("canvas-12", "spread-12")


def compared(tables: Tables, comparisons: list[Comparison]) -> Verdict:
    """As `images.compared`, bar included, on the models of this experiment."""
    return images.compared({images.TABLE: tables.get(TABLE)}, comparisons)


def rule_three_axes_are_learned(tables: Tables) -> Verdict:
    """In the trained cube the sinusoid, axial RoPE and SeqPE each answer more than 0.9 of the questions
    rightly."""
    names = ("sinusoidal", "axial-rope", "seqpe")
    return seqpe_geometry.measured(
        {seqpe_geometry.TABLE: tables.get(TABLE)},
        [Comparison(f"{name}:accuracy", recipes.ZERO, low=0.9) for name in names],
    )


def rule_seqpe_is_ahead_in_larger_cubes(tables: Tables) -> Verdict:
    """In cubes of 12 cells along an edge, on the canvas and spread, SeqPE answers more rightly than the
    sinusoid and than axial RoPE (differences above 0)."""
    return compared(
        tables,
        [
            Comparison(f"seqpe:{view}", f"{name}:{view}", low=0.0)
            for name in ("sinusoidal", "axial-rope")
            for view in LARGER
        ],
    )


def rule_losses_and_shifts_carry_seqpe_to_larger_cubes(tables: Tables) -> Verdict:
    """In cubes of 12 cells along an edge, on the canvas and spread, SeqPE answers more rightly than the same
    digit strings without the two losses and without shift steps (differences above 0)."""
    return compared(tables, [Comparison(f"seqpe:{v}", f"seqpe-plain:{v}", low=0.0) for v in LARGER])


def rule_digits_do_more_than_shift_steps_in_a_cube(tables: Tables) -> Verdict:
    """In cubes of 12 cells along an edge, on the canvas and spread, SeqPE answers more rightly than the
    sinusoid trained at the same shift steps (differences above 0)."""
    return compared(tables, [Comparison(f"seqpe:{v}", f"sinusoidal-shifts:{v}", low=0.0) for v in LARGER])


_OURS = {
    "source": OURS,
    "needs": (TABLE,),
    "stands_on": (compared, images.compared, seqpe_geometry.measured, recipes.compared, *RULES_OF_EVIDENCE),
}

CLAIMS = (
    Claim(
        id="three-axes-are-learned",
        statement="Sinusoid, axial RoPE and SeqPE tell places in a cube as soon as they are told that there "
        "are three axes.",
        rule=rule_three_axes_are_learned,
        **_OURS,
    ),
    Claim(
        id="seqpe-is-ahead-in-larger-cubes",
        statement="In cubes larger than the trained one SeqPE is ahead of the sinusoid and of axial RoPE.",
        rule=rule_seqpe_is_ahead_in_larger_cubes,
        **_OURS,
    ),
    Claim(
        id="losses-and-shifts-carry-seqpe-to-larger-cubes",
        statement="It is the two losses and the shift steps that carry SeqPE to larger cubes, and not the "
        "digit strings alone.",
        rule=rule_losses_and_shifts_carry_seqpe_to_larger_cubes,
        **_OURS,
    ),
    Claim(
        id="digits-do-more-than-shift-steps-in-a-cube",
        statement="In larger cubes SeqPE is ahead of a sinusoid that is trained at the same shift steps.",
        rule=rule_digits_do_more_than_shift_steps_in_a_cube,
        **_OURS,
    ),
)
