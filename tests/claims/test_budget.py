"""Rankings under more training: who exchanges places, and which verdicts that touches; on invented tables."""

import numpy as np
import pandas as pd

from sepnb import claims
from sepnb.claims import budget
from sepnb.claims.budget import BUDGETS, DEPENDENT, KEPT, exchanges, places
from sepnb.claims.verdict import Dependence, Verdict

RANKING = ("rope", "strict-sinusoidal", "separated-sinusoidal", "alibi", "sinusoidal", "learned")
WIDE = "separated-sinusoidal-wide"
AHEAD = claims.get("separation-ahead-at-every-budget")


def trained(models=RANKING, *, seeds=6, noise=0.002, **levels) -> dict[str, pd.DataFrame]:
    """Models a tenth apart that all gain alike from training; `levels` as `rope_16=2.5` (by budget)."""
    rng = np.random.default_rng(0)
    shared = 0.05 * rng.standard_normal(seeds)
    rows = []
    for place, method in enumerate(models):
        for budget_, drop in zip(BUDGETS, (0.0, 0.1, 0.2), strict=True):
            level = levels.get(f"{method.replace('-', '_')}_{budget_}", 2.2 + 0.1 * place - drop)
            for seed in range(seeds):
                score = level + shared[seed] + noise * rng.standard_normal()
                rows.append((method, budget_, seed, "ok", score))
    return {budget.TABLE: pd.DataFrame(rows, columns=["method", "budget", "seed", "status", "bits_per_byte"])}


def test_one_exchange_makes_the_ranking_depend_on_the_budget():
    """The last catches up with training and passes the four before it, not the first."""
    (stable,), (passed,) = trained().values(), trained(learned_16=2.05).values()
    assert exchanges(places(stable, list(budget.RANKED))) == []
    pairs = exchanges(places(passed, list(budget.RANKED)))
    assert {frozenset(pair) for pair in pairs} == {frozenset(("learned", other)) for other in RANKING[1:5]}


def test_models_that_are_level_do_not_exchange_places():
    """Differences of either sign inside the margin are no exchange, nor is a lead that melts to nothing."""
    near = {"alibi_1": 2.41, "alibi_4": 2.29, "alibi_16": 2.21}
    standing = places(trained(**near)[budget.TABLE], ["alibi", "separated-sinusoidal"])
    assert list(standing.place) == ["level"] * 3 and (standing.difference > 0).tolist() == [True, False, True]
    melts = trained(learned_16=2.40)[budget.TABLE]  # level with the one before it at the end
    assert exchanges(standing) == exchanges(places(melts, list(budget.RANKED))) == []


def test_the_intervals_hold_together():
    """A difference that a single t interval would call settled is open among forty-five."""
    values = np.array([0.05, 0.06, 0.02, 0.08, 0.05, 0.03])
    rows = [("a", 1, seed, "ok", 2.0 + value) for seed, value in enumerate(values)]
    rows += [("b", 1, seed, "ok", 2.0) for seed in range(6)]
    frame = pd.DataFrame(rows, columns=["method", "budget", "seed", "status", "bits_per_byte"])
    assert places(frame, ["a", "b"]).place.item() == "behind"
    assert places(frame, list("abcdefghij"), only=[("a", "b")]).place.item() == "open"
    one = places(frame[frame.seed == 0], ["a", "b"])
    assert one.place.item() == "open" and np.isnan(one.half.item())


def test_separation_must_be_ahead_at_every_budget():
    assert AHEAD.judge(trained()).word == "held"
    assert AHEAD.judge(trained(sinusoidal_16=2.21)).word == "refuted"  # level at the end: speed of learning
    (frame,) = trained().values()
    assert AHEAD.judge({budget.TABLE: frame[frame.budget < 16]}).word == "not run"


def test_a_model_that_is_slow_to_learn_is_judged_and_not_refused():
    """The bar holds for the longest training: to have learned little at first is a place like any other."""
    assert AHEAD.judge(trained(sinusoidal_1=3.4)).word == "held"
    late = AHEAD.judge(trained(sinusoidal_16=3.4))
    assert len(late.answers) == 2 and len(late.dropped) == 1
    assert "at 16x dropped: not below the bar of 3.35 bits per byte: sinusoidal at 16x" in late.detail


# --- the label of other verdicts

EQUAL_WIDTH = "separation-costs-nothing-at-equal-width"
EQUAL_PARAMETERS = "separation-costs-nothing-at-equal-parameters"
ORDERED = (RANKING[0], WIDE, *RANKING[1:])
TURNING = [claim.id for claim in claims.CLAIMS if claim.turns]


