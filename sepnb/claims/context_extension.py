"""Rules on the experiment `context_extension`: other frequencies for a trained RoPE model (chapter 6).

Written before its records. *Frozen* is read under the extension without training, *tuned* after a twentieth
of the steps at four times the trained length, 4 L; both with a factor of 4. The oracle of a tuned model is
that model itself, with the same weights and frequencies, through a window of the trained length L that slides
byte by byte over the same bytes: what it pays less than that is what it takes from further back, and not what
the tuning taught it. Bins end at 2, 4, 8 and 16 times the trained length. All bounds are in bits per byte and
stand in the rules.
"""

from sepnb.claims import recipes
from sepnb.claims.evidence import RULES_OF_EVIDENCE, Comparison
from sepnb.claims.recipes_quality import LONG, _text_has_nothing_to_give
from sepnb.claims.verdict import Claim, Tables, Verdict

OURS = "ours, written before the records"
TABLE = "experiment/context_extension"


def extensions() -> tuple[str, ...]:
    """The methods that change frequencies."""
    return ("position-interpolation", "ntk-aware", "ntk-by-parts", "yarn", "llama3", "raised-base")


def compared(tables: Tables, comparisons: list[Comparison]) -> Verdict:
    """As `recipes.compared`, on the table of this experiment; its `bits_per_byte` is that of the plain model
    inside its trained length, which must clear the bar of `in_window`."""
    return recipes.compared({recipes.TABLE: tables.get(TABLE)}, comparisons)


def rule_ntk_frozen_helps(tables: Tables) -> Verdict:
    """NTK-aware, frozen, pays less than plain RoPE (difference below 0) in the bins that end at 2 and 4 times
    the trained length."""
    return compared(
        tables, [Comparison(f"ntk-aware:frozen/{k}", f"rope:frozen/{k}", high=0.0) for k in ("2x", "4x")]
    )


def rule_pi_frozen_costs_inside(tables: Tables) -> Verdict:
    """Position interpolation, frozen, pays more than 0.03 bits per byte more than plain RoPE inside the
    trained length, and NTK-aware, frozen, pays less there than position interpolation (difference below
    0)."""
    return compared(
        tables,
        [
            Comparison("position-interpolation:frozen/1x", "rope:frozen/1x", low=0.03),
            Comparison("ntk-aware:frozen/1x", "position-interpolation:frozen/1x", high=0.0),
        ],
    )


def rule_yarn_wins_frozen(tables: Tables) -> Verdict:
    """YaRN, frozen, pays less than every other extension, frozen (difference below 0), in the bin that ends
    at 4 times the trained length."""
    others = [name for name in extensions() if name != "yarn"]
    return compared(tables, [Comparison("yarn:frozen/4x", f"{name}:frozen/4x", high=0.0) for name in others])


def rule_frozen_extension_beats_the_window(tables: Tables) -> Verdict:
    """In the bin that ends at 4 times the trained length YaRN and NTK-aware, frozen, pay less (difference
    below 0) than plain RoPE with every query held to the last keys of one trained length."""
    return compared(
        tables,
        [Comparison(f"{m}:frozen/4x", "rope:frozen-window/4x", high=0.0) for m in ("yarn", "ntk-aware")],
    )


def rule_the_window_improves_plain_rope(tables: Tables) -> Verdict:
    """Plain RoPE, not tuned, pays less with every query held to the last keys of one trained length than with
    all keys in sight (difference below 0), in all bins that end at 2 to 16 times that length."""
    return compared(
        tables,
        [
            Comparison(f"rope:frozen-window/{k}", f"rope:frozen/{k}", high=0.0)
            for k in ("2x", "4x", "8x", "16x")
        ],
    )


def rule_tuned_extensions_reach_the_tuned_length(tables: Tables) -> Verdict:
    """Position interpolation, NTK-aware, NTK-by-parts and YaRN, tuned, are less than +0.03 bits per byte
    above their own oracle in the bins that end at 2 and 4 times the trained length, which the tuning has
    shown."""
    methods = ("position-interpolation", "ntk-aware", "ntk-by-parts", "yarn")
    return compared(
        tables,
        [
            Comparison(f"{m}:tight/tuned/{k}", f"{m}:tight/tuned-oracle/{k}", high=0.03)
            for m in methods
            for k in ("2x", "4x")
        ],
    )


