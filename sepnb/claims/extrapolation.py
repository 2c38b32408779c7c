"""Rules on the experiment `extrapolation`: the slides' extrapolators and the separation (chapters 9 and 11).

Written before its records. A reading's *gap* is its bits per byte less those of the same model through a
window of the trained length that slides byte by byte, over the same bytes: so read, the model never leaves
what it was trained on. Bins end at 2, 4 and 8 times the trained length. All bounds are in bits per byte and
stand in the rules.
"""

import math
from collections.abc import Callable, Sequence

import pandas as pd

from sepnb.claims.evidence import RULES_OF_EVIDENCE, Comparison, _below_the_bar, _not_complete, judge
from sepnb.claims.verdict import Claim, Tables, Verdict

OURS = "ours, written before the records"
TABLE = "experiment/extrapolation"

FIVE = ("sinusoidal", "fourier", "cyclic", "learned", "alibi")
"""The slides' equations (2) to (6), by the names of `sepnb.extrapolators`."""

CONTROLS = ("clamp", "wrap", "reflect", "zero", "interpolate")

FAR = ("2x", "4x", "8x")


def gaps(tables: Tables, comparisons: list[Comparison]) -> Verdict:
    """Judge comparisons of gaps, named `model:reading:bin`; the oracle's own is zero. See `_judged`."""

    def gap(runs: pd.DataFrame, reading: str, place: str) -> pd.Series:
        if reading == "oracle":
            return pd.Series(0.0, index=runs.index)
        return runs[f"gap/{reading}/{place}"]

    return _judged(tables, comparisons, gap)


def levels(tables: Tables, comparisons: list[Comparison]) -> Verdict:
    """Judge comparisons of bits per byte on the windows that all readings of a model share. See `_judged`."""
    return _judged(tables, comparisons, lambda runs, reading, place: runs[f"{reading}/{place}"])


def _judged(
    tables: Tables,
    comparisons: list[Comparison],
    score: Callable[[pd.DataFrame, str, str], pd.Series],
) -> Verdict:
    """The verdict over a family of comparisons; every model compared must clear, inside its trained length,
    the bar of `in_window`, a mean below 3.35 bits per byte: past it, what a model knew is the question."""
    table = tables.get(TABLE)
    names = list(dict.fromkeys(name for pair in comparisons for name in (pair.a, pair.b)))
    models = list(dict.fromkeys(name.split(":")[0] for name in names))
    obstacle = _not_complete(table, models) or _below_the_bar(table, models, 3.35)
    if obstacle:
        return obstacle
    read = []
    for name in names:
        model, reading, place = name.split(":")
        runs = table[table.method == model]
        values = score(runs, reading, place)
        read += [(name, seed, "ok", value) for seed, value in zip(runs["seed"], values, strict=True)]
    columns = ["method", "seed", "status", "bits_per_byte"]
    return judge(pd.DataFrame(read, columns=columns), comparisons, bar=math.inf)


def over_oracle(
    model: str, readings: Sequence[str], places: Sequence[str] = FAR, **bounds: float
) -> list[Comparison]:
    """The gap of each reading of a model in each bin, as comparisons for `gaps`, all with the same bounds."""
    return [
        Comparison(f"{model}:{reading}:{k}", f"{model}:oracle:{k}", **bounds)
        for reading in readings
        for k in places
    ]


def against(
    pairs: Sequence[tuple[str, str]], places: Sequence[str] = FAR, **bounds: float
) -> list[Comparison]:
    """Pairs of `model:reading` in each bin, as comparisons, all with the same bounds."""
    return [Comparison(f"{a}:{k}", f"{b}:{k}", **bounds) for a, b in pairs for k in places]


# --- the five extrapolators


def rule_extrapolation_sinusoidal_survives(tables: Tables) -> Verdict:
    """Separated learned under equation (2), corrected, is less than +0.03 bits per byte above its own sliding
    window at stride 1, at 2, 4 and 8 times the trained length."""
    return gaps(tables, over_oracle("separated-learned", ["sinusoidal"], high=0.03))


def rule_extrapolation_fourier_survives(tables: Tables) -> Verdict:
    """Separated learned under equation (3), corrected, is less than +0.03 bits per byte above its own sliding
    window at stride 1, at 2, 4 and 8 times the trained length."""
    return gaps(tables, over_oracle("separated-learned", ["fourier"], high=0.03))


