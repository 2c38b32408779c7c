"""Rules on the experiment `in_window` (chapter 10): bits per byte inside the trained length, ELTeC novels.

Written before its records. All bounds are in bits per byte and stand inside the functions, so that the commit
that last touched a function is the commit that last moved its bounds.
"""

from sepnb.claims.evidence import RULES_OF_EVIDENCE, Comparison, judge
from sepnb.claims.verdict import NOT_RUN, NOT_TESTABLE, Claim, Tables, Verdict

OURS = "ours, written before the records"
TABLE = "experiment/in_window"


def within(tables: Tables, comparisons: list[Comparison]) -> Verdict:
    """Judge the comparisons; every method compared must clear a bar, a mean below 3.35 bits per byte.

    A bigram model of bytes, fitted on some of these novels and scored on others, has an entropy of about
    3.48. A model above the bar has hardly learned to look further back than one byte, and comparing it would
    compare noise.
    """
    return judge(tables.get(TABLE), comparisons, bar=3.35)


def rule_separation_costs_nothing_at_equal_width(tables: Tables) -> Verdict:
    """Separated minus dense is below +0.03 bits per byte, for the learned table and for the sinusoid."""
    pairs = [("separated-learned", "learned"), ("separated-sinusoidal", "sinusoidal")]
    return within(tables, [Comparison(a, b, high=0.03) for a, b in pairs])


def rule_separation_costs_nothing_at_equal_parameters(tables: Tables) -> Verdict:
    """Wide separated minus dense is below +0.03 bits per byte, for the learned table and for the sinusoid;
    not testable unless their numbers of block parameters are within 5 % of each other."""
    pairs = [("separated-learned-wide", "learned"), ("separated-sinusoidal-wide", "sinusoidal")]
    verdict = within(tables, [Comparison(a, b, high=0.03) for a, b in pairs])
    if verdict.word in (NOT_RUN, NOT_TESTABLE):
        return verdict
    parameters = tables[TABLE].groupby("method").block_parameters.mean()
    for wide, dense in pairs:
        if not abs(parameters[wide] / parameters[dense] - 1) <= 0.05:
            counts = f"{wide} has {parameters[wide]:.0f} block parameters, {dense} {parameters[dense]:.0f}"
            return Verdict(NOT_TESTABLE, f"more than 5 % apart: {counts}")
    return verdict


def rule_separation_improves_a_learned_table(tables: Tables) -> Verdict:
    """Separated learned minus dense learned is below -0.05 bits per byte."""
    return within(tables, [Comparison("separated-learned", "learned", high=-0.05)])


def rule_position_information_helps(tables: Tables) -> Verdict:
    """Each of sinusoidal, learned, RoPE, ALiBi, separated sinusoidal and separated learned minus no encoding
    is below 0."""
    encodings = ["sinusoidal", "learned", "rope", "alibi", "separated-sinusoidal", "separated-learned"]
    return within(tables, [Comparison(name, "none", high=0.0) for name in encodings])


def rule_rope_improves_on_absolute(tables: Tables) -> Verdict:
    """RoPE minus the sinusoid, and RoPE minus the learned table, both added at the input, are below 0, inside
    the trained length; longer sequences have claims of their own."""
    return within(tables, [Comparison("rope", name, high=0.0) for name in ("sinusoidal", "learned")])


def rule_rope_leads_in_window(tables: Tables) -> Verdict:
    """RoPE minus each of sinusoidal, learned, and the separated models of both encodings, at equal width and
    at equal parameters, is below 0."""
    absolute = ["sinusoidal", "learned"]
    separated = [f"separated-{name}{size}" for name in absolute for size in ("", "-wide")]
    return within(tables, [Comparison("rope", name, high=0.0) for name in absolute + separated])


def rule_alibi_level_with_separated_sinusoid(tables: Tables) -> Verdict:
    """ALiBi minus separated sinusoidal lies between -0.03 and +0.03 bits per byte."""
    return within(tables, [Comparison("alibi", "separated-sinusoidal", low=-0.03, high=0.03)])


_FROM_THE_TABLE = {"needs": (TABLE,), "stands_on": (within, *RULES_OF_EVIDENCE)}

CLAIMS = (
    Claim(
        id="separation-costs-nothing-at-equal-width",
        source=OURS,
        statement="Inside the trained length, giving position its own dimensions costs nothing: the "
        "separated model is as good as the dense one that adds the same encoding, at equal width and so "
        "with fewer parameters.",
        rule=rule_separation_costs_nothing_at_equal_width,
        **_FROM_THE_TABLE,
    ),
    Claim(
        id="separation-costs-nothing-at-equal-parameters",
        source=OURS,
        statement="The same at equal parameters: a separated model widened to the dense model's size is as "
        "good as the dense model.",
        rule=rule_separation_costs_nothing_at_equal_parameters,
        **_FROM_THE_TABLE,
    ),
    Claim(
        id="separation-improves-a-learned-table",
        source=OURS,
        statement="A learned table works better in dimensions of its own than added to the embedding, at "
        "equal width.",
        rule=rule_separation_improves_a_learned_table,
        **_FROM_THE_TABLE,
    ),
    Claim(
        id="position-information-helps",
        source="article-positional-encoding",
        statement="A transformer needs an additional component to make use of word order. (Ours is causal, "
        "and its mask alone already tells positions apart, which the article does not consider.)",
        rule=rule_position_information_helps,
        **_FROM_THE_TABLE,
    ),
    Claim(
        id="rope-improves-on-absolute",
        source="article-positional-encoding",
        statement="Going from absolute encodings to RoPE has significantly improved model performance.",
        rule=rule_rope_improves_on_absolute,
        **_FROM_THE_TABLE,
    ),
    Claim(
        id="rope-leads-in-window",
        source=OURS,
        statement="Inside the trained length RoPE is ahead of every absolute and of every separated model.",
        rule=rule_rope_leads_in_window,
        **_FROM_THE_TABLE,
    ),
    Claim(
        id="alibi-level-with-separated-sinusoid",
        source=OURS,
        statement="Inside the trained length ALiBi and the separated model with a sinusoid are level.",
        rule=rule_alibi_level_with_separated_sinusoid,
        **_FROM_THE_TABLE,
    ),
)
