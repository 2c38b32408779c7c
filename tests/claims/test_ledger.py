"""The ledger: what it reads, and the page that shows it."""

import inspect
import itertools
import json
import re

import numpy as np
import pytest

from sepnb import claims, experiments, paths
from sepnb.claims import Verdict, exact, language_model, ledger, pages
from sepnb.claims.evidence import judge
from sepnb.claims.headlines import HEADLINES
from sepnb.claims.verdict import Answer, Cause, Dependence
from sepnb.records.store import Record, Store

from ..shared import MADE

LEVELS = {
    "none": 2.90,
    "sinusoidal": 2.60,
    "learned": 2.62,
    "rope": 2.20,
    "alibi": 2.451,
    "separated-sinusoidal": 2.45,
    "separated-learned": 2.50,
    "separated-sinusoidal-wide": 2.40,
    "separated-learned-wide": 2.42,
}


def test_an_unknown_claim_is_named():
    with pytest.raises(ValueError, match="no claim 'rope-wins'"):
        claims.get("rope-wins")


def publish(store: Store, profile: str, commit: str, *, leave_out: int = 0) -> None:
    grid = experiments.get("in_window").grid(profile)
    jitter = 0.002 * np.random.default_rng(0).standard_normal(len(grid))
    for config, shift in zip(grid[: len(grid) - leave_out], jitter, strict=False):
        metrics = {"bits_per_byte": LEVELS[config.method] + shift, "block_parameters": 788_480}
        facts = {"commit": commit, "dirty": False, "seed": config.seed, **MADE}
        store.write(Record("in_window", profile, config.key, config.resolved(), metrics, [], {}, facts))


def row_of(rows, claim_id="separation-improves-a-learned-table"):
    return next(row for row in rows if row.claim.id == claim_id)


@pytest.fixture
def few(monkeypatch):
    """The ledger of two chapters, of which one has an experiment with six models."""
    few = [
        claim for claim in claims.CLAIMS if claim.id in exact.CLAIMS or "in_window" in claim.experiments[0]
    ]
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
    config = next(c for c in experiments.get("in_window").grid("laptop") if c.method == "rope")
    store.mark_stale("laptop", "in_window", config.key, "initial loss differs")
    rows = claims.evaluate("laptop", store)
    helps = row_of(rows, "position-information-helps").verdict
    assert helps.stale and helps.word == "not run"
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


# --- the page -----------------------------------------------------------------------------------------------


def test_the_page_shows_every_claim_with_what_decides(tmp_path, monkeypatch, few):
    monkeypatch.setattr("sepnb.records.store.paths.results", lambda: tmp_path)
    publish(Store(tmp_path), "laptop", "a" * 40)
    text = claims.page()
    for row in claims.evaluate():
        assert f"(claim-{row.claim.id})=" in text
        assert f"[{row.verdict.word}]" in text
    section = text.split("(claim-separation-improves-a-learned-table)=")[1].split("(claim-")[0]
    assert "[held]{.sepnb-badge .sepnb-held} A learned table works better in dimensions" in section
    assert claims.get("separation-improves-a-learned-table").rule in section
    assert (
        "[held]" in section
        and r"\(holds\, p " in section
        and r"exact p 0\.031" in section
        and "6 seeds" in section
    )
    assert "54 records, seeds 1, 2, 3, 4, 5, 6" in section and "`aaaaaaaaa`" in section


def test_what_a_rule_asks_of_several_is_a_table_on_the_page():
    text = claims.page([fake_row("rope-needs-a-window"), fake_row("alibi-flat-beyond-length")])
    asked, single = (
        text.split(f"(claim-{name})=")[1] for name in ("rope-needs-a-window", "alibi-flat-beyond-length")
    )
    assert "  | of | minus | what is measured | asked for |" in asked
    assert "  | `rope` |  | gap to its own sliding window (native, at 4x and 8x) | above 0.03 |" in asked
    assert claims.get("alibi-flat-beyond-length").rule in single.split("(claim-")[0]


def test_the_page_writes_for_readers():
    """Documents by their titles and in their words, the rules of evidence as the code has them."""
    assert pages._sentence("rope minus none -0.1") == "Rope minus none \N{MINUS SIGN}0.1."
    text = claims.page(claims.evaluate("smoke"))
    assert "Source: Abstract of the SeqPE paper: “" in text
    assert not any(f"Source: {document.source}" in text for document in claims.source_map().documents)
    rules, told = inspect.signature(judge).parameters, (paths.root() / "book" / "claims.md").read_text()
    assert rules["least_seeds"].default == 6 and "fewer than six seeds it is *not judged*" in told
    assert rules["significance"].default == 0.05 and "at 5 %" in told
    assert language_model.BAR.bound == 3.35 and "below 3.35 bits per byte" in told


def test_each_claim_stands_once_under_what_says_it():
    rows = claims.evaluate("smoke")
    titles = ["Headlines", *(one.title for one in claims.source_map().documents), "Hypotheses of this book"]
    parts = re.split(r"^### (.+)$", claims.page(rows), flags=re.M)
    assert parts[1::2] == ["All verdicts", *titles, "Verdicts that turned", "Withdrawn"]
    found = [re.findall(r"\(claim-(.+)\)=", part) for part in parts[4:-4:2]]
    assert sorted(name for names in found for name in names) == sorted(row.claim.id for row in rows)
    assert found[0] == list(HEADLINES)
    for document, names in zip(claims.source_map().documents, found[1:], strict=False):
        assert {claims.get(name).source for name in names} == {document.source}


