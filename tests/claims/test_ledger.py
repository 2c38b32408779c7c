"""The ledger: what it reads, when a rule last changed, and the page that shows it."""

import importlib.util
import inspect
import itertools
import re
import subprocess
import sys

import numpy as np
import pytest

from sepnb import claims, experiments
from sepnb.claims import (
    CLAIMS,
    Claim,
    Verdict,
    ablation,
    budget,
    history,
    in_window,
    inside,
    ledger,
    pages,
    recipes,
)
from sepnb.claims.dependence import Dependence
from sepnb.claims.evidence import judge
from sepnb.records.store import Record, Store

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
ORDER = {
    "equivariance_error": 3e-15,
    "invariance_error": 0.8,
    "causal_equivariance_error": 0.4,
    "sinusoidal_equivariance_error": 0.3,
    "learned_equivariance_error": 0.3,
    "rope_equivariance_error": 0.2,
    "alibi_equivariance_error": 0.1,
}


# --- the ledger ---------------------------------------------------------------------------------------------


def test_ids_are_unique_and_needs_exist():
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIMS:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", claim.id)
        for need in claim.needs:
            kind, _, name = need.partition("/")
            assert kind == "chapter" or experiments.get(name)


def test_a_claim_is_checked_when_it_is_made():
    def rule_other(tables):
        """A rule."""
        return Verdict("undecided", "")

    made = {"source": "here", "statement": "it is so", "needs": ("experiment/in_window",)}
    Claim(id="other", rule=rule_other, **made)
    with pytest.raises(ValueError, match="rule_another"):
        Claim(id="another", rule=rule_other, **made)
    with pytest.raises(ValueError, match="write experiment/<name>"):
        Claim(id="other", rule=rule_other, **made | {"needs": ("in_window",)})
    rule_other.__doc__ = None
    with pytest.raises(ValueError, match="no docstring"):
        Claim(id="other", rule=rule_other, **made)


def test_a_verdict_has_one_of_six_words():
    with pytest.raises(ValueError, match="'maybe' is not a verdict"):
        Verdict("maybe", "")


def test_an_unknown_claim_is_named():
    with pytest.raises(ValueError, match="no claim 'rope-wins'"):
        claims.get("rope-wins")


def publish(store: Store, profile: str, commit: str, *, leave_out: int = 0) -> None:
    grid = experiments.get("in_window").grid(profile)
    jitter = 0.002 * np.random.default_rng(0).standard_normal(len(grid))
    for config, shift in zip(grid[: len(grid) - leave_out], jitter, strict=False):
        metrics = {"bits_per_byte": LEVELS[config.method] + shift, "block_parameters": 788_480}
        facts = {"commit": commit, "dirty": False, "seed": config.seed}
        store.write(Record("in_window", profile, config.key, config.resolved(), metrics, [], {}, facts))


def row_of(rows, claim_id="rope-leads-in-window"):
    return next(row for row in rows if row.claim.id == claim_id)


def test_the_gpu_replaces_the_laptop_when_its_grid_is_complete(tmp_path):
    partial, complete = Store(tmp_path / "partial"), Store(tmp_path / "complete")
    for store, missing in ((partial, 1), (complete, 0)):
        publish(store, "laptop", "a" * 40)
        publish(store, "gpu", "b" * 40, leave_out=missing)
    row = row_of(claims.evaluate(store=partial))
    assert (row.profile, row.verdict.word, row.record_commits) == ("laptop", "reproduced", ("a" * 40,))
    row = row_of(claims.evaluate(store=complete))
    assert (row.profile, row.verdict.word, row.record_commits) == ("gpu", "reproduced", ("b" * 40,))
    assert row.records == len(experiments.get("in_window").grid("gpu"))
    assert row.seeds == (1, 2, 3, 4, 5, 6)
    assert row_of(claims.evaluate("laptop", complete)).profile == "laptop"


def test_a_mark_of_staleness_takes_the_verdict_away(tmp_path):
    store = Store(tmp_path)
    publish(store, "laptop", "a" * 40)
    config = next(c for c in experiments.get("in_window").grid("laptop") if c.method == "rope")
    store.mark_stale("laptop", "in_window", config.key, "initial loss differs")
    rows = claims.evaluate("laptop", store)
    assert row_of(rows).verdict.stale and row_of(rows).verdict.word == "not run"
    assert row_of(rows, "separation-costs-nothing-at-equal-width").verdict.word == "reproduced"


