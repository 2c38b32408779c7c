"""A claim as data: what it reads, what its digest covers, and when its rule was made."""

import dataclasses
import json
import subprocess
from functools import partial

import pandas as pd
import pytest

from sepnb.claims import CLAIMS, Claim, provenance
from sepnb.claims.asks import Ask, Floor, Unless
from sepnb.claims.claim import code
from sepnb.claims.evidence import by_rounds, by_seeds
from sepnb.claims.verdict import Verdict

from ..shared import withdrawn


def doubled(table):
    """Twice x."""
    return pd.DataFrame({"twice": 2.0 * table["x"]})


def own_rule(claim, tables):
    """A rule of its own."""
    return Verdict("undecided", "never")


made = partial(
    Claim,
    "A claim",
    id="a-claim",
    experiment="experiment/one",
    beside={"experiment/other": ("b",)},
    derive=doubled,
)
CLAIM = made([Ask("a:twice", "b:twice", high=0.0)])


def runs(method, x, **columns):
    return pd.DataFrame({"method": method, "seed": range(6), "status": "ok", "x": x} | columns)


TABLES = {
    "experiment/one": runs("a", 1.0, bits_per_byte=2.0),
    "experiment/other": pd.concat([runs("b", 0.0, twice=3.0), runs("c", 0.0, twice=0.0)]),
}


def test_a_claim_reads_its_own_runs_with_derived_columns_and_the_methods_that_it_borrows():
    table = CLAIM.table(TABLES)
    assert table.groupby("method").twice.mean().to_dict() == {"a": 2.0, "b": 3.0}
    assert CLAIM.needs == ("experiment/one", "experiment/other")
    assert CLAIM.judge(TABLES).word == "held"
    of_a_source = dataclasses.replace(CLAIM, source="slides-separation")
    assert of_a_source.judge(TABLES).word == "reproduced"
    assert CLAIM.judge(TABLES | {"experiment/other": None}).detail == "no runs of b"
    assert CLAIM.judge({}).detail == CLAIM.judge({"experiment/one": pd.DataFrame()}).detail == "no runs"


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"experiment": "in_window"}, "write experiment/<name> or chapter/<name>"),
        ({"experiment": ""}, "write experiment/<name> or chapter/<name>"),
        ({"beside": {"experiment/": ("b",)}}, "write experiment/<name> or chapter/<name>"),
        ({"title": ""}, "has no title"),
        ({"asks": (), "rule": "It is so.", "how": own_rule}, "has no asks"),
    ],
)
def test_a_claim_is_checked_when_it_is_made(changes, fault):
    with pytest.raises(ValueError, match=fault):
        dataclasses.replace(CLAIM, **changes)


# --- the digest ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"asks": [Ask("a:twice", "b:twice", high=0.01)]},
        {"asks": [Ask("a:twice", "c:twice", high=0.0)]},
        {"experiment": "experiment/two"},
        {"beside": {"experiment/other": ("b", "c")}},
        {"metric": "x"},
        {"higher_is_better": True},
        {"floors": (Floor(3.35),)},
        {"unless": (Unless((Ask("a:x", low=0.0),), "why"),)},
        {"turns": (("a", "b"),)},
        {"parts": True},
        {"derive": None},
        {"how": own_rule},
        {"how": by_rounds},
    ],
)
def test_the_digest_moves_with_all_that_decides(changes):
    assert dataclasses.replace(CLAIM, **changes).digest != CLAIM.digest


def test_the_digest_does_not_move_with_words():
    words = {"title": "Another", "rule": "Other.", "source": "there", "id": "other"}
    assert dataclasses.replace(CLAIM, **words).digest == CLAIM.digest
    one, other = (made(CLAIM.asks, unless=Unless((Ask("a:x", low=0.0),), why)) for why in ("one", "other"))
    assert one.digest == other.digest


def test_the_digest_follows_the_code_of_a_rule_and_not_its_comments(tmp_path):
    text = "BOUND = 1\ndef helper(x):\n    return x < BOUND\n"
    text += 'def rule(claim, tables):\n    """Says."""\n    return helper(2)\n'

    def told(old="", new=""):
        path = tmp_path / f"rule_{len(list(tmp_path.iterdir()))}.py"
        path.write_text(text.replace(old, new))
        found = {"__name__": "sepnb.claims.a_rule"}
        exec(compile(path.read_text(), path, "exec"), found)
        return code(found["rule"])

    assert told("Says", "Tells") == told("return helper", "# why\n    return helper") == told()
    for change in (("helper(2)", "helper(3)"), ("x < BOUND", "x > BOUND"), ("BOUND = 1", "BOUND = 2")):
        assert told(*change) != told()
    assert code(by_seeds) == "by_seeds" and code(None) == "None"


