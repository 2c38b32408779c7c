"""The claims on near and far keys, on invented tables: which distances decide, and when none does."""

import numpy as np
import pandas as pd
import pytest

from sepnb import claims
from sepnb.claims.shaw_clip import TABLE, cost_of_hiding

FAR, NEAR = (
    claims.get(name) for name in ("precise-position-is-useless-far-away", "precise-position-helps-nearby")
)
LEVELS = {"keys-1": 3.1, "keys-4": 2.71, "keys-8": 2.70, "keys-16": 2.70, "keys-unclipped": 2.70}
WORTH = {4: 0.3, 8: 0.1, 16: 0.05}


def runs(
    *, seeds=6, noise=0.003, worth=WORTH, with_sinks=None, spread=0.003, **levels
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
            row = {"method": method, "seed": seed, "status": "ok"}
            row["bits_per_byte"] = level + shared[seed] + noise * rng.standard_normal()
            row["val_bits_per_byte"] = validation = 2.8 + shared[seed]
            hidden = {
                name: validation + cost + spread * rng.standard_normal() for name, cost in costs.items()
            }
            rows.append(row | {f"val_bits_window_{name}": bits for name, bits in hidden.items()})
    return {TABLE: pd.DataFrame(rows)}


def test_far_away_all_alike_and_near_apart():
    verdict = FAR.judge(runs())
    assert verdict.word == "reproduced"
    assert verdict.numbers["hidden from 4 on"] == pytest.approx(0.3, abs=0.01)
    assert NEAR.judge(runs()).word == "held"


def test_a_clip_that_costs_more_than_the_margin_contradicts():
    assert FAR.judge(runs(keys_4=2.8, keys_8=2.8, keys_16=2.8)).word == "not reproduced"
    assert FAR.judge(runs(keys_16=2.8)).word == "not reproduced"
    assert FAR.judge(runs(keys_8=2.725)).word == "reproduced"  # worse, by less than the margin
    assert NEAR.judge(runs(keys_1=2.6)).word == "refuted"


def test_smaller_distances_say_where_the_threshold_lies_and_move_no_verdict():
    """The claim is that there is such a distance, not that every distance is one."""
    verdict = FAR.judge(runs(keys_4=2.8))
    assert verdict.word == "reproduced"
    assert "decided at 16, smaller clips say where the threshold lies" in verdict.why
    told = [(one.name.split(" minus")[0], one.answer) for one in verdict.answers]
    assert told == [("keys-16", "holds"), ("keys-4", "fails"), ("keys-8", "holds")]
    assert FAR.judge(runs(keys_4=2.6, keys_8=2.6, keys_16=2.8)).word == "not reproduced"


def test_a_distance_beyond_which_nothing_is_used_is_not_asked_about():
    """Its clip costs nothing for the wrong reason: alone it decides nothing, beside others it is left out."""
    verdict = FAR.judge(runs(worth={4: 0.02, 8: 0.01, 16: -0.01}))
    assert verdict.word == "not testable here" and "from 4 on" in verdict.detail
    left_out = FAR.judge(runs(worth=WORTH | {16: 0.01}, keys_16=2.9))
    assert left_out.word == "reproduced" and "keys-16 minus" not in left_out.detail
    assert FAR.judge(runs(worth=WORTH | {16: 0.01}, keys_8=2.9)).word == "not reproduced"


def test_keys_count_as_used_if_hiding_them_costs_beyond_doubt_with_the_first_tokens_in_sight_too():
    sinks = dict.fromkeys(WORTH, 0.01)
    assert FAR.judge(runs(with_sinks=sinks)).word == "not testable here"
    assert FAR.judge(runs(worth=sinks, with_sinks=WORTH)).word == "not testable here"
    assert FAR.judge(runs(worth={4: 0.04, 8: 0.04, 16: 0.04}, spread=0.05)).word == "undecided"


def test_a_reading_that_is_no_number_decides_nothing():
    (frame,) = runs().values()
    frame.loc[frame.seed == 2, "val_bits_window_4_sinks"] = np.nan
    verdict = FAR.judge({TABLE: frame})
    assert (
        verdict.word == "not testable here"
        and "keys-unclipped:cost/4 is missing in 1 of 6 runs (seed 2)" in verdict.detail
    )


def test_a_clip_that_costs_decides_nothing_while_the_use_of_farther_keys_is_open():
    (frame,) = runs(keys_8=2.8).values()
    seesaw = np.where(frame.seed % 2, 0.15, 0.0)
    for column in ("val_bits_window_16", "val_bits_window_16_sinks"):
        frame[column] = frame.val_bits_per_byte + seesaw
    assert FAR.judge({TABLE: frame}).word == "undecided"
    frame.loc[frame.method == "keys-8", "bits_per_byte"] -= 0.1
    assert (
        FAR.judge({TABLE: frame}).word == "reproduced"
    )  # with 8 labels nothing is lost, whatever lies beyond


def test_what_hiding_costs_is_the_smaller_cost_of_each_run_of_the_unclipped_model():
    (frame,) = runs(spread=0.0).values()
    others = frame.method != "keys-unclipped"
    frame.loc[others, [f"val_bits_window_{clip}" for clip in WORTH]] = 9.0
    first = frame.method.eq("keys-unclipped") & frame.seed.eq(0)
    frame.loc[first, "val_bits_window_8_sinks"] = frame.loc[first, "val_bits_per_byte"] + 0.02
    costs = cost_of_hiding(frame)["cost/8"][~others]
    assert costs.tolist() == pytest.approx([0.02, *[0.1] * 5])


def test_few_seeds_noise_holes_and_bad_models_decide_nothing():
    assert FAR.judge(runs(seeds=3)).word == "not judged"
    assert FAR.judge(runs(noise=1.0, keys_4=2.7)).word == "undecided"
    assert FAR.judge({}).word == "not run"
    (frame,) = runs().values()
    frame.loc[(frame.method == "keys-8") & (frame.seed == 2), "status"] = "stale"
    assert (FAR.judge({TABLE: frame}).word, FAR.judge({TABLE: frame}).stale) == ("not run", True)
    high = runs(**{name.replace("-", "_"): level + 1.4 for name, level in LEVELS.items()})
    assert FAR.judge(high).word == "not testable here"


def test_a_model_that_its_clip_holds_back_is_judged_by_the_claim_about_near_keys():
    assert NEAR.judge(runs(keys_1=3.6)).word == "held"
    assert NEAR.judge(runs(keys_1=4.2)).word == "not testable here"
