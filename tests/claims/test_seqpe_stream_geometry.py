"""Verdicts on where a window of SeqPE's stream lies, from invented tables: every word, from every rule."""

import numpy as np
import pandas as pd
import pytest

from sepnb import claims
from sepnb.claims import seqpe_stream
from sepnb.claims import seqpe_stream_geometry as rules
from sepnb.experiments.seqpe_stream import PUBLISHED, starts

PLAIN, SHIFTS, CONTRASTIVE, BOTH = rules.chain()
STARTS = list(starts(128))
FOLDS = ("past", "bits/folded", "bits/others", "mended/past", "alone/folded", "alone/first")
CLAIMS = [claim.id for claim in rules.CLAIMS]
RANK = "a-start-costs-what-its-window-moved"
FOLD, MEND = "seqpe-fails-where-its-curve-turns-back", "positions-that-are-not-folded-mend-it"
ALONE = "it-is-the-look-alike-in-sight"
SCORE = "dense-seqpe-score"


def on(model: str, measure: str, kind: str, factor: float) -> dict:
    """Both starts of a kind times a factor."""
    return {(model, f"{measure}/{name}"): factor for name in STARTS if name.startswith(kind)}


HOLDS = {
    "digit-strings-keep-an-aligned-window": on(PLAIN, "moved", "covered-aligned", 0.1),
    "the-losses-move-an-aligned-window": on(SHIFTS, "moved", "covered-aligned", 0.1),
    "the-losses-narrow-far-windows": on(BOTH, "narrowed", "covered", 0.1),
    "the-losses-cost-resolution": {(BOTH, "resolution"): 0.5},
    RANK: {},
    FOLD: {(SCORE, "bits/folded"): 2.0},
    ALONE: {},
    MEND: {(SCORE, "past"): 1.1},
}
FAILS = {
    "digit-strings-keep-an-aligned-window": on(PLAIN, "moved", "covered-misaligned", 0.1),
    "the-losses-move-an-aligned-window": {},
    "the-losses-narrow-far-windows": {},
    "the-losses-cost-resolution": {(SHIFTS, "resolution"): 0.5},
    RANK: {},
    FOLD: {},
    ALONE: {(SCORE, "alone/folded"): 2.0},
    MEND: {(SCORE, "mended/past"): 1.1},
}
SPLITS = {
    MEND: {(SCORE, "past"): 0.9},
    "digit-strings-keep-an-aligned-window": {},
    "the-losses-narrow-far-windows": on(BOTH, "narrowed", "covered-aligned", 0.1),
}


def table(changes: dict, *, seeds: int = 6, noise: float = 0.02, sign: float = 1.0) -> dict:
    """Windows that have moved by about 1.4 and kept their spread, but for `changes`, as factors; what a start
    costs is how far its window moved, times `sign`."""
    rng = np.random.default_rng(0)
    shapes, costs = [], []
    for method in PUBLISHED:
        for seed in range(seeds):
            run = {"method": method, "seed": seed, "status": "ok"}
            drawn = {
                f"{m}/{name}": level for m, level in (("moved", 1.4), ("narrowed", 1.0)) for name in STARTS
            }
            told = {
                key: level * changes.get((method, key), 1.0) * np.exp(noise * rng.standard_normal())
                for key, level in (drawn | {"resolution": 0.5}).items()
            }
            if method in rules.chain():
                shapes.append(run | told)
            paid = {f"native-at-{name}": 2.5 + sign * told[f"moved/{name}"] for name in STARTS}
            costs.append(run | {"bits_per_byte": 2.5, "native/1x": 2.5} | paid)
    for seed in range(1, 2 * seeds + 7):
        bits = {
            key: 2.5 * changes.get((SCORE, key), 1.0) * np.exp(noise / 10 * rng.standard_normal())
            for key in FOLDS
        }
        # Every other curve is folded.
        many = {"folded": 30 if seed % 2 == 0 else 0} | (bits if seed % 2 == 0 else {})
        shapes.append({"method": SCORE, "seed": seed, "status": "ok"} | many)
    return {rules.TABLE: pd.DataFrame(shapes), seqpe_stream.TABLE: pd.DataFrame(costs)}


def judged(claim_id: str, tables: dict):
    return claims.get(claim_id).rule(tables)


def test_every_claim_has_both_worlds():
    assert list(HOLDS) == list(FAILS) == CLAIMS


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_a_world_in_which_the_claim_holds(claim_id):
    assert judged(claim_id, table(HOLDS[claim_id])).word == "reproduced"


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_a_world_that_contradicts_it(claim_id):
    assert judged(claim_id, table(FAILS[claim_id], sign=-1.0)).word == "not reproduced"


@pytest.mark.parametrize("claim_id", SPLITS)
def test_a_world_that_splits_the_family(claim_id):
    assert judged(claim_id, table(SPLITS[claim_id])).word == "partly"


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_three_seeds_and_noise_leave_it_undecided(claim_id):
    assert judged(claim_id, table(HOLDS[claim_id], seeds=3)).word == "undecided"
    if claim_id != RANK:  # a rank knows no scale
        assert judged(claim_id, table(HOLDS[claim_id], noise=6.0)).word == "undecided"


def test_seeds_that_contradict_each_other_leave_the_rank_undecided():
    one, other = table({}), table({}, sign=-1.0)
    costs = one[seqpe_stream.TABLE].where(one[seqpe_stream.TABLE].seed % 2 == 0, other[seqpe_stream.TABLE])
    assert judged(RANK, one | {seqpe_stream.TABLE: costs}).word == "undecided"


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_missing_runs_and_missing_measures_are_told(claim_id):
    for needed in claims.get(claim_id).needs:
        assert judged(claim_id, table(HOLDS[claim_id]) | {needed: None}).word == "not run"
        world = table(HOLDS[claim_id])
        world[needed].loc[:, "status"] = "not run"
        assert judged(claim_id, world).word == "not run"
    lost = table(HOLDS[claim_id])
    shapes = lost[rules.TABLE]
    gone = shapes.seed == (8 if claim_id in (FOLD, ALONE, MEND) else 2)
    shapes.loc[gone, [c for c in shapes if "/" in c or c in ("resolution", "past")]] = np.nan
    verdict = judged(claim_id, lost)
    assert verdict.word == "not testable here" and "is missing in 1 of 6 runs" in verdict.detail


def test_a_rank_is_that_of_one_model_with_itself():
    """Costs of another seed are not joined."""
    world = table({})
    costs = world[seqpe_stream.TABLE]
    world[seqpe_stream.TABLE] = costs.assign(seed=(costs.seed + 1) % 6)
    assert judged(RANK, world).word != "reproduced"


def test_seeds_that_were_seen_and_curves_that_hardly_fold_are_left_out():
    world = table(HOLDS[FOLD])
    shapes = world[rules.TABLE]
    own = shapes.method == SCORE
    for seed, many in ((1, 500), (6, 500), (9, 7)):
        shapes.loc[own & (shapes.seed == seed), ["folded", "bits/folded", "bits/others"]] = many, 2.0, 9.0
    assert judged(FOLD, world).word == "reproduced"
    shapes.loc[own, "folded"] = 7
    verdict = judged(FOLD, world)
    assert verdict.word == "not testable here" and "turns back" in verdict.detail


def test_a_reading_that_moves_the_failure_to_other_bytes_mends_nothing():
    """The bytes that had stood at folded positions are well, and the whole costs what it did."""
    moved = {(SCORE, "past"): 1.1, (SCORE, "mended/past"): 1.1, (SCORE, "mended/folded"): 1.0}
    assert judged(MEND, table(moved)).word != "reproduced"
