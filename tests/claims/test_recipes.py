"""Verdicts on the recipes, from invented tables: every word, from every rule."""

import numpy as np
import pandas as pd
import pytest

from sepnb import claims
from sepnb.claims import recipes, recipes_quality
from sepnb.experiments.extrapolation import BEYOND
from sepnb.experiments.recipe_methods import RECIPES
from sepnb.experiments.recipes import RecipeRun

FAR = recipes.bins()
CLAIMS = (*recipes.CLAIMS, *recipes_quality.CLAIMS)
USERS = [
    "rope",
    "separated-offsets",
    "separated-torus-offsets",
    "separated-phase-gaps",
    "dense-phase-gaps",
]
WINNER = "separated-torus-phase-long-gaps-wide"
NARROW = WINNER.removesuffix("-wide")
OTHERS = ["separated-phase-gaps-other", "dense-phase-gaps-other"]
IN_WINDOW = {name: 2.45 for name in RECIPES} | {
    "rope": 2.20,
    "separated-rope": 2.10,
    "separated-phase": 2.25,
    "dense-phase": 2.30,
    "strict-sinusoidal": 2.43,
    "strict-phase": 2.33,
    "strict-phase-narrow": 2.35,
    "untied": 2.55,
    "untied-rope": 2.25,
    WINNER: 2.18,
}


def world(changes: dict) -> dict[tuple[str, str], float]:
    """Every column of every recipe; `changes` by (model, column), or (model, prefix/) for all three bins."""
    made = {}
    for name in RECIPES:
        made[name, "bits_per_byte"] = IN_WINDOW[name]
        made[name, "native/1x"] = 2.5
        made[name, "native-at-1m"] = 2.5
        for k in FAR:
            for reading in ("native", "native-window"):
                made[name, f"gap/{reading}/{k}"] = 0.0
                made[name, f"{reading}/{k}"] = 2.2 if name == "rope" else 2.5
            made[name, f"native-log/{k}"] = made[name, f"native/{k}"] - 0.05
            made[name, f"gain/{k}"] = 0.05
    for (name, column), value in changes.items():
        columns = [f"{column}{k}" for k in FAR] if column.endswith("/") else [column]
        for column in columns:
            assert (name, column) in made
            made[name, column] = value
    return made


def table(changes: dict, *, seeds: int = 6, noise: float = 0.002, status: str = "ok") -> pd.DataFrame:
    rng = np.random.default_rng(0)
    values = world(changes)
    rows = []
    for name in RECIPES:
        for seed in range(seeds):
            row = {"method": name, "seed": seed, "status": status}
            for (model, column), value in values.items():
                if model == name:
                    shared = 0.05 * np.sin(seed) if column == "bits_per_byte" else 0.0
                    row[column] = value + shared + noise * rng.standard_normal()
            rows.append(row)
    return pd.DataFrame(rows)


def trained_long(gap: float, *, status: str = "ok") -> pd.DataFrame:
    """The models trained at the long length, of which one gains over its own sliding window, or neither."""
    gaps = {"rope-long": gap, "separated-sinusoidal-long": 0.0}
    return pd.DataFrame(
        {"method": name, "seed": seed, "status": status, "gap/native/8x": value}
        for name, value in gaps.items()
        for seed in range(3)
    )


def verdict(claim_id: str, frame: pd.DataFrame | None, long: pd.DataFrame | None = None):
    long = trained_long(-0.1) if long is None else long
    return claims.get(claim_id).rule({recipes.TABLE: frame, recipes_quality.LONG: long})


JUDGED_IN_WINDOW = (
    "random-offsets-are-free-in-window",
    "true-gaps-are-free-in-window",
    "the-phase-read-closes-half-of-the-gap-to-rope",
    "ladder-of-expressivity",
    "the-position-stream-matters-beside-rope",
)


def noisy(claim_id: str, frame: pd.DataFrame) -> pd.DataFrame:
    """The table with noise on what is judged: not on what admits a model, or the clamp, to the comparison."""
    rng = np.random.default_rng(1)
    judged = frame.method != "untied-constant"
    inside = claim_id in JUDGED_IN_WINDOW
    for name in ["bits_per_byte"] if inside else [name for name in frame if "/" in name or "-at-" in name]:
        frame.loc[judged, name] += (0.5 if inside else 5.0) * rng.standard_normal(judged.sum())
    return frame


