"""Verdicts on what is left past the trained length, from invented tables: every word, from every rule."""

import inspect

import numpy as np
import pandas as pd
import pytest

from sepnb import claims, experiments, extrapolators
from sepnb.claims import beyond, extrapolation
from sepnb.experiments import extrapolation as experiment

CLAIMS = extrapolation.CLAIMS + beyond.CLAIMS
FIVE, FAR = extrapolation.FIVE, ("2x", "4x", "8x")

IN_WINDOW = {
    "learned": 2.62,
    "separated-learned": 2.50,
    "strict-learned": 2.48,
    "sinusoidal": 2.60,
    "separated-sinusoidal": 2.45,
    "strict-sinusoidal": 2.43,
    "rope": 2.20,
    "alibi": 2.40,
    "none": 2.90,
    "rope-long": 2.25,
    "separated-sinusoidal-long": 2.50,
}
CONTROLS = ("none", "rope-long", "separated-sinusoidal-long")

GAPS = {
    **{("separated-learned", name): 0.0 for name in FIVE},
    **{("separated-learned", f"{name}-window"): 0.5 for name in FIVE},
    **{("learned", name): 1.0 for name in FIVE + extrapolation.CONTROLS},
    ("sinusoidal", "native"): 1.5,
    ("separated-sinusoidal", "native"): 0.0,
    ("strict-sinusoidal", "native"): 0.0,
    ("rope", "native"): 0.6,
    ("rope", "native-window"): 0.0,
    ("alibi", "native"): 0.0,
    ("none", "native"): 0.3,
    ("rope-long", "native"): -0.05,
    ("separated-sinusoidal-long", "native"): 0.01,
}
"""A world in which every claim holds."""

LEVELS = {
    ("separated-learned", name): 4.0
    for name in ("fourier-full", "cyclic-literal", "wrap", "alibi", "learned", "clamp")
}


def table(*, gaps=None, levels=None, seeds=6, noise=0.002, status="ok", **in_window):
    """One row a run. `gaps` and `levels` change the world, in all bins, or with a bin named in one."""
    rng = np.random.default_rng(0)
    runs = []
    for method, score in (IN_WINDOW | {k.replace("_", "-"): v for k, v in in_window.items()}).items():
        for seed in range(min(seeds, 3) if method in CONTROLS else seeds):
            run = {"method": method, "seed": seed, "status": status}
            run["bits_per_byte"] = score + 0.05 * np.sin(seed) + noise * rng.standard_normal()
            for name, given, changes in (("gap/", GAPS, gaps or {}), ("", LEVELS, levels or {})):
                for (model, reading), value in (
                    given | {k: v for k, v in changes.items() if len(k) == 2}
                ).items():
                    for k in FAR:
                        value_here = changes.get((model, reading, k), value)
                        if model == method:
                            run[f"{name}{reading}/{k}"] = value_here + noise * rng.standard_normal()
            runs.append(run)
    return pd.DataFrame(runs)


def verdict(claim_id: str, frame):
    return claims.get(claim_id).rule({extrapolation.TABLE: frame})


IDS = [claim.id for claim in CLAIMS]


def separated(value, *names):
    return {"gaps": {("separated-learned", name): value for name in names}}


