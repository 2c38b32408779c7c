"""A number that moved, came or went is reported by name; tolerances follow from what was measured."""

import json
import subprocess
from pathlib import Path

import pytest

from sepnb.companion.check import regression, tolerances
from sepnb.companion.check.regression import compare
from sepnb.companion.check.tolerances import tolerances_from
from sepnb.records.numbers import write_json

NUMBERS = {"loss": 2.5, "n_runs": 3, "best_method": "rope", "agrees": True, "took_seconds": 1.5}
ENTRY = {"rtol": 1e-6, "atol": 1e-4}


@pytest.fixture
def reference(checkout: Path) -> Path:
    folder = regression.folder("smoke")
    write_json(folder / "01_order.json", {"chapter": "01_order", "profile": "smoke", "numbers": NUMBERS})
    tolerances = {"01_order": {"loss": ENTRY, "took_seconds": {"unpinned": "a measured time"}}}
    write_json(folder / "tolerances.json", tolerances)
    return folder


def told(**changes: object) -> list[str]:
    got = {key: value for key, value in {**NUMBERS, **changes}.items() if value is not None}
    return compare("01_order", got, "smoke")


def test_equal_numbers_pass_and_a_moved_one_is_reported_with_value_reference_and_tolerance(reference) -> None:
    assert told() == []
    assert told(loss=2.5 + 9e-5, took_seconds=99.0) == []
    (problem,) = told(loss=2.6)
    assert problem.startswith("01_order/loss: got 2.6, reference 2.5, off by 0.1, tolerance 0.000102")
    assert "atol 0.0001 + rtol 1e-06 * |reference|" in problem
    assert told(loss=None) == ["01_order/loss: is gone: the reference is 2.5"]
    assert told(perplexity=12.0) == ["01_order/perplexity: is new: got 12.0, no reference"]
    assert told(took_seconds=None) == ["01_order/took_seconds: is gone: the reference is 1.5"]


@pytest.mark.parametrize(
    "change", [{"n_runs": 4}, {"best_method": "alibi"}, {"agrees": False}, {"agrees": 1}, {"loss": "2.5"}]
)
def test_whole_numbers_truth_values_and_texts_must_be_equal(reference, change: dict) -> None:
    (problem,) = told(**change)
    assert f"/{next(iter(change))}: got {next(iter(change.values()))!r}" in problem


def test_a_float_without_a_tolerance_is_a_problem_even_when_equal(reference) -> None:
    write_json(reference / "tolerances.json", {})
    assert [problem.split(":")[0] for problem in told()] == ["01_order/loss", "01_order/took_seconds"]
    assert "no tolerance; `sepnb check --measure`" in told()[0]


def test_a_chapter_without_a_reference_and_a_reference_without_a_chapter_fail(reference) -> None:
    (problem,) = compare("02_new", {"loss": 1.0}, "smoke")
    assert "no reference" in problem and "--update" in problem
    (problem,) = regression.orphans(["02_new"], "smoke")
    assert problem == "01_order/*: has a reference but no chapter; delete 01_order.json"
    assert regression.orphans(["01_order"], "smoke") == []


def test_a_new_reference_needs_a_reason_and_keeps_it(reference) -> None:
    with pytest.raises(ValueError, match="--reason"):
        regression.update({"01_order": {"loss": 2.6}}, "smoke", "  ")
    assert told() == []
    moved = {**NUMBERS, "loss": 2.6}
    assert regression.update({"01_order": moved}, "smoke", "a new schedule") == [reference / "01_order.json"]
    assert told(loss=2.6) == []
    made = json.loads((reference / "01_order.json").read_text())["made"]
    assert made["reason"] == "a new schedule"
    assert {"commit", "dirty", "date", "torch", "numpy"} <= made.keys()
    assert regression.update({"01_order": moved}, "smoke", "again, with nothing changed") == []
    assert json.loads((reference / "01_order.json").read_text())["made"]["reason"] == "a new schedule"


