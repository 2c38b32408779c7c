"""Verdicts on SeqPE as the position stream, from invented tables: every word, from every rule."""

import numpy as np
import pandas as pd
import pytest

from sepnb import claims
from sepnb.claims import recipes, recipes_quality, seqpe_stream_quality
from sepnb.claims import seqpe_stream as rules
from sepnb.experiments.extrapolation import BEYOND
from sepnb.experiments.seqpe_stream import BESIDE, PUBLISHED, SeqPEStream, starts

BINS = rules.bins()
FAR = [f"native-at-{name}" for name in starts(128)]
MODES = ("separated", "strict")
BOTH = rules.both()
CLAIMS = [claim.id for claim in (*rules.CLAIMS, *seqpe_stream_quality.CLAIMS)]


def on(models, columns, value: float) -> dict:
    return {(model, column): value for model in models for column in columns}


def shift(models, group: str, value: float) -> dict:
    return on(models, [name for name in FAR if f"-{group}" in name], value)


STILL = "separated-seqpe-still"
PLAIN = [f"{mode}-seqpe-plain" for mode in MODES]
SINUSOIDS = [f"{mode}-sinusoidal-shifts" for mode in MODES]
STRONG = ["dense-sinusoidal-shifts", "rope", "alibi"]
LONGER = [f"native/{k}" for k in BINS]
GAPS = [f"gap/native/{k}" for k in BINS]
SUPPORTS = {
    "seqpe-survives": {},
    "seqpe-and-a-window-survive": {},
    "seqpe-reads-covered-indices-alike": shift(PLAIN, "covered", 0.2),
    "seqpe-reaches-indices-never-seen": shift(PLAIN, "never-seen", 0.2),
    "shift-steps-help-a-stream-of-digit-strings": shift(PLAIN, "covered", 0.4),
    "shift-steps-help-beside-the-losses": shift([*PLAIN, STILL], "covered", 0.4),
    "misaligned-starts-cost-more": shift(BOTH, "never-seen-misaligned", 0.2),
    "seqpe-beats-the-sinusoid-at-far-indices": shift(SINUSOIDS, "never-seen", 0.2),
    "seqpe-beats-the-sinusoid-past-the-length": on(SINUSOIDS, GAPS, 0.2),
    "distillation-carries-the-stream-further": shift(["separated-seqpe-contrastive"], "never-seen", 0.2),
    "distillation-helps-past-the-length": on(["separated-seqpe-contrastive"], GAPS, 0.2),
    "distillation-further-enhances-extrapolation": on(["dense-seqpe-score-contrastive"], GAPS, 0.2),
    "the-losses-carry-the-stream-further": shift(["separated-seqpe-shifts"], "never-seen", 0.2),
    "seqpe-is-free-in-window": {},
    "a-seqpe-stream-stands-beside-rope": {},
    "a-seqpe-stream-uses-the-far-past": on(BOTH, ["gain/8x"], 0.2),
    "separation-helps-seqpe": on(["dense-seqpe"], GAPS, 0.2),
    "seqpe-surpasses-strong-baselines": on(["sinusoidal", "rope"], ["bits_per_byte"], 0.2),
    "seqpe-surpasses-them-past-the-length": on(STRONG, LONGER, 0.2),
}
"""What each claim needs to hold, added to a world in which all models are alike."""

