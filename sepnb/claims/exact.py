"""Rules on what chapters 1 and 7 to 9 compute exactly: no statistics, only zeros and how far from zero.

An error counts as zero up to rounding at 1e-6, and as clearly not zero above 1e-3. Where the statement is
about streams that are not connected at all, zero means 0.0: not one path leads from one to the other.

A rule that expects a zero also asks for a control that must *not* be zero. Without it a measurement that is
blind would confirm the statement.
"""

from sepnb.claims.in_window import OURS
from sepnb.claims.verdict import (
    NOT_REPRODUCED,
    NOT_RUN,
    NOT_TESTABLE,
    PARTLY,
    REPRODUCED,
    Claim,
    Tables,
    Verdict,
)

ORDER = "chapter/01_order"
STREAMS = "chapter/07_two_streams"
SPLIT = "chapter/08_split_mlp_norm"
STRICT = "chapter/09_strict"


def _numbers(tables: Tables, chapter: str, *keys: str) -> dict[str, float] | Verdict:
    found = tables.get(chapter)
    if found is None:
        return Verdict(NOT_RUN, "the chapter has not been executed")
    if absent := [key for key in keys if key not in found]:
        return Verdict(NOT_RUN, f"the chapter does not publish {', '.join(absent)}")
    return {key: float(found[key]) for key in keys}


def _answer(word: str, numbers: dict[str, float]) -> Verdict:
    shown = [f"{name.replace('_', ' ')} {value:.2g}" for name, value in numbers.items()]
    return Verdict(word, "; ".join(shown), numbers)


def _all(numbers: dict[str, float], conditions: list[bool]) -> Verdict:
    if all(conditions):
        return _answer(REPRODUCED, numbers)
    return _answer(PARTLY if any(conditions) else NOT_REPRODUCED, numbers)


def rule_attention_is_permutation_equivariant(tables: Tables) -> Verdict:
    """Permuting the tokens permutes the outputs up to rounding (error at most 1e-6), (a) without a mask and
    (b) with the causal mask; one of the two gives *partly*. Not testable unless with RoPE, the control, the
    error is above 1e-3."""
    keys = ("equivariance_error", "causal_equivariance_error", "rope_equivariance_error")
    numbers = _numbers(tables, ORDER, *keys)
    if isinstance(numbers, Verdict):
        return numbers
    if numbers["rope_equivariance_error"] <= 1e-3:
        return _answer(NOT_TESTABLE, numbers)
    return _all(numbers, [numbers[key] <= 1e-6 for key in keys[:2]])


def rule_attention_is_permutation_invariant(tables: Tables) -> Verdict:
    """Permuting the tokens leaves the output at each place unchanged, up to rounding (at most 1e-6),
    without a mask."""
    numbers = _numbers(tables, ORDER, "invariance_error")
    return numbers if isinstance(numbers, Verdict) else _all(numbers, [numbers["invariance_error"] <= 1e-6])


def rule_position_breaks_the_symmetry(tables: Tables) -> Verdict:
    """With each of sinusoid, learned table, RoPE and ALiBi, permuting the tokens does more to the outputs
    than permute them (error above 1e-3); with some of the four, *partly*. Not testable unless the same
    measurement without an encoding gives zero (at most 1e-6)."""
    encodings = ("sinusoidal", "learned", "rope", "alibi")
    keys = [f"{name}_equivariance_error" for name in encodings]
    numbers = _numbers(tables, ORDER, *keys, "equivariance_error")
    if isinstance(numbers, Verdict):
        return numbers
    if numbers["equivariance_error"] > 1e-6:
        return _answer(NOT_TESTABLE, numbers)
    return _all(numbers, [numbers[key] > 1e-3 for key in keys])


def rule_block_values_keep_streams_apart(tables: Tables) -> Verdict:
    """With the attention weights held fixed, the derivative of one stream's output by the other stream's
    input is exactly 0 for block-diagonal W_V and W_O; not testable unless it is above 1e-3 for dense
    ones."""
    numbers = _numbers(tables, STREAMS, "frozen_jacobian_split", "frozen_jacobian_dense")
    if isinstance(numbers, Verdict):
        return numbers
    if numbers["frozen_jacobian_dense"] <= 1e-3:
        return _answer(NOT_TESTABLE, numbers)
    return _all(numbers, [numbers["frozen_jacobian_split"] == 0.0])


def rule_semantics_do_not_depend_on_position(tables: Tables) -> Verdict:
    """The derivative of the semantic output by the positional input is exactly 0 (a) with the attention
    weights held fixed and (b) with everything live; one of the two gives *partly*."""
    numbers = _numbers(tables, STREAMS, "frozen_jacobian_split", "live_jacobian_sem_by_pos")
    if isinstance(numbers, Verdict):
        return numbers
    return _all(numbers, [value == 0.0 for value in numbers.values()])


def rule_two_mlps_keep_streams_apart(tables: Tables) -> Verdict:
    """With the attention weights held fixed, the derivative between streams through a whole block with one
    MLP and one norm per stream is exactly 0; not testable unless it is above 1e-3 with a joint MLP."""
    numbers = _numbers(tables, SPLIT, "frozen_jacobian_split_norm", "frozen_jacobian_joint_mlp")
    if isinstance(numbers, Verdict):
        return numbers
    if numbers["frozen_jacobian_joint_mlp"] <= 1e-3:
        return _answer(NOT_TESTABLE, numbers)
    return _all(numbers, [numbers["frozen_jacobian_split_norm"] == 0.0])


