"""Rules on the experiment `recipes`: does a recipe use the far past, how good is it, what does it cost?

Written before its records, like those on survival in `claims.recipes`, whose words hold here too. What was
known is the screening: one seed, on the validation text. It chose the models that are compared.

Three rules were written anew when other models of the table had run, and before either side of most of their
comparisons had: those on true gaps, which differed from their base in the waves too and left out the chunk of
another novel, and the ladder, whose rungs had not the same parameters. A fourth, on half of the gap to RoPE,
was narrowed with its records in view: it held, and there was no gap.
"""

import pandas as pd

from sepnb.claims.evidence import RULES_OF_EVIDENCE, Comparison, _below_the_bar, _not_complete
from sepnb.claims.recipes import OURS, TABLE, ZERO, bins, compared, gaps, in_window, moved
from sepnb.claims.verdict import NOT_REPRODUCED, NOT_TESTABLE, REPRODUCED, Claim, Tables, Verdict

LONG = "experiment/extrapolation"
"""Its models trained at the long length tell whether the text has anything to give from far back."""


def _text_has_nothing_to_give(tables: Tables) -> Verdict | None:
    """An obstacle unless a model trained at eight lengths gains more than 0.02 bits per byte over its sliding
    window in the last bin: else the text, for models of this size, cannot judge whether any uses more."""
    table, trained_long = tables.get(LONG), ["rope-long", "separated-sinusoidal-long"]
    if obstacle := _not_complete(table, trained_long):
        return obstacle
    rows = table[table.method.isin(trained_long)].astype({"gap/native/8x": float})
    gap = rows.groupby("method")["gap/native/8x"].agg(lambda values: values.mean(skipna=False))
    if (gap < -0.02).any():
        return None
    shown = "; ".join(f"{method} {value:+.3f}" for method, value in gap.items())
    return Verdict(NOT_TESTABLE, f"no model trained at the long length gains more than 0.02: {shown}")


def rule_something_uses_the_far_past(tables: Tables) -> Verdict:
    """In the bin that ends at 8 times the trained length each of five models is less than +0.03 bits per byte
    above its own sliding window at stride 1, all keys in sight, and pays more than 0.02 more once its far
    past is foreign (gain): RoPE, separated sinusoidal with random offsets, the torus with them, the phase
    read with true gaps, and its dense twin. One comparison a model: of each seed the smaller of two margins,
    0.03 less the gap and the gain less 0.02; its mean is above 0. A gain does not tell use from being
    disturbed by foreign text. Not testable unless RoPE or separated sinusoidal, trained at eight lengths,
    gains more than 0.02 over its own sliding window there."""
    if obstacle := _text_has_nothing_to_give(tables):
        return obstacle
    users = (
        "rope",
        "separated-offsets",
        "separated-torus-offsets",
        "separated-phase-gaps",
        "dense-phase-gaps",
    )
    table = tables.get(TABLE)
    if obstacle := _not_complete(table, list(users)) or _below_the_bar(table, list(users), 3.35):
        return obstacle
    margins = pd.DataFrame({"survives": 0.03 - table["gap/native/8x"], "uses": table["gain/8x"] - 0.02})
    least = table.assign(margin=margins.astype(float).min(axis=1, skipna=False))
    return compared({TABLE: least}, [Comparison(f"{name}:margin", ZERO, low=0.0) for name in users])


def rule_true_gaps_teach_use(tables: Tables) -> Verdict:
    """Trained on two chunks of a novel at their true distance, separated sinusoidal with the phase read up to
    8 trained lengths, and the dense model with it, gain more from their far past than the same models trained
    on contiguous text, and more than trained with a second chunk of another novel (differences above 0), in
    the bins that end at 4 and at 8 times the trained length. Not testable unless RoPE or separated
    sinusoidal, trained at eight lengths, gains more than 0.02 over its own sliding window in the last bin."""
    if obstacle := _text_has_nothing_to_give(tables):
        return obstacle
    pairs = [
        Comparison(f"{name}-gaps:gain/{k}", f"{name}-{other}:gain/{k}", low=0.0)
        for name in ("separated-phase", "dense-phase")
        for other in ("long", "gaps-other")
        for k in ("4x", "8x")
    ]
    return compared(tables, pairs)


def rule_no_recipe_beats_a_window_on_rope(tables: Tables) -> Verdict:
    """In the bin that ends at 8 times the trained length four separated models pay more than RoPE whose
    queries are held to the last keys of one trained length (differences above 0): with random offsets, and
    with the phase read trained at true gaps, all keys in sight; with the torus and random offsets, and with
    the phase read alone, held to as many keys."""
    models = (
        "separated-offsets:native",
        "separated-torus-offsets:native-window",
        "separated-phase:native-window",
        "separated-phase-gaps:native",
    )
    return compared(tables, [Comparison(f"{m}/8x", "rope:native-window/8x", low=0.0) for m in models])