def rule_extrapolation_cyclic_survives(tables: Tables) -> Verdict:
    """Separated learned under equation (4), corrected, is less than +0.03 bits per byte above its own sliding
    window at stride 1, at 2, 4 and 8 times the trained length."""
    return gaps(tables, over_oracle("separated-learned", ["cyclic"], high=0.03))


def rule_extrapolation_learned_survives(tables: Tables) -> Verdict:
    """Separated learned under equation (5), corrected, is less than +0.03 bits per byte above its own sliding
    window at stride 1, at 2, 4 and 8 times the trained length."""
    return gaps(tables, over_oracle("separated-learned", ["learned"], high=0.03))


def rule_extrapolation_alibi_survives(tables: Tables) -> Verdict:
    """Separated learned under equation (6), corrected, is less than +0.03 bits per byte above its own sliding
    window at stride 1, at 2, 4 and 8 times the trained length."""
    return gaps(tables, over_oracle("separated-learned", ["alibi"], high=0.03))


def rule_the_five_extrapolate(tables: Tables) -> Verdict:
    """Separated learned under each of equations (2) to (6), corrected, is less than +0.03 bits per byte above
    its own sliding window at stride 1, at 2, 4 and 8 times the trained length: one family of fifteen."""
    return gaps(tables, over_oracle("separated-learned", FIVE, high=0.03))


def rule_separation_makes_extrapolation_easier(tables: Tables) -> Verdict:
    """Under each of equations (2) to (6), corrected, the gap of separated learned to its own sliding window
    at stride 1 is smaller than that of dense learned to its own (difference below 0), at 2 and at 8 times the
    trained length: one family of ten."""
    pairs = [(f"separated-learned:{name}", f"learned:{name}") for name in FIVE]
    return gaps(tables, against(pairs, ("2x", "8x"), high=0.0))


def rule_only_the_position_needs_extrapolating(tables: Tables) -> Verdict:
    """Separated and strict sinusoidal, whose rows are known at every position, are less than +0.03 bits per
    byte above their own sliding windows at stride 1, at 2, 4 and 8 times the trained length."""
    separated, strict = (
        over_oracle(f"{kind}-sinusoidal", ["native"], high=0.03) for kind in ("separated", "strict")
    )
    return gaps(tables, separated + strict)


def rule_wrap_in_disguise(tables: Tables) -> Verdict:
    """On separated learned, the Fourier extrapolation with all its components and the cyclic one as printed
    each lie within 0.05 bits per byte of repeating the table, at 2, 4 and 8 times the trained length."""
    names = ("fourier-full", "cyclic-literal")
    pairs = [(f"separated-learned:{name}", "separated-learned:wrap") for name in names]
    return levels(tables, against(pairs, low=-0.05, high=0.05))


def rule_clamp_in_disguise(tables: Tables) -> Verdict:
    """On separated learned, the ALiBi-like and the learned extrapolation, corrected, each lie within 0.10
    bits per byte of holding the last row, at 2, 4 and 8 times the trained length."""
    pairs = [(f"separated-learned:{name}", "separated-learned:clamp") for name in ("alibi", "learned")]
    return levels(tables, against(pairs, low=-0.10, high=0.10))


def rule_mask_rescues_no_extrapolator(tables: Tables) -> Verdict:
    """Separated learned under each of equations (2) to (6), corrected, with every query held to the last keys
    of one trained length, is still more than +0.03 bits per byte above its own sliding window at stride 1, at
    2, 4 and 8 times the trained length."""
    masked = [f"{name}-window" for name in FIVE]
    return gaps(tables, over_oracle("separated-learned", masked, low=0.03))


def rule_lookup_tables_limit_extrapolation(tables: Tables) -> Verdict:
    """Dense learned is more than +0.03 bits per byte above its own sliding window at stride 1, at 2 and at 8
    times the trained length, under each of equations (2) to (6), corrected, and each of the controls clamp,
    wrap, reflect, zero and interpolate."""
    return gaps(tables, over_oracle("learned", FIVE + CONTROLS, ("2x", "8x"), low=0.03))


# --- the strict variant