def test_chapters_are_read_at_the_best_profile_they_ran_at(tmp_path, monkeypatch):
    from sepnb.records import numbers

    monkeypatch.setenv("SEPNB_BUILD", str(tmp_path))
    empty = Store(tmp_path / "none")
    invariant = "attention-is-permutation-invariant"
    assert row_of(claims.evaluate(store=empty), invariant).verdict.word == "not run"
    numbers.publish("01_order", ORDER | {"invariance_error": 0.0}, profile="smoke")
    assert row_of(claims.evaluate(store=empty), invariant).verdict.word == "reproduced"
    numbers.publish("01_order", ORDER, profile="laptop")
    row = row_of(claims.evaluate(store=empty), invariant)
    assert (row.profile, row.verdict.word, row.records) == ("laptop", "not reproduced", 0)
    assert row_of(claims.evaluate("smoke", empty), invariant).verdict.word == "reproduced"


# --- when a rule last changed -------------------------------------------------------------------------------

RULE = '''def rule_one(tables):
    """The one."""
    return helper(1.0)


def rule_one_more(tables):
    """One more."""
    return 2.0


def helper(bound):
    return bound
'''


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """An empty checkout, `commit(text)` that commits a file of rules, and `claim()` made from it."""
    monkeypatch.setenv("SEPNB_ROOT", str(tmp_path))
    git = [
        "git",
        "-C",
        str(tmp_path),
        "-c",
        "user.name=n",
        "-c",
        "user.email=e@e",
        "-c",
        "commit.gpgsign=false",
    ]
    subprocess.run([*git, "init", "-q"], check=True)
    path = tmp_path / "rules.py"

    def commit(text: str) -> str:
        path.write_text(text)
        subprocess.run([*git, "add", "rules.py"], check=True)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "m"], check=True)
        history.forget()
        return subprocess.run(
            [*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()

    def claim() -> Claim:
        spec = importlib.util.spec_from_file_location("rules_of_a_test", path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "rules_of_a_test", module)
        spec.loader.exec_module(module)
        return Claim("one", "here", "so", module.rule_one, ("chapter/01_order",), (module.helper,))

    yield path, commit, claim
    history.forget()


def test_the_rule_commit_follows_the_rule_and_what_it_stands_on(checkout):
    _, commit, claim = checkout
    first = commit(RULE)
    assert history.rule_commit(claim()) == first
    commit("import math\n\n\n" + RULE.replace("return 2.0", "return 3.0"))  # another rule, other lines
    assert history.rule_commit(claim()) == first
    bound = commit(RULE.replace("helper(1.0)", "helper(1.5)"))
    assert history.rule_commit(claim()) == bound
    helper = commit(RULE.replace("helper(1.0)", "helper(1.5)").replace("return bound", "return 2 * bound"))
    assert history.rule_commit(claim()) == helper


def test_a_rule_that_is_not_committed_has_no_commit(checkout):
    path, commit, claim = checkout
    commit(RULE)
    made = claim()
    path.write_text(RULE.replace("1.0", "9.0"))
    history.forget()
    assert history.rule_commit(made) is None


def test_what_git_said_is_kept_until_head_moves_and_not_used_while_a_file_is_changed(
    checkout, tmp_path, monkeypatch
):
    path, commit, claim = checkout
    monkeypatch.setenv("SEPNB_BUILD", str(tmp_path / "build"))
    first = commit(RULE)
    made = claim()
    assert history.rule_commits([made]) == {"one": first}
    asked = []
    monkeypatch.setattr(history, "_last_commit", lambda spans: asked.append(spans))
    history.forget()
    assert history.rule_commits([made]) == {"one": first} and not asked
    path.write_text(RULE.replace("1.0", "9.0"))
    history.forget()
    assert history.rule_commits([made]) == {"one": None} and not asked
    monkeypatch.undo()
    monkeypatch.setenv("SEPNB_ROOT", str(path.parent))
    monkeypatch.setenv("SEPNB_BUILD", str(tmp_path / "build"))
    second = commit(RULE.replace("1.0", "9.0"))
    assert history.rule_commits([made]) == {"one": second}
    (tmp_path / "build" / "rule_commits.json").write_text("{")
    assert history.rule_commits([made]) == {"one": second}


def test_a_rule_precedes_records_made_from_its_commit_or_a_later_one(checkout):
    _, commit, _ = checkout
    before, rule, after = commit("a = 1\n"), commit(RULE), commit(RULE + "\n\nb = 1\n")
    assert history.precedes(rule, [rule, after]) is True
    assert history.precedes(rule, [after, before]) is False
    assert history.precedes(rule, []) is None
    assert history.precedes(None, [after]) is None
    assert history.precedes(rule, ["0" * 40]) is None


def names_read(code) -> set[str]:
    """Global names that a function reads, those of the functions inside it included."""
    inner = [constant for constant in code.co_consts if inspect.iscode(constant)]
    return set(code.co_names).union(*map(names_read, inner))


@pytest.mark.parametrize(
    "claim",
    [claim for module in (ablation, budget, inside, recipes) for claim in module.CLAIMS],
    ids=lambda claim: claim.id,
)
def test_what_decides_a_verdict_stands_where_git_looks_for_it(claim):
    """A rule reads no constant but single words and numbers, and calls nothing of ours that is not listed."""
    listed = (claim.rule, *claim.stands_on)
    for function in listed:
        for name in names_read(function.__code__):
            value = function.__globals__.get(name)
            assert not isinstance(value, (tuple, list, dict, set, frozenset)), f"{function.__name__}: {name}"
            if inspect.isfunction(value) and value.__module__.startswith("sepnb."):
                assert value in listed, f"{function.__name__} calls {name}"


def test_outside_a_checkout_the_commit_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setenv("SEPNB_ROOT", str(tmp_path))
    history.forget()
    assert history.rule_commit(CLAIMS[0]) is None
    history.forget()


# --- the page -----------------------------------------------------------------------------------------------


def test_the_page_shows_every_claim_with_what_decides(tmp_path, monkeypatch):
    monkeypatch.setattr("sepnb.records.store.paths.results", lambda: tmp_path)
    publish(Store(tmp_path), "laptop", "a" * 40)
    text = claims.page()
    for row in claims.evaluate():
        assert f"(claim-{row.claim.id})=" in text
        assert f"[{row.verdict.word}]" in text
    section = text.split("(claim-rope-leads-in-window)=")[1].split("(claim-")[0]
    assert "### RoPE leads inside the trained length" in section
    assert claims.get("rope-leads-in-window").rule_text in section
    assert "[reproduced]" in section and "(holds)" in section and "6 seeds" in section
    assert "54 records, seeds 1, 2, 3, 4, 5, 6" in section and "`aaaaaaaaa`" in section


def test_the_page_writes_for_readers():
    """Names as they are spelled, documents by their titles, the rules of evidence as the code has them."""
    detail = "frozen jacobian split 0; rope minus none -0.1; not published: frozen_jacobian_dense"
    assert pages._sentence(detail).startswith("Frozen Jacobian split 0; RoPE minus none \N{MINUS SIGN}0.1;")
    assert pages._sentence(detail).endswith("frozen_jacobian_dense.")
    text = claims.page("smoke")
    assert "(Source: Abstract of the SeqPE paper.)" in text
    assert not any(f"(Source: {document.source}.)" in text for document in claims.source_map().documents)
    assert set(pages._TITLES) <= {claim.id for claim in CLAIMS}
    rules = inspect.signature(judge).parameters
    assert rules["least_seeds"].default == 6 and "fewer than six seeds" in text
    assert rules["significance"].default == 0.05 and "at 5 %" in text
    assert "bar=3.35)" in inspect.getsource(in_window.within) and "below 3.35 bits per byte" in text


def fake_row(**changes) -> ledger.Row:
    facts = {
        "claim": CLAIMS[-1],
        "verdict": Verdict("undecided", "too few"),
        "profile": "laptop",
        "records": 3,
        "seeds": (1,),
        "record_commits": ("a" * 40,),
        "rule_commit": "c" * 40,
        "precedes": True,
    }
    return ledger.Row(**facts | changes)


def test_a_verdict_that_more_training_turns_says_so_on_the_page(monkeypatch):
    detail = "a beside b: ahead at 1x, behind at 16x"
    turned, kept, none = (
        fake_row(claim=claims.get(name), budget=label)
        for name, label in (
            ("separation-costs-nothing-at-equal-width", Dependence("budget-dependent", detail)),
            ("separation-costs-nothing-at-equal-parameters", Dependence("no exchange", detail)),
            ("split-norm-costs-nothing", None),
        )
    )
    monkeypatch.setattr(pages, "evaluate", lambda profile: [turned, kept, none])
    lines = pages.page().splitlines()
    verdicts = [line for line in lines if line.startswith("| {ref}")]
    assert ["*budget-dependent*" in line for line in verdicts] == [True, False, False]
    told = [after for before, after in itertools.pairwise(lines) if before == "More training"]
    assert [line.split(":")[1].strip() for line in told] == ["Budget-dependent", "No exchange"]
    assert all(detail in line and "experiment `budget`" in line for line in told)


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({}, "`ccccccccc`, before the records"),
        ({"precedes": False}, "**after records were made**"),
        ({"precedes": None}, "is unknown"),
        ({"rule_commit": None, "precedes": None}, "unknown (no history"),
        ({"verdict": Verdict("not run", "stale", stale=True)}, "[stale]"),
        ({"profile": None, "records": 0}, "nothing yet"),
    ],
)
def test_the_page_says_how_rule_and_records_stand(monkeypatch, changes, shown):
    monkeypatch.setattr("sepnb.claims.pages.evaluate", lambda profile=None: [fake_row(**changes)])
    assert shown in claims.page()
