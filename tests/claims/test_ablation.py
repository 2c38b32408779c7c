"""Rules on the ablation and on budgets: every word, from synthetic tables, for the right reason."""

import numpy as np
import pandas as pd
import pytest

from sepnb import claims
from sepnb.claims import ablation, budget, dependence
from sepnb.claims.budget import budgets, exchanges, places
from sepnb.experiments.ablation import JUDGED

LEVELS = {
    "sinusoidal": 2.60,
    "sinusoidal-reinjected": 2.55,
    "learned": 2.80,
    "learned-reinjected": 2.70,
    "concatenated-sinusoidal": 2.55,
    "concatenated-sinusoidal-split-norm": 2.54,
    "separated-sinusoidal": 2.50,
    "separated-sinusoidal-joint-norm": 2.53,
    "separated-sinusoidal-joint-value-output": 2.49,
    "separated-sinusoidal-joint-mlp": 2.49,
    "separated-sinusoidal-both-readout": 2.50,
    "separated-sinusoidal-constant": 2.51,
    "separated-sinusoidal-reinjected": 2.50,
    "separated-learned": 2.52,
    "separated-learned-constant": 2.51,
    "separated-learned-reinjected": 2.53,
}
RULES = {claim.id: claim.rule for claim in ablation.CLAIMS}


def test_what_the_claims_compare_has_the_seeds_that_a_verdict_needs():
    """Not one model more, and none less: a rule that reads another finds no runs here."""
    assert set(LEVELS) == set(JUDGED)
    assert {rule(ablated()).word for rule in RULES.values()} == {"reproduced"}


def ablated(levels=LEVELS, *, seeds=6, noise=0.003, **changes) -> dict[str, pd.DataFrame]:
    """One row a run: a level per variant, noise shared by the variants of a seed, and noise of its own."""
    rng = np.random.default_rng(0)
    shared = 0.05 * rng.standard_normal(seeds)
    rows = [
        (name, seed, "ok", level + shared[seed] + noise * rng.standard_normal())
        for name, level in (levels | changes).items()
        for seed in range(seeds)
    ]
    return {ablation.TABLE: pd.DataFrame(rows, columns=["method", "seed", "status", "bits_per_byte"])}


AGAINST = {
    "position-at-every-layer-helps": {"sinusoidal-reinjected": 2.65, "learned-reinjected": 2.9},
    "a-pos-stream-needs-no-reinjection": {
        "separated-sinusoidal-reinjected": 2.40,
        "separated-learned-reinjected": 2.40,
    },
    "constant-pos-stream-ties-with-evolving": {
        "separated-sinusoidal-constant": 2.60,
        "separated-learned-constant": 2.60,
    },
    "split-norm-costs-nothing": {
        "separated-sinusoidal-joint-norm": 2.40,
        "concatenated-sinusoidal-split-norm": 2.70,
    },
    "no-single-wall-costs": {
        "separated-sinusoidal-joint-value-output": 2.40,
        "separated-sinusoidal-joint-mlp": 2.40,
        "separated-sinusoidal-both-readout": 2.40,
    },
    "concatenation-alone-helps": {"concatenated-sinusoidal": 2.65},
}


@pytest.mark.parametrize("claim_id", RULES)
def test_a_world_in_which_every_claim_holds(claim_id):
    assert RULES[claim_id](ablated()).word == "reproduced"


@pytest.mark.parametrize("claim_id", RULES)
def test_a_world_that_contradicts_the_claim(claim_id):
    assert RULES[claim_id](ablated(**AGAINST[claim_id])).word == "not reproduced"


@pytest.mark.parametrize("claim_id", [name for name in RULES if len(AGAINST[name]) > 1])
def test_a_world_that_splits_the_family(claim_id):
    """Each comparison of the family counts: turned alone, it leaves the rest standing."""
    for name, level in AGAINST[claim_id].items():
        assert RULES[claim_id](ablated(**{name: level})).word == "partly", name