def rule_values_output_and_mlp_suffice(tables: Tables) -> Verdict:
    """With W_V, W_O and the MLP split and the ordinary layer norm over the joint width, the derivative
    between streams (attention weights held fixed) is exactly 0; not testable unless it is 0 with a norm per
    stream, so that only the norm is left to blame."""
    numbers = _numbers(tables, SPLIT, "frozen_jacobian_joint_norm", "frozen_jacobian_split_norm")
    if isinstance(numbers, Verdict):
        return numbers
    if numbers["frozen_jacobian_split_norm"] != 0.0:
        return _answer(NOT_TESTABLE, numbers)
    return _all(numbers, [numbers["frozen_jacobian_joint_norm"] == 0.0])


def rule_strict_pos_stream_ignores_the_text(tables: Tables) -> Verdict:
    """With everything live, (a) the derivative of the pos stream by the semantic input is exactly 0 and (b)
    the pos stream does not differ in a single bit between two texts, in any layer; one of the two gives
    *partly*. Not testable unless in the separated model, the control, both are above 1e-3."""
    kinds = ("live_jacobian", "text_difference")
    keys = [f"{mode}_{kind}" for mode in ("strict", "separated") for kind in kinds]
    numbers = _numbers(tables, STRICT, *keys)
    if isinstance(numbers, Verdict):
        return numbers
    if min(numbers[f"separated_{kind}"] for kind in kinds) <= 1e-3:
        return _answer(NOT_TESTABLE, numbers)
    return _all(numbers, [numbers[f"strict_{kind}"] == 0.0 for kind in kinds])


def rule_strict_is_dense_plus_tables(tables: Tables) -> Verdict:
    """A dense transformer of the width of the sem stream, written out without a pos stream, gives the logits
    of the strict model up to rounding (at most 1e-6) when the precomputed tables are added to its queries and
    keys; not testable unless without the tables the logits are off by more than 1e-3."""
    numbers = _numbers(tables, STRICT, "dense_with_tables_error", "dense_without_tables_error")
    if isinstance(numbers, Verdict):
        return numbers
    if numbers["dense_without_tables_error"] <= 1e-3:
        return _answer(NOT_TESTABLE, numbers)
    return _all(numbers, [numbers["dense_with_tables_error"] <= 1e-6])


_HELPERS = (_numbers, _answer, _all)

CLAIMS = (
    Claim(
        id="attention-is-permutation-equivariant",
        source="article-positional-encoding",
        statement="A transformer's attention without position processes a sentence and its shuffled copy "
        "identically: each token gets the same output wherever it stands.",
        rule=rule_attention_is_permutation_equivariant,
        needs=(ORDER,),
        stands_on=_HELPERS,
    ),
    Claim(
        id="attention-is-permutation-invariant",
        source="seqpe-abstract",
        statement="Self-attention layers are permutation invariant by design.",
        rule=rule_attention_is_permutation_invariant,
        needs=(ORDER,),
        stands_on=_HELPERS,
    ),
    Claim(
        id="position-breaks-the-symmetry",
        source="article-positional-encoding",
        statement="Positional encoding lets the model tell tokens apart by their place in the sequence.",
        rule=rule_position_breaks_the_symmetry,
        needs=(ORDER,),
        stands_on=_HELPERS,
    ),
    Claim(
        id="block-values-keep-streams-apart",
        source="slides-separation",
        statement="With block-diagonal W_V and W_O the positional and the semantic dimensions do not mix in "
        "attention.",
        rule=rule_block_values_keep_streams_apart,
        needs=(STREAMS,),
        stands_on=_HELPERS,
    ),
    Claim(
        id="semantics-do-not-depend-on-position",
        source="slides-separation",
        statement="Only the positional part depends on the index; the semantic representations stay "
        "invariant to position.",
        rule=rule_semantics_do_not_depend_on_position,
        needs=(STREAMS,),
        stands_on=_HELPERS,
    ),
    Claim(
        id="two-mlps-keep-streams-apart",
        source="slides-separation",
        statement="Two MLPs, one per stream, with their outputs concatenated, keep the dimensions apart.",
        rule=rule_two_mlps_keep_streams_apart,
        needs=(SPLIT,),
        stands_on=_HELPERS,
    ),
    Claim(
        id="values-output-and-mlp-suffice",
        source="slides-separation",
        statement="Modifying W_V, W_O and the MLP is what it takes to keep one stream from influencing the "
        "other (the slides name no norm).",
        rule=rule_values_output_and_mlp_suffice,
        needs=(SPLIT,),
        stands_on=_HELPERS,
    ),
    Claim(
        id="strict-pos-stream-ignores-the-text",
        source=OURS,
        statement="When position heads make their queries and keys from positions alone, the pos stream of "
        "every layer is the same for every text.",
        rule=rule_strict_pos_stream_ignores_the_text,
        needs=(STRICT,),
        stands_on=_HELPERS,
    ),
    Claim(
        id="strict-is-dense-plus-tables",
        source=OURS,
        statement="A strict model is a dense transformer of the width of its sem stream, with a table added "
        "to queries and keys in each layer that can be computed before the text is known.",
        rule=rule_strict_is_dense_plus_tables,
        needs=(STRICT,),
        stands_on=_HELPERS,
    ),
)