AGAINST = {
    "seqpe-survives": on(BOTH, GAPS, 0.4),
    "seqpe-and-a-window-survive": on(BOTH, [f"gap/native-window/{k}" for k in BINS], 0.4),
    "seqpe-reads-covered-indices-alike": shift(BOTH, "covered", 0.4) | shift(PLAIN, "covered", 0.4),
    "seqpe-reaches-indices-never-seen": shift(BOTH, "never-seen", 0.4) | shift(PLAIN, "never-seen", 0.4),
    "shift-steps-help-a-stream-of-digit-strings": shift(["separated-seqpe-shifts"], "covered", 0.8)
    | shift(PLAIN, "covered", 0.4),
    "shift-steps-help-beside-the-losses": shift(["separated-seqpe"], "covered", 0.8)
    | shift([*PLAIN, STILL], "covered", 0.4),
    "misaligned-starts-cost-more": {},
    "seqpe-beats-the-sinusoid-at-far-indices": shift(BOTH, "never-seen", 0.4),
    "seqpe-beats-the-sinusoid-past-the-length": on(BOTH, GAPS, 0.4),
    "distillation-carries-the-stream-further": shift(["separated-seqpe"], "never-seen", 0.4),
    "distillation-helps-past-the-length": on(["separated-seqpe"], GAPS, 0.4),
    "distillation-further-enhances-extrapolation": on(["dense-seqpe-score"], GAPS, 0.4),
    "the-losses-carry-the-stream-further": shift(["separated-seqpe"], "never-seen", 0.4),
    "seqpe-is-free-in-window": on(BOTH, ["bits_per_byte"], 0.4),
    "a-seqpe-stream-stands-beside-rope": on(["separated-seqpe"], ["bits_per_byte", *LONGER], 0.4),
    "a-seqpe-stream-uses-the-far-past": {},
    "separation-helps-seqpe": on(["separated-seqpe"], GAPS, 0.4),
    "seqpe-surpasses-strong-baselines": on(["sinusoidal", "rope"], ["bits_per_byte"], -0.4),
    "seqpe-surpasses-them-past-the-length": on(STRONG, LONGER, -0.4),
}
"""What contradicts it, each of its comparisons alike."""


def table(
    changes: dict, *, seeds: int = 6, noise: float = 0.004, level: float = 2.5, without: float = 3.14
) -> dict:
    """Every column of every model at its level, but for `changes` of (model, column), by experiment; inside
    the trained length a model without positions pays `without`."""
    rng = np.random.default_rng(0)
    columns = ["bits_per_byte", "native/1x", *(f"{r}/{k}" for r in ("native", "native-window") for k in BINS)]
    small = [f"gap/{r}/{k}" for r in ("native", "native-window") for k in BINS] + ["gain/8x"]

    def runs(methods) -> pd.DataFrame:
        return pd.DataFrame(
            {"method": name, "seed": seed, "status": "ok", "unigram_bits_per_byte": 4.5}
            | {
                column: base + changes.get((name, column), 0.0) + noise * rng.standard_normal()
                for base, group in ((level, [*columns, *FAR]), (0.0, small))
                for column in group
            }
            for name in methods
            for seed in range(seeds)
        )

    long = pd.DataFrame(
        {"method": name, "seed": seed, "status": "ok", "bits_per_byte": 2.5, "gap/native/8x": -0.1}
        for name in ("rope-long", "separated-sinusoidal-long")
        for seed in range(3)
    )
    return {
        rules.TABLE: runs(PUBLISHED),
        rules.ENCODINGS: pd.DataFrame(
            {"method": "none", "seed": seed, "status": "ok", "bits_per_byte": without} for seed in range(3)
        ),
        recipes.TABLE: runs(BESIDE),
        recipes_quality.LONG: pd.concat([runs(["alibi", "rope"]), long]),
    }


def judged(claim_id: str, tables: dict):
    return claims.get(claim_id).rule(tables)


def test_every_claim_has_both_worlds():
    assert list(SUPPORTS) == list(AGAINST) == CLAIMS


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_a_world_in_which_the_claim_holds(claim_id):
    assert judged(claim_id, table(SUPPORTS[claim_id])).word == "reproduced"


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_a_world_that_contradicts_it_and_one_that_splits_the_family(claim_id):
    world = AGAINST[claim_id]
    assert judged(claim_id, table(world)).word == "not reproduced"
    half = world or SUPPORTS[claim_id]
    # One comparison turned round: the first change alone, in a world where the others lie as they should.
    others = SUPPORTS[claim_id] if world else {}
    model, column = next(iter(half))
    kind = column.removesuffix("-1")  # both starts of a kind
    first = {key: value for key, value in half.items() if key in ((model, column), (model, f"{kind}-2"))}
    assert judged(claim_id, table({**others, **first})).word == "partly"


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_three_seeds_leave_it_undecided_and_models_that_know_nothing_are_no_evidence(claim_id):
    assert judged(claim_id, table(SUPPORTS[claim_id], seeds=3)).word == "undecided"
    assert judged(claim_id, table(SUPPORTS[claim_id], level=4.0)).word == "not testable here"


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_missing_runs_are_told(claim_id):
    worlds = table(SUPPORTS[claim_id])
    assert judged(claim_id, worlds | {rules.TABLE: None}).word == "not run"
    gone = worlds[rules.TABLE].assign(status="not run")
    assert judged(claim_id, worlds | {rules.TABLE: gone}).word == "not run"