@pytest.mark.parametrize("claim_id", RULES)
def test_too_few_seeds_or_too_much_noise_decide_nothing(claim_id):
    few = RULES[claim_id](ablated(seeds=3))
    assert few.word == "undecided" and "3 seeds" in few.detail and few.numbers
    assert RULES[claim_id](ablated(noise=0.5)).word == "undecided"


@pytest.mark.parametrize("claim_id", RULES)
def test_without_every_run_or_above_the_bar_nothing_is_said(claim_id):
    assert RULES[claim_id]({}).word == "not run"
    (frame,) = ablated().values()
    for status, stale in (("not run", False), ("stale", True)):
        for name in AGAINST[claim_id]:
            holes = frame.copy()
            holes.loc[(frame.method == name) & (frame.seed == 2), "status"] = status
            verdict = RULES[claim_id]({ablation.TABLE: holes})
            assert (verdict.word, verdict.stale) == ("not run", stale)
    high = RULES[claim_id](ablated({name: level + 1 for name, level in LEVELS.items()}))
    assert high.word == "not testable here" and "3.35" in high.detail


def test_a_tie_is_not_the_same_as_not_worse():
    """Two bounds or one: a model far ahead is no tie, but it costs nothing."""
    ahead = {"separated-sinusoidal-constant": 2.30, "separated-learned-constant": 2.30}
    assert RULES["constant-pos-stream-ties-with-evolving"](ablated(**ahead)).word == "not reproduced"
    better = {"separated-sinusoidal": 2.30, "concatenated-sinusoidal-split-norm": 2.30}
    assert RULES["split-norm-costs-nothing"](ablated(**better)).word == "reproduced"


# --- budgets

RANKING = ("rope", "strict-sinusoidal", "separated-sinusoidal", "alibi", "sinusoidal", "learned")
WIDE = "separated-sinusoidal-wide"
AHEAD, AHEAD_WIDE, STABLE = (
    claims.get(name)
    for name in (
        "separation-ahead-at-every-budget",
        "separation-ahead-at-equal-parameters-and-every-budget",
        "ranking-stable-under-budget",
    )
)


def trained(
    models=RANKING, *, seeds=6, noise=0.002, step=0.1, gain=0.1, status="ok", **levels
) -> dict[str, pd.DataFrame]:
    """Six models a tenth apart that all gain alike from training; `levels` as `rope_16=2.5` (by budget)."""
    rng = np.random.default_rng(0)
    shared = 0.05 * rng.standard_normal(seeds)
    rows = []
    for place, method in enumerate(models):
        for budget_, drop in zip(budgets(), (0.0, gain, 2 * gain), strict=True):
            level = levels.get(f"{method.replace('-', '_')}_{budget_}", 2.2 + step * place - drop)
            for seed in range(seeds):
                score = level + shared[seed] + noise * rng.standard_normal()
                rows.append((method, budget_, seed, status, score))
    return {budget.TABLE: pd.DataFrame(rows, columns=["method", "budget", "seed", "status", "bits_per_byte"])}


def test_a_ranking_that_every_budget_shares_is_stable():
    verdict = STABLE.rule(trained())
    assert verdict.word == "reproduced"
    assert verdict.numbers == {"pairs": 15, "exchanged": 0, "open": 0}


def test_one_exchange_makes_the_ranking_depend_on_the_budget():
    """The last catches up with training and passes the four before it, not the first."""
    tables = trained(learned_16=2.05)
    verdict = STABLE.rule(tables)
    assert verdict.word == "not reproduced" and verdict.numbers["exchanged"] == 4
    pairs = exchanges(places(tables[budget.TABLE], list(budget.models())))
    assert {frozenset(pair) for pair in pairs} == {frozenset(("learned", other)) for other in RANKING[1:5]}
    assert "learned and" in verdict.detail


