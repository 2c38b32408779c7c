"""What a chapter shows of its claims: judged by its own tables, one row each, words as chapter numbers."""

import pytest

from sepnb import claims
from sepnb.claims import Claim, Verdict, ledger
from sepnb.claims.verdict import Answer, Dependence
from sepnb.companion import evidence
from sepnb.companion.evidence import shown

ANSWERS = (Answer("a minus b", 1.0, "holds"), Answer("a minus c", 2.0, "open"))


def small(claim, tables):
    found = tables["chapter/01_order"]["small"]
    word = "reproduced" if found < 1 else "not reproduced"
    return Verdict(word, "6 seeds", ANSWERS, budget=tables["chapter/01_order"].get("budget"))


CLAIM = Claim(
    "Small is small",
    id="small-is-small",
    rule="Small is below 1.",
    experiment="chapter/01_order",
    source="slides-separation",
    how=small,
)


@pytest.fixture(autouse=True)
def one_claim(monkeypatch):
    for module in (shown, ledger):
        monkeypatch.setattr(module, "get", {CLAIM.id: CLAIM}.__getitem__)


@pytest.fixture
def displayed(monkeypatch):
    got = []
    monkeypatch.setattr(
        "sepnb.plots.figures.show_table", lambda table, *, caption: got.append((table, caption))
    )
    return got


@pytest.mark.parametrize(("small", "word"), [(0.5, "reproduced"), (2.0, "not reproduced")])
def test_a_chapter_judges_by_the_tables_of_its_page(small, word):
    verdicts = claims.judge([CLAIM.id], {"chapter/01_order": {"small": small}})
    assert {name: verdict.word for name, verdict in verdicts.items()} == {CLAIM.id: word}


def test_a_table_that_was_forgotten_is_no_missing_run():
    with pytest.raises(ValueError, match=r"'small-is-small' needs chapter/01_order; .* given are other"):
        claims.judge([CLAIM.id], {"other": None})
    assert claims.judge([], {}) == {}


def test_the_table_has_a_row_a_claim_and_the_words_become_chapter_numbers(displayed):
    verdicts = claims.judge([CLAIM.id], {"chapter/01_order": {"small": 0.5}})
    assert evidence.show(verdicts, caption="one") == {"verdict_small_is_small": "reproduced"}
    ((table, caption),) = displayed
    assert caption == "one"
    assert table.to_numpy().tolist() == [[CLAIM.title, "reproduced", verdicts[CLAIM.id].in_short]]


def test_what_more_training_says_stands_beside_the_word(displayed):
    label = Dependence("budget-dependent", "a beside b: ahead at 1x, behind at 16x")
    word, told = {"verdict_small_is_small": "reproduced"}, {"budget_small_is_small": "budget-dependent"}
    for budget, asked, expected in ((label, True, word | told), (None, True, word), (label, False, word)):
        numbers = {"small": 0.5, "budget": budget}
        verdicts = claims.judge([CLAIM.id], {"chapter/01_order": numbers})
        assert evidence.show(verdicts, caption="", budget=asked) == expected
    (with_label, _), (without, _), _ = displayed
    assert list(with_label) == list(without) == ["claim", "verdict", "more training", "because"]
    assert with_label["more training"].item() == str(label) and without["more training"].item() == ""