def these(models: list[str], column: str, value: float) -> dict:
    return {(model, column): value for model in models}


OFFSETS, TORUS = ["separated-offsets", "strict-offsets"], ["separated-torus-offsets"]
CLAMPS = ["untied-constant-clamp"]
PHASES, WITH_GAPS = ["dense-phase", "separated-phase"], ["dense-phase-gaps", "separated-phase-gaps"]
NATIVE, WINDOW = "gap/native/", "gap/native-window/"
AT_8X = {
    ("separated-offsets", "native/8x"): 2.0,
    ("separated-torus-offsets", "native-window/8x"): 2.0,
    ("separated-phase", "native-window/8x"): 2.0,
    ("separated-phase-gaps", "native/8x"): 2.0,
}
BROKEN = {("untied-constant", "native-at-1m"): 3.5}

WORLDS: dict[str, tuple[dict, dict, dict]] = {
    "random-offsets-survive": ({}, these(OFFSETS, NATIVE, 0.3), these(OFFSETS[:1], "gap/native/8x", 0.3)),
    "random-offsets-and-a-window-survive": (
        {},
        these(OFFSETS, WINDOW, 0.3),
        these(OFFSETS[1:], "gap/native-window/2x", 0.3),
    ),
    "the-encoding-makes-extrapolation-fail": (
        these(OFFSETS, WINDOW, 0.3),
        {},
        these(OFFSETS, "gap/native-window/8x", 0.3),
    ),
    "covered-indices-are-no-extrapolation": (
        these(OFFSETS, "native-at-1m", 3.0),
        {},
        these(OFFSETS[:1], "native-at-1m", 3.0),
    ),
    "the-torus-and-a-window-reach-the-oracle": (
        {},
        these(TORUS, WINDOW, 0.3) | these(TORUS, "native-at-1m", 3.0),
        these(TORUS[:1], "native-at-1m", 3.0),
    ),
    "the-phase-read-survives": (
        {},
        these(PHASES, NATIVE, 0.3),
        these(PHASES[:1], NATIVE, 0.3),
    ),
    "the-phase-read-with-true-gaps-survives": (
        {},
        these(WITH_GAPS, NATIVE, 0.3),
        these(WITH_GAPS[1:], "gap/native/2x", 0.3),
    ),
    "the-toeplitz-clamp-frees-of-the-index": (
        BROKEN,
        BROKEN | these(CLAMPS, "native-at-1m", 3.0),
        {},
    ),
    "the-toeplitz-clamp-survives": (
        {},
        these(CLAMPS, NATIVE, 0.3),
        these(CLAMPS, "gap/native/4x", 0.3),
    ),
    "separation-makes-recipes-easier": (
        these(["sinusoidal-offsets"], NATIVE, 0.3),
        these(["sinusoidal-offsets"], NATIVE, -0.3),
        these(["sinusoidal-offsets"], NATIVE, 0.3) | {("sinusoidal-offsets", "gap/native/2x"): -0.3},
    ),
    "log-n-helps-past-the-length": (
        {},
        these(["rope", "dense-phase", "separated-offsets"], "native-log/8x", 2.7),
        these(["rope"], "native-log/8x", 2.7),
    ),
    "something-uses-the-far-past": (
        {},
        these(USERS, "gain/8x", -0.05),
        these(["rope"], "gain/8x", -0.05),
    ),
    "true-gaps-teach-use": (
        these(WITH_GAPS, "gain/", 0.1),
        these(WITH_GAPS, "gain/", 0.0),
        these(WITH_GAPS, "gain/4x", 0.1) | these(WITH_GAPS, "gain/8x", 0.0),
    ),
    "no-recipe-beats-a-window-on-rope": ({}, AT_8X, dict(list(AT_8X.items())[:1])),
    "a-separated-model-stands-beside-rope": (
        {(WINNER, "native/8x"): 2.2},
        these([WINNER], NATIVE, 0.3)
        | {(WINNER, "native-at-1m"): 3.0, (WINNER, "bits_per_byte"): 2.6, (WINNER, "native/8x"): 2.6},
        {(WINNER, "native/8x"): 2.2, (WINNER, "bits_per_byte"): 2.6},
    ),
    "separation-helps-the-survivor": (
        {("dense-phase-gaps", "native/8x"): 2.6},
        {("dense-phase-gaps", "native/8x"): 2.4, ("dense-phase-gaps", "bits_per_byte"): 2.1},
        {("dense-phase-gaps", "native/8x"): 2.4},
    ),
    "a-stream-of-its-own-helps-the-survivor": (
        {(NARROW, "bits_per_byte"): 2.3, (NARROW, "native/8x"): 2.3},
        {(NARROW, "bits_per_byte"): 2.6, (NARROW, "native/8x"): 2.6},
        {(NARROW, "bits_per_byte"): 2.6, (NARROW, "native/8x"): 2.3},
    ),
    "far-distances-need-no-true-text": (
        {},
        these(OTHERS, NATIVE, 0.3),
        these(OTHERS[:1], "gap/native/4x", 0.3),
    ),
    "true-gaps-are-free-in-window": (
        these([*PHASES, *WITH_GAPS], "bits_per_byte", 2.3),
        these(WITH_GAPS, "bits_per_byte", 2.7),
        these(WITH_GAPS[:1], "bits_per_byte", 2.7) | these(["separated-phase-gaps"], "bits_per_byte", 2.2),
    ),
    "random-offsets-are-free-in-window": (
        {},
        these([*OFFSETS, *TORUS], "bits_per_byte", 2.7),
        these(OFFSETS, "bits_per_byte", 2.7),
    ),
    "the-phase-read-closes-half-of-the-gap-to-rope": ({}, {("separated-phase", "bits_per_byte"): 2.4}, {}),
    "ladder-of-expressivity": (
        {},
        {
            ("untied", "bits_per_byte"): 2.3,
            ("strict-phase-narrow", "bits_per_byte"): 2.6,
            ("untied-rope", "bits_per_byte"): 2.7,
        },
        {("untied", "bits_per_byte"): 2.3},
    ),
    "the-position-stream-matters-beside-rope": (
        {},
        {("rope", "bits_per_byte"): 2.0, ("dense-phase", "bits_per_byte"): 2.1},
        {("rope", "bits_per_byte"): 2.0},
    ),
}
"""For each claim a world that holds, one against it, and one that splits it."""

