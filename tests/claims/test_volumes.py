"""Verdicts on places in a cube, from invented tables: every word, from every rule."""

import numpy as np
import pandas as pd
import pytest

from sepnb import claims
from sepnb.claims import volumes as rules
from sepnb.experiments.volumes import CHANGES, METHODS, SIZES

CLAIMS = [claim.id for claim in rules.CLAIMS]


def on_seqpe(value: float) -> dict:
    return {("seqpe", view): value for view in rules.LARGER}


AHEAD = [name for name in CLAIMS if name != "three-axes-are-learned"]
SUPPORTS = {"three-axes-are-learned": {}} | {name: on_seqpe(0.04) for name in AHEAD}
AGAINST = {
    "three-axes-are-learned": {(name, "accuracy"): -0.3 for name in ("sinusoidal", "axial-rope", "seqpe")}
} | {name: on_seqpe(-0.2) for name in AHEAD}


def table(changes: dict, *, level: float = 0.95, seeds: int = 6, noise: float = 0.002) -> dict:
    """Every column of every model at 0.95, but for `changes` of (model, column)."""
    rng = np.random.default_rng(0)
    views = [f"{change}-{side}" for change in CHANGES for side in SIZES["laptop"].sides]
    rows = [
        {"method": name, "seed": seed, "status": "ok"}
        | {
            c: level + changes.get((name, c), 0.0) + noise * rng.standard_normal()
            for c in ("accuracy", *views)
        }
        for name in METHODS
        for seed in range(seeds)
    ]
    return {rules.TABLE: pd.DataFrame(rows)}


def judged(claim_id: str, tables: dict):
    return claims.get(claim_id).rule(tables)


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_worlds_that_hold_contradict_and_split(claim_id):
    assert judged(claim_id, table(SUPPORTS[claim_id])).word == "reproduced"
    assert judged(claim_id, table(AGAINST[claim_id])).word == "not reproduced"
    first = dict(list(AGAINST[claim_id].items())[:1])
    assert judged(claim_id, table(SUPPORTS[claim_id] | first)).word == "partly"


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_three_seeds_leave_it_undecided_and_missing_runs_are_told(claim_id):
    assert judged(claim_id, table(SUPPORTS[claim_id], seeds=3)).word == "undecided"
    assert judged(claim_id, {rules.TABLE: None}).word == "not run"
    gone = table(SUPPORTS[claim_id])[rules.TABLE].assign(status="not run")
    assert judged(claim_id, {rules.TABLE: gone}).word == "not run"


@pytest.mark.parametrize("claim_id", AHEAD)
def test_a_model_that_learned_nothing_is_no_witness(claim_id):
    verdict = judged(claim_id, table(SUPPORTS[claim_id], level=0.2))
    assert verdict.word == "not testable here" and "at most half of the answers are right" in verdict.detail


def test_a_cube_that_nothing_learned_contradicts_that_it_is_learned():
    assert judged("three-axes-are-learned", table({}, level=0.2)).word == "not reproduced"
