"""Verdicts on places in images, from invented tables: every word, from every rule."""

import numpy as np
import pandas as pd
import pytest

from sepnb import claims
from sepnb.claims import images as rules
from sepnb.experiments.images import METHODS, TASKS, ImageRun

pytestmark = pytest.mark.usefixtures("quick_collections")
CLAIMS = [claim.id for claim in rules.CLAIMS]
PLACED = [name for name in METHODS if name != "none"]


def on_seqpe(value: float, *columns: str, forms: tuple[str, ...] = ("seqpe",)) -> dict:
    return {(f"{form}/{task}", column): value for form in forms for task in TASKS for column in columns}


FORMS = ("seqpe", "seqpe-multiply")
LARGER = (("canvas", "grow"), ("upscaled", "fit"))


SUPPORTS = {
    "places-help-to-tell-images-apart": {(f"{name}/class", "accuracy"): 0.2 for name in PLACED},
    "axial-rope-survives-a-larger-canvas": {},
    "axial-rope-is-ahead-on-a-larger-canvas": {
        (f"axial-rope/{task}", "canvas-14/grow"): 0.2 for task in TASKS
    },
    "upscaled-images-want-fitted-places": {
        (f"{name}/class", "upscaled-14/fit"): 0.2
        for name in ("sinusoidal", "axial-rope", "separated-sinusoidal")
    },
    "a-stream-for-rows-and-one-for-columns-cost-nothing": {},
    "seqpe-leads-in-image-classification": {("seqpe-multiply/class", "accuracy"): 0.2},
    "seqpe-is-ahead-at-larger-grids": on_seqpe(0.2, "canvas-14/grow", "upscaled-14/grow"),
    "losses-and-shifts-carry-seqpe-to-larger-grids": on_seqpe(0.2, "canvas-14/grow", "upscaled-14/grow"),
    "digits-do-more-than-shift-steps": on_seqpe(0.2, "canvas-14/grow", forms=FORMS),
    "seqpe-reads-covered-places-alike": {},
}
AGAINST = {
    "seqpe-leads-in-image-classification": {("seqpe-multiply/class", "accuracy"): -0.1},
    "seqpe-is-ahead-at-larger-grids": on_seqpe(-0.2, "canvas-14/grow", "upscaled-14/grow"),
    "losses-and-shifts-carry-seqpe-to-larger-grids": on_seqpe(-0.2, "canvas-14/grow", "upscaled-14/grow"),
    "digits-do-more-than-shift-steps": on_seqpe(-0.2, "canvas-14/grow", forms=FORMS),
    "seqpe-reads-covered-places-alike": on_seqpe(-0.2, "moved-aligned", "moved-misaligned"),
    "axial-rope-survives-a-larger-canvas": {(f"axial-rope/{task}", "canvas-14/grow"): -0.2 for task in TASKS},
    "axial-rope-is-ahead-on-a-larger-canvas": {
        (f"axial-rope/{task}", "canvas-14/grow"): -0.2 for task in TASKS
    },
    "a-stream-for-rows-and-one-for-columns-cost-nothing": {
        (f"separated-sinusoidal/{task}", "accuracy"): -0.1 for task in TASKS
    },
}


def table(changes: dict, *, level: float = 0.7, seeds: int = 6, noise: float = 0.002) -> dict:
    """Every column of every model at 0.7, but for `changes` of (model, column)."""
    rng, rows = np.random.default_rng(0), []
    for task in TASKS:
        for name in METHODS:
            config = ImageRun.of("images", "laptop", name, task, 1, 1e-3)
            columns = ["accuracy"]
            columns += [f"{how}-{grid}/{rule}" for how, grid in config.views for rule in config.rules]
            columns += [f"moved-{name}" for name in config.moves]
            rows += [
                {"method": config.method, "seed": seed, "status": "ok"}
                | {
                    c: level + changes.get((config.method, c), 0.0) + noise * rng.standard_normal()
                    for c in columns
                }
                for seed in range(seeds)
            ]
    return {rules.TABLE: pd.DataFrame(rows)}


def judged(claim_id: str, tables: dict):
    return claims.get(claim_id).rule(tables)


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_a_world_in_which_the_claim_holds(claim_id):
    assert judged(claim_id, table(SUPPORTS[claim_id])).word == "reproduced"


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_a_world_that_contradicts_it(claim_id):
    assert judged(claim_id, table(AGAINST.get(claim_id, {}))).word == "not reproduced"


FAMILIES = [name for name in CLAIMS if len(AGAINST.get(name) or SUPPORTS[name]) > 1]


@pytest.mark.parametrize("claim_id", FAMILIES)
def test_a_world_that_splits_the_family(claim_id):
    world = SUPPORTS[claim_id] or AGAINST[claim_id]
    first = dict(list(world.items())[:1])
    if (
        SUPPORTS[claim_id] and claim_id in AGAINST
    ):  # level is no answer to who is ahead: the others are behind
        first |= dict(list(AGAINST[claim_id].items())[1:])
    assert judged(claim_id, table(first)).word == "partly"


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_three_seeds_and_noise_leave_it_undecided(claim_id):
    assert judged(claim_id, table(SUPPORTS[claim_id], seeds=3)).word == "undecided"
    assert judged(claim_id, table(SUPPORTS[claim_id], noise=0.3, level=0.9)).word == "undecided"


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_a_model_that_learned_nothing_is_no_witness(claim_id):
    verdict = judged(claim_id, table(SUPPORTS[claim_id], level=0.25))
    assert verdict.word == "not testable here" and "at most half of the answers are right" in verdict.detail
    assert "none/" not in verdict.detail


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_missing_runs_and_missing_measures_are_told(claim_id):
    assert judged(claim_id, {rules.TABLE: None}).word == "not run"
    assert judged(claim_id, {rules.TABLE: pd.DataFrame()}).word == "not run"
    world = table(SUPPORTS[claim_id])
    world[rules.TABLE].loc[:, "status"] = "not run"
    assert judged(claim_id, world).word == "not run"
    bare = table(SUPPORTS[claim_id])[rules.TABLE][["method", "seed"]].assign(status="not run")
    assert judged(claim_id, {rules.TABLE: bare}).word == "not run"
    lost = table(SUPPORTS[claim_id])[rules.TABLE]
    lost.loc[lost.seed == 2, [c for c in lost if c not in ("method", "seed", "status")]] = np.nan
    verdict = judged(claim_id, {rules.TABLE: lost})
    assert verdict.word == "not testable here" and "is missing in 1 of 6 runs" in verdict.detail


@pytest.mark.parametrize("name", ["sinusoidal", "axial-rope"])
def test_ahead_at_larger_grids_is_ahead_of_what_has_the_same_shift_steps(name):
    """A world in which shift steps alone do it: the twin without them says nothing."""
    world = on_seqpe(0.1, "canvas-14/grow", "upscaled-14/grow")
    without = {(f"{name}/{task}", f"{view}-14/{rule}"): 0.2 for task in TASKS for view, rule in LARGER}
    shifted = {(f"{name}-shifts/{task}", f"{view}-14/{rule}"): 0.2 for task in TASKS for view, rule in LARGER}
    assert judged("seqpe-is-ahead-at-larger-grids", table(world | without)).word == "reproduced"
    assert judged("seqpe-is-ahead-at-larger-grids", table(world | shifted)).word == "partly"
