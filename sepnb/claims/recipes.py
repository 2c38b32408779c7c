"""Rules on the experiment `recipes`: what makes a model survive past its trained length (chapter 12).

Written before its records. A reading's *gap* is its bits per byte less those of the same model through a
window of the trained length that slides byte by byte, over the same bytes. The *gain* is what a model pays
more once the text further back than a trained length is that of another novel. Bins end at 2, 4 and 8 times
the trained length. All bounds are in bits per byte and stand in the rules, and so do the models compared: the
commit that last touched a rule is the commit that last changed either.
"""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from sepnb.claims.evidence import RULES_OF_EVIDENCE, Comparison, _below_the_bar, _not_complete, _scores, judge
from sepnb.claims.verdict import NOT_RUN, NOT_TESTABLE, Claim, Tables, Verdict

OURS = "ours, written before the records"
TABLE = "experiment/recipes"
ZERO = "zero"


def compared(tables: Tables, comparisons: list[Comparison]) -> Verdict:
    """Judge comparisons of columns, named `model:column`, or `one+other:column` for the mean of two models;
    `zero` is 0. Every model compared must clear, inside its trained length, the bar of `in_window`, a mean
    below 3.35 bits per byte: past it, what a model knew is the question."""
    table = tables.get(TABLE)
    names = list(dict.fromkeys(name for pair in comparisons for name in (pair.a, pair.b)))
    models = list(dict.fromkeys(m for n in names if n != ZERO for m in n.split(":")[0].split("+")))
    obstacle = _not_complete(table, models) or _below_the_bar(table, models, 3.35)
    if obstacle:
        return obstacle
    seeds = sorted(set(table.loc[table["method"].isin(models), "seed"]))

    def scores(name: str) -> np.ndarray:
        if name == ZERO:
            return np.zeros(len(seeds))
        of, column = name.split(":")
        return np.mean(list(_scores(table, of.split("+"), column).values()), axis=0)

    read = [
        (name, seed, "ok", value) for name in names for seed, value in zip(seeds, scores(name), strict=True)
    ]
    columns = ["method", "seed", "status", "bits_per_byte"]
    return judge(pd.DataFrame(read, columns=columns), comparisons, bar=math.inf)


def bins() -> tuple[str, ...]:
    """The bins past the trained length, by the multiple of it at which each ends."""
    return ("2x", "4x", "8x")


def gaps(models: Sequence[str], reading: str, **bounds: float) -> list[Comparison]:
    """The gap of one reading of each model in each bin, as comparisons with the same bounds."""
    return [Comparison(f"{model}:gap/{reading}/{k}", ZERO, **bounds) for model in models for k in bins()]


def moved(models: Sequence[str], start: str, **bounds: float) -> list[Comparison]:
    """What the same bytes cost each model more at indices from `start` on than from 0 on."""
    return [Comparison(f"{model}:native-at-{start}", f"{model}:native/1x", **bounds) for model in models]


def in_window(pairs: Sequence[tuple[str, str]], **bounds: float) -> list[Comparison]:
    """Pairs of models inside the trained length, as comparisons with the same bounds."""
    return [Comparison(f"{a}:bits_per_byte", f"{b}:bits_per_byte", **bounds) for a, b in pairs]


def rule_random_offsets_survive(tables: Tables) -> Verdict:
    """Separated and strict sinusoidal, trained at random offsets that cover all indices read, are less than
    +0.03 bits per byte above their own sliding windows at stride 1, at 2, 4 and 8 times the trained length,
    with all keys in sight."""
    return compared(tables, gaps(["separated-offsets", "strict-offsets"], "native", high=0.03))


def rule_random_offsets_and_a_window_survive(tables: Tables) -> Verdict:
    """The same two models, each query held to the last keys of one trained length, are less than +0.03 above
    their own sliding windows at stride 1, at 2, 4 and 8 times the trained length."""
    return compared(tables, gaps(["separated-offsets", "strict-offsets"], "native-window", high=0.03))


