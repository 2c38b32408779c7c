"""Whether an encoding survives, from invented tables: every word, and from which records."""

import numpy as np
import pandas as pd
import pytest

from sepnb import experiments
from sepnb.claims import encodings as rules
from sepnb.claims import extrapolation
from sepnb.experiments.encoding_methods import METHODS


def table(method: str, reading: str, gap: float, *, seeds: int = 3, inside: float = 2.5) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    runs = []
    for seed in range(seeds):
        run = {"method": method, "seed": seed, "status": "ok", "bits_per_byte": inside}
        noise = 1e-3 * rng.standard_normal(3)
        gaps = {f"gap/{reading}/{k}": gap + e for k, e in zip(("2x", "4x", "8x"), noise, strict=True)}
        runs.append(run | gaps)
    return pd.DataFrame(runs)


@pytest.mark.parametrize(
    ("method", "reading", "need"),
    [
        ("t5", "native", rules.TABLE),
        ("learned-per-layer", "clamp", rules.TABLE),
        ("alibi", "native", extrapolation.TABLE),
        ("learned", "clamp", extrapolation.TABLE),
    ],
)
def test_a_gap_below_the_bound_survives_and_three_seeds_decide_nothing(method, reading, need):
    for gap, changed, word in (
        (0.0, {"seeds": 6}, "held"),
        (0.2, {"seeds": 6}, "refuted"),
        (0.2, {}, "not judged"),
        (0.0, {"seeds": 6, "inside": 3.4}, "not testable here"),
    ):
        assert rules.survival({need: table(method, reading, gap, **changed)}, method).word == word


def test_without_its_own_records_a_method_is_not_run():
    other = {extrapolation.TABLE: table("t5", "native", 0.0, seeds=6)}
    assert rules.survival(other, "t5").word == rules.survival({}, "alibi").word == "not run"
    assert rules.survival({rules.TABLE: table("t5", "native", 0.0)}, "fire").word == "not run"


def test_those_judged_elsewhere_have_six_seeds_there_and_the_readings_are_those_of_the_grid():
    six = {c.method for c in experiments.get("extrapolation").grid("laptop") if c.seed == 6}
    assert six & METHODS.keys() == set(rules.SIX_SEEDS)
    for config in experiments.get("encodings").grid("laptop", seeds=[1]):
        rule = "clamp" if config.method.startswith("learned") else "native"
        assert rule in {reading.id for reading in config.readings}