def rule_ntk_tuned_reads_on(tables: Tables) -> Verdict:
    """NTK-aware and YaRN, tuned, are less than +0.03 bits per byte above their own oracle in the bins that
    end at 8 and 16 times the trained length, past what the tuning has shown."""
    return compared(
        tables,
        [
            Comparison(f"{m}:tight/tuned/{k}", f"{m}:tight/tuned-oracle/{k}", high=0.03)
            for m in ("ntk-aware", "yarn")
            for k in ("8x", "16x")
        ],
    )


def rule_tuning_plain_rope_is_enough(tables: Tables) -> Verdict:
    """Plain RoPE, tuned, pays less than 0.03 bits per byte more than each extension, tuned, in the bin that
    ends at 4 times the trained length."""
    return compared(
        tables, [Comparison("rope:tuned/4x", f"{name}:tuned/4x", high=0.03) for name in extensions()]
    )


def rule_a_tuned_extension_uses_longer_contexts(tables: Tables) -> Verdict:
    """YaRN and NTK-aware, tuned, pay less than the same tuned model that never sees more than one trained
    length, its own oracle (difference below 0), in the bin that ends at 4 times that length. Not testable
    unless RoPE or separated sinusoidal, trained at eight lengths, gains more than 0.02 over its own sliding
    window in the bin that ends there."""
    if obstacle := _text_has_nothing_to_give(tables):
        return obstacle
    return compared(
        tables,
        [
            Comparison(f"{m}:tight/tuned/4x", f"{m}:tight/tuned-oracle/4x", high=0.0)
            for m in ("yarn", "ntk-aware")
        ],
    )


STANDS_ON = (compared, extensions, recipes.compared, *RULES_OF_EVIDENCE)
_FROM_THE_TABLE = {"needs": (TABLE,), "stands_on": STANDS_ON}
_ARTICLE = {"source": "article-positional-encoding", **_FROM_THE_TABLE}
_OURS = {"source": OURS, **_FROM_THE_TABLE}

CLAIMS = (
    Claim(
        id="ntk-frozen-helps",
        statement="NTK scaling without fine-tuning shows some improvement past the trained length.",
        rule=rule_ntk_frozen_helps,
        **_ARTICLE,
    ),
    Claim(
        id="the-window-improves-plain-rope",
        statement="Approximate attention, like a sliding window, offers improvements past the trained "
        "length.",
        rule=rule_the_window_improves_plain_rope,
        **_ARTICLE,
    ),
    Claim(
        id="tuned-extensions-reach-the-tuned-length",
        statement="Position interpolation and adaptive scaling work well up to the lengths that they are "
        "fine-tuned for.",
        rule=rule_tuned_extensions_reach_the_tuned_length,
        **_ARTICLE,
    ),
    Claim(
        id="ntk-tuned-reads-on",
        statement="NTK-based methods generalise to lengths that the fine-tuning has not shown.",
        rule=rule_ntk_tuned_reads_on,
        **_ARTICLE,
    ),
    Claim(
        id="pi-frozen-costs-inside",
        statement="Position interpolation slows all frequencies and so costs inside the trained length "
        "unless it is tuned; NTK-aware scaling, which keeps the fast ones, costs less.",
        rule=rule_pi_frozen_costs_inside,
        **_OURS,
    ),
    Claim(
        id="yarn-wins-frozen",
        statement="Of the extensions without tuning YaRN is the best at the length it is built for.",
        rule=rule_yarn_wins_frozen,
        **_OURS,
    ),
    Claim(
        id="frozen-extension-beats-the-window",
        statement="Without tuning an extension does more for a trained RoPE model than a window at "
        "evaluation.",
        rule=rule_frozen_extension_beats_the_window,
        **_OURS,
    ),
    Claim(
        id="tuning-plain-rope-is-enough",
        statement="Up to the length of the tuning, plain RoPE tuned equally is as good as any extension.",
        rule=rule_tuning_plain_rope_is_enough,
        **_OURS,
    ),
    Claim(
        id="a-tuned-extension-uses-longer-contexts",
        statement="After a little tuning at the longer length the longer context is used.",
        rule=rule_a_tuned_extension_uses_longer_contexts,
        source=OURS,
        needs=(TABLE, LONG),
        stands_on=(*STANDS_ON, _text_has_nothing_to_give),
    ),
)
