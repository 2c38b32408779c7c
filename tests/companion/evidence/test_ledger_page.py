"""The page of claims: every claim with what decides, for readers."""

import itertools
import re
from collections import Counter

import pytest

from sepnb import claims
from sepnb.claims import Verdict, ledger
from sepnb.claims.verdict import Answer, Dependence
from sepnb.companion.evidence import ledger_page
from sepnb.companion.evidence.headlines import headlines
from sepnb.records.store import Store

from ...claims.test_ledger import fake_row, publish


def test_the_page_shows_every_claim_with_what_decides(tmp_path, monkeypatch):
    of_this = [claim for claim in claims.CLAIMS if "in_window" in claim.experiment]
    monkeypatch.setattr(ledger, "CLAIMS", tuple(of_this))
    monkeypatch.setattr("sepnb.records.store.paths.results", lambda: tmp_path)
    publish(Store(tmp_path), "laptop", "a" * 40)
    judged = claims.evaluate()
    text = ledger_page.page(judged)
    for row in judged:
        assert f"(claim-{row.claim.id})=" in text
        assert f"[{row.verdict.word}]" in text
    section = text.split("(claim-separation-improves-a-learned-table)=")[1].split("(claim-")[0]
    assert "[held]{.sepnb-badge .sepnb-held} A learned table works better in dimensions" in section
    assert "| `separated-learned` | `learned` | bits per byte inside the trained length | below " in section
    assert (
        "[held]" in section
        and r"\(holds\, p " in section
        and r"exact p 0\.031" in section
        and "6 seeds" in section
    )
    assert "54 records, seeds 1, 2, 3, 4, 5, 6" in section and "`aaaaaaaaa`" in section


def test_what_a_declaration_asks_is_a_table_on_the_page_and_a_rule_in_words_a_sentence():
    names = ("ntk-frozen-helps", "compiled-rope-is-nearly-free", "content-hides-the-position")
    text = ledger_page.page([fake_row(name) for name in names])
    seeds, rounds, words = (text.split(f"(claim-{name})=")[1].split("(claim-")[0] for name in names)
    assert ": Each line, in the mean over the seeds:" in seeds
    assert "  | of | minus | what is measured | asked for |" in seeds
    assert "  | `ntk-aware` | `rope` | frozen (at 2x and 4x) | below 0 |" in seeds
    assert ": Each line, in three quarters of the rounds:" in rounds
    assert claims.get("content-hides-the-position").rule in words and "| of |" not in words


def test_each_claim_stands_once_under_what_says_it():
    rows = claims.evaluate("smoke")
    titles = ["Headlines", *(one.title for one in claims.source_map().documents), "Hypotheses of this book"]
    parts = re.split(r"^### (.+)$", ledger_page.page(rows), flags=re.M)
    assert parts[1::2] == ["All verdicts", *titles, "Verdicts that turned"]
    found = [re.findall(r"\(claim-(.+)\)=", part) for part in parts[4:-2:2]]
    assert sorted(name for names in found for name in names) == sorted(row.claim.id for row in rows)
    assert found[0] == list(headlines())
    for document, names in zip(claims.source_map().documents, found[1:], strict=False):
        assert {claims.get(name).source for name in names} == {document.source}


def test_the_page_says_how_many_words_may_be_wrong_by_chance():
    """Only what a test decided counts: not what is open, exact or counted in rounds."""
    tested = Answer("a", 1.0, "holds", p=0.01, exact=0.03)
    made = [Verdict("held", "w", (tested,))] * 30 + [Verdict("undecided", "w", (tested,))] * 50
    made += [Verdict("reproduced", "w", (tested._replace(p=None),))] * 50
    rows = [fake_row(verdict=one) for one in made]
    told = ledger_page._errors(rows)
    assert "decided 30 of them" in told and "about 2 of these" in told


def test_a_verdict_that_more_training_turns_says_so_on_the_page():
    detail = "a beside b: ahead at 1x, behind at 16x"
    labels = (Dependence("budget-dependent", detail), Dependence("no exchange", detail), None)
    rows = [fake_row(verdict=Verdict("undecided", "too few", budget=label)) for label in labels]
    lines = ledger_page.page(rows).replace("\\", "").splitlines()  # as a reader sees them
    verdicts = [line for line in lines if line.startswith("~~~~{dropdown}")]
    assert ["*budget-dependent*" in line for line in verdicts] == [True, False, False]
    told = [after for before, after in itertools.pairwise(lines) if before == "More training"]
    assert [line.split(":")[1].strip() for line in told] == ["Budget-dependent", "No exchange"]
    assert all(detail in line and "experiment `budget`" in line for line in told)


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({}, "`ccccccccc`, before the records"),
        ({"precedes": False}, "**after records were made**: the rule may"),
        ({"precedes": False}, "Source: ours, written before the records, and its rule changed later"),
        ({"precedes": False, "unseen": ("new",)}, "**after records were made**, and before those of `new`"),
        ({"precedes": False, "unseen": ("new",)}, "Source: ours, written before the records of some methods"),
        ({"rule_commit": None, "precedes": None}, "unknown (no history"),
        ({"sources": (ledger.Source("experiment/budget"),), "precedes": None}, "nothing yet"),
    ],
)
def test_the_page_says_how_rule_and_records_stand(changes, shown):
    assert shown in ledger_page.page([fake_row(**changes)])


def test_the_page_has_a_row_for_every_statement():
    source_map = claims.source_map()
    text = ledger_page.source_map_page(claims.evaluate())
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    headings = Counter(rows)["| --- | --- |"]
    assert headings == len(source_map.documents)
    assert len(rows) == len(source_map.statements) + 2 * headings
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 3 for row in rows)  # two cells, no stray border
    for statement in source_map.statements:
        row = next(row for row in rows if row.startswith(f"| {statement.says} "))
        forms = {
            "claim": "<claim-{}>`",
            "chapter": "{{doc}}`/notebooks/executed/{}`",
            "page": "{{doc}}`/book/{}`",
        }
        assert forms.get(statement.kind, "{}").format(statement.target) in row
