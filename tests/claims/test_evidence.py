"""The one judge, on invented tables: every word, for the right reason."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from sepnb.claims.asks import ZERO, Ask, Floor, Unless, against, changes, each, gap, levels, pairs
from sepnb.claims.claim import Claim
from sepnb.claims.evidence import by_rounds, exactly, judge
from sepnb.claims.verdict import Verdict
from sepnb.records.verdicts import WORDS

BETTER = [Ask("a", "b", high=0.0)]
BAR = Floor(3.0)


def two(difference, *, spread=0.01, seeds=6, **columns):
    """Methods a and b whose paired differences have exactly this mean and this standard deviation."""
    steps = np.arange(seeds) - (seeds - 1) / 2
    values = difference + spread * steps / (steps.std(ddof=1) if seeds > 1 else 1)
    rows = [("a", 2.0 + 0.1 * seed + value, seed) for seed, value in enumerate(values)]
    rows += [("b", 2.0 + 0.1 * seed, seed) for seed in range(seeds)]
    return pd.DataFrame(rows, columns=["method", "bits_per_byte", "seed"]).assign(status="ok", **columns)


def three(*differences, inside=(1.0,) * 6, **options):
    """Pairs a0 - b0, a1 - b1, a2 - b2 with these differences; `inside`: what a0, b0, a1 and so on learned."""
    frames = [
        two(difference, **options).replace({"method": {"a": f"a{k}", "b": f"b{k}"}})
        for k, difference in enumerate(differences)
    ]
    levels_ = dict(zip([f"{m}{k}" for k in range(3) for m in "ab"], inside, strict=True))
    frame = pd.concat(frames, ignore_index=True)
    return frame.assign(inside=frame.method.map(levels_))


LEARNT = Floor(0.95, "inside", seeds=True, one_sided=True, why="not learned")
MORE = [Ask(f"a{k}", f"b{k}", low=0.0) for k in range(3)]
RULE = {"floors": [LEARNT], "higher_is_better": True}


# --- one ask ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("difference", "bounds", "expected"),
    [
        (-0.05, {"high": 0.0}, "reproduced"),
        (+0.05, {"high": 0.0}, "not reproduced"),
        (+0.00, {"high": 0.0}, "undecided"),
        (+0.01, {"high": 0.03}, "reproduced"),  # worse, by less than the margin
        (-0.03, {"high": -0.05}, "not reproduced"),  # better, by less than was said
        (+0.00, {"low": -0.03, "high": 0.03}, "reproduced"),
        (+0.06, {"low": -0.03, "high": 0.03}, "not reproduced"),
        (+0.025, {"low": -0.03, "high": 0.03}, "undecided"),
        (+0.05, {"low": 0.03}, "reproduced"),
    ],
)
def test_a_difference_is_judged_against_its_bounds(difference, bounds, expected):
    verdict = judge(two(difference), [Ask("a", "b", **bounds)], floors=[BAR])
    assert verdict.word == expected
    assert verdict.numbers == {"a minus b": pytest.approx(difference, abs=1e-12)}
    assert verdict.why == "6 seeds" and verdict.detail.startswith("6 seeds; a minus b ")


def test_the_spread_decides_whether_a_mean_is_believed():
    """A mean in the middle whose interval leaves the margins is not shown to be level, either."""
    level = [Ask("a", "b", low=-0.03, high=0.03)]
    for mean, asks, narrow, wide in ((-0.05, BETTER, 0.04, 0.06), (0.0, level, 0.02, 0.04)):
        assert judge(two(mean, spread=narrow), asks).word == "reproduced"
        assert judge(two(mean, spread=wide), asks).word == "undecided"


def test_five_seeds_are_too_few_however_clear():
    few = judge(two(-0.5, seeds=5), BETTER)
    assert few.word == "not judged" and "5 seeds" in few.detail
    assert few.numbers == {"a minus b": pytest.approx(-0.5)}, "what was seen is shown all the same"
    assert judge(two(-0.5, seeds=6), BETTER).word == "reproduced"


def test_runs_are_paired_by_seed():
    """The seeds differ by much more than the methods; only the pairing shows the difference."""
    frame = two(-0.02, spread=0.004)
    assert judge(frame, BETTER).word == "reproduced"
    assert judge(frame.sample(frac=1, random_state=1), BETTER).word == "reproduced", "rows have no order"
    shuffled = frame.copy()
    shuffled.loc[frame.method == "a", "seed"] = [3, 5, 0, 4, 2, 1]
    assert judge(shuffled, BETTER).word == "undecided"
    twice = pd.concat([frame, frame[:1]])
    with pytest.raises(ValueError, match="a has two runs of seed 0"):
        judge(twice, BETTER)


# --- quantities ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "metric", "value", "name"),
    [
        (Ask("a:x"), "bits_per_byte", 1.0, "a:x"),
        (Ask("a:x", ZERO), "bits_per_byte", 1.0, "a:x"),
        (Ask("a:x+y", "b:x"), "bits_per_byte", 1.0, "a:x+y minus b:x"),
        (Ask("a+b:bits_per_byte", "b"), "bits_per_byte", -0.25, "a+b:bits_per_byte minus b"),
        (Ask("a"), "y", 3.0, "a"),
    ],
)
def test_a_quantity_is_the_metric_a_column_or_a_mean_of_several(ask, metric, value, name):
    found = judge(two(-0.5, x=1.0, y=3.0), [ask._replace(low=-9.0)], metric=metric)
    assert found.numbers == {name: pytest.approx(value)} and found.word == "reproduced"


def test_families_are_built_from_methods_and_columns():
    assert pairs("a - b", high=0.0) == BETTER
    assert pairs("a - b, c - b", "x", low=0.1) == [Ask("a:x", "b:x", 0.1), Ask("c:x", "b:x", 0.1)]
    assert against("a, b", "c, d") == pairs("a - c, a - d, b - c, b - d")
    assert each("{} at 1x - {} at 4x", ("a", "b")) == ["a at 1x - a at 4x", "b at 1x - b at 4x"]
    assert pairs(each("x-{} - {}", "a, b")) == [Ask("x-a", "a"), Ask("x-b", "b")]
    assert levels("a, b", "x", "y", high=1.0) == [Ask(f"{m}:{c}", ZERO, high=1.0) for m in "ab" for c in "xy"]
    assert changes("a", [("x", "y")], low=0.0) == [Ask("a:x", "a:y", 0.0)]
    assert gap("native") == ["gap/native/2x", "gap/native/4x", "gap/native/8x"]
    assert gap(("fourier", "wrap"), ("8x",)) == ["gap/fourier/8x", "gap/wrap/8x"]


# --- a family -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("differences", "word", "with_parts", "counted"),
    [
        ((0.5, 0.5, 0.5), "reproduced", "reproduced", "reproduced"),
        ((0.5, 0.0, 0.0), "undecided", "undecided", "undecided, 2 of 3"),
        ((0.5, -0.5, 0.0), "not reproduced", "partly", "not reproduced, 1 of 3"),
        ((0.5, -0.5, 0.5), "not reproduced", "partly", "not reproduced, 1 of 3"),
        ((0.5, -0.5, -0.5), "not reproduced", "partly", "not reproduced, 2 of 3"),
        ((-0.5, 0.0, 0.0), "not reproduced", "undecided", "not reproduced, 1 of 3"),
        ((-0.5, -0.5, -0.5), "not reproduced", "not reproduced", "not reproduced"),
    ],
)
def test_one_failure_is_enough_against_a_claim_that_says_all(differences, word, with_parts, counted):
    """Whatever else is open; only a claim that counts its parts is *partly* so."""
    verdict = judge(three(*differences), MORE)
    assert (verdict.word, verdict.counted) == (word, counted)
    assert judge(three(*differences), MORE, parts=True).word == with_parts


def test_in_short_a_family_is_counted_and_of_one_comparison_the_mean_is_told():
    family = judge(two(-0.5), [*BETTER, Ask("b", "a", high=0.0)])
    tests = "p < 0.001, exact p 0.031"
    assert family.detail == (
        f"6 seeds; 1 of 2 fails; a minus b -0.500 (holds, {tests}); b minus a +0.500 (fails, {tests})"
    )
    assert family.in_short == "6 seeds; 2 comparisons; 1 holds; 1 fails; means \N{MINUS SIGN}0.50 to +0.50"
    assert judge(two(-0.5), [*BETTER, *BETTER]).in_short.split("; ")[2] == "2 hold"
    assert judge(two(-0.5), BETTER).in_short == "6 seeds; mean \N{MINUS SIGN}0.500"
    short = judge(two(-0.5), [*BETTER, Ask("b", "a", low=0.0)], floors=[Floor(0.1)])
    assert len(short.numbers) == 2 and short.in_short == short.why, "no comparison was made"


def test_a_verdict_has_one_of_the_words_and_a_hypothesis_of_ours_is_held_or_refuted():
    with pytest.raises(ValueError, match="'maybe' is not a verdict"):
        Verdict("maybe", "")
    for word in WORDS:
        of_ours = {"reproduced": "held", "not reproduced": "refuted"}.get(word, word)
        assert Verdict(word, "why").of_ours().word == of_ours


# --- what stands in the way ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "stale"), [("not run", False), ("stale", True)])
def test_one_missing_or_stale_run_of_a_method_that_is_read_is_enough(status, stale):
    frame = pd.concat([two(-0.5), two(-0.5).replace({"a": "c", "b": "d"})])
    condition = Unless((Ask("c", high=9.0),), "why")
    for method, hit in (("a", True), ("b", True), ("c", True), ("d", False)):
        holes = frame.copy()
        holes.loc[(frame.method == method) & (frame.seed == 4), "status"] = status
        verdict = judge(holes, BETTER, unless=[condition])
        assert (verdict.word, verdict.stale) == (("not run", stale) if hit else ("reproduced", False))


def test_methods_with_different_seeds_cannot_be_paired_and_conditions_need_not_be():
    frame = two(-0.5)
    frame.loc[frame.method == "b", "seed"] += 1
    assert judge(frame, BETTER).word == "not run"
    alone = [Ask("a", high=9.0)]
    assert judge(frame, alone, unless=[Unless((Ask("a", "b", high=9.0),), "why")]).word == "reproduced"


@pytest.mark.parametrize("bad", [np.nan, np.inf, None])
def test_a_diverged_run_and_a_missing_measure_are_named(bad):
    frame = two(-0.5, x=1.0).astype({"bits_per_byte": object, "x": object})
    hit = (frame.method == "b") & (frame.seed == 2)
    frame.loc[hit, ["bits_per_byte", "x"]] = bad
    assert judge(frame, BETTER).detail == "diverged: b (seed 2)"
    verdict = judge(frame, [Ask("b:x", low=0.0)])
    assert verdict.word == "not testable here" and verdict.why == "b:x is missing in 1 of 6 runs (seed 2)"
    assert judge(frame, [Ask("a:x", low=0.0)]).word == "reproduced"
    assert judge(frame, [Ask("a:z", low=0.0)]).why.startswith("a:z is missing in 6 of 6 runs")


def test_methods_that_did_not_learn_are_not_compared():
    verdict = judge(two(-0.5), BETTER, floors=[Floor(2.2)])
    assert verdict.word == "not testable here"
    assert verdict.detail == "not below the bar of 2.2 bits per byte: b (2.25)"
    assert judge(two(-0.5), BETTER, floors=[Floor(2.3)]).word == "reproduced"
    ahead = [Ask("a", "b", low=0.0)]
    for floor in (Floor(2.2), Floor(2.3, only="a"), Floor(2.3, but="b")):
        assert judge(two(0.3), ahead, floors=[floor], higher_is_better=True).word == "reproduced"
    refused = judge(two(0.3), ahead, floors=[Floor(2.3)], higher_is_better=True)
    assert (
        refused.word == "not testable here" and "not above the bar of 2.3 bits per byte: b" in refused.detail
    )


# --- a floor voids a pair, not a family ---------------------------------------------------------------------


def test_a_partner_that_did_not_learn_is_dropped_by_name_and_the_rest_is_judged_as_if_it_were_not_there():
    """A p of 0.03 passes among two that are left, and not among three."""
    whole, frame = (three(0.5, 0.05, 0.05, inside=(1,) * 5 + (b2,), spread=0.045) for b2 in (1, 0.1))
    assert [one.answer for one in judge(whole, MORE, **RULE).answers] == ["holds", "open", "open"]
    verdict = judge(frame, MORE, **RULE)
    assert list(map(str, verdict.dropped)) == ["a2 minus b2 dropped: not learned: b2 (0.10)"]
    alone = judge(frame, MORE[:2], **RULE)
    assert alone.word == "reproduced" and verdict == replace(alone, dropped=verdict.dropped)
    assert verdict.in_short.endswith("dropped: not learned: b2 (0.10)")
    assert judge(frame, MORE[2:], **RULE).word == "not testable here"
    condition = [Unless([Ask("b2:inside", low=0.0)], "why")]
    assert judge(frame, MORE[:2], unless=condition, **RULE).word == "not testable here"


def test_a_comparison_that_might_have_been_kept_counts_in_the_correction_whatever_it_says():
    verdict = judge(three(-0.5, 0.05, 0.05, spread=0.045, inside=(0.1, 1, 1, 1, 1, 1)), MORE, **RULE)
    assert [one.name for one in verdict.dropped] == ["a0 minus b0"]
    assert [one.answer for one in verdict.answers] == ["open", "open"], "three were tested, and Holm knows"


@pytest.mark.parametrize(
    ("difference", "bounds", "unlearned", "higher", "word"),
    [
        (+0.5, {"low": 0.0}, "a", True, "reproduced"),  # worse than it could be, and still ahead
        (-0.5, {"low": 0.0}, "a", True, "not testable here"),  # behind, perhaps for that alone
        (+0.0, {"low": 0.0}, "a", True, "not testable here"),
        (+0.5, {"low": 0.0}, "b", True, "not testable here"),  # ahead, perhaps for that alone
        (-0.5, {"low": 0.0}, "b", True, "not testable here"),
        (-0.5, {"high": 0.0}, "b", True, "reproduced"),
        (-0.5, {"high": 0.0}, "a", True, "not testable here"),
        (+0.5, {"low": 0.0}, "b", False, "reproduced"),  # lower is better: b loses too much, and still less
        (+0.5, {"low": 0.0}, "a", False, "not testable here"),
        (+0.5, {"low": 0.0}, "ab", True, "not testable here"),
        (+0.0, {"low": -0.5, "high": 0.5}, "a", True, "not testable here"),  # level with two bounds
    ],
)
def test_a_floor_never_voids_a_comparison_that_holds_although_the_imperfection_works_against_it(
    difference, bounds, unlearned, higher, word
):
    good, bad = (1.0, 0.1) if higher else (0.0, 0.1)
    floor = LEARNT if higher else Floor(0.03, "inside", one_sided=True, why="not learned")
    inside = [bad if name in unlearned else good for name in "ab"] + [good] * 4
    frame = three(difference, 0.0, 0.0, inside=inside)
    asks = [Ask("a0", "b0", **bounds)]
    verdict = judge(frame, asks, floors=[floor], higher_is_better=higher)
    assert verdict.word == word
    if word == "reproduced":
        assert verdict.why == f"6 seeds, although not learned: {unlearned}0 (0.10)" and not verdict.dropped
    else:
        assert "not learned: " in verdict.why and not verdict.answers
    two_sided = [floor._replace(one_sided=False)]
    assert judge(frame, asks, floors=two_sided, higher_is_better=higher).word == "not testable here"


def test_a_method_of_both_sides_is_dropped():
    frame = two(0.0, x=1.0, y=0.5, inside=0.1)
    assert judge(frame, [Ask("a:x", "a:y", low=0.0)], **RULE).word == "not testable here"


@pytest.mark.parametrize(("few", "word"), [(1, "reproduced"), (2, "not testable here")])
def test_five_of_six_seeds_must_have_learned(few, word):
    frame = two(0.5, inside=1.0)
    frame.loc[frame.seed < few, "inside"] = 0.94
    assert judge(frame, [Ask("b", "a", high=0.0)], **RULE).word == word


def test_a_condition_of_one_comparison_drops_that_one():
    frame = three(0.5, 0.5, 0.5).assign(x=lambda frame: 1.0 * (frame.method == "a1"))
    conditions = [Unless([Ask(f"a{k}:x", low=0.5)], "too small", of=MORE[k]) for k in range(3)]
    verdict = judge(frame, MORE, unless=conditions)
    assert [one.name for one in verdict.answers] == ["a1 minus b1"] and len(verdict.dropped) == 2
    assert str(verdict.dropped[0]) == "a0 minus b0 dropped: too small; a0:x +0.000"
    assert judge(frame.assign(x=0.0), MORE, unless=conditions).word == "not testable here"


@pytest.mark.parametrize(
    ("condition", "met"),
    [
        (Unless((Ask("a:x", low=0.5),), "too small"), True),
        (Unless((Ask("a:x", low=1.5),), "too small"), False),
        (Unless((Ask("a:x", low=0.5), Ask("b:x", low=1.5)), "too small"), False),
        (Unless((Ask("a:x", low=0.5), Ask("b:x", low=1.5)), "too small", any=True), True),
        (Unless((Ask("a:y", "a:x", 2.9, 3.1),), "too small", ratio=True), True),
        (Unless((Ask("a:y", "a:x", 1.9, 2.1),), "too small", ratio=True), False),
    ],
)
def test_without_its_condition_nothing_is_testable(condition, met):
    verdict = judge(two(-0.5, x=1.0, y=3.0), BETTER, unless=[condition])
    assert verdict.word == ("reproduced" if met else "not testable here")
    assert met or (verdict.why == "too small" and verdict.detail.startswith("too small; a"))
    assert met or len(verdict.seen) == len(verdict.numbers) == len(condition.asks)


# --- timed rounds and exact numbers -------------------------------------------------------------------------


def timed(low, middle, high, **columns):
    quartiles = {"x_lower": low, "x": middle, "x_upper": high}
    return pd.DataFrame([{"method": "a", "seed": 0, "status": "ok"} | quartiles | columns])


def rounds(table, **bounds):
    claim = Claim("Timed", [Ask("a:x", **bounds)], experiment="experiment/one")
    return by_rounds(claim, {"experiment/one": table})


@pytest.mark.parametrize(
    ("quartiles", "bounds", "word"),
    [
        ((0.96, 0.97, 0.98), {"low": 0.95}, "reproduced"),
        ((0.92, 0.93, 0.94), {"low": 0.95}, "not reproduced"),
        ((0.04, 0.049, 0.06), {"high": 0.05}, "undecided"),
    ],
)
def test_quartiles_over_the_rounds_stand_in_the_place_of_seeds(quartiles, bounds, word):
    verdict = rounds(timed(*quartiles), **bounds)
    assert verdict.word == word and verdict.numbers == {"a:x": quartiles[1]}
    assert f"quartiles {quartiles[0]:.3g} to {quartiles[2]:.3g}" in verdict.detail


def test_what_was_not_timed_is_not_testable_and_without_records_nothing_is_said():
    ask, table = {"low": 0.5}, timed(0.6, 0.7, 0.8)
    assert rounds(None, **ask).word == rounds(table.assign(status="not run"), **ask).word == "not run"
    assert rounds(table.assign(status="stale"), **ask).stale
    for lost in (table.drop(columns="x_lower"), table.assign(x=None), table.replace({"a": "b"})):
        assert rounds(lost, **ask).word == "not testable here"


@pytest.mark.parametrize(
    ("numbers", "word", "told"),
    [
        ({"error": 1e-9, "other": 0.0, "control": 0.5}, "reproduced", "control 0.5"),
        ({"error": 1e-9, "other": 1e-300, "control": 0.5}, "partly", "other 1e-300"),
        ({"error": 1.0, "other": 1.0, "control": 0.5}, "not reproduced", "error 1;"),
        ({"error": 1e-9, "other": 0.0, "control": 1e-9}, "not testable here", "control 1e-09"),
        ({"other": 0.0, "control": 0.5}, "not run", "the chapter does not publish error"),
        (None, "not run", "the chapter has not been executed"),
    ],
)
def test_exact_numbers_lie_inside_closed_bounds_or_not(numbers, word, told):
    claim = Claim(
        "Counted",
        [Ask("error", high=1e-6), Ask("other", low=0.0, high=0.0)],
        unless=Unless((Ask("control", low=1e-3),), "blind"),
        experiment="chapter/one",
    )
    verdict = exactly(claim, {"chapter/one": numbers})
    assert verdict.word == word and told in verdict.detail
    assert verdict.numbers == (numbers if word != "not run" else {})
