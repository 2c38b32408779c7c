"""Rules on the experiment `ablation` (chapter 10): one factor at a time, inside the trained length.

Written before its records. All bounds are in bits per byte and stand inside the functions, so that the commit
that last touched a function is the commit that last moved its bounds.
"""

from sepnb.claims.evidence import RULES_OF_EVIDENCE, Comparison, judge
from sepnb.claims.in_window import OURS
from sepnb.claims.verdict import Claim, Tables, Verdict

TABLE = "experiment/ablation"


def one_factor(tables: Tables, comparisons: list[Comparison]) -> Verdict:
    """Judge the comparisons; every model compared must clear a bar, a mean below 3.35 bits per byte, for the
    reason given in the rules on `in_window`: the text is the same."""
    return judge(tables.get(TABLE), comparisons, bar=3.35)


def rule_position_at_every_layer_helps(tables: Tables) -> Verdict:
    """The code added in every layer minus the code added to the embedding only is below 0, in the dense model
    with the sinusoid and in the dense model with the learned table."""
    pairs = [(f"{name}-reinjected", name) for name in ("sinusoidal", "learned")]
    return one_factor(tables, [Comparison(a, b, high=0.0) for a, b in pairs])


def rule_a_pos_stream_needs_no_reinjection(tables: Tables) -> Verdict:
    """The code added again in every layer minus the code given once lies between -0.03 and +0.03 bits per
    byte, in the separated model with the sinusoid and in the one with the learned table."""
    pairs = [(f"{name}-reinjected", name) for name in ("separated-sinusoidal", "separated-learned")]
    return one_factor(tables, [Comparison(a, b, low=-0.03, high=0.03) for a, b in pairs])


def rule_constant_pos_stream_ties_with_evolving(tables: Tables) -> Verdict:
    """The pos stream handed constant to every layer minus the one that evolves lies between -0.03 and +0.03
    bits per byte, with the sinusoid and with the learned table."""
    pairs = [(f"{name}-constant", name) for name in ("separated-sinusoidal", "separated-learned")]
    return one_factor(tables, [Comparison(a, b, low=-0.03, high=0.03) for a, b in pairs])


def rule_split_norm_costs_nothing(tables: Tables) -> Verdict:
    """One norm per stream minus one joint norm is below +0.03 bits per byte, where everything else is split
    and where nothing else is."""
    pairs = [
        ("separated-sinusoidal", "separated-sinusoidal-joint-norm"),
        ("concatenated-sinusoidal-split-norm", "concatenated-sinusoidal"),
    ]
    return one_factor(tables, [Comparison(a, b, high=0.03) for a, b in pairs])


def rule_no_single_wall_costs(tables: Tables) -> Verdict:
    """The separated sinusoid minus the same model without one of its walls is below +0.03 bits per byte, for
    each of three walls: values and output, MLP, read-out. The norm has a claim of its own."""
    without = ("joint-value-output", "joint-mlp", "both-readout")
    full = "separated-sinusoidal"
    return one_factor(tables, [Comparison(full, f"{full}-{wall}", high=0.03) for wall in without])


def rule_concatenation_alone_helps(tables: Tables) -> Verdict:
    """The sinusoid beside the embedding, with nothing split, minus the sinusoid added to it is below 0."""
    return one_factor(tables, [Comparison("concatenated-sinusoidal", "sinusoidal", high=0.0)])


_FROM_THE_TABLE = {"needs": (TABLE,), "stands_on": (one_factor, *RULES_OF_EVIDENCE)}

CLAIMS = (
    Claim(
        id="position-at-every-layer-helps",
        source="notes-positional-encoding",
        statement="Applying the position encoding in every layer tends to perform better than applying it to "
        "the first input only.",
        rule=rule_position_at_every_layer_helps,
        **_FROM_THE_TABLE,
    ),
    Claim(
        id="a-pos-stream-needs-no-reinjection",
        source=OURS,
        statement="In a stream of its own, position reaches every layer without being added again: the "
        "separated model with the code added in every layer is level with the one that is given it once.",
        rule=rule_a_pos_stream_needs_no_reinjection,
        **_FROM_THE_TABLE,
    ),
    Claim(
        id="constant-pos-stream-ties-with-evolving",
        source=OURS,
        statement="What the layers make of the pos stream is worth nothing: handed constant to every layer, "
        "it is level with the one that evolves.",
        rule=rule_constant_pos_stream_ties_with_evolving,
        **_FROM_THE_TABLE,
    ),
    Claim(
        id="split-norm-costs-nothing",
        source=OURS,
        statement="The norm per stream, without which the streams mix, costs nothing.",
        rule=rule_split_norm_costs_nothing,
        **_FROM_THE_TABLE,
    ),
    Claim(
        id="no-single-wall-costs",
        source=OURS,
        statement="Each of the other walls is free at equal width: taking down the one in values and output, "
        "in the MLP or before the read-out gains nothing, though it leaves a larger model.",
        rule=rule_no_single_wall_costs,
        **_FROM_THE_TABLE,
    ),
    Claim(
        id="concatenation-alone-helps",
        source=OURS,
        statement="Position beside the embedding instead of added to it is better even if nothing is split.",
        rule=rule_concatenation_alone_helps,
        **_FROM_THE_TABLE,
    ),
)