def label(claim_id: str, **levels) -> Dependence:
    return dependence(claims.get(claim_id).turns, trained(ORDERED, **levels)[budget.TABLE])


def dependence(pairs, table) -> Dependence:
    return budget.overridden(Verdict("held", "6 seeds"), pairs, table).budget


def test_every_pair_of_a_label_is_compared_by_the_rule_and_was_trained_at_every_budget():
    known = {*budget.RANKED, WIDE}
    for claim in map(claims.get, TURNING):
        assert claim.experiment != budget.TABLE
        compared = {(ask.a, ask.b) for ask in claim.asks}
        assert set(claim.turns) <= compared and {name for pair in claim.turns for name in pair} <= known
        assert {pair for pair in compared if set(pair) <= known} == set(claim.turns)
    assert len(TURNING) == 3 and {label(name).label for name in TURNING} == {KEPT}


def test_a_verdict_whose_models_exchange_places_is_budget_dependent():
    """The dense sinusoid overtakes the separated one at the end, and not the wide one."""
    told = "separated-sinusoidal beside sinusoidal: ahead at 1x, ahead at 4x, behind at 16x"
    assert str(label(EQUAL_WIDTH, sinusoidal_16=2.15)) == f"budget-dependent: {told}"
    for score, place in ((2.15, "ahead"), (2.10, "level")):  # a lead that melts is no exchange
        told = f"{WIDE} beside sinusoidal: ahead at 1x, ahead at 4x, {place} at 16x"
        assert str(label(EQUAL_PARAMETERS, sinusoidal_16=score)) == f"{KEPT}: {told}"


def test_one_pair_of_several_that_exchanges_places_is_enough():
    pairs = [("rope", "sinusoidal"), ("rope", "learned")]
    found = dependence(pairs, trained(learned_16=1.9)[budget.TABLE])
    assert found.label == DEPENDENT
    assert "rope beside learned: ahead at 1x, ahead at 4x, behind at 16x" in found.detail


def test_without_the_whole_of_the_records_there_is_no_label():
    (frame,) = trained(ORDERED).values()
    one = (frame.method == WIDE) & (frame.budget == 4) & (frame.seed == 1)
    stale = frame.assign(status=np.where(one, "stale", "ok"))
    for table in (None, pd.DataFrame(), frame[frame.budget < 16], frame[frame.method != WIDE], stale):
        assert str(claims.get(EQUAL_PARAMETERS).judge({budget.TABLE: table}).budget) == "not run"
    assert dependence(claims.get(EQUAL_WIDTH).turns, stale).label == KEPT, "it does not ask for this model"
    assert claims.get("split-norm-costs-nothing").judge({}).budget is None


def test_a_ranking_that_turns_overrides_what_a_short_training_decided():
    """At equal width separated is as good as dense; at sixteen times the training dense has passed it."""
    claim = claims.get(EQUAL_WIDTH)
    assert claim.needs == ("experiment/in_window", budget.TABLE)
    levels = {"learned": 2.6, "sinusoidal": 2.6, "separated-learned": 2.5, "separated-sinusoidal": 2.5}
    frame = pd.DataFrame(
        {"method": name, "seed": seed, "status": "ok", "bits_per_byte": level + 0.001 * np.sin(seed * level)}
        for name, level in levels.items()
        for seed in range(6)
    )

    def verdict(more: pd.DataFrame | None, behind=0.0):
        scores = frame.bits_per_byte + behind * frame.method.str.startswith("separated")
        return claim.judge({"experiment/in_window": frame.assign(bits_per_byte=scores), budget.TABLE: more})

    (kept,), (turned,) = trained(ORDERED).values(), trained(ORDERED, sinusoidal_16=2.15).values()
    assert [verdict(kept, behind).word for behind in (0.0, 0.2)] == ["held", "refuted"]
    for behind in (0.0, 0.2):
        found = verdict(turned, behind)
        assert found.word == "partly" and found.why.startswith("6 seeds; budget-dependent: separated-sin")
    assert verdict(turned, 0.13).word == "undecided", "nothing was decided"
    one = (turned.method == "sinusoidal") & (turned.budget == 16) & (turned.seed == 1)
    missing = verdict(turned.assign(status=np.where(one, "not run", "ok")))
    assert (missing.word, missing.why) == ("not run", "with more training 1 of 36 runs are missing"), (
        "the run that is missing may be the one that turns the order"
    )
    assert verdict(None).why == "with more training no runs"