def rule_a_separated_model_stands_beside_rope(tables: Tables) -> Verdict:
    """With as many parameters as RoPE's model (within 1 % in the blocks), separated with the torus and the
    phase read up to 8 trained lengths, trained at true gaps, survives: less than +0.03 bits per byte above
    its own sliding window at stride 1, at 2, 4 and 8 times the trained length, all keys in sight. It pays
    less than 0.03 more for the same bytes at indices from 1,000,000 on than from 0 on. And it is less than
    +0.02 above RoPE inside the trained length, and in the last bin, all keys in sight, above RoPE with a
    window of one trained length."""
    model = "separated-torus-phase-long-gaps-wide"
    survives = gaps([model], "native", high=0.03) + moved([model], "1m", high=0.03)
    beside = in_window([(model, "rope")], high=0.02)
    beside.append(Comparison(f"{model}:native/8x", "rope:native-window/8x", high=0.02))
    return compared(tables, survives + beside)


def rule_separation_helps_the_survivor(tables: Tables) -> Verdict:
    """The same separated model is below the dense one with the phase read, trained at true gaps, which has
    8 % more parameters in its blocks: inside the trained length, and in the bin that ends at 8 times it, all
    keys in sight (differences below 0)."""
    ours, dense = "separated-torus-phase-long-gaps-wide", "dense-phase-gaps"
    last = Comparison(f"{ours}:native/8x", f"{dense}:native/8x", high=0.0)
    return compared(tables, [*in_window([(ours, dense)], high=0.0), last])


def rule_a_stream_of_its_own_helps_the_survivor(tables: Tables) -> Verdict:
    """With the torus, the phase read up to 8 trained lengths and true gaps in both, separated, as wide as
    dense and with fewer parameters, is below dense with the code added to the embedding: inside the trained
    length, and in the bin that ends at 8 times it, all keys in sight (differences below 0)."""
    ours, added = "separated-torus-phase-long-gaps", "sinusoidal-torus-phase-long-gaps"
    last = Comparison(f"{ours}:native/8x", f"{added}:native/8x", high=0.0)
    return compared(tables, [*in_window([(ours, added)], high=0.0), last])


def rule_far_distances_need_no_true_text(tables: Tables) -> Verdict:
    """With the phase read up to 8 trained lengths, trained on two distant chunks of which the second is of
    another novel, separated sinusoidal and dense are less than +0.03 bits per byte above their own sliding
    windows at stride 1, at 2, 4 and 8 times the trained length, with all keys in sight."""
    models = ["separated-phase-gaps-other", "dense-phase-gaps-other"]
    return compared(tables, gaps(models, "native", high=0.03))


def rule_random_offsets_are_free_in_window(tables: Tables) -> Verdict:
    """Inside the trained length random offsets cost separated and strict sinusoidal, and the separated torus,
    less than +0.03 bits per byte."""
    pairs = [
        ("separated-offsets", "separated-sinusoidal"),
        ("strict-offsets", "strict-sinusoidal"),
        ("separated-torus-offsets", "separated-torus"),
    ]
    return compared(tables, in_window(pairs, high=0.03))


def rule_true_gaps_are_free_in_window(tables: Tables) -> Verdict:
    """Inside the trained length true gaps cost separated sinusoidal with the phase read up to 8 trained
    lengths, and the dense model with it, less than +0.03 bits per byte."""
    pairs = [("separated-phase-gaps", "separated-phase-long"), ("dense-phase-gaps", "dense-phase-long")]
    return compared(tables, in_window(pairs, high=0.03))


def rule_the_phase_read_closes_half_of_the_gap_to_rope(tables: Tables) -> Verdict:
    """Inside the trained length, separated sinusoidal with the phase read up to the trained length is below
    the mean of separated sinusoidal and RoPE. Not testable unless RoPE is below separated sinusoidal there,
    by the same test: else there is no gap to close."""
    found = compared(tables, in_window([("separated-phase", "separated-sinusoidal+rope")], high=0.0))
    gap = compared(tables, in_window([("rope", "separated-sinusoidal")], high=0.0))
    if found.word not in (REPRODUCED, NOT_REPRODUCED) or gap.word == REPRODUCED:
        return found
    return Verdict(NOT_TESTABLE, f"no gap to close: {gap.detail}", found.numbers | gap.numbers, found.stale)


