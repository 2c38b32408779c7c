"""Rules on the experiment `encoding_speed`: what encodings leave of the speed of fused attention, on a CPU.

Written before its records. A cell is one encoding at one length, timed in rounds with fused causal attention
without positions, forward and backward, B = 8, H = 8, d = 64. *Share* is the speed of the compiled step over
that of the fused one; the quartiles over the rounds stand in the place of seeds. A bound is cleared if three
quarters of the rounds clear it, missed if three quarters miss it, and open between the two.
"""

from sepnb.claims.evidence import _not_complete, _word
from sepnb.claims.in_window import OURS
from sepnb.claims.verdict import NOT_TESTABLE, Claim, Tables, Verdict

TABLE = "experiment/encoding_speed"
BESIDE = ("rope", "xpos", "alibi", "t5", "cope")
"""What x-transformers has too, and is no control: all that `sepnb.experiments.peer` can time beside ours."""


def cells(tables: Tables, column: str, bounds: dict[tuple[str, int], float]) -> Verdict:
    """Is `column` above its bound in each cell `(method, length)`? *Partly* if it is in some and is not in
    the others; *not testable here* where a cell has no such column, as at lengths that a GPU's grid lacks,
    without a compiler or without the other package."""
    table = tables.get(TABLE)
    if obstacle := _not_complete(table, list(dict.fromkeys(method for method, _ in bounds))):
        return obstacle
    answers, told, numbers = [], [], {}
    for (method, length), bound in bounds.items():
        cell = table[(table.method == method) & (table.length == length)]
        names = [f"{column}_lower", column, f"{column}_upper"]
        if cell.empty or not set(names) <= set(cell) or cell[names].isna().any(axis=None):
            return Verdict(NOT_TESTABLE, f"no {column} of {method} at N = {length} was timed here")
        low, share, high = (float(cell.iloc[0][name]) for name in names)
        answers.append("holds" if low > bound else "fails" if high < bound else "open")
        name = f"{method} at {length}"
        numbers[name] = share
        told.append(
            f"{name} {share:.2f}, quartiles {low:.2f} to {high:.2f}, wanted {bound:g} ({answers[-1]})"
        )
    return Verdict(_word(answers), "; ".join(told), numbers)


def rule_compiled_rope_is_nearly_free(tables: Tables) -> Verdict:
    """RoPE leaves at least 0.95 of the speed, at N = 512 and at 1024."""
    return cells(tables, "compiled", {("rope", 512): 0.95, ("rope", 1024): 0.95})


def rule_a_fixed_bias_is_cheap(tables: Tables) -> Verdict:
    """ALiBi leaves at least 0.95 of the speed at N = 512, and 0.75 at 1024."""
    return cells(tables, "compiled", {("alibi", 512): 0.95, ("alibi", 1024): 0.75})


def rule_a_trained_bias_leaves_three_fifths(tables: Tables) -> Verdict:
    """T5 and KERPLE leave at least 0.6 of the speed at N = 512."""
    return cells(tables, "compiled", {("t5", 512): 0.6, ("kerple", 512): 0.6})


def rule_scores_of_their_own_leave_two_fifths(tables: Tables) -> Verdict:
    """Transformer-XL, Shaw (keys and values) and the DA-Transformer leave at least 0.4 of the speed at
    N = 512."""
    return cells(
        tables, "compiled", {(name, 512): 0.4 for name in ("transformer-xl", "shaw", "distance-aware")}
    )


def rule_ahead_of_x_transformers(tables: Tables) -> Verdict:
    """RoPE, xPos, ALiBi, T5 and CoPE, compiled, take less time than in x-transformers, eager or compiled as a
    whole, whichever is the faster of these, timed in the same rounds, at N = 512 and at 1024. Attention
    without positions, which both leave to the same fused kernel, is shown and not judged."""
    return cells(tables, "ahead", {(name, length): 1.0 for length in (512, 1024) for name in BESIDE})


_OF_THE_TABLE = {"source": OURS, "needs": (TABLE,), "stands_on": (cells, _not_complete, _word)}

CLAIMS = (
    Claim(
        id="compiled-rope-is-nearly-free",
        statement="On a CPU, rotating queries and keys by a compiled formula costs at most a twentieth of "
        "the speed of attention.",
        rule=rule_compiled_rope_is_nearly_free,
        **_OF_THE_TABLE,
    ),
    Claim(
        id="a-fixed-bias-is-cheap",
        statement="On a CPU, ALiBi's fixed bias costs at most a twentieth of the speed of attention at 512 "
        "tokens and at most a quarter at 1024.",
        rule=rule_a_fixed_bias_is_cheap,
        **_OF_THE_TABLE,
    ),
    Claim(
        id="a-trained-bias-leaves-three-fifths",
        statement="On a CPU, a trained bias of the distance (T5, KERPLE) leaves three fifths of the speed of "
        "attention at 512 tokens.",
        rule=rule_a_trained_bias_leaves_three_fifths,
        **_OF_THE_TABLE,
    ),
    Claim(
        id="scores-of-their-own-leave-two-fifths",
        statement="On a CPU, encodings whose scores are no product plus bias (Transformer-XL, Shaw, "
        "DA-Transformer) leave two fifths of the speed of attention at 512 tokens.",
        rule=rule_scores_of_their_own_leave_two_fifths,
        **_OF_THE_TABLE,
    ),
    Claim(
        id="ahead-of-x-transformers",
        statement="On a CPU, this package's encodings, compiled, are faster forward and backward than those "
        "of x-transformers, compiled or not, wherever that package has them.",
        rule=rule_ahead_of_x_transformers,
        **_OF_THE_TABLE,
    ),
)
