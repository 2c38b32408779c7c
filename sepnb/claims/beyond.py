"""Rules on the experiment `extrapolation`: encodings by themselves, past the trained length (chapter 12).

Written before its records; gaps, bins and bounds as in `claims.extrapolation`.
"""

from sepnb.claims.evidence import _not_complete
from sepnb.claims.extrapolation import OURS, STANDS_ON, TABLE, against, gaps, over_oracle
from sepnb.claims.verdict import NOT_RUN, NOT_TESTABLE, Claim, Tables, Verdict


def rule_sinusoid_does_not_extrapolate(tables: Tables) -> Verdict:
    """Dense sinusoidal is more than +0.03 bits per byte above its own sliding window at stride 1, at 2, 4 and
    8 times the trained length."""
    return gaps(tables, over_oracle("sinusoidal", ["native"], low=0.03))


def rule_separation_helps_the_sinusoid(tables: Tables) -> Verdict:
    """The gap of separated sinusoidal to its own sliding window at stride 1 is smaller than that of dense
    sinusoidal to its own (difference below 0), at 2, 4 and 8 times the trained length."""
    return gaps(tables, against([("separated-sinusoidal:native", "sinusoidal:native")], high=0.0))


def rule_rope_struggles_beyond_length(tables: Tables) -> Verdict:
    """RoPE is more than +0.03 bits per byte above its own sliding window at stride 1, at 2, 4 and 8 times the
    trained length."""
    return gaps(tables, over_oracle("rope", ["native"], low=0.03))


def rule_rope_needs_a_window(tables: Tables) -> Verdict:
    """At 4 and 8 times the trained length RoPE is more than +0.03 bits per byte above its own sliding window
    at stride 1, and less than +0.03 above it once every query is held to the last keys of one trained
    length."""
    without = over_oracle("rope", ["native"], ("4x", "8x"), low=0.03)
    return gaps(tables, without + over_oracle("rope", ["native-window"], ("4x", "8x"), high=0.03))


def rule_alibi_flat_beyond_length(tables: Tables) -> Verdict:
    """ALiBi is less than +0.03 bits per byte above its own sliding window at stride 1, at 2, 4 and 8 times
    the trained length."""
    return gaps(tables, over_oracle("alibi", ["native"], high=0.03))


def rule_alibi_does_not_use_longer_context(tables: Tables) -> Verdict:
    """ALiBi is not more than 0.02 bits per byte below its own sliding window at stride 1, at 4 and 8 times
    the trained length; not testable unless one of the two models trained at the long length gains more than
    0.02 over its sliding window in the last bin, so that this text has something to give to longer
    contexts."""
    verdict = gaps(tables, over_oracle("alibi", ["native"], ("4x", "8x"), low=-0.02))
    if verdict.word in (NOT_RUN, NOT_TESTABLE):
        return verdict
    table, trained_long = tables[TABLE], ["rope-long", "separated-sinusoidal-long"]
    if obstacle := _not_complete(table, trained_long):
        return obstacle
    gaps_of = table[table.method.isin(trained_long)].groupby("method")["gap/native/8x"].mean().astype(float)
    if not gaps_of.min() < -0.02:
        shown = "; ".join(f"{method} {gap:+.3f}" for method, gap in gaps_of.items())
        return Verdict(NOT_TESTABLE, f"no model trained at the long length gains more than 0.02: {shown}")
    return verdict


def rule_expert_designed_encodings_mitigate(tables: Tables) -> Verdict:
    """The gaps of ALiBi and of RoPE to their own sliding windows at stride 1 are smaller than that of dense
    learned with its last row held (difference below 0), at 2, 4 and 8 times the trained length."""
    pairs = [(f"{name}:native", "learned:clamp") for name in ("alibi", "rope")]
    return gaps(tables, against(pairs, high=0.0))


def rule_rope_leads_more_on_longer_sequences(tables: Tables) -> Verdict:
    """The gap of RoPE to its own sliding window at stride 1 is smaller than that of dense sinusoidal, and
    than that of dense learned with its last row held (differences below 0), at 2, 4 and 8 times the trained
    length: what RoPE is ahead there, it is ahead by more than within its window."""
    pairs = [("rope:native", other) for other in ("sinusoidal:native", "learned:clamp")]
    return gaps(tables, against(pairs, high=0.0))


_FROM_THE_TABLE = {"needs": (TABLE,), "stands_on": STANDS_ON}
_ARTICLE = {"source": "article-positional-encoding", **_FROM_THE_TABLE}
_NOTES = {"source": "notes-positional-encoding", **_FROM_THE_TABLE}
_SEQPE = {"source": "seqpe-abstract", **_FROM_THE_TABLE}
_OURS = {"source": OURS, **_FROM_THE_TABLE}

CLAIMS = (
    Claim(
        id="expert-designed-encodings-mitigate",
        statement="Expert-designed encodings such as ALiBi and RoPE mitigate the limits of a table beyond "
        "the trained length.",
        rule=rule_expert_designed_encodings_mitigate,
        **_SEQPE,
    ),
    Claim(
        id="sinusoid-does-not-extrapolate",
        statement="Sinusoidal encoding has limitations with longer contexts.",
        rule=rule_sinusoid_does_not_extrapolate,
        **_ARTICLE,
    ),
    Claim(
        id="separation-helps-the-sinusoid",
        statement="With a sinusoid as well, the separated model loses less beyond the trained length than "
        "the dense one that adds it.",
        rule=rule_separation_helps_the_sinusoid,
        **_OURS,
    ),
    Claim(
        id="rope-struggles-beyond-length",
        statement="Models trained with RoPE struggle with sequences longer than those they were trained on.",
        rule=rule_rope_struggles_beyond_length,
        **_ARTICLE,
    ),
    Claim(
        id="rope-needs-a-window",
        statement="What breaks RoPE is the distance and the number of the keys: a window over the keys is "
        "enough to repair it.",
        rule=rule_rope_needs_a_window,
        **_OURS,
    ),
    Claim(
        id="rope-leads-more-on-longer-sequences",
        statement="Going from absolute encodings to RoPE has improved performance especially on longer "
        "sequences.",
        rule=rule_rope_leads_more_on_longer_sequences,
        **_ARTICLE,
    ),
    Claim(
        id="alibi-flat-beyond-length",
        statement="With ALiBi one trains on short sequences and reads longer ones.",
        rule=rule_alibi_flat_beyond_length,
        **_NOTES,
    ),
    Claim(
        id="alibi-does-not-use-longer-context",
        statement="Given a longer context than in training, ALiBi might not use more of it than it was "
        "trained on.",
        rule=rule_alibi_does_not_use_longer_context,
        **_NOTES,
    ),
)