AGAINST = {
    "the-five-extrapolate": separated(0.5, *FIVE),
    **{f"extrapolation-{name}-survives": separated(0.5, name) for name in FIVE},
    "separation-makes-extrapolation-easier": separated(1.5, *FIVE),
    "only-the-position-needs-extrapolating": {
        "gaps": {(f"{kind}-sinusoidal", "native"): 0.5 for kind in ("separated", "strict")}
    },
    "wrap-in-disguise": {"levels": {("separated-learned", "wrap"): 4.2}},
    "clamp-in-disguise": {"levels": {("separated-learned", "clamp"): 3.8}},
    "mask-rescues-no-extrapolator": separated(0.0, *(f"{name}-window" for name in FIVE)),
    "lookup-tables-limit-extrapolation": {
        "gaps": {("learned", name): 0.01 for name in FIVE + extrapolation.CONTROLS}
    },
    "strict-as-good-as-separated": {"strict_learned": 2.60, "strict_sinusoidal": 2.60},
    "expert-designed-encodings-mitigate": {"gaps": {("learned", "clamp"): -0.1}},
    "sinusoid-does-not-extrapolate": {"gaps": {("sinusoidal", "native"): 0.0}},
    "separation-helps-the-sinusoid": {"gaps": {("sinusoidal", "native"): -0.1}},
    "rope-struggles-beyond-length": {"gaps": {("rope", "native"): 0.0}},
    "rope-needs-a-window": {"gaps": {("rope", "native"): 0.0, ("rope", "native-window"): 0.5}},
    "rope-leads-more-on-longer-sequences": {"gaps": {("rope", "native"): 2.0}},
    "alibi-flat-beyond-length": {"gaps": {("alibi", "native"): 0.2}},
    "alibi-does-not-use-longer-context": {"gaps": {("alibi", "native"): -0.1}},
}
PARTLY = {
    "the-five-extrapolate": separated(0.5, "fourier"),
    **{f"extrapolation-{name}-survives": {"gaps": {("separated-learned", name, "8x"): 0.5}} for name in FIVE},
    "separation-makes-extrapolation-easier": separated(1.5, "cyclic"),
    "only-the-position-needs-extrapolating": {"gaps": {("strict-sinusoidal", "native"): 0.5}},
    "wrap-in-disguise": {"levels": {("separated-learned", "cyclic-literal", "8x"): 4.2}},
    "clamp-in-disguise": {"levels": {("separated-learned", "alibi"): 4.3}},
    "mask-rescues-no-extrapolator": separated(0.0, "learned-window"),
    "lookup-tables-limit-extrapolation": {"gaps": {("learned", "reflect", "2x"): 0.0}},
    "strict-as-good-as-separated": {"strict_sinusoidal": 2.60},
    "expert-designed-encodings-mitigate": {"gaps": {("rope", "native", "8x"): 2.0}},
    "sinusoid-does-not-extrapolate": {"gaps": {("sinusoidal", "native", "2x"): 0.0}},
    "separation-helps-the-sinusoid": {"gaps": {("sinusoidal", "native", "4x"): -0.1}},
    "rope-struggles-beyond-length": {"gaps": {("rope", "native", "2x"): 0.0}},
    "rope-needs-a-window": {"gaps": {("rope", "native-window"): 0.5}},
    "rope-leads-more-on-longer-sequences": {"gaps": {("sinusoidal", "native"): 0.1}},
    "alibi-flat-beyond-length": {"gaps": {("alibi", "native", "8x"): 0.2}},
    "alibi-does-not-use-longer-context": {"gaps": {("alibi", "native", "8x"): -0.1}},
}


def test_every_claim_has_a_world_against_it_and_one_that_splits_it():
    assert set(AGAINST) == set(PARTLY) == set(IDS)
    assert len(IDS) == len(set(IDS)) and set(IDS) <= {claim.id for claim in claims.CLAIMS}


@pytest.mark.parametrize("claim_id", IDS)
def test_a_world_in_which_every_claim_holds(claim_id):
    assert verdict(claim_id, table()).word == "reproduced"


@pytest.mark.parametrize("claim_id", IDS)
def test_a_world_that_contradicts_the_claim(claim_id):
    assert verdict(claim_id, table(**AGAINST[claim_id])).word == "not reproduced"


@pytest.mark.parametrize("claim_id", IDS)
def test_a_world_that_splits_the_family(claim_id):
    assert verdict(claim_id, table(**PARTLY[claim_id])).word == "partly"


@pytest.mark.parametrize("claim_id", IDS)
def test_three_seeds_leave_every_claim_undecided(claim_id):
    found = verdict(claim_id, table(seeds=3))
    assert found.word == "undecided" and "3 seeds" in found.detail and found.numbers


@pytest.mark.parametrize("claim_id", IDS)
def test_noise_leaves_every_claim_undecided(claim_id):
    frame = table(noise=0.0)
    numeric = [name for name in frame if "/" in name]
    rng = np.random.default_rng(1)
    for name in (*numeric, "bits_per_byte"):
        frame[name] = frame[name] + rng.standard_normal(len(frame)) * (
            0.3 if name == "bits_per_byte" else 3.0
        )
    frame.loc[frame.method.isin(CONTROLS), "gap/native/8x"] = -1.0
    assert verdict(claim_id, frame).word == "undecided"


@pytest.mark.parametrize("claim_id", IDS)
def test_without_runs_nothing_is_said(claim_id):
    absent = table(status="not run")
    absent = absent.drop(columns=[name for name in absent if name not in ("method", "seed", "status")])
    for frame in (None, pd.DataFrame(), absent, table()[lambda runs: runs.method == "none"]):
        found = verdict(claim_id, frame)
        assert found.word == "not run" and not found.stale