def rule_the_encoding_makes_extrapolation_fail(tables: Tables) -> Verdict:
    """With the encoding as it was and only the training changed, to random offsets that cover all indices
    read, separated sinusoidal stays more than +0.03 bits per byte above its own sliding window at stride 1,
    at 2, 4 and 8 times the trained length, each query held to the last keys of one trained length, so that
    neither the number of the keys nor their distance is new."""
    return compared(tables, gaps(["separated-offsets"], "native-window", low=0.03))


def rule_covered_indices_are_no_extrapolation(tables: Tables) -> Verdict:
    """Trained at random offsets, separated and strict sinusoidal pay more than 0.03 bits per byte more for
    the same bytes at indices from 1,000,000 on, far past the covered ones, than from 0 on."""
    return compared(tables, moved(["separated-offsets", "strict-offsets"], "1m", low=0.03))


def rule_the_torus_and_a_window_reach_the_oracle(tables: Tables) -> Verdict:
    """With no wave longer than twice the trained length, random offsets, and each query held to the last keys
    of one trained length, separated sinusoidal is less than +0.05 bits per byte above its own sliding window
    at stride 1, at 2, 4 and 8 times the trained length; and the same bytes cost less than 0.05 more at
    indices from 1,000,000 on, which no offset covered, than from 0 on."""
    models = ["separated-torus-offsets"]
    window = gaps(models, "native-window", high=0.05)
    return compared(tables, window + moved(models, "1m", high=0.05))


def rule_the_phase_read_survives(tables: Tables) -> Verdict:
    """With the phase read up to the trained length and no other change, the dense model without any other
    position, and separated sinusoidal, are less than +0.03 bits per byte above their own sliding windows at
    stride 1, at 2, 4 and 8 times the trained length, with all keys in sight."""
    return compared(tables, gaps(["dense-phase", "separated-phase"], "native", high=0.03))


def rule_the_phase_read_with_true_gaps_survives(tables: Tables) -> Verdict:
    """With the phase read up to 8 trained lengths, trained on two chunks at their true distance, the dense
    model without any other position, and separated sinusoidal, are less than +0.03 bits per byte above their
    own sliding windows at stride 1, at 2, 4 and 8 times the trained length, with all keys in sight."""
    return compared(tables, gaps(["dense-phase-gaps", "separated-phase-gaps"], "native", high=0.03))


def rule_the_toeplitz_clamp_frees_of_the_index(tables: Tables) -> Verdict:
    """Trained with the Toeplitz clamp of weight 0.1 and without random offsets, the untied model with a
    constant pos stream pays less than 0.03 bits per byte more for the same bytes at indices from 1,000,000 on
    than from 0 on; not testable unless without the clamp it pays more than 0.03."""
    verdict = compared(tables, moved(["untied-constant-clamp"], "1m", high=0.03))
    if verdict.word in (NOT_RUN, NOT_TESTABLE):
        return verdict
    table = tables[TABLE]
    without = ["untied-constant"]
    if obstacle := _not_complete(table, without) or _below_the_bar(table, without, 3.35):
        return obstacle
    runs = table[table.method == "untied-constant"].astype({"native-at-1m": float, "native/1x": float})
    cost = (runs["native-at-1m"] - runs["native/1x"]).mean()
    if not cost > 0.03:
        return Verdict(NOT_TESTABLE, f"without the clamp the far index costs {cost:+.3f}: nothing to repair")
    return verdict


def rule_the_toeplitz_clamp_survives(tables: Tables) -> Verdict:
    """Trained with the Toeplitz clamp of weight 0.1 and without random offsets, the untied model with a
    constant pos stream is less than +0.03 bits per byte above its own sliding window at stride 1, at 2, 4 and
    8 times the trained length, with all keys in sight."""
    return compared(tables, gaps(["untied-constant-clamp"], "native", high=0.03))


