"""Papermill regression: every chapter is executed at smoke and its numbers are what they were."""

from dataclasses import replace

import pytest

from sepnb import experiments
from sepnb.companion.check import regression, tolerances
from sepnb.companion.run import chapters, execute
from sepnb.experiments.run import Run
from sepnb.records import numbers
from sepnb.records.store import Store

NAMES = [chapter.name for chapter in chapters.discover()]


@pytest.mark.parametrize("name", NAMES)
def test_chapter_numbers_are_as_committed(fresh, name: str) -> None:
    problems = regression.compare(name, fresh(name), "smoke")
    if problems:
        told = "\n".join(map(str, problems))
        pytest.fail(f'{told}\n(if meant: `sepnb check --update --reason "…"`)', pytrace=False)


READ = {name for one in chapters.discover() for name in regression.named(one, experiments.names())}


def begun(run: Run) -> Run:
    """A run with the first steps of its training, and of the one that it shares."""
    training = replace(run.training, steps=min(run.training.steps, 12))
    return replace(run, training=training, base=run.base and begun(run.base))


@pytest.mark.parametrize("name", [name for name in experiments.names() if name not in READ])
def test_a_grid_that_no_chapter_reads_is_run_too(build, one_thread, unhooked, tmp_path, name: str) -> None:
    """Its methods, each at one of its rates: another rate and more steps are the same code."""
    experiment = experiments.get(name)
    cells = {run.method: run for run in experiment.grid("smoke")}
    for run in cells.values():
        Store(tmp_path).write(experiment.run(begun(run)))


@pytest.mark.attack("a chapter in a fresh clone, without its records")
def test_a_chapter_without_its_records_says_not_run(tmp_path, monkeypatch, unhooked) -> None:
    """As in a fresh clone, where no smoke run was made; chapter 11 reads most of its tables."""
    monkeypatch.setenv("SEPNB_BUILD", str(tmp_path))
    outcome = execute.execute(execute.Job(chapters.find("11_language_model"), "smoke"))
    assert outcome.status == "ran", outcome.failure
    found = numbers.load("11_language_model", "smoke")
    assert found["rope_gain_after_eight"] == found["gain_at_16x"] == numbers.NOT_RUN


def test_there_is_a_chapter_for_every_reference() -> None:
    assert NAMES
    assert regression.orphans(NAMES, "smoke") == []


def test_every_tolerance_was_measured_and_notices_a_change() -> None:
    """A tolerance as wide as the difference between seeds would pass any change."""
    measured = regression.tolerances("smoke")
    assert set(measured) == set(NAMES)
    for name, metrics in measured.items():
        for key, entry in metrics.items():
            if "unpinned" not in entry:
                assert entry["measured"]["threads"] == [1, 2], f"{name}/{key}"
                assert 0 <= entry["rtol"] <= 1e-5 and entry["atol"] > 0, f"{name}/{key}"
    assert tolerances.loose(measured) == []
