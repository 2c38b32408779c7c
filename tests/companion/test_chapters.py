"""What makes a chapter run again, and what does not."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sepnb.companion.run import chapters
from sepnb.companion.run.chapters import Chapter
from sepnb.companion.run.runs import store_for
from sepnb.records import numbers
from sepnb.records.store import Record, Store

from ..shared import MADE

PARAMETERS = {"profile": "smoke", "seed": 0, "device": "cpu"}


@pytest.fixture
def ran(write_chapter: Callable[..., Chapter]) -> Chapter:
    """A chapter as it lies there after a run that read the records of one experiment."""
    chapter = write_chapter("01_order")
    made_from = chapters.fingerprint(chapter, PARAMETERS)
    store_for("smoke").write(record(1.0))
    numbers.publish(chapter.name, {"answer": 42}, profile="smoke")
    chapter.output("smoke").write_text("{}", encoding="utf-8")
    chapter.output("smoke", "reads").write_text("smoke/in_window\nsmoke/in_window\n", encoding="utf-8")
    chapters.remember(chapter, "smoke", made_from, 3.0)
    return chapter


def record(loss: float) -> Record:
    return Record("in_window", "smoke", "a", {}, {"loss": loss}, [], {}, {"seed": 0, **MADE})


def why(chapter: Chapter) -> str | None:
    return chapters.why_run(Chapter(chapter.path), "smoke", PARAMETERS)


def test_nothing_changed_nothing_runs_whatever_the_clock_says(ran, checkout) -> None:
    assert why(ran) is None
    for file in checkout.rglob("*"):
        os.utime(file, (2e9, 2e9))
    assert why(ran) is None


def test_a_changed_source_lock_or_parameter_runs_and_a_change_taken_back_does_not(ran, checkout) -> None:
    for file, told in ((ran.path, "the chapter"), (checkout / "requirements.lock", "requirements.lock")):
        before = file.read_text(encoding="utf-8")
        file.write_text(before + "\n# %%\n1 + 1\n", encoding="utf-8")
        assert why(ran) == f"{told} changed"
        file.write_text(before, encoding="utf-8")
        assert why(ran) is None
    assert chapters.why_run(ran, "smoke", {**PARAMETERS, "seed": 1}) == "the parameters changed"


def test_a_changed_package_runs(ran, monkeypatch) -> None:
    """The package of the tests cannot be edited by a test: its files are hashed as if they were."""
    honest = chapters.digest
    changed: set[str] = set()

    def pretend(files, base):
        files = list(files)
        return honest(files, base) + "".join(sorted(f.name for f in files if f.name in changed))

    monkeypatch.setattr(chapters, "digest", pretend)
    changed.add("cli.py")  # acts from outside: no chapter imports it
    assert why(ran) is None
    changed.add("streams.py")
    assert why(ran) == "sepnb changed"


def test_what_acts_from_outside_counts_where_a_chapter_imports_it(write_chapter) -> None:
    plain = write_chapter("01_order")
    judging = write_chapter("24_score", "\n# %%\nfrom sepnb import claims\n")
    showing = write_chapter("25_shown", "\n# %%\nfrom sepnb.companion import evidence\n")
    for module, counts in (
        ("claims/ledger.py", (False, True, False)),
        ("companion/book/build.py", (False, False, False)),
        ("companion/evidence/shown.py", (False, False, True)),
    ):
        found = tuple(chapters._matters(Path(module), chapter) for chapter in (plain, judging, showing))
        assert found == counts, module
    assert chapters._matters(Path("records/numbers.py"), plain)


def test_changed_records_and_their_marks_of_staleness_run(ran) -> None:
    store = store_for("smoke")
    store.write(record(2.0))
    assert why(ran) == "results of smoke/in_window changed"
    store.write(record(1.0))
    assert why(ran) is None
    store.mark_stale("smoke", "in_window", "a", "init changed")
    assert why(ran) == "results of smoke/in_window changed"
    store.mark_stale("smoke", "in_window", "a", None)
    store.mark_stale("smoke", "other", "a", "not read by this chapter")
    assert why(ran) is None


def test_smoke_records_never_come_from_the_published_store(ran, checkout) -> None:
    assert store_for("smoke").root == checkout / "build" / "smoke" / "results"
    assert store_for("laptop").root == checkout / "results"
    Store().write(record(9.0))
    assert why(ran) is None


@pytest.mark.parametrize("kind", ["ipynb", "json"])
def test_missing_or_edited_outputs_run(ran, kind: str) -> None:
    output = ran.output("smoke", kind)
    output.write_text(output.read_text(encoding="utf-8") + " ", encoding="utf-8")
    assert why(ran) == "its outputs are missing or were edited"
    output.unlink()
    assert why(ran) == "its outputs are missing or were edited"


def test_without_a_whole_manifest_it_runs_and_forgetting_leaves_nothing(ran) -> None:
    ran.output("smoke", "manifest.json").write_text('{"made_from"', encoding="utf-8")
    assert why(ran) == "its manifest is damaged"
    chapters.forget(ran, "smoke")
    assert list(ran.output("smoke").parent.glob(f"{ran.name}*")) == []
    assert why(ran) == "never ran"


def test_chapters_are_found_in_reading_order(write_chapter, checkout) -> None:
    for name in ("11_language_model", "01_order"):
        write_chapter(name)
    (checkout / "notebooks" / "scratch.py").write_text("", encoding="utf-8")
    assert [chapter.name for chapter in chapters.discover()] == ["01_order", "11_language_model"]
    assert chapters.discover()[0].parameters == PARAMETERS
    with pytest.raises(ValueError, match="did you mean 01_order"):
        chapters.find("01_oder")


def test_a_parameters_cell_holds_literals_and_there_is_one(checkout) -> None:
    path = checkout / "notebooks" / "01_order.py"
    path.write_text('# %% tags=["parameters"]\nseed = int("3")\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"`seed = int\('3'\)`"):
        _ = Chapter(path).parameters
    path.write_text("# %%\nseed = 3\n", encoding="utf-8")
    with pytest.raises(ValueError, match="0 cells tagged 'parameters'"):
        _ = Chapter(path).parameters