def rule_separation_makes_recipes_easier(tables: Tables) -> Verdict:
    """Trained at the same random offsets, separated sinusoidal is less far above its own sliding window at
    stride 1 than dense sinusoidal above its own (difference below 0), at 2, 4 and 8 times the trained length,
    with all keys in sight."""
    pairs = [
        Comparison(f"separated-offsets:gap/native/{k}", f"sinusoidal-offsets:gap/native/{k}", high=0.0)
        for k in bins()
    ]
    return compared(tables, pairs)


def rule_log_n_helps_past_the_length(tables: Tables) -> Verdict:
    """In the last bin, multiplying the logits by ln n / ln L (n keys in sight, L the trained length) lowers
    the bits per byte of RoPE, of the phase read in its place, and of separated sinusoidal with random
    offsets."""
    models = ["rope", "dense-phase", "separated-offsets"]
    return compared(tables, [Comparison(f"{m}:native-log/8x", f"{m}:native/8x", high=0.0) for m in models])


STANDS_ON = (compared, bins, gaps, moved, in_window, *RULES_OF_EVIDENCE)
_OURS = {"source": OURS, "needs": (TABLE,), "stands_on": STANDS_ON}

CLAIMS = (
    Claim(
        id="random-offsets-survive",
        statement="A sinusoid in dimensions of its own, trained at random offsets, reads texts of eight "
        "times the trained length as well as through a sliding window.",
        rule=rule_random_offsets_survive,
        **_OURS,
    ),
    Claim(
        id="random-offsets-and-a-window-survive",
        statement="Trained at random offsets it survives at least where each query sees no more keys than in "
        "training.",
        rule=rule_random_offsets_and_a_window_survive,
        **_OURS,
    ),
    Claim(
        id="the-encoding-makes-extrapolation-fail",
        source="notes-positional-encoding",
        statement="The choice of the position encoding is what makes extrapolation fail.",
        rule=rule_the_encoding_makes_extrapolation_fail,
        needs=(TABLE,),
        stands_on=STANDS_ON,
    ),
    Claim(
        id="covered-indices-are-no-extrapolation",
        statement="Random offsets cover indices and do not extrapolate: past the covered ones the model "
        "fails.",
        rule=rule_covered_indices_are_no_extrapolation,
        **_OURS,
    ),
    Claim(
        id="the-torus-and-a-window-reach-the-oracle",
        statement="A sinusoid without slow waves, random offsets and a window make a model that survives to "
        "eight trained lengths, and at index 1,000,000 inside the trained length, with an ordinary cache.",
        rule=rule_the_torus_and_a_window_reach_the_oracle,
        **_OURS,
    ),
    Claim(
        id="the-phase-read-survives",
        statement="A score that reads distances by waves which the content of the query chooses survives "
        "past the trained length.",
        rule=rule_the_phase_read_survives,
        **_OURS,
    ),
    Claim(
        id="the-phase-read-with-true-gaps-survives",
        statement="Trained on two pieces of a text at a far distance, a model that reads distances by waves "
        "survives past the trained length with all keys in sight.",
        rule=rule_the_phase_read_with_true_gaps_survives,
        **_OURS,
    ),
    Claim(
        id="the-toeplitz-clamp-frees-of-the-index",
        statement="Teaching the position scores of far indices what those of near ones say makes a model "
        "indifferent to where a text begins, without random offsets.",
        rule=rule_the_toeplitz_clamp_frees_of_the_index,
        **_OURS,
    ),
    Claim(
        id="the-toeplitz-clamp-survives",
        statement="With position scores that are constant past the last trained distance a model survives "
        "past the trained length.",
        rule=rule_the_toeplitz_clamp_survives,
        **_OURS,
    ),
    Claim(
        id="separation-makes-recipes-easier",
        statement="The same recipe carries a separated model further than a dense one.",
        rule=rule_separation_makes_recipes_easier,
        **_OURS,
    ),
    Claim(
        id="log-n-helps-past-the-length",
        statement="Logits that grow with the logarithm of the number of keys help past the trained length.",
        rule=rule_log_n_helps_past_the_length,
        **_OURS,
    ),
)