@pytest.mark.parametrize("claim_id", IDS)
@pytest.mark.parametrize(("status", "stale"), [("not run", False), ("stale", True)])
def test_one_missing_or_stale_run_of_a_method_compared_is_enough(claim_id, status, stale):
    seen, whole = set(), table()
    for method in IN_WINDOW:
        frame = whole.copy()
        frame.loc[(frame.method == method) & (frame.seed == 2), "status"] = status
        found = verdict(claim_id, frame)
        if found.word != "reproduced":
            seen.add(method)
            assert (found.word, found.stale) == ("not run", stale)
    assert seen and "none" not in seen


@pytest.mark.parametrize("claim_id", IDS)
def test_models_that_learned_too_little_inside_the_window_are_not_compared(claim_id):
    """The bar is on the score inside the trained length, not on what is left past it."""
    short = table(**{name.replace("-", "_"): score + 1.2 for name, score in IN_WINDOW.items()})
    found = verdict(claim_id, short)
    assert found.word == "not testable here" and "3.35" in found.detail


@pytest.mark.parametrize("claim_id", IDS)
def test_a_run_that_diverged_is_named(claim_id):
    """It has neither a score nor a reading."""
    whole = table()
    whole.loc[whole.seed == 1, [name for name in whole if "/" in name or name == "bits_per_byte"]] = np.nan
    found = verdict(claim_id, whole)
    assert found.word == "not testable here" and "diverged" in found.detail and "(seed 1)" in found.detail


def test_the_numbers_of_a_verdict_are_gaps():
    found = verdict("rope-struggles-beyond-length", table(noise=0.0))
    assert found.numbers == {f"rope:native:{k} minus rope:oracle:{k}": pytest.approx(0.6) for k in FAR}
    found = verdict("separation-makes-extrapolation-easier", table(noise=0.0))
    assert len(found.numbers) == 10
    assert found.numbers["separated-learned:alibi:8x minus learned:alibi:8x"] == pytest.approx(-1.0)


@pytest.mark.parametrize(("gap", "word"), [(0.025, "reproduced"), (0.035, "not reproduced")])
def test_surviving_means_within_three_hundredths_of_a_bit(gap, word):
    assert verdict("alibi-flat-beyond-length", table(gaps={("alibi", "native"): gap})).word == word


@pytest.mark.parametrize(
    ("rope", "separated", "word"),
    [(-0.05, 0.1, "reproduced"), (0.1, -0.05, "reproduced"), (-0.015, 0.1, "not testable here")],
)
def test_use_is_judged_only_where_training_at_the_long_length_gains(rope, separated, word):
    gaps = {("rope-long", "native"): rope, ("separated-sinusoidal-long", "native"): separated}
    found = verdict("alibi-does-not-use-longer-context", table(gaps=gaps))
    assert found.word == word
    assert word == "reproduced" or "gains more than 0.02" in found.detail


def test_what_the_rules_compare_is_what_was_written_before_the_records():
    """These tuples stand outside the rules, where the commit of a rule does not follow them."""
    assert extrapolation.FIVE == ("sinusoidal", "fourier", "cyclic", "learned", "alibi")
    assert extrapolation.CONTROLS == ("clamp", "wrap", "reflect", "zero", "interpolate")
    assert extrapolation.FAR == ("2x", "4x", "8x")
    defaults = {
        function: inspect.signature(function).parameters["places"].default
        for function in (extrapolation.over_oracle, extrapolation.against)
    }
    assert set(defaults.values()) == {extrapolation.FAR}


def test_rules_and_experiment_mean_the_same_methods_readings_and_extrapolators():
    """A rule that names what no run has would be *not run* for ever."""
    assert extrapolators.SOURCE_METHODS == FIVE
    assert extrapolators.CONTROLS == extrapolation.CONTROLS
    configs = {config.method: config for config in experiments.get("extrapolation").grid("laptop", [1])}
    assert set(IN_WINDOW) == set(configs) and set(CONTROLS) == set(experiment.CONTROLS)
    for method, reading in GAPS.keys() | LEVELS.keys():
        asked = {item.id: item for item in configs[method].readings}
        assert asked[reading].start == 0
    read = {
        tuple(name.split(":")[:2])
        for claim_id in IDS
        for key in verdict(claim_id, table()).numbers
        for name in key.split(" minus ")
        if ":" in name
    }
    assert {pair for pair in read if pair[1] != "oracle"} <= GAPS.keys() | LEVELS.keys()