def test_models_that_are_level_do_not_exchange_places():
    """Differences of either sign inside the margin are no exchange, nor is a lead that melts to nothing."""
    near = {"alibi_1": 2.41, "alibi_4": 2.29, "alibi_16": 2.21}
    verdict = STABLE.rule(trained(**near))
    standing = places(trained(**near)[budget.TABLE], ["alibi", "separated-sinusoidal"])
    assert list(standing.place) == ["level"] * 3 and (standing.difference > 0).tolist() == [True, False, True]
    assert verdict.word == "reproduced"
    melts = STABLE.rule(trained(learned_16=2.40))  # level with the one before it at the end
    assert melts.word == "reproduced"


def test_an_order_that_the_seeds_leave_open_is_undecided():
    verdict = STABLE.rule(trained(noise=0.1))
    assert verdict.word == "undecided" and verdict.numbers["open"] > 0
    few = STABLE.rule(trained(seeds=3))
    assert few.word == "undecided" and "at least 6 seeds" in few.detail


def test_the_intervals_hold_together():
    """A difference that a single t interval would call settled is open among forty-five."""
    values = np.array([0.05, 0.06, 0.02, 0.08, 0.05, 0.03])
    rows = [("a", 1, seed, "ok", 2.0 + value) for seed, value in enumerate(values)]
    rows += [("b", 1, seed, "ok", 2.0) for seed in range(6)]
    frame = pd.DataFrame(rows, columns=["method", "budget", "seed", "status", "bits_per_byte"])
    assert places(frame, ["a", "b"]).place.item() == "behind"
    assert places(frame, ["a", "b"], significance=0.05 / 45).place.item() == "open"
    one = places(frame[frame.seed == 0], ["a", "b"])
    assert one.place.item() == "open" and np.isnan(one.half.item())


def test_separation_must_be_ahead_at_every_budget():
    assert AHEAD.rule(trained()).word == "reproduced"
    assert AHEAD.rule(trained(sinusoidal_16=2.21)).word == "partly"  # level at the end: speed of learning
    level = {f"sinusoidal_{n}": 2.41 - drop for n, drop in zip(budgets(), (0.0, 0.1, 0.2), strict=True)}
    assert AHEAD.rule(trained(**level)).word == "not reproduced"
    assert AHEAD.rule(trained(seeds=3)).word == "undecided"


@pytest.mark.parametrize("claim", budget.CLAIMS, ids=lambda claim: claim.id)
def test_budgets_that_are_missing_or_too_hard_say_nothing(claim):
    for frame in (None, pd.DataFrame()):
        assert claim.rule({budget.TABLE: frame}).word == "not run"
    (frame,) = trained((*RANKING, WIDE)).values()
    assert claim.rule({budget.TABLE: frame[frame.budget < 16]}).word == "not run"
    holes = frame.copy()
    holes.loc[(frame.method == "sinusoidal") & (frame.budget == 4) & (frame.seed == 1), "status"] = "not run"
    assert claim.rule({budget.TABLE: holes}).word == "not run"
    diverged = frame.copy()
    diverged.loc[(frame.method == "sinusoidal") & (frame.budget == 1), "bits_per_byte"] = np.nan
    verdict = claim.rule({budget.TABLE: diverged})
    assert verdict.word == "not testable here" and "diverged" in verdict.detail
    high = frame.assign(bits_per_byte=frame.bits_per_byte + 1.2)
    assert claim.rule({budget.TABLE: high}).word == "not testable here"


def test_a_model_that_is_slow_to_learn_is_judged_and_not_refused():
    """The bar holds for the longest training: to have learned little at first is a place like any other."""
    assert AHEAD.rule(trained(sinusoidal_1=3.4)).word == "reproduced"
    assert AHEAD.rule(trained(sinusoidal_16=3.4)).word == "not testable here"
    assert STABLE.rule(trained(learned_1=3.4)).word == "reproduced"
    assert STABLE.rule(trained(learned_16=3.4)).word == "not testable here"


