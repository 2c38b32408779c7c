"""Verdicts on the context extensions, from invented tables: every word, from every rule."""

import numpy as np
import pandas as pd
import pytest

from sepnb import claims
from sepnb.claims import context_extension as rules
from sepnb.claims import recipes_quality
from sepnb.experiments import context_extension as experiment

PLACES = ("1x", "2x", "4x", "8x", "16x")
CLAIMS = [claim.id for claim in rules.CLAIMS]
PI, NTK, YARN = "position-interpolation", "ntk-aware", "yarn"
TUNED = (PI, NTK, "ntk-by-parts", YARN)


def table(changes: dict, *, seeds: int = 6, swing: float = 0.0, status: str = "ok") -> pd.DataFrame:
    """Every column that a rule reads at 2.5, less or more by `changes` of (model, column). With a swing the
    methods change places from seed to seed."""
    rng = np.random.default_rng(0)
    rows = []
    columns = [f"{t}{stage}/{k}" for t in ("", "tight/") for stage in ("frozen", "tuned") for k in PLACES]
    columns += [f"{name}/{k}" for name in ("frozen-window", "tight/tuned-oracle") for k in PLACES]
    for place, method in enumerate(experiment.METHODS):
        for seed in range(seeds):
            row = {"method": method, "seed": seed, "status": status, "bits_per_byte": 2.3}
            for column in columns:
                level = 2.5 + swing * place * (-1) ** seed + 0.002 * rng.standard_normal()
                bar = 50 if "oracle" in column or "window" in column else 0  # the same method, another place
                row[column] = level + bar * swing * (-1) ** seed + changes.get((method, column), 0.0)
            rows.append(row)
    return pd.DataFrame(rows)


def of(models, columns, value: float) -> dict:
    return {(model, column): value for model in models for column in columns}


FAR = ("2x", "4x", "8x", "16x")
WORLDS: dict[str, tuple[dict, dict, dict]] = {
    "ntk-frozen-helps": (
        of(["rope"], ["frozen/2x", "frozen/4x"], 0.5),
        of(["rope"], ["frozen/2x", "frozen/4x"], -0.5),
        of(["rope"], ["frozen/2x"], 0.5) | of(["rope"], ["frozen/4x"], -0.5),
    ),
    "the-window-improves-plain-rope": (
        of(["rope"], [f"frozen/{k}" for k in FAR], 0.5),
        of(["rope"], [f"frozen/{k}" for k in FAR], -0.5),
        of(["rope"], ["frozen/2x"], -0.5) | of(["rope"], [f"frozen/{k}" for k in FAR[1:]], 0.5),
    ),
    "tuned-extensions-reach-the-tuned-length": (
        {},
        of(TUNED, ["tight/tuned/2x", "tight/tuned/4x"], 0.3),
        of([YARN], ["tight/tuned/4x"], 0.3),
    ),
    "ntk-tuned-reads-on": (
        {},
        of([NTK, YARN], ["tight/tuned/8x", "tight/tuned/16x"], 0.3),
        of([NTK], ["tight/tuned/16x"], 0.3),
    ),
    "pi-frozen-costs-inside": (
        of([PI], ["frozen/1x"], 0.3),
        of([NTK], ["frozen/1x"], 0.3),
        of([PI], ["frozen/1x"], 0.3) | of([NTK], ["frozen/1x"], 0.6),
    ),
    "yarn-wins-frozen": (
        of([YARN], ["frozen/4x"], -0.3),
        of([YARN], ["frozen/4x"], 0.3),
        of([YARN], ["frozen/4x"], -0.3) | of([PI], ["frozen/4x"], -0.6),
    ),
    "frozen-extension-beats-the-window": (
        of(["rope"], ["frozen-window/4x"], 0.3),
        of(["rope"], ["frozen-window/4x"], -0.3),
        of([NTK], ["frozen/4x"], 0.3) | of([YARN], ["frozen/4x"], -0.3),
    ),
    "tuning-plain-rope-is-enough": (
        {},
        of(["rope"], ["tuned/4x"], 0.3),
        of([YARN], ["tuned/4x"], -0.3),
    ),
    "a-tuned-extension-uses-longer-contexts": (
        of([NTK, YARN], ["tight/tuned-oracle/4x"], 0.3),
        of([NTK, YARN], ["tight/tuned-oracle/4x"], -0.3),
        of([NTK], ["tight/tuned/4x"], 0.3) | of([YARN], ["tight/tuned/4x"], -0.3),
    ),
}


def verdict(claim_id: str, frame: pd.DataFrame | None, gain: float = 0.1):
    """Judged beside models trained at the long length that gain so much from it."""
    long = pd.DataFrame(
        {"method": name, "seed": seed, "status": "ok", "bits_per_byte": 2.5, "gap/native/8x": -gain}
        for name in ("rope-long", "separated-sinusoidal-long")
        for seed in range(3)
    )
    return claims.get(claim_id).rule({rules.TABLE: frame, recipes_quality.LONG: long})


def test_every_claim_has_a_world_for_each_verdict():
    assert sorted(WORLDS) == sorted(CLAIMS)
    assert set(rules.extensions()) | {"rope"} == set(experiment.METHODS)


@pytest.mark.parametrize("claim_id", CLAIMS)
@pytest.mark.parametrize("which", [0, 1, 2])
def test_each_world_has_its_word(claim_id, which):
    word = ("reproduced", "not reproduced", "partly")[which]
    assert verdict(claim_id, table(WORLDS[claim_id][which])).word == word


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_noise_few_seeds_a_bar_and_missing_runs_are_no_verdict(claim_id):
    world = WORLDS[claim_id][0]
    assert verdict(claim_id, None).word == "not run"
    assert verdict(claim_id, table(world, status="not run")).word == "not run"
    stale = verdict(claim_id, table(world, status="stale"))
    assert (stale.word, stale.stale) == ("not run", True)
    assert verdict(claim_id, table(world, swing=5.0)).word == "undecided"
    assert verdict(claim_id, table(world, seeds=3)).word == "undecided"
    assert verdict(claim_id, table(world).assign(bits_per_byte=3.4)).word == "not testable here"
    diverged = table(world)
    diverged.loc[diverged.seed == 0, "bits_per_byte"] = np.nan
    assert verdict(claim_id, diverged).word == "not testable here"


def test_what_the_tuning_gives_inside_the_trained_length_is_no_use_of_a_longer_context():
    """Models that a tuning made better everywhere, and that look no further back than L."""
    better = [f"tight/{reading}/{k}" for reading in ("tuned", "tuned-oracle") for k in PLACES]
    judged = verdict("a-tuned-extension-uses-longer-contexts", table(of([NTK, YARN], better, -0.3)))
    assert judged.word == "undecided"
    assert all(abs(difference) < 0.01 for difference in judged.numbers.values())


def test_a_text_that_has_nothing_to_give_cannot_judge_use_and_judges_all_else():
    words = {name: verdict(name, table(WORLDS[name][0]), gain=0.01).word for name in CLAIMS}
    assert words.pop("a-tuned-extension-uses-longer-contexts") == "not testable here"
    assert set(words.values()) == {"reproduced"}


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_rules_read_columns_that_runs_have(claim_id):
    """Each column of the invented tables is one that a run of its method stores."""
    read = {key for world in WORLDS[claim_id] for key in world}
    for method, column in read:
        config = experiment.ContextExtensionRun.of_method("laptop", method, 1)
        name = column.removeprefix("tight/").split("/")[0]
        assert name in {reading.id for reading in config.readings}