def rule_strict_as_good_as_separated(tables: Tables) -> Verdict:
    """Inside the trained length strict minus separated is below +0.02 bits per byte, for the learned table
    and for the sinusoid."""
    pairs = [(f"strict-{name}", f"separated-{name}") for name in ("learned", "sinusoidal")]
    return judge(tables.get(TABLE), [Comparison(a, b, high=0.02) for a, b in pairs], bar=3.35)


STANDS_ON = (gaps, levels, _judged, over_oracle, against, *RULES_OF_EVIDENCE)
_FROM_THE_TABLE = {"needs": (TABLE,), "stands_on": STANDS_ON}
_SLIDES = {"source": "slides-separation", **_FROM_THE_TABLE}
_SEQPE = {"source": "seqpe-abstract", **_FROM_THE_TABLE}
_OURS = {"source": OURS, **_FROM_THE_TABLE}

CLAIMS = (
    Claim(
        id="the-five-extrapolate",
        statement="Five approaches extrapolate the positional embeddings beyond the training window.",
        rule=rule_the_five_extrapolate,
        **_SLIDES,
    ),
    Claim(
        id="extrapolation-sinusoidal-survives",
        statement="Sinusoidal extrapolation, equation (2), generates the positions beyond the window with "
        "sines and cosines of the amplitude of the learned embeddings.",
        rule=rule_extrapolation_sinusoidal_survives,
        **_SLIDES,
    ),
    Claim(
        id="extrapolation-fourier-survives",
        statement="Fourier extrapolation, equation (3), rebuilds the positions beyond the window from the "
        "dominant frequencies of the learned embeddings.",
        rule=rule_extrapolation_fourier_survives,
        **_SLIDES,
    ),
    Claim(
        id="extrapolation-cyclic-survives",
        statement="Cyclic linear extrapolation, equation (4), continues the window by repeating it with a "
        "linear shift.",
        rule=rule_extrapolation_cyclic_survives,
        **_SLIDES,
    ),
    Claim(
        id="extrapolation-learned-survives",
        statement="Learned extrapolation, equation (5), continues the window by a network that learns a "
        "continuous transformation of normalised positions.",
        rule=rule_extrapolation_learned_survives,
        **_SLIDES,
    ),
    Claim(
        id="extrapolation-alibi-survives",
        statement="The ALiBi-like extrapolation, equation (6), continues the window by attenuating the "
        "embedding of its last position.",
        rule=rule_extrapolation_alibi_survives,
        **_SLIDES,
    ),
    Claim(
        id="separation-makes-extrapolation-easier",
        statement="The separation has a fundamental advantage for sequence lengths not seen in training: the "
        "same extrapolation loses less than in the dense model that adds its learned table.",
        rule=rule_separation_makes_extrapolation_easier,
        **_SLIDES,
    ),
    Claim(
        id="only-the-position-needs-extrapolating",
        statement="Beyond the trained length only the positional part needs to be extrapolated. (A sinusoid "
        "needs no extrapolation, so that a separated model filled with one should read on.)",
        rule=rule_only_the_position_needs_extrapolating,
        **_SLIDES,
    ),
    Claim(
        id="wrap-in-disguise",
        statement="The Fourier and the cyclic extrapolation do what repeating the table does.",
        rule=rule_wrap_in_disguise,
        **_OURS,
    ),
    Claim(
        id="clamp-in-disguise",
        statement="The ALiBi-like and the learned extrapolation do about what holding the last row does.",
        rule=rule_clamp_in_disguise,
        **_OURS,
    ),
    Claim(
        id="mask-rescues-no-extrapolator",
        statement="It is not the number of visible keys that breaks the five extrapolators: a window over "
        "the keys rescues none of them.",
        rule=rule_mask_rescues_no_extrapolator,
        **_OURS,
    ),
    Claim(
        id="lookup-tables-limit-extrapolation",
        statement="The fixed-size table of a learned encoding limits extrapolation beyond the trained "
        "length, whichever rule fills its missing rows without training.",
        rule=rule_lookup_tables_limit_extrapolation,
        **_SEQPE,
    ),
    Claim(
        id="strict-as-good-as-separated",
        statement="A position stream that never hears the text costs nothing inside the trained length: "
        "strict is as good as separated.",
        rule=rule_strict_as_good_as_separated,
        **_OURS,
    ),
)