@pytest.mark.parametrize(
    ("at_the_end", "word"), [(2.10, "reproduced"), (2.60, "partly"), (2.40, "undecided")]
)
def test_equal_parameters_are_judged_by_the_widened_model_at_every_budget(at_the_end, word):
    """Dense pays 2.6, 2.5 and 2.4: widened is ahead after little training, and at the end or not."""
    noise = 0.05 if word == "undecided" else 0.002
    levels = {f"{WIDE.replace('-', '_')}_{n}": level for n, level in ((1, 2.2), (4, 2.2), (16, at_the_end))}
    tables = trained((*RANKING, WIDE), noise=noise, **levels)
    assert AHEAD_WIDE.rule(tables).word == word
    assert AHEAD.rule(tables).word == "reproduced"  # of equal width, and another question
    assert AHEAD_WIDE.rule(trained()).word == "not run"


# --- the label of other verdicts

EQUAL_WIDTH = "separation-costs-nothing-at-equal-width"
EQUAL_PARAMETERS = "separation-costs-nothing-at-equal-parameters"
ORDERED = (RANKING[0], WIDE, *RANKING[1:])


def label(claim_id: str, **levels) -> dependence.Dependence:
    return dependence.under_budget(claim_id, trained(ORDERED, **levels)[budget.TABLE])


def test_every_pair_of_a_label_is_compared_by_the_rule_and_was_trained_at_every_budget():
    known = {*budget.models(), WIDE}
    for claim_id, pairs in dependence.PAIRS.items():
        assert claims.get(claim_id).needs != (budget.TABLE,)
        assert {name for pair in pairs for name in pair} <= known
    (frame,) = trained(ORDERED).values()
    labels = claims.under_budgets([*dependence.PAIRS, "split-norm-costs-nothing"], frame)
    assert list(labels) == list(dependence.PAIRS)
    assert {one.label for one in labels.values()} == {dependence.KEPT}


def test_a_verdict_whose_models_exchange_places_is_budget_dependent():
    """The dense sinusoid overtakes the separated one at the end, and not the wide one."""
    found = label(EQUAL_WIDTH, sinusoidal_16=2.15)
    assert found.label == dependence.DEPENDENT == "budget-dependent"
    told = "separated-sinusoidal beside sinusoidal: ahead at 1x, ahead at 4x, behind at 16x"
    assert found.detail == told and str(found) == f"budget-dependent: {told}"
    kept = label(EQUAL_PARAMETERS, sinusoidal_16=2.15)
    assert kept.label == dependence.KEPT
    assert kept.detail == f"{WIDE} beside sinusoidal: ahead at 1x, ahead at 4x, ahead at 16x"


def test_a_lead_that_melts_is_told_and_is_no_exchange():
    found = label(EQUAL_PARAMETERS, sinusoidal_16=2.10)  # as low as the wide one
    assert found.label == dependence.KEPT and found.detail.endswith("ahead at 4x, level at 16x")


def test_one_pair_of_several_is_enough():
    found = label("rope-leads-in-window", learned_16=1.9)
    assert found.label == dependence.DEPENDENT
    assert "rope beside learned: ahead at 1x, ahead at 4x, behind at 16x" in found.detail
    assert label("alibi-level-with-separated-sinusoid", learned_16=1.9).label == dependence.KEPT


def test_without_the_whole_of_the_records_there_is_no_label():
    (frame,) = trained(ORDERED).values()
    holes = frame.copy()
    holes.loc[(frame.method == WIDE) & (frame.budget == 4) & (frame.seed == 1), "status"] = "stale"
    for table in (None, pd.DataFrame(), frame[frame.budget < 16], frame[frame.method != WIDE], holes):
        assert str(dependence.under_budget(EQUAL_WIDTH, table)) == "not run"
    assert dependence.under_budget("split-norm-costs-nothing", frame) is None