def fake_row(claim_id="a-start-costs-what-its-window-moved", precedes=True, **changes) -> ledger.Row:
    """A row whose first experiment has the timing that is asked for, and all others the best."""
    claim = claims.get(claim_id)
    found = {"profile": "laptop", "records": 3, "seeds": (1,), "commits": {"": frozenset({"a" * 40})}}
    facts = {
        "claim": claim,
        "verdict": Verdict("undecided", "too few"),
        "sources": tuple(ledger.Source(need, **found) for need in claim.needs),
        "rule_commit": "c" * 40,
        "precedes": dict.fromkeys(claim.experiments, True) | {claim.experiments[0]: precedes},
    }
    return ledger.Row(**facts | changes)


def test_the_page_says_how_many_words_may_be_wrong_by_chance():
    """Only what a test decided counts: not what is open, exact or counted in rounds."""
    tested = Answer("a", 1.0, "holds", p=0.01, exact=0.03)
    made = [Verdict("held", "w", (tested,))] * 30 + [Verdict("undecided", "w", (tested,))] * 50
    made += [Verdict("reproduced", "w", (tested._replace(p=None),))] * 50
    rows = [fake_row(verdict=one) for one in made]
    assert "decided 30 of them" in pages._errors(rows) and "about 2 of these" in pages._errors(rows)


def test_a_badge_counts_the_comparisons_that_decide_and_keeps_its_colour():
    answers = [Answer(name, 0.0, found) for name, found in zip("abc", ("fails", "open", "open"), strict=True)]
    row = fake_row(verdict=Verdict("refuted", "6 seeds", tuple(answers)))
    assert pages.badge(row) == "[refuted, 1 of 3]{.sepnb-badge .sepnb-refuted}"


def test_a_verdict_that_more_training_turns_says_so_on_the_page():
    detail = "a beside b: ahead at 1x, behind at 16x"
    labels = (Dependence("budget-dependent", detail), Dependence("no exchange", detail), None)
    rows = [fake_row(verdict=Verdict("undecided", "too few", budget=label)) for label in labels]
    lines = pages.page(rows).replace("\\", "").splitlines()  # as a reader sees them
    verdicts = [line for line in lines if line.startswith("~~~~{dropdown}")]
    assert ["*budget-dependent*" in line for line in verdicts] == [True, False, False]
    told = [after for before, after in itertools.pairwise(lines) if before == "More training"]
    assert [line.split(":")[1].strip() for line in told] == ["Budget-dependent", "No exchange"]
    assert all(detail in line and "experiment `budget`" in line for line in told)


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({}, "`ccccccccc`, before the records"),
        ({"precedes": False}, "**after records were made** of experiment `seqpe_stream_geometry`:"),
        ({"precedes": None}, "is unknown"),
        ({"rule_commit": None, "precedes": None}, "unknown (no history"),
        ({"verdict": Verdict("not run", "stale", cause=Cause.STALE)}, "[stale]"),
        ({"sources": (ledger.Source("experiment/budget"),), "precedes": None}, "nothing yet"),
    ],
)
def test_the_page_says_how_rule_and_records_stand(changes, shown):
    assert shown in claims.page([fake_row(**changes)])


def test_only_experiments_that_are_judged_are_held_against_the_rule():
    """Methods that an older experiment lends were there before every rule that borrows them."""
    row = fake_row("seqpe-is-free-in-window")
    assert list(row.precedes) == ["experiment/seqpe_stream"] and len(row.sources) == 2
    text = claims.page([row])
    assert "`ccccccccc`, before the records were made" in text
    lent = "experiment `recipes`, profile laptop, 3 records, seeds 1, made at `aaaaaaaaa` (methods beside"
    assert lent in text
    timed = fake_row(precedes=False)
    assert timed.timing == {"experiment/seqpe_stream_geometry": "after", "experiment/seqpe_stream": "before"}


def test_a_rule_is_held_against_the_records_of_the_methods_that_it_asks_for():
    """Of a method that it does not read, records may have been there before."""
    claim = claims.get("needle-dense-twin-does-as-well-at-equal-parameters")
    one, other = sorted(claim.methods)
    made = {one: frozenset("a"), other: frozenset("b"), "another": frozenset("c")}
    source = ledger.Source(*claim.needs, commits=made)
    assert source.judged_by(claim) == {"a", "b"} and source.made_at == ["a", "b", "c"]
    unknown = ledger.Source(*claim.needs, commits={"": frozenset("d"), one: frozenset("a")})
    assert unknown.judged_by(claim) == {"a", "d"}, "it names one that has no records: all count"


def test_the_command_prints_a_table_or_a_list_of_objects(monkeypatch):
    from typer.testing import CliRunner

    from sepnb import cli

    numbers = {"a minus b": -0.5, "diverged": float("nan")}
    row = fake_row(precedes=False, verdict=Verdict("held", "6 seeds", numbers=numbers))
    monkeypatch.setattr(claims, "evaluate", lambda profile=None, store=None: [row])
    (found,) = json.loads(CliRunner().invoke(cli.app, ["claims", "--json"]).stdout)
    assert found == {
        "id": row.claim.id,
        "title": "A start costs the more the farther its window moved",
        "source": "ours, written before the records",
        "verdict": "held",
        "numbers": {"a minus b": -0.5, "diverged": None},
        "rule_commit": "c" * 40,
        "timing": {"experiment/seqpe_stream_geometry": "after", "experiment/seqpe_stream": "before"},
    }
    table = CliRunner().invoke(cli.app, ["claims"]).stdout
    assert "held" in table and "6 seeds" in table and "laptop" in table