ONE_COMPARISON = ("the-phase-read-closes-half-of-the-gap-to-rope", "the-toeplitz-clamp-frees-of-the-index")
"""Nothing can split a single comparison."""


def test_every_claim_has_its_worlds_and_stands_in_the_ledger():
    ids = [claim.id for claim in CLAIMS]
    assert set(WORLDS) == set(ids) and len(ids) == len(set(ids))
    assert set(ids) <= {claim.id for claim in claims.CLAIMS}


@pytest.mark.parametrize("claim_id", WORLDS)
def test_a_claim_is_reproduced_refuted_and_split_by_the_worlds_that_do_so(claim_id):
    holding, against, splitting = WORLDS[claim_id]
    assert verdict(claim_id, table(holding)).word == "reproduced"
    assert verdict(claim_id, table(against)).word == "not reproduced"
    if claim_id not in ONE_COMPARISON:
        assert verdict(claim_id, table(splitting)).word == "partly"


@pytest.mark.parametrize("claim_id", WORLDS)
def test_three_seeds_or_noise_leave_it_undecided_and_missing_or_stale_runs_unrun(claim_id):
    holding = WORLDS[claim_id][0]
    assert verdict(claim_id, table(holding, seeds=3)).word == "undecided"
    assert verdict(claim_id, noisy(claim_id, table(holding, noise=0.0))).word == "undecided"
    assert verdict(claim_id, None).word == "not run"
    assert verdict(claim_id, table(holding, status="not run")).word == "not run"
    assert verdict(claim_id, table(holding, status="stale")).stale


