"""The ledger: what it reads, and the page that shows it."""

import json
from dataclasses import replace

import numpy as np
import pytest

from sepnb import claims, experiments
from sepnb.claims import Verdict, exact, ledger
from sepnb.records.store import Record, Store

from ..shared import MADE


def test_an_unknown_claim_is_named():
    with pytest.raises(ValueError, match="no claim 'rope-wins'"):
        claims.get("rope-wins")


def publish(store: Store, profile: str, commit: str, *, leave_out: int = 0) -> None:
    grid = experiments.get("in_window").grid(profile)
    jitter = 0.002 * np.random.default_rng(0).standard_normal(len(grid))
    for config, shift in zip(grid[: len(grid) - leave_out], jitter, strict=False):
        level = 2.5 if config.method.startswith("separated") else 2.6
        metrics = {"bits_per_byte": level + shift, "block_parameters": 788_480}
        facts = {"commit": commit, "dirty": False, "seed": config.seed, **MADE}
        store.write(Record("in_window", profile, config.key, config.resolved(), metrics, [], {}, facts))


def row_of(rows, claim_id="separation-improves-a-learned-table"):
    return next(row for row in rows if row.claim.id == claim_id)


@pytest.fixture
def few(monkeypatch):
    """The ledger of two chapters, of which one has an experiment with six models."""
    few = [claim for claim in claims.CLAIMS if claim.id in exact.CLAIMS or "in_window" in claim.experiment]
    monkeypatch.setattr(ledger, "CLAIMS", tuple(few))


def test_the_gpu_replaces_the_laptop_when_its_grid_is_complete(tmp_path, few):
    partial, complete = Store(tmp_path / "partial"), Store(tmp_path / "complete")
    for store, missing in ((partial, 1), (complete, 0)):
        publish(store, "laptop", "a" * 40)
        publish(store, "gpu", "b" * 40, leave_out=missing)
    for store, profile, commit in ((partial, "laptop", "a"), (complete, "gpu", "b")):
        row = row_of(claims.evaluate(store=store))
        assert (row.profile, row.verdict.word, row.sources[0].made_at) == (profile, "held", [commit * 40])
    assert row.sources[0].records == len(experiments.get("in_window").grid("gpu"))
    assert row.sources[0].seeds == (1, 2, 3, 4, 5, 6)
    assert row_of(claims.evaluate("laptop", complete)).profile == "laptop"


def test_a_mark_of_staleness_takes_the_verdict_away(tmp_path, few):
    store = Store(tmp_path)
    publish(store, "laptop", "a" * 40)
    grid = experiments.get("in_window").grid("laptop")
    config = next(c for c in grid if c.method == "separated-learned-wide")
    store.mark_stale("laptop", "in_window", config.key, "initial loss differs")
    rows = claims.evaluate("laptop", store)
    equal = row_of(rows, "separation-costs-nothing-at-equal-parameters").verdict
    assert equal.stale and equal.word == "not run"
    assert row_of(rows).verdict.word == "held"


def test_chapters_are_read_at_the_best_profile_they_ran_at(tmp_path, monkeypatch, few):
    from sepnb.records import numbers

    monkeypatch.setenv("SEPNB_BUILD", str(tmp_path))
    empty = Store(tmp_path / "none")
    invariant = "attention-is-permutation-invariant"
    assert row_of(claims.evaluate(store=empty), invariant).verdict.word == "not run"
    numbers.publish("01_order", {"invariance_error": 0.0}, profile="smoke")
    assert row_of(claims.evaluate(store=empty), invariant).verdict.word == "reproduced"
    numbers.publish("01_order", {"invariance_error": 0.8}, profile="laptop")
    row = row_of(claims.evaluate(store=empty), invariant)
    assert (row.profile, row.verdict.word, row.sources[0].records) == ("laptop", "not reproduced", 0)
    assert row_of(claims.evaluate("smoke", empty), invariant).verdict.word == "reproduced"


def fake_row(claim_id="the-losses-order-positions", precedes=True, **changes) -> ledger.Row:
    claim = claims.get(claim_id)
    sources = (
        ledger.Source(need, None, "laptop", 3, (1,), {"": frozenset({"a" * 40})}) for need in claim.needs
    )
    row = ledger.Row(claim, Verdict("undecided", "too few"), tuple(sources), "c" * 40, precedes)
    return replace(row, **changes)


def test_a_rule_is_held_against_the_records_of_the_methods_that_it_asks_for():
    """Of a method that it does not read, records may have been there before."""
    claim = claims.get("needle-dense-twin-does-as-well-at-equal-parameters")
    one, other = sorted(claim.methods)
    made = {one: frozenset("a"), other: frozenset("b"), "another": frozenset("c")}
    source = ledger.Source(*claim.needs, commits=made)
    assert source.judged_by(claim) == {one: {"a"}, other: {"b"}} and source.made_at == ["a", "b", "c"]
    unknown = ledger.Source(*claim.needs, commits={"": frozenset("d"), one: frozenset("a")})
    assert unknown.judged_by(claim) == {"": {"d"}, one: {"a"}}, "it names one that has no records: all count"


def test_the_command_prints_a_table_or_a_list_of_objects(monkeypatch):
    from typer.testing import CliRunner

    from sepnb import cli

    numbers = {"a minus b": -0.5, "diverged": float("nan")}
    row = fake_row(precedes=False, verdict=Verdict("held", "6 seeds", numbers=numbers))
    monkeypatch.setattr(claims, "evaluate", lambda profile=None, store=None: [row])
    (found,) = json.loads(CliRunner().invoke(cli.app, ["claims", "--json"]).stdout)
    assert found == {
        "id": row.claim.id,
        "title": "SeqPE's losses order the positions of a window",
        "source": "ours, written before the records",
        "verdict": "held",
        "numbers": {"a minus b": -0.5, "diverged": None},
        "rule_commit": "c" * 40,
        "timing": "after",
    }
    table = CliRunner().invoke(cli.app, ["claims"]).stdout
    assert "held" in table and "6 seeds" in table and "laptop" in table