def test_tolerances_come_from_the_spread_between_threads_not_between_seeds() -> None:
    base = NUMBERS | {"zero": 2e-16, "steady": 0.25}
    variants = {"1 thread": base, "2 threads": base | {"loss": 2.5003, "took_seconds": 9.0}}
    variants = {name: {"01_order": numbers} for name, numbers in variants.items()}

    def measured(**other_seed: object) -> dict:
        seeds = {0: {"01_order": base}, 1: {"01_order": base | other_seed}}
        return tolerances_from(variants, seeds)

    found = measured(loss=2.9, n_runs=5)["01_order"]  # another seed is another experiment: n_runs may differ
    assert set(found) == {"loss", "zero", "steady", "took_seconds"}
    assert found["loss"]["atol"] == pytest.approx(3e-3)
    assert found["loss"]["measured"]["spread"] == pytest.approx(3e-4)
    assert found["loss"]["measured"]["spread_over_seeds"] == pytest.approx(0.4)
    assert found["loss"]["measured"]["threads"] == [1, 2]
    assert found["zero"]["atol"] == tolerances.ZERO
    assert "unpinned" in found["took_seconds"]
    assert found["steady"]["atol"] == tolerances.FLOOR_ATOL
    assert tolerances.loose({"01_order": found}) == []
    (line,) = tolerances.loose(measured(loss=2.501))
    assert line.startswith("01_order/loss: atol 0.003")


READS = """
# %%
from sepnb import experiments

table = experiments.get("in_window").table(profile)
tables = {name: experiments.get(name.split("/")[1]) for name in ("experiment/images", "experiment/budgets")}
"""


def test_what_a_chapter_names_is_known_before_it_runs(write_chapter) -> None:
    every = ["in_window", "images", "budget", "inside"]
    assert regression.named(write_chapter("01_order", READS), every) == {"in_window", "images"}
    assert regression.named(write_chapter("02_more", "# in_window is read elsewhere\n"), every) == set()


@pytest.mark.parametrize("fails", [False, True])
def test_a_chapter_is_recomputed_with_every_record_that_it_asks_for_and_no_other(
    write_chapter, tmp_path, monkeypatch, fails: bool
) -> None:
    """Its source names one experiment. It reads another one too, and one more where the second is there."""
    write_chapter("01_order", READS.replace("experiment/images", "nothing"))
    commands, there = [], set()

    def run(command: list[str], env: dict[str, str], **_: object) -> subprocess.CompletedProcess:
        names = command[4 : command.index("--seeds" if "--seeds" in command else "--profile")]
        commands.append(names)
        if names != ["01_order"]:
            there.update(names)
            return subprocess.CompletedProcess(command, 0, "")
        asked = ["in_window", "images", *(["budget"] if "images" in there else [])]
        build = Path(env["SEPNB_BUILD"]) / "smoke"
        build.mkdir(parents=True, exist_ok=True)
        (build / "01_order.reads").write_text("".join(f"smoke/{name}\n" for name in asked))
        write_json(build / "01_order.json", {"chapter": "01_order", "numbers": {"runs": len(there)}})
        short = not there >= set(asked)
        return subprocess.CompletedProcess(command, int(short or fails), "no record" if short else "a bug")

    monkeypatch.setattr(regression.subprocess, "run", run)
    if fails:
        with pytest.raises(regression.RecomputeError, match=r"`sepnb run 01_order.*failed:\sa bug"):
            regression.recompute(tmp_path / "work")
    else:
        assert regression.recompute(tmp_path / "work") == {"01_order": {"runs": 3}}
    assert commands == [["in_window"], ["01_order"], ["images"], ["01_order"], ["budget"], ["01_order"]]


def test_a_chapter_that_reads_no_records_is_recomputed_after_a_call_that_left_none(
    write_chapter, tmp_path, monkeypatch
) -> None:
    write_chapter("01_order")

    def run(command: list[str], env: dict[str, str], **_: object) -> subprocess.CompletedProcess:
        build = Path(env["SEPNB_BUILD"]) / "smoke"
        write_json(build / "01_order.json", {"chapter": "01_order", "numbers": {"runs": 1}})
        (build / "01_order.reads").write_text("")
        return subprocess.CompletedProcess(command, 0, "")

    monkeypatch.setattr(regression.subprocess, "run", run)
    for work, before in (("first", None), ("second", tmp_path / "first")):
        found = regression.recompute(tmp_path / work, chapters=["01_order"], records=before)
        assert found == {"01_order": {"runs": 1}}