def rule_ladder_of_expressivity(tables: Tables) -> Verdict:
    """Inside the trained length, of models whose position heads see positions only, each rung is better than
    the one before (differences below 0), with no more parameters in its blocks and on the same tokens:
    position with position only (untied); with the cross terms of content and absolute position (strict), as
    many parameters; with the phase read too, content of the query with distance, in a narrower model; and
    RoPE in the sem heads, content with distance both ways, without cross terms, against the phase read in a
    model of the same width, which has more."""
    pairs = [
        ("strict-sinusoidal", "untied"),
        ("strict-phase-narrow", "strict-sinusoidal"),
        ("untied-rope", "strict-phase"),
    ]
    return compared(tables, in_window(pairs, high=0.0))


def rule_the_position_stream_matters_beside_rope(tables: Tables) -> Verdict:
    """Inside the trained length, separated sinusoidal with RoPE in all heads is below the dense model with
    RoPE alone, and separated sinusoidal with the phase read below the dense model with the phase read
    alone."""
    return compared(
        tables, in_window([("separated-rope", "rope"), ("separated-phase", "dense-phase")], high=0.0)
    )


STANDS_ON = (compared, bins, gaps, moved, in_window, _text_has_nothing_to_give, *RULES_OF_EVIDENCE)
_OURS = {"source": OURS, "needs": (TABLE,), "stands_on": STANDS_ON}
_CHANGED = _OURS | {"source": "ours, changed when some records were there"}

CLAIMS = (
    Claim(
        id="something-uses-the-far-past",
        statement="Models that survive past the trained length also depend on what lies further back than "
        "it: foreign text there costs them, whether they used what stood there or are disturbed by it.",
        rule=rule_something_uses_the_far_past,
        **_OURS | {"needs": (TABLE, LONG)},
    ),
    Claim(
        id="true-gaps-teach-use",
        statement="Training on two distant pieces of a novel at their true distance teaches a model to use "
        "the far past.",
        rule=rule_true_gaps_teach_use,
        **_CHANGED | {"needs": (TABLE, LONG)},
    ),
    Claim(
        id="no-recipe-beats-a-window-on-rope",
        statement="Separated models with a recipe, as wide as RoPE's, pay more at eight times the trained "
        "length than RoPE with a window, which needs no recipe.",
        rule=rule_no_recipe_beats_a_window_on_rope,
        **_OURS,
    ),
    Claim(
        id="a-separated-model-stands-beside-rope",
        statement="With as many parameters as RoPE, a separated model reads texts of eight times the trained "
        "length from index 0 with all keys in sight no worse than RoPE with a window, and texts of the "
        "trained length at index 1,000,000 as well as at 0.",
        rule=rule_a_separated_model_stands_beside_rope,
        **_OURS,
    ),
    Claim(
        id="separation-helps-the-survivor",
        statement="The separated model that is to survive pays fewer bits than a dense one with the same "
        "phase read and gaps, no code of positions and 8 % more parameters.",
        rule=rule_separation_helps_the_survivor,
        **_OURS,
    ),
    Claim(
        id="a-stream-of-its-own-helps-the-survivor",
        statement="What makes a model survive does so with fewer bits where position has dimensions of its "
        "own than where it is added to the meaning.",
        rule=rule_a_stream_of_its_own_helps_the_survivor,
        **_OURS,
    ),
    Claim(
        id="far-distances-need-no-true-text",
        statement="To bear far keys it is enough to have met their distances: what stands there need not "
        "belong to the text.",
        rule=rule_far_distances_need_no_true_text,
        **_OURS,
    ),
    Claim(
        id="random-offsets-are-free-in-window",
        statement="Random offsets cost nothing inside the trained length.",
        rule=rule_random_offsets_are_free_in_window,
        **_OURS,
    ),
    Claim(
        id="true-gaps-are-free-in-window",
        statement="Training on distant pieces costs nothing inside the trained length.",
        rule=rule_true_gaps_are_free_in_window,
        **_CHANGED,
    ),
    Claim(
        id="the-phase-read-closes-half-of-the-gap-to-rope",
        statement="What separated models lack against RoPE is a product of content and distance: a "
        "query-gated phase read closes at least half of the gap.",
        rule=rule_the_phase_read_closes_half_of_the_gap_to_rope,
        **_CHANGED,
    ),
    Claim(
        id="ladder-of-expressivity",
        statement="The more a score can say of content and position together, the better the model, at no "
        "more parameters: position with position, content with absolute position, content of the query with "
        "distance, RoPE.",
        rule=rule_ladder_of_expressivity,
        **_CHANGED,
    ),
    Claim(
        id="the-position-stream-matters-beside-rope",
        statement="Where the score already knows distances, a stream of absolute positions still helps.",
        rule=rule_the_position_stream_matters_beside_rope,
        **_OURS,
    ),
)
