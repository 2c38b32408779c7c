"""Verdicts on the geometry of SeqPE, from invented tables: every word, from every rule."""

import numpy as np
import pandas as pd
import pytest

from sepnb import claims
from sepnb.claims import seqpe_distances
from sepnb.claims import seqpe_geometry as rules
from sepnb.experiments.seqpe_distances import SeqPEDistances
from sepnb.experiments.seqpe_geometry import SPREAD, VARIANTS, starts

MEASURES = [f"{m}/{g}" for m in ("order", "adjacency", "likeness", "distance") for g in (*starts(10), SPREAD)]
CLAIMS = [claim.id for claim in (*rules.CLAIMS, *seqpe_distances.CLAIMS)]
SUPPORTS = {
    "the-losses-order-positions": {("both", "order/trained"): 0.5, ("both", "order/misaligned"): 0.5},
    "the-losses-order-far-positions": {("both", "order/spread"): 0.5},
    "contrast-alone-orders-positions": {("contrastive", "order/misaligned"): 0.5},
    "distillation-carries-the-geometry": {
        ("both", "likeness/misaligned"): 0.5,
        ("both", "likeness/misaligned, never seen"): 0.5,
    },
    "the-geometry-reaches-positions-never-seen": {
        ("both", "drawn/order/misaligned"): -0.5,
        ("both", "drawn/likeness/misaligned"): -0.5,
    },
    "the-losses-order-distances": {("both", "distance/trained"): 0.5, ("both", "distance/misaligned"): 0.5},
    "the-contrast-aligns-distances": {("contrastive", "distance/misaligned"): 0.5},
    "neighbours-are-hardly-asked-for": {("around", "adjacency/misaligned"): 0.5},
    "shared-digits-look-like-geometry": {
        (name, "drawn/likeness/aligned"): 0.5 for name in ("both", "base-2", "base-16")
    },
}
AGAINST = {
    "the-geometry-reaches-positions-never-seen": {
        ("both", "order/misaligned, never seen"): -0.4,
        ("both", "likeness/misaligned, never seen"): -0.4,
    }
    | SUPPORTS["the-geometry-reaches-positions-never-seen"]
}


def table(changes: dict, *, seeds: int = 6, noise: float = 0.005) -> dict[str, pd.DataFrame]:
    """Every measure of every variant at 0.5, but for `changes` of (variant, column)."""
    rng, of_distances = np.random.default_rng(0), np.random.default_rng(1)
    rows = [
        {"method": name, "seed": seed, "status": "ok"}
        | {
            column: 0.5
            + changes.get((name, column), 0.0)
            + noise * (of_distances if "distance" in column else rng).standard_normal()
            for prefix in ("", "drawn/")
            for column in (f"{prefix}{measure}" for measure in MEASURES)
        }
        for name in VARIANTS
        for seed in range(seeds)
    ]
    runs = pd.DataFrame(rows)
    return {rules.TABLE: runs, seqpe_distances.TABLE: runs[runs.method.isin(SeqPEDistances.variants)].copy()}


def judged(claim_id: str, tables: dict):
    return claims.get(claim_id).rule(tables)


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_a_world_in_which_the_claim_holds(claim_id):
    assert judged(claim_id, table(SUPPORTS[claim_id])).word == "reproduced"


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_a_world_that_contradicts_it(claim_id):
    assert judged(claim_id, table(AGAINST.get(claim_id, {}))).word == "not reproduced"


@pytest.mark.parametrize(
    ("claim_id", "world"),
    [
        ("contrast-alone-orders-positions", {("distillation", "order/misaligned"): -0.3}),
        ("the-contrast-aligns-distances", {("distillation", "distance/misaligned"): -0.3}),
        ("the-geometry-reaches-positions-never-seen", {}),
    ],
)
def test_nothing_learned_does_not_meet_a_claim_by_comparison_alone(claim_id, world):
    """The contrast does nothing while the distillation disorders; or there is nothing to reach further."""
    assert judged(claim_id, table(world)).word != "reproduced"


FAMILIES = [name for name in CLAIMS if len(AGAINST.get(name) or SUPPORTS[name]) > 1]


@pytest.mark.parametrize("claim_id", FAMILIES)
def test_a_world_that_splits_the_family(claim_id):
    world = AGAINST.get(claim_id) or SUPPORTS[claim_id]
    common = SUPPORTS[claim_id] if claim_id in AGAINST else {}
    assert judged(claim_id, table(common | dict(list(world.items())[:1]))).word == "partly"


@pytest.mark.parametrize("lost", ["order", "likeness"])
def test_where_nothing_was_learned_nothing_can_reach_further(lost):
    claim_id = "the-geometry-reaches-positions-never-seen"
    world = SUPPORTS[claim_id] | {("both", f"drawn/{lost}/misaligned"): 0.0}
    verdict = judged(claim_id, table(world))
    assert verdict.word == "not testable here" and f"both:{lost}/misaligned" in verdict.detail


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_three_seeds_and_noise_leave_it_undecided(claim_id):
    assert judged(claim_id, table(SUPPORTS[claim_id], seeds=3)).word == "undecided"
    assert judged(claim_id, table(SUPPORTS[claim_id], noise=2.0)).word == "undecided"


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_missing_runs_and_missing_measures_are_told(claim_id):
    (needed,) = claims.get(claim_id).needs
    assert judged(claim_id, {needed: None}).word == "not run"
    world = table(SUPPORTS[claim_id])
    world[needed].loc[:, "status"] = "not run"
    assert judged(claim_id, world).word == "not run"
    lost = table(SUPPORTS[claim_id])
    lost[needed].loc[lost[needed].seed == 2, [c for c in lost[needed] if "/" in c]] = np.nan
    verdict = judged(claim_id, lost)
    assert verdict.word == "not testable here" and "is missing in 1 of 6 runs" in verdict.detail