HEARD = [claim.id for claim in rules.CLAIMS if rules.ENCODINGS in claim.needs]


@pytest.mark.parametrize("claim_id", HEARD)
def test_models_that_hear_no_positions_read_all_of_them_alike_and_are_no_evidence(claim_id):
    """As little above a model without positions as that: whatever it pays elsewhere."""
    verdict = judged(claim_id, table(SUPPORTS[claim_id], without=2.6))
    assert (
        verdict.word == "not testable here" and "without positions: separated-seqpe +0.10" in verdict.detail
    )
    missing = table(SUPPORTS[claim_id]) | {rules.ENCODINGS: None}
    assert judged(claim_id, missing).word == "not run"


def test_all_that_reads_positions_alike_is_asked_whether_it_hears_them():
    assert len(HEARD) == 5


def test_where_plain_digit_strings_pay_nothing_indices_are_not_heard():
    for claim_id in (
        "seqpe-reads-covered-indices-alike",
        "seqpe-reaches-indices-never-seen",
        "shift-steps-help-a-stream-of-digit-strings",
    ):
        verdict = judged(claim_id, table({}))
        assert verdict.word == "not testable here" and "nothing to repair" in verdict.detail


@pytest.mark.parametrize("deaf", PLAIN)
def test_one_of_two_models_that_hears_no_index_is_enough_to_judge_neither(deaf):
    for claim_id, group in (
        ("seqpe-reads-covered-indices-alike", "covered"),
        ("seqpe-reaches-indices-never-seen", "never-seen"),
    ):
        hearing = [name for name in PLAIN if name != deaf]
        verdict = judged(claim_id, table(shift(hearing, group, 0.2)))
        assert verdict.word == "not testable here"
        assert deaf in verdict.detail and hearing[0] not in verdict.detail


@pytest.mark.parametrize("claim_id", [name for name in CLAIMS if name.endswith("-stream-further")])
def test_of_two_models_that_know_nothing_at_a_far_index_none_is_better(claim_id):
    world = SUPPORTS[claim_id]
    other = next(iter(world))[0]
    kind = "native-at-never-seen-misaligned"
    starts = [f"{kind}-1", f"{kind}-2"]
    lost = world | on(["separated-seqpe"], starts, 2.2) | on([other], starts, 2.4)
    verdict = judged(claim_id, table(lost))
    assert verdict.word == "not testable here" and kind in verdict.detail
    known = world | on(["separated-seqpe"], starts, 1.5) | on([other], starts, 2.4)
    assert judged(claim_id, table(known)).word == "reproduced"


def test_a_gain_of_a_model_that_does_not_survive_is_no_use():
    claim_id = "a-seqpe-stream-uses-the-far-past"
    broken = SUPPORTS[claim_id] | on(BOTH, ["gap/native/8x"], 0.4)
    assert judged(claim_id, table(broken)).word == "not reproduced"


def test_methods_beside_come_from_their_own_experiments():
    """RoPE of `extrapolation`, whose text inside the trained length is another, is not taken."""
    worlds = table({})
    joined = rules.joined(worlds)
    assert not joined.duplicated(["method", "seed"]).any()
    assert set(joined.method) == {*PUBLISHED, *BESIDE, "alibi"}
    for name, missing in (("seqpe-is-free-in-window", recipes.TABLE), ("seqpe-survives", rules.TABLE)):
        assert judged(name, worlds | {missing: None}).word == "not run"
    assert rules.joined({}) is None


def test_whether_the_far_past_is_used_cannot_be_judged_on_a_text_that_has_nothing_to_give():
    worlds = table(SUPPORTS["a-seqpe-stream-uses-the-far-past"])
    worlds[recipes_quality.LONG]["gap/native/8x"] = 0.0
    assert judged("a-seqpe-stream-uses-the-far-past", worlds).word == "not testable here"


@pytest.mark.parametrize("profile", ["laptop", "gpu"])
def test_what_the_rules_compare_is_run_and_read(profile):
    """Every column that a rule names is a metric of a published run."""
    from sepnb.experiments.readings import ORACLE

    run = SeqPEStream().grid(profile)[0]
    asked = {reading.id for reading in run.readings}
    assert set(FAR) <= asked and {"native", "native-window", ORACLE} <= asked
    assert [1 << k for k in range(1, BEYOND[profile].times.bit_length())] == [int(k[:-1]) for k in BINS]