@pytest.mark.parametrize("claim_id", WORLDS)
def test_a_model_that_learned_nothing_inside_its_window_makes_it_untestable(claim_id):
    changes = {(name, "bits_per_byte"): 3.6 for name in RECIPES}
    assert verdict(claim_id, table(WORLDS[claim_id][0] | changes)).word == "not testable here"


@pytest.mark.parametrize(
    ("gap", "gain", "word"),
    [
        (0.025, 0.025, "reproduced"),
        (0.035, 0.5, "not reproduced"),  # it uses the far past and does not survive it
        (-0.5, 0.015, "not reproduced"),  # it survives without using it
        (-0.5, -0.5, "not reproduced"),
        (0.03, 0.5, "undecided"),
        (-0.5, 0.02, "undecided"),
    ],
)
def test_a_model_uses_the_far_past_only_if_it_survives_and_a_foreign_past_costs_more_than_the_margin(
    gap, gain, word
):
    changes = these(USERS, "gap/native/8x", gap) | these(USERS, "gain/8x", gain)
    assert verdict("something-uses-the-far-past", table(changes)).word == word


def test_no_recipe_closes_half_of_a_gap_that_is_not_there():
    """With RoPE no better than the separated sinusoid a model below both would otherwise be said to do so."""
    alike = {("rope", "bits_per_byte"): 2.5, ("separated-sinusoidal", "bits_per_byte"): 2.5}
    found = verdict("the-phase-read-closes-half-of-the-gap-to-rope", table(alike))
    assert found.word == "not testable here" and "no gap to close" in found.detail


@pytest.mark.parametrize("claim_id", WORLDS)
def test_a_run_that_diverged_makes_it_untestable(claim_id):
    """It has neither a score nor a reading."""
    whole = table(WORLDS[claim_id][0])
    whole.loc[whole.seed == 1, [name for name in whole if name not in ("method", "seed", "status")]] = np.nan
    found = verdict(claim_id, whole)
    assert found.word == "not testable here" and "diverged" in found.detail and "(seed 1)" in found.detail


def test_a_model_without_the_clamp_that_diverged_leaves_nothing_to_compare_the_clamp_with():
    whole = table(BROKEN)
    whole.loc[(whole.method == "untied-constant") & (whole.seed == 1), "bits_per_byte"] = np.nan
    found = verdict("the-toeplitz-clamp-frees-of-the-index", whole)
    assert found.word == "not testable here" and "diverged: untied-constant (seed 1)" in found.detail


@pytest.mark.parametrize("claim_id", ["something-uses-the-far-past", "true-gaps-teach-use"])
def test_use_is_testable_only_where_a_model_trained_at_the_long_length_gains_something(claim_id):
    """Even before any recipe has run; and a diverged run is no gain."""
    holding = table(WORLDS[claim_id][0])
    for frame in (None, holding):
        found = verdict(claim_id, frame, trained_long(-0.019))
        assert found.word == "not testable here" and "gains more than 0.02" in found.detail
    assert verdict(claim_id, holding, trained_long(-0.021)).word == "reproduced"
    assert verdict(claim_id, holding, trained_long(-0.1, status="not run")).word == "not run"
    diverged = trained_long(-0.1)
    diverged.loc[0, "gap/native/8x"] = np.nan
    assert verdict(claim_id, holding, diverged).word == "not testable here"


def test_a_clamp_has_nothing_to_repair_where_the_index_does_no_harm():
    found = verdict("the-toeplitz-clamp-frees-of-the-index", table({}))
    assert found.word == "not testable here" and "nothing to repair" in found.detail


def test_rules_read_columns_that_a_run_writes():
    """The readings of a run give every column that a rule asks for."""
    ids = {
        reading.id
        for reading in RecipeRun.of_recipe("recipes", "laptop", "rope", 1, BEYOND["laptop"], (0,)).readings
    }
    for _, column in world({}):
        parts = column.split("/")
        reading = parts[1] if parts[0] == "gap" else parts[0]
        assert reading in ids | {"bits_per_byte", "gain"}, column
