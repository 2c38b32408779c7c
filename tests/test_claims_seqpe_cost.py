"""The verdict on the cost of SeqPE, from invented tables: every word that the rule can give."""

import pandas as pd
import pytest

from sepnb import claims, experiments
from sepnb.claims import seqpe_cost as rules

CLAIM = "the-encoder-is-lightweight"


def table(low: float, share: float, high: float, status: str = "ok") -> dict:
    rows = [("width-32-every-1", low, share, high), ("width-64-every-1", 0.3, 0.3, 0.3)]
    names = ["method", "share_lower", "share", "share_upper"]
    return {rules.TABLE: pd.DataFrame(rows, columns=names).assign(seed=0, status=status)}


@pytest.mark.parametrize(
    ("quartiles", "word"),
    [
        ((0.02, 0.03, 0.04), "reproduced"),
        ((0.06, 0.07, 0.08), "not reproduced"),
        ((0.04, 0.049, 0.06), "undecided"),
        ((0.04, 0.051, 0.06), "undecided"),
    ],
)
def test_quartiles_decide(quartiles, word):
    verdict = claims.judge([CLAIM], table(*quartiles))[CLAIM]
    assert verdict.word == word and verdict.numbers == {"share": quartiles[1]}


def test_without_its_record_nothing_is_judged():
    rule = claims.get(CLAIM).rule
    assert rule({}).word == rule(table(0.02, 0.03, 0.04, status="not run")).word == "not run"
    assert rule(table(0.02, 0.03, 0.04, status="stale")).stale


@pytest.mark.parametrize("profile", ["laptop", "gpu"])
def test_what_is_judged_is_timed_at_the_length_that_the_rule_says(profile):
    from sepnb.experiments.seqpe_cost import TARGET

    (run,) = (c for c in experiments.get("seqpe_cost").grid(profile) if c.method == "width-32-every-1")
    assert run.length == 512 and run.width == 32 and run.every == 1
    assert run.losses.candidates is not None and run.losses.windows is not None
    assert TARGET == 0.05
