"""Whether more training turns what a verdict says: a label beside the word, from the records of `budget`.

A verdict on models trained at one budget holds for that budget. Where the experiment `budget` trained the
same pair for one, four and sixteen times as long, its records say what becomes of their order: two that
exchange places beyond their intervals make the verdict *budget-dependent*. No rule reads the label, and no
word changes by it.

The models of `budget` are smaller than those of most verdicts, and a pair that it did not train has no label.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from sepnb.claims.budget import budgets, exchanges, models, places
from sepnb.claims.verdict import NOT_RUN

DEPENDENT, KEPT = "budget-dependent", "no exchange"

_DENSE, _OURS, _WIDE = "sinusoidal", "separated-sinusoidal", "separated-sinusoidal-wide"
PAIRS = {
    "separation-costs-nothing-at-equal-width": [(_OURS, _DENSE)],
    "separation-costs-nothing-at-equal-parameters": [(_WIDE, _DENSE)],
    "rope-improves-on-absolute": [("rope", _DENSE), ("rope", "learned")],
    "rope-leads-in-window": [("rope", other) for other in (_DENSE, "learned", _OURS, _WIDE)],
    "alibi-level-with-separated-sinusoid": [("alibi", _OURS)],
    "strict-as-good-as-separated": [("strict-sinusoidal", _OURS)],
}
"""By claim: of the pairs that its rule compares, those that `budget` trained."""


@dataclass(frozen=True)
class Dependence:
    """What more training makes of a verdict.

    Attributes:
        label: `budget-dependent`, `no exchange` or `not run`.
        detail: the places of every pair, by budget; empty where not run.
    """

    label: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.label}: {self.detail}" if self.detail else self.label


def under_budget(claim_id: str, table: pd.DataFrame | None) -> Dependence | None:
    """The label of a claim; None where `budget` trained none of its pairs. See `under_budgets`."""
    return under_budgets([claim_id], table).get(claim_id)


def under_budgets(claim_ids: Iterable[str], table: pd.DataFrame | None) -> dict[str, Dependence]:
    """The labels of those of the claims that have one.

    Intervals hold together over all pairs of the models that `budget` trained, as in
    `sepnb.claims.budget.places`.

    Args:
        claim_ids: of the ledger.
        table: of the experiment `budget`.
    """
    asked = [claim_id for claim_id in claim_ids if claim_id in PAIRS]
    trained = [*models(), _WIDE]
    if table is None or table.empty or not _complete(table, trained):
        return dict.fromkeys(asked, Dependence(NOT_RUN))
    columns = ["method", "budget", "seed", "status", "bits_per_byte"]
    standing = places(table[columns].astype({"bits_per_byte": float}), trained)
    turned = {frozenset(pair) for pair in exchanges(standing)}
    labels = {}
    for claim_id in asked:
        pairs = PAIRS[claim_id]
        label = DEPENDENT if any(frozenset(pair) in turned for pair in pairs) else KEPT
        labels[claim_id] = Dependence(label, "; ".join(_told(standing, *pair) for pair in pairs))
    return labels


def _complete(table: pd.DataFrame, methods: list[str]) -> bool:
    """Whether every model has current runs at every budget, and no run is missing or stale."""
    rows = table[table["method"].isin(methods)]
    there = set(zip(rows["method"], rows["budget"], strict=True))
    wanted = {(method, budget) for method in methods for budget in budgets()}
    return wanted <= there and bool((rows["status"] == "ok").all())


def _told(standing: pd.DataFrame, a: str, b: str) -> str:
    """The place of `a` beside `b` at each budget, in words."""
    turned = {"ahead": "behind", "behind": "ahead"}
    here = standing[(standing.a == a) & (standing.b == b)]
    other = standing[(standing.a == b) & (standing.b == a)]
    rows = here if len(here) else other.assign(place=other.place.replace(turned))
    found = [f"{row.place} at {row.budget}x" for row in rows.itertuples()]
    return f"{a} beside {b}: {', '.join(found)}"