# --- pinned -------------------------------------------------------------------------------------------------


def test_no_rule_changes_without_a_new_entry_that_says_why():
    """A rule is pinned when it is written: `commit` null, and the commit that writes the entry is its own."""
    pins, known = provenance.pins(), provenance.History().ancestors
    assert pins.keys() == {claim.id for claim in CLAIMS} | withdrawn().keys()
    states = {claim.id: [pin for pin in pins[claim.id] if pin.was is None][-1] for claim in CLAIMS}
    changed = {claim.id: claim.digest for claim in CLAIMS if states[claim.id].digest != claim.digest}
    assert not changed, f"pin the new digests with a reason in sepnb/claims/pinned.json: {changed}"
    assert all(pins[claim.id][-1].digest == claim.digest for claim in CLAIMS)
    assert all(pin.reason for entries in pins.values() for pin in entries)
    assert not known or {pin.commit for pin in states.values()} <= {None, *known}


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """An empty checkout with its own `pinned.json`, and `commit(digests)` that pins these and commits."""
    monkeypatch.setenv("SEPNB_ROOT", str(tmp_path))
    monkeypatch.setattr(provenance, "PINNED", tmp_path / "pinned.json")
    settings = ["user.name=n", "user.email=e@e", "commit.gpgsign=false"]
    git = ["git", "-C", str(tmp_path), *(part for one in settings for part in ("-c", one))]
    subprocess.run([*git, "init", "-q"], check=True)

    def commit(*states: tuple[str, str | None]) -> str:
        entries = [{"digest": digest, "commit": own, "reason": "why"} for digest, own in states]
        provenance.PINNED.write_text(f' "another": [],\n "a-claim": {json.dumps(entries)}\n'.join("{}"))
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "m"], check=True)
        found = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
        return found.stdout.strip()

    return commit


def test_a_rule_has_the_commit_that_is_pinned_or_else_the_one_that_pinned_it(checkout):
    first = checkout(("0" * 16, None))
    assert provenance.History().rule_commit(CLAIM) is None, "the rule is another"
    second = checkout(("0" * 16, None), (CLAIM.digest, None))
    checkout(("0" * 16, first), (CLAIM.digest, None), ("1" * 16, None))
    assert provenance.History().rule_commit(CLAIM) is None, "the rule has changed since"
    checkout(("0" * 16, first), (CLAIM.digest, None))
    assert provenance.History().rule_commit(CLAIM) == second
    checkout((CLAIM.digest, first))
    assert provenance.History().rule_commit(CLAIM) == first
    checkout((CLAIM.digest, "f" * 40))
    assert provenance.History().rule_commit(CLAIM) is None, "git does not know it"


def test_a_rule_precedes_records_made_from_its_commit_or_a_later_one(checkout):
    before, rule, after = checkout(), checkout((CLAIM.digest, None)), checkout()
    history = provenance.History()
    assert history.precedes(rule, [rule, after]) is True
    assert history.precedes(rule, [after, before]) is False
    assert history.precedes(rule, []) is history.precedes(None, [after]) is None
    assert history.precedes(rule, ["0" * 40]) is history.precedes(rule, [after, "unknown"]) is None
    made = {"new": [after], "both": [after, before], "old": [before], "unknown": ["0" * 40]}
    assert history.unseen(rule, made) == ("new",)


def test_a_side_branch_is_no_ancestor(checkout, tmp_path):
    def git(*arguments):
        settings = ("-c", "user.name=n", "-c", "user.email=e@e")
        subprocess.run(["git", "-C", str(tmp_path), *settings, *arguments], check=True, capture_output=True)

    root = checkout()
    git("checkout", "-q", "-b", "side")
    side = checkout(("2" * 16, None))
    git("checkout", "-q", "-")
    main = checkout(("3" * 16, None))
    git("merge", "-q", "-s", "ours", "-m", "m", "side")
    history = provenance.History()
    assert history.precedes(root, [side, main]) is True
    assert history.precedes(side, [main]) is history.precedes(main, [side]) is False


def test_outside_a_checkout_nothing_is_known(tmp_path, monkeypatch):
    monkeypatch.setenv("SEPNB_ROOT", str(tmp_path))
    history = provenance.History()
    assert history.rule_commit(CLAIMS[0]) is None and history.precedes("a" * 40, ["b" * 40]) is None
