"""Papermill regression: every chapter is executed at smoke and its numbers are what they were."""

import pytest

from sepnb import experiments
from sepnb.companion import chapters, regression, tolerances

NAMES = [chapter.name for chapter in chapters.discover()]


@pytest.mark.parametrize("name", NAMES)
def test_chapter_numbers_are_as_committed(fresh, name: str) -> None:
    problems = regression.compare(name, fresh(name), "smoke")
    if problems:
        told = "\n".join(map(str, problems))
        pytest.fail(f'{told}\n(if meant: `sepnb check --update --reason "…"`)', pytrace=False)


READ = {name for one in chapters.discover() for name in regression.named(one, experiments.names())}


@pytest.mark.parametrize("name", [name for name in experiments.names() if name not in READ])
def test_a_grid_that_no_chapter_reads_is_run_too(run_experiments, name: str) -> None:
    run_experiments([name])


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
