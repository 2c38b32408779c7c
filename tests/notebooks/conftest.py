"""Chapters at smoke, each in the worker that tests it, with records that all workers of the session share."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pytest

from sepnb import experiments
from sepnb.companion.check import regression
from sepnb.companion.run import chapters, execute, runs
from sepnb.records.numbers import load

from .. import shared

Numbers = dict[str, regression.Number]


@pytest.fixture
def build(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The build folder of this session. It is empty at its start: no published record can be read."""
    work = shared.folder(tmp_path_factory, "smoke")
    monkeypatch.setenv("SEPNB_BUILD", str(work))
    monkeypatch.setenv("SEPNB_RESULTS", str(work / "smoke" / "results"))
    return work


@pytest.fixture
def run_experiments(build: Path, one_thread: None, unhooked: None) -> Callable[[Iterable[str]], None]:
    """Compute every smoke record of these experiments that no worker has computed."""
    (build / "runs").mkdir(exist_ok=True)

    def run(names: Iterable[str]) -> None:
        store = runs.store_for("smoke")
        todo, _ = runs.plan([experiments.get(name) for name in names], "smoke", store=store)

        def job(one: runs.GridRun) -> None:
            store.write(one.experiment.run(one.config))

        jobs = {f"{one.experiment.name}-{one.config.key}": partial(job, one) for one in todo}
        shared.split(build / "runs", jobs)

    return run


@pytest.fixture
def fresh(build: Path, run_experiments: Callable) -> Callable[[str], Numbers]:
    """`fresh(name)`: the numbers of a chapter, executed in a kernel of its own, with the records it reads."""

    def numbers(name: str) -> Numbers:
        chapter = chapters.find(name)
        outcomes: list[execute.Outcome] = []

        def run_chapters(due: list[chapters.Chapter]) -> None:
            outcomes[:] = execute.execute_all([execute.Job(one, "smoke") for one in due])

        regression.until_nothing_is_missing(
            [chapter],
            regression.named(chapter, experiments.names()),
            run_experiments,
            run_chapters,
            lambda one: regression.read(one, "smoke"),
        )
        (outcome,) = outcomes
        if outcome.failure:
            failure = outcome.failure
            pytest.fail(f"{failure.place}, {failure.cell}: {failure.error}\n{failure.trace}", pytrace=False)
        return load(name, "smoke")

    return numbers
