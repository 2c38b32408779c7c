"""What chapters 1 and 8 to 10 compute exactly: no statistics, only zeros and how far from zero.

An error counts as zero up to rounding at 1e-6, and as clearly not zero above 1e-3. Of streams that are not
connected at all zero means 0.0: not one path leads from one to the other. Beside every expected zero stands a
control that must *not* be zero: a measurement that is blind would confirm the statement.
"""

from functools import partial

from sepnb.claims.asks import Ask, Unless
from sepnb.claims.claim import Claim
from sepnb.claims.evidence import exactly


def bounded(*names: str, **bounds: float) -> list[Ask]:
    """Each lies within the same bounds."""
    return [Ask(name, **bounds) for name in names]


zero = partial(bounded, low=0.0, high=0.0)
rounding = partial(bounded, high=1e-6)
"""Zero up to rounding."""
apart = partial(bounded, low=1e-3)
"""Clearly not zero."""
control = partial(Unless, why="the measurement is blind")
"""What must be so, else nothing was measured."""

_exact = partial(Claim, how=exactly, parts=True)
_order = partial(_exact, experiment="chapter/01_order")
_streams = partial(_exact, experiment="chapter/08_two_streams", source="slides-separation")
_split = partial(_exact, experiment="chapter/09_split_mlp_norm", source="slides-separation")
_strict = partial(_exact, experiment="chapter/10_strict")

CLAIMS = {
    "attention-is-permutation-equivariant": _order(
        "Without positions, attention treats a shuffled sentence alike",
        rounding("equivariance_error", "causal_equivariance_error"),
        rule="Permuting the tokens permutes the outputs up to rounding (error at most 1e-6), (a) without a "
        "mask and (b) with the causal mask; one of the two gives *partly*. Not testable unless with RoPE, "
        "the control, the error is above 1e-3.",
        source="article-positional-encoding",
        unless=control(apart("rope_equivariance_error")),
    ),
    "attention-is-permutation-invariant": _order(
        "Self-attention does not change when tokens are shuffled",
        rounding("invariance_error"),
        rule="Permuting the tokens leaves the output at each place unchanged, up to rounding (at most "
        "1e-6), without a mask.",
        source="seqpe-abstract",
    ),
    "position-breaks-the-symmetry": _order(
        "A position encoding lets the model tell places apart",
        apart(*(f"{name}_equivariance_error" for name in ("sinusoidal", "learned", "rope", "alibi"))),
        rule="With each of sinusoid, learned table, RoPE and ALiBi, permuting the tokens does more to the "
        "outputs than permute them (error above 1e-3); with some of the four, *partly*. Not testable unless "
        "the same measurement without an encoding gives zero (at most 1e-6).",
        source="article-positional-encoding",
        unless=control(rounding("equivariance_error")),
    ),
    "block-values-keep-streams-apart": _streams(
        "Block-diagonal values and outputs keep the streams apart",
        zero("frozen_jacobian_split"),
        rule="With the attention weights held fixed, the derivative of one stream's output by the other "
        "stream's input is exactly 0 for block-diagonal W_V and W_O; not testable unless it is above 1e-3 "
        "for dense ones.",
        unless=control(apart("frozen_jacobian_dense")),
    ),
    "semantics-do-not-depend-on-position": _streams(
        "The semantic stream does not depend on position",
        zero("frozen_jacobian_split", "live_jacobian_sem_by_pos"),
        rule="The derivative of the semantic output by the positional input is exactly 0 (a) with the "
        "attention weights held fixed and (b) with everything live; one of the two gives *partly*.",
    ),
    "two-mlps-keep-streams-apart": _split(
        "Two MLPs keep the streams apart",
        zero("frozen_jacobian_split_norm"),
        rule="With the attention weights held fixed, the derivative between streams through a whole block "
        "with one MLP and one norm per stream is exactly 0; not testable unless it is above 1e-3 with a "
        "joint MLP.",
        unless=control(apart("frozen_jacobian_joint_mlp")),
    ),
    "values-output-and-mlp-suffice": _split(
        "Splitting values, outputs and the MLP is enough",
        zero("frozen_jacobian_joint_norm"),
        rule="With W_V, W_O and the MLP split and the ordinary layer norm over the joint width, the "
        "derivative between streams (attention weights held fixed) is exactly 0; not testable unless it is "
        "0 with a norm per stream, so that only the norm is left to blame.",
        unless=control(zero("frozen_jacobian_split_norm")),
    ),
    "strict-pos-stream-ignores-the-text": _strict(
        "In the strict model the position stream is the same for every text",
        zero("strict_live_jacobian", "strict_text_difference"),
        rule="With everything live, (a) the derivative of the pos stream by the semantic input is exactly 0 "
        "and (b) the pos stream does not differ in a single bit between two texts, in any layer; one of the "
        "two gives *partly*. Not testable unless in the separated model, the control, both are above 1e-3.",
        unless=control(apart("separated_live_jacobian", "separated_text_difference")),
    ),
    "strict-is-dense-plus-tables": _strict(
        "A strict model is a dense one with tables added to queries and keys",
        rounding("dense_with_tables_error"),
        rule="A dense transformer of the width of the sem stream, written out without a pos stream, gives "
        "the logits of the strict model up to rounding (at most 1e-6) when the precomputed tables are added "
        "to its queries and keys; not testable unless without the tables the logits are off by more than "
        "1e-3.",
        unless=control(apart("dense_without_tables_error")),
    ),
}
