"""Verdicts on the speed of encodings, from invented cells: every word that the rules can give."""

import pandas as pd
import pytest

from sepnb import claims, experiments
from sepnb.claims import encoding_speed as rules
from sepnb.experiments import peer
from sepnb.experiments.encoding_speed import TARGETS

IDS = [claim.id for claim in rules.CLAIMS]
GOOD = {
    "rope": 0.97,
    "xpos": 0.97,
    "alibi": 0.97,
    "t5": 0.7,
    "kerple": 0.7,
    "transformer-xl": 0.5,
    "shaw": 0.5,
    "distance-aware": 0.5,
    "cope": 0.3,
}
"""A world in which every aim is reached."""
THEIRS = [method for method in peer.METHODS if method != "none"]
"""The encodings of x-transformers: all that the claim may mean by *wherever*."""


def table(changes=None, *, spread: float = 0.005, ahead: float | dict = 1.3, status: str = "ok") -> dict:
    """Both lengths of every cell; `changes` are by method, or by method and length."""
    changes, rows = changes or {}, []
    for method, share in GOOD.items():
        for length in (512, 1024):
            here = changes.get((method, length), changes.get(method, share))
            row = {"method": method, "seed": 0, "status": status, "length": length}
            faster = (
                (ahead.get(method, 1.3) if isinstance(ahead, dict) else ahead) if method in THEIRS else None
            )
            for column, value in (("compiled", here), ("ahead", faster)):
                if value is not None:
                    row |= {
                        f"{column}_lower": value - spread,
                        column: value,
                        f"{column}_upper": value + spread,
                    }
            rows.append(row)
    return {rules.TABLE: pd.DataFrame(rows)}


def word(claim_id: str, tables: dict) -> str:
    return claims.get(claim_id).rule(tables).word


@pytest.mark.parametrize("claim_id", IDS)
def test_what_reaches_every_aim_is_reproduced_and_nothing_is_judged_without_records(claim_id):
    assert word(claim_id, table()) == "reproduced"
    assert word(claim_id, {}) == word(claim_id, table(status="not run")) == "not run"
    assert claims.get(claim_id).rule(table(status="stale")).stale


@pytest.mark.parametrize(
    ("claim_id", "changed", "expected"),
    [
        ("compiled-rope-is-nearly-free", {"rope": 0.9}, "not reproduced"),
        ("compiled-rope-is-nearly-free", {("rope", 1024): 0.9}, "partly"),
        ("compiled-rope-is-nearly-free", {("rope", 512): 0.952}, "undecided"),
        ("a-fixed-bias-is-cheap", {("alibi", 1024): 0.76}, "reproduced"),
        ("a-fixed-bias-is-cheap", {("alibi", 1024): 0.74}, "partly"),
        ("a-fixed-bias-is-cheap", {("alibi", 512): 0.76}, "partly"),
        ("a-trained-bias-leaves-three-fifths", {"t5": 0.5, "kerple": 0.5}, "not reproduced"),
        ("a-trained-bias-leaves-three-fifths", {("t5", 1024): 0.3}, "reproduced"),
        ("scores-of-their-own-leave-two-fifths", {"shaw": 0.3}, "partly"),
        ("scores-of-their-own-leave-two-fifths", {"shaw": 0.3, "distance-aware": 0.401}, "undecided"),
    ],
)
def test_each_bound_decides_in_its_cell(claim_id, changed, expected):
    assert word(claim_id, table(changed)) == expected


@pytest.mark.parametrize(("ahead", "expected"), [(0.9, "not reproduced"), (1.002, "undecided")])
def test_ahead_means_that_the_other_package_takes_longer(ahead, expected):
    assert word("ahead-of-x-transformers", table(ahead=ahead)) == expected


@pytest.mark.parametrize("method", THEIRS)
def test_wherever_means_every_encoding_that_the_other_package_has(method):
    assert word("ahead-of-x-transformers", table(ahead={method: 0.9})) == "partly"
    whole = table()[rules.TABLE]
    untimed = whole.assign(ahead=whole.ahead.where(whole.method != method))
    assert word("ahead-of-x-transformers", {rules.TABLE: untimed}) == "not testable here"


def test_what_was_not_timed_is_not_testable():
    whole = table()[rules.TABLE]
    without_package = {rules.TABLE: whole.drop(columns=[c for c in whole if c.startswith("ahead")])}
    assert word("ahead-of-x-transformers", without_package) == "not testable here"
    long_only = {rules.TABLE: whole[whole.length == 1024]}
    assert word("a-trained-bias-leaves-three-fifths", long_only) == "not testable here"
    not_compiled = {rules.TABLE: whole.assign(compiled=float("nan"))}
    assert word("compiled-rope-is-nearly-free", not_compiled) == "not testable here"


def test_the_rules_ask_for_the_aims_of_the_experiment_in_cells_of_its_grid(monkeypatch):
    asked = {}

    def cells(tables, column, bounds):
        asked.setdefault(column, {}).update(bounds)
        return claims.Verdict("undecided", "asked")

    monkeypatch.setattr(rules, "cells", cells)
    for claim in rules.CLAIMS:
        claim.rule({})
    aims = {cell: aim for cell, aim in TARGETS.items() if cell[0] not in ("xpos", "sandwich")}
    assert asked["compiled"] == aims  # xPos and Sandwich take the routes of RoPE and ALiBi
    assert set(asked["ahead"].values()) == {1.0}
    grid = {(one.method, one.length) for one in experiments.get("encoding_speed").grid("laptop")}
    assert asked["compiled"].keys() | asked["ahead"].keys() <= grid
