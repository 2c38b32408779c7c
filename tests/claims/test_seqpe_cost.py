"""The verdict on the cost of SeqPE, from invented tables: every word that the rule can give."""

import pandas as pd
import pytest

from sepnb import claims, experiments
from sepnb.claims import seqpe_cost as rules

ALONE, ALL = "the-encoder-is-lightweight", "all-that-seqpe-adds-is-light"


def table(share: tuple, overhead: tuple = (0.01, 0.02, 0.03), status: str = "ok") -> dict:
    """Quartiles of the share of positions, and of all that a step without an encoding has not."""
    longer = [1 / (1 - value) for value in overhead]
    rows = [("width-32-every-1", *share, *longer), ("width-64-every-1", *[0.3] * 3, *[2.0] * 3)]
    names = ["method", *(f"{what}{end}" for what in ("share", "longer") for end in ("_lower", "", "_upper"))]
    return {rules.TABLE: pd.DataFrame(rows, columns=names).assign(seed=0, status=status)}


LESS, MORE, ABOUT = (0.02, 0.03, 0.04), (0.06, 0.07, 0.08), (0.04, 0.049, 0.06)


@pytest.mark.parametrize(
    ("share", "word"),
    [
        (LESS, "reproduced"),
        (MORE, "not reproduced"),
        (ABOUT, "undecided"),
        ((0.04, 0.051, 0.06), "undecided"),
    ],
)
def test_quartiles_decide_each_of_the_two_alone(share, word):
    for claim, tables in ((ALONE, table(share, MORE)), (ALL, table(MORE, share))):
        verdict = claims.judge([claim], tables)[claim]
        assert verdict.word == word
        assert verdict.numbers == pytest.approx({"share": share[1]})


@pytest.mark.parametrize("claim", [ALONE, ALL])
def test_without_its_record_nothing_is_judged(claim):
    rule = claims.get(claim).rule
    assert rule({}).word == rule(table(LESS, status="not run")).word == "not run"
    assert rule(table(LESS, status="stale")).stale


@pytest.mark.parametrize("profile", ["laptop", "gpu"])
def test_what_is_judged_is_timed_at_the_length_that_the_rule_says(profile):
    from sepnb.experiments.seqpe_cost import TARGET

    (run,) = (c for c in experiments.get("seqpe_cost").grid(profile) if c.method == "width-32-every-1")
    assert run.length == 512 and run.width == 32 and run.every == 1
    assert run.losses.candidates is not None and run.losses.windows is not None
    assert TARGET == 0.05
