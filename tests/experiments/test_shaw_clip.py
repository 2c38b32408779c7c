"""The experiment `shaw_clip` and its claims: models differ in the clip alone; far keys are asked about."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from sepnb import claims, experiments
from sepnb.claims.shaw_clip import TABLE, cost_of_hiding
from sepnb.experiments import ablation
from sepnb.experiments import language_modelling as lm
from sepnb.experiments import shaw_clip as clips
from sepnb.models import LanguageModel
from sepnb.records.store import Store

from .smoke_runs import shortened

EXPERIMENT = experiments.get("shaw_clip")
PUBLISHED = ("laptop", "gpu")
FAR, NEAR = (
    claims.get(name) for name in ("precise-position-is-useless-far-away", "precise-position-helps-nearby")
)


def short_run(method: str, steps: int = 3) -> clips.ClipRun:
    """A smoke run of any method, with a shortened schedule and texts."""
    config = clips.ClipRun.of_method("smoke", method, 1)
    return shortened(config, steps)


# --- the grid


@pytest.mark.parametrize("profile", PUBLISHED)
def test_the_claims_have_six_seeds_and_the_others_three(profile):
    seeds: dict[str, list[int]] = {}
    for config in EXPERIMENT.grid(profile):
        seeds.setdefault(config.method, []).append(config.seed)
    assert set(seeds) == set(clips.METHODS) > set(clips.JUDGED)
    for method, own in seeds.items():
        assert own == list(range(1, 7 if method in clips.JUDGED else 4))
    assert {config.seed for config in EXPERIMENT.grid(profile, seeds=[8])} == {8}
    assert [config.seed for config in EXPERIMENT.grid(profile)] == sorted(
        config.seed for config in EXPERIMENT.grid(profile)
    )


@pytest.mark.parametrize("profile", experiments.PROFILES)
def test_runs_of_a_seed_differ_in_the_clip_and_in_the_vectors_of_values_alone(profile):
    runs = [clips.ClipRun.of_method(profile, method, 1) for method in clips.METHODS]
    length = runs[0].training.length
    clip_of = {run.method: run.model.encodings[0].clip for run in runs}
    assert [clip_of[f"keys-{clip}"] for clip in clips.CLIPS] == list(clips.CLIPS)
    assert clip_of[clips.UNCLIPPED] == clip_of["keys-values-unclipped"] == length > max(clips.CLIPS)
    assert {run.method for run in runs if run.model.encodings[0].values} == {
        "keys-values-8",
        "keys-values-unclipped",
    }
    alike = [
        dataclasses.replace(run, method="", model=dataclasses.replace(run.model, encoding="none"))
        for run in runs
    ]
    assert all(run == alike[0] for run in alike)
    assert len({run.key for run in runs}) == len(runs)


@pytest.mark.parametrize("profile", experiments.PROFILES)
def test_size_schedule_and_text_are_those_of_the_ablation(profile):
    ours = clips.ClipRun.of_method(profile, "keys-8", 2)
    theirs = ablation.run_of("ablation", profile, "none", 2, clips.LEARNING_RATE)
    assert dataclasses.replace(ours.model, encoding="none") == theirs.model
    assert (ours.training, ours.text) == (theirs.training, theirs.text)


def test_the_rate_is_the_best_of_every_screened_model_of_this_size_with_an_encoding():
    for rates in ablation.LEARNING_RATES.values():
        assert {rate for name, rate in rates.items() if name != "none"} == {clips.LEARNING_RATE}


def test_smoke_runs_the_shortest_clip_and_none_at_all_and_other_names_are_refused():
    assert [config.method for config in EXPERIMENT.grid("smoke")] == ["keys-1", clips.UNCLIPPED]
    with pytest.raises(ValueError, match="unknown method 'keys-3'; use one of keys-1, keys-2"):
        clips.ClipRun.of_method("smoke", "keys-3", 1)


def test_the_windows_and_sinks_are_part_of_what_a_run_is():
    config = clips.ClipRun.of_method("smoke", "keys-8", 1)
    assert (config.resolved()["windows"], config.resolved()["sinks"]) == (list(clips.CLIPS), 4)
    assert dataclasses.replace(config, windows=(1,)).key != config.key
    assert dataclasses.replace(config, sinks=1).key != config.key


# --- the runs


def test_a_model_cannot_tell_keys_past_its_clip_apart_and_the_unclipped_one_can():
    tokens = torch.randint(256, (1, 24), generator=torch.Generator().manual_seed(0))
    for method, blind in (("keys-4", True), (clips.UNCLIPPED, False)):
        torch.manual_seed(0)
        model = LanguageModel(dataclasses.replace(short_run(method).model, n_layers=1)).double().eval()
        exchanged = tokens.clone()
        exchanged[:, [3, 9]] = tokens[:, [9, 3]]  # both at least four back from the last token
        with torch.no_grad():
            change = (model(tokens) - model(exchanged))[:, -1].abs().max()
        assert (change < 1e-12) == blind


def test_a_window_hides_the_keys_that_the_clip_of_its_size_takes_for_equally_far(tmp_path):
    config = short_run("keys-8")
    record = EXPERIMENT.run(config)
    assert Store(tmp_path).read(Store(tmp_path).write(record)) == record
    asked = [f"val_bits_window_{window}{kept}" for window in clips.CLIPS for kept in ("", "_sinks")]
    assert set(asked) <= record.metrics.keys() and len({record.metrics[name] for name in asked}) == len(asked)
    torch.manual_seed(0)
    model = LanguageModel(config.model)
    found, _ = clips.hidden(dataclasses.replace(config, windows=(8, 64)), model)
    whole = lm.score(config, model, lm.splits_of(config.text.name).validation, 64, "cpu").bits_per_byte
    assert found["val_bits_window_64"] == pytest.approx(whole, abs=1e-6)  # nothing is hidden
    assert abs(found["val_bits_window_8"] - whole) > 1e-4
    first_in_sight, _ = clips.hidden(dataclasses.replace(config, windows=(8,), sinks=64), model)
    assert first_in_sight["val_bits_window_8"] == found["val_bits_window_8"]
    assert first_in_sight["val_bits_window_8_sinks"] == pytest.approx(whole, abs=1e-6)  # all are first ones


# --- the claims

LEVELS = {"keys-1": 3.1, "keys-4": 2.71, "keys-8": 2.70, "keys-16": 2.70, "keys-unclipped": 2.70}
WORTH = {4: 0.3, 8: 0.1, 16: 0.05}


def runs(
    *, seeds=6, noise=0.003, worth=WORTH, with_sinks=None, spread=0.003, status="ok", **levels
) -> dict[str, pd.DataFrame]:
    """One row a run: a level per method, noise shared by the methods of a seed, and noise of its own.

    `worth` is what hiding costs, `with_sinks` the same with first tokens in sight, by default 0.01 more;
    `spread` is their noise.
    """
    costs = {str(clip): cost for clip, cost in worth.items()}
    costs |= {f"{clip}_sinks": (with_sinks or {}).get(clip, cost + 0.01) for clip, cost in worth.items()}
    rng = np.random.default_rng(0)
    shared = 0.05 * rng.standard_normal(seeds)
    rows = []
    for method, level in (LEVELS | {name.replace("_", "-"): value for name, value in levels.items()}).items():
        for seed in range(seeds):
            row = {"method": method, "seed": seed, "status": status}
            row["bits_per_byte"] = level + shared[seed] + noise * rng.standard_normal()
            row["val_bits_per_byte"] = validation = 2.8 + shared[seed]
            hidden = {
                name: validation + cost + spread * rng.standard_normal() for name, cost in costs.items()
            }
            rows.append(row | {f"val_bits_window_{name}": bits for name, bits in hidden.items()})
    return {TABLE: pd.DataFrame(rows)}


def test_far_away_all_alike_and_near_apart():
    verdict = FAR.rule(runs())
    assert verdict.word == "reproduced"
    assert verdict.numbers["hidden from 4 on"] == pytest.approx(0.3, abs=0.01)
    assert NEAR.rule(runs()).word == "reproduced"


def test_a_clip_that_costs_more_than_the_margin_contradicts():
    assert FAR.rule(runs(keys_4=2.8, keys_8=2.8, keys_16=2.8)).word == "not reproduced"
    assert FAR.rule(runs(keys_16=2.8)).word == "not reproduced"
    assert FAR.rule(runs(keys_8=2.725)).word == "reproduced"  # worse, by less than the margin
    assert NEAR.rule(runs(keys_1=2.6)).word == "not reproduced"


def test_smaller_distances_say_where_the_threshold_lies_and_move_no_verdict():
    """The claim is that there is such a distance, not that every distance is one."""
    verdict = FAR.rule(runs(keys_4=2.8))
    assert verdict.word == "reproduced"
    decided, _, threshold = verdict.detail.partition("for the threshold: ")
    assert "keys-16 minus" in decided and "keys-16 minus" not in threshold
    assert "(fails); keys-8 minus" in threshold and threshold.count("(holds)") == 1
    assert FAR.rule(runs(keys_4=2.6, keys_8=2.6, keys_16=2.8)).word == "not reproduced"


def test_a_distance_beyond_which_nothing_is_used_is_not_asked_about():
    """Its clip costs nothing for the wrong reason: alone it decides nothing, beside others it is left out."""
    verdict = FAR.rule(runs(worth={4: 0.02, 8: 0.01, 16: -0.01}))
    assert verdict.word == "not testable here" and "from 4 on" in verdict.detail
    left_out = FAR.rule(runs(worth=WORTH | {16: 0.01}, keys_16=2.9))
    assert left_out.word == "reproduced" and "keys-16 minus" not in left_out.detail
    assert FAR.rule(runs(worth=WORTH | {16: 0.01}, keys_8=2.9)).word == "not reproduced"


def test_keys_count_as_used_if_hiding_them_costs_beyond_doubt_with_the_first_tokens_in_sight_too():
    sinks = dict.fromkeys(WORTH, 0.01)
    assert FAR.rule(runs(with_sinks=sinks)).word == "not testable here"
    assert FAR.rule(runs(worth=sinks, with_sinks=WORTH)).word == "not testable here"
    assert FAR.rule(runs(worth={4: 0.04, 8: 0.04, 16: 0.04}, spread=0.05)).word == "undecided"


def test_a_reading_that_is_no_number_decides_nothing():
    (frame,) = runs().values()
    frame.loc[frame.seed == 2, "val_bits_window_4_sinks"] = np.nan
    verdict = FAR.rule({TABLE: frame})
    assert verdict.word == "not testable here" and "diverged: hidden from 4 on (seed 2)" in verdict.detail


def test_a_clip_that_costs_decides_nothing_while_the_use_of_farther_keys_is_open():
    (frame,) = runs(keys_8=2.8).values()
    seesaw = np.where(frame.seed % 2, 0.15, 0.0)
    for column in ("val_bits_window_16", "val_bits_window_16_sinks"):
        frame[column] = frame.val_bits_per_byte + seesaw
    assert FAR.rule({TABLE: frame}).word == "undecided"
    frame.loc[frame.method == "keys-8", "bits_per_byte"] -= 0.1
    assert (
        FAR.rule({TABLE: frame}).word == "reproduced"
    )  # with 8 labels nothing is lost, whatever lies beyond


def test_what_hiding_costs_is_the_smaller_cost_of_each_run_of_the_unclipped_model():
    (frame,) = runs(spread=0.0).values()
    others = frame.method != "keys-unclipped"
    frame.loc[others, [f"val_bits_window_{clip}" for clip in WORTH]] = 9.0
    first = frame.method.eq("keys-unclipped") & frame.seed.eq(0)
    frame.loc[first, "val_bits_window_8_sinks"] = frame.loc[first, "val_bits_per_byte"] + 0.02
    assert cost_of_hiding(frame, 8).tolist() == pytest.approx([0.02, *[0.1] * 5])


@pytest.mark.parametrize("claim", [FAR, NEAR], ids=lambda claim: claim.id)
def test_few_seeds_noise_holes_and_bad_models_decide_nothing(claim):
    assert claim.rule(runs(seeds=3)).word == "undecided"
    assert claim.rule(runs(noise=1.0, **dict.fromkeys(("keys_1", "keys_4"), 2.7))).word == "undecided"
    assert claim.rule({}).word == "not run"
    absent = runs(status="not run")[TABLE][["method", "seed", "status"]]
    assert claim.rule({TABLE: absent}).word == "not run"
    (frame,) = runs().values()
    frame.loc[(frame.method == "keys-8") & (frame.seed == 2), "status"] = "stale"
    assert (claim.rule({TABLE: frame}).word, claim.rule({TABLE: frame}).stale) == ("not run", True)
    high = runs(**{name.replace("-", "_"): level + 1.4 for name, level in LEVELS.items()})
    assert claim.rule(high).word == "not testable here"


def test_a_model_that_its_clip_holds_back_is_judged_by_the_claim_about_near_keys():
    assert NEAR.rule(runs(keys_1=3.6)).word == "reproduced"
    assert NEAR.rule(runs(keys_1=4.2)).word == "not testable here"
