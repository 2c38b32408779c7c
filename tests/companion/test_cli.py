"""The commands as people type them: what is refused says what to do, and costs nothing."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
from rich.console import Console

from sepnb import paths
from sepnb.companion.check import regression
from sepnb.companion.run import gpus, tasks
from sepnb.companion.run.chapters import Chapter, fingerprint, remember
from sepnb.companion.run.doctor import differing_versions
from sepnb.records import numbers
from sepnb.records.store import Store


@pytest.mark.attack("commands that ask for what cannot be done")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "01_oder"], "'01_oder' is no chapter and no experiment; did you mean 01_order"),
        (["run", "in_window", "--seeds", "1" * 23], "each of at most 18 digits"),
        (["run", "in_window", "--methods", "rop"], "unknown method 'rop'; did you mean rope?"),
        (["run", "in_window", "--shard", "3/2"], "give i/n"),
        (["run", "in_window", "--device", "gpu0"], "give cpu, cuda, one of several GPUs as cuda:1, or auto"),
        (["bench", "separatd"], "did you mean separated"),
        (["probe", "model", "--text", "nowhere", "--length", "5"], "does not exist"),
        (["run", "01_order", "--seeds", "1,2"], "a chapter has one seed, --seeds gives 2"),
        (["run", "in_window", "--jobs", "0"], "greater than or equal to 1"),
        (["run", "in_window", "--profile", "laptop"], "no git checkout"),
        (["check", "--update"], "--update needs --reason TEXT"),
        (["check", "--published", "--measure"], "goes with neither"),
        (["check", "01_order", "--published"], "not chapters: 01_order"),
        (["check", "--published"], "holds no record of laptop or gpu, so that nothing was checked"),
        (["check", "--draw", "1"], "--published --whole --sample N"),
        (["check", "--published", "--whole", "--sample", "1"], "no published run of laptop can be trained"),
        (["results", "encodings", "in_windw"], "no name holds 'in_windw'; did you mean in_window"),
        (["data", "eltec"], "did you mean eltec-eng"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_remedy(
    sepnb, write_chapter, arguments: list[str], message: str
) -> None:
    write_chapter("01_order")
    status, output = sepnb(*arguments)
    assert status == 2
    assert message in output
    assert "Traceback" not in output


def test_the_device_follows_the_profile_unless_asked(sepnb, checkout, monkeypatch) -> None:
    for there in (True, False):
        monkeypatch.setattr("torch.cuda.is_available", lambda there=there: there)
        assert tasks.device(None, "smoke") == tasks.device("cpu", "gpu") == "cpu"
        assert tasks.device("auto", "laptop") == ("cuda" if there else "cpu")
    for arguments in (["in_window", "--profile", "smoke", "--device", "cuda"], ["--profile", "gpu"]):
        status, output = sepnb("run", *arguments)
        assert status == 2 and "needs a GPU" in output and "--device cpu" in output
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert tasks.device(None, "gpu") == "cuda"


def test_one_of_several_gpus_is_the_only_one_that_a_command_and_its_workers_see(monkeypatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: len(os.environ["CUDA_VISIBLE_DEVICES"].split(",")))
    monkeypatch.setattr(
        "torch.cuda.is_available", lambda: not os.environ["CUDA_VISIBLE_DEVICES"].startswith("-")
    )
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b,GPU-c")
    assert gpus.visible() == ["GPU-a", "GPU-b", "GPU-c"]
    assert tasks.device("cuda:1", "gpu") == "cuda"
    assert gpus.visible() == ["GPU-b"]
    with pytest.raises(ValueError, match="--device cuda:3 needs a GPU"):
        tasks.device("cuda:3", "gpu")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    tasks.device("cuda:2", "laptop")
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "2"


def test_a_grid_is_planned_once_what_chooses_its_settings_has_run(fake, checkout, monkeypatch) -> None:
    log, plan = [], tasks.runs.plan

    def planned(experiments, *arguments, **how):
        log.append(("plan", *(one.name for one in experiments)))
        return plan(experiments, *arguments, **how)

    def run(todo, tallies, **_):
        log.append(("run", *{one.experiment.name for one in todo}))
        return tallies

    monkeypatch.setattr(tasks.runs, "plan", planned)
    monkeypatch.setattr(tasks.runs, "run", run)
    both = [fake(name="grid", order=1), fake(name="sweep", chooses=True)]
    options = {"profile": "gpu", "seeds": None, "fresh": False, "folder": checkout / "private", "threads": 1}
    tasks.run_experiments(Console(quiet=True), both, device="cpu", jobs=1, **options)
    assert log == [
        ("plan", "grid", "sweep"),  # for what is told beforehand
        *(("plan", "sweep"), ("run", "sweep")),
        *(("plan", "grid"), ("run", "grid")),
    ]


def test_what_is_timed_on_a_gpu_has_it_alone(fake, checkout, monkeypatch) -> None:
    seen = []

    def run(todo, tallies, *, side_by_side, **_):
        seen.append((todo[0].experiment.name, side_by_side))
        return tallies

    monkeypatch.setattr(tasks.runs, "run", run)
    monkeypatch.setattr(tasks, "visible", lambda: ["0"])
    monkeypatch.setattr(gpus, "peak", lambda: 1e14)
    both = [fake(name="timed", alone=True), fake(name="grid")]
    options = {"profile": "gpu", "seeds": None, "fresh": False, "folder": checkout / "private", "threads": 1}
    for device in ("cuda", "cpu"):
        tasks.run_experiments(Console(quiet=True), both, device=device, jobs=4, **options)
    assert seen == [("grid", 4), ("timed", 1), ("grid", 4), ("timed", 4)]


def test_finding_nothing_to_do_imports_no_torch(write_chapter) -> None:
    chapter = write_chapter("01_order")
    parameters = {"profile": "smoke", "seed": 0, "device": "cpu"}
    numbers.publish("01_order", {"answer": 42}, profile="smoke")
    chapter.output("smoke").write_text("{}", encoding="utf-8")
    remember(chapter, "smoke", fingerprint(chapter, parameters), 1.0)
    script = """
import sys
from typer.testing import CliRunner
from sepnb import cli, paths

done = CliRunner().invoke(cli.app, ["run", "chapters", "--profile", "smoke"])
print(done.exit_code, sorted({"torch", "jupytext", "papermill", "sphinx", "pandas"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"


def test_nothing_checked_is_an_error_and_no_pass(sepnb, checkout, write_chapter, monkeypatch) -> None:
    status, output = sepnb("check")
    assert status == 2 and "holds no chapters: numbers are checked in a checkout of the book" in output
    write_chapter("01_order")
    monkeypatch.setattr(regression, "recompute", lambda work, **_: {"01_order": {}})
    status, output = sepnb("check")
    assert status == 2 and "01_order published no number, so that nothing was checked" in output


def test_a_grid_is_run_resumed_and_summed_up(sepnb, checkout, fake, registered) -> None:
    registered(fake(methods=("a", "broken")))
    store = checkout / "private"
    status, output = sepnb("run", "fake", "--store", str(store))
    assert status == 1
    assert "4 runs of fake at laptop on cpu" in output and "0 are there already" in output
    assert "RuntimeError: no such layer" in output
    assert sorted(file.stem for file in store.rglob("*.json")) == ["a-seed1", "a-seed2"]
    status, output = sepnb("run", "fake", "--store", str(store))
    assert "2 runs of fake" in output and "2 are there already" in output


def test_several_processes_for_one_run_are_refused(sepnb, checkout, fake, registered, monkeypatch) -> None:
    registered(fake())
    monkeypatch.setenv("WORLD_SIZE", "2")
    status, output = sepnb("run", "fake", "--store", str(checkout / "private"))
    assert status == 2 and "torchrun started several of it; use --jobs" in output
    assert not (checkout / "private").exists()


@pytest.fixture
def recomputed(write_chapter: Callable[..., Chapter], monkeypatch: pytest.MonkeyPatch) -> dict:
    """Recomputation replaced by numbers that a test may change."""
    write_chapter("01_order")
    found = {"01_order": {"loss": 2.5, "n_runs": 3}}

    def fresh(work: Path, *, chapters: Sequence[str], **_: object) -> dict:
        return {name: dict(numbers) for name, numbers in found.items() if not chapters or name in chapters}

    monkeypatch.setattr(regression, "recompute", fresh)
    return found


def test_check_fails_on_a_moved_number_until_the_reference_moves_for_a_reason(sepnb, recomputed) -> None:
    assert sepnb("check")[0] == 1
    status, output = sepnb("check", "--measure", "--update", "--reason", "first numbers")
    assert status == 0 and "all as the reference says" in output
    assert sepnb("check")[0] == 0
    recomputed["01_order"]["loss"] = 2.6
    status, output = sepnb("check")
    assert status == 1
    assert "01_order/loss: got 2.6, reference 2.5" in output and "1 differ" in output
    assert sepnb("check", "--update", "--reason", "a new schedule")[0] == 0
    assert sepnb("check")[0] == 0
    made = json.loads((regression.folder("smoke") / "01_order.json").read_text(encoding="utf-8"))["made"]
    assert made["reason"] == "a new schedule"


def test_check_of_a_chapter_leaves_what_is_known_of_the_others(sepnb, recomputed, write_chapter) -> None:
    for name in ("02_new", "03_gone"):
        write_chapter(name)
        recomputed[name] = {"share": 0.5}
    assert sepnb("check", "--measure", "--update", "--reason", "first numbers")[0] == 0
    recomputed["01_order"]["loss"], recomputed["02_new"] = 2.6, {"part": 0.25}
    status, output = sepnb("check", "02_new", "--measure", "--update", "--reason", "renamed")
    assert status == 0 and "1 numbers of 1 chapters" in output
    assert regression.tolerances("smoke").keys() == {"01_order", "02_new", "03_gone"}
    assert regression.tolerances("smoke")["02_new"].keys() == {"part"}
    status, output = sepnb("check")
    assert status == 1 and "01_order/loss: got 2.6" in output and "1 differ" in output
    (paths.root() / "notebooks" / "03_gone.py").unlink()
    assert "03_gone/*: has a reference but no chapter" in sepnb("check", "02_new")[1]
    sepnb("check", "02_new", "--measure")
    assert regression.tolerances("smoke").keys() == {"01_order", "02_new"}


def test_results_lists_published_missing_stale_and_orphaned(sepnb, checkout, fake, registered) -> None:
    store = Store()
    registered(fake(methods=("a", "b", "c")))
    for config in fake(methods=("a", "b", "z")).grid("laptop", [1]):
        store.write(fake().run(config))
    store.mark_stale("laptop", "fake", "b-seed1", "init changed")
    other = replace(
        store.load("laptop", "fake")["a-seed1"], key="c-seed1", config={"method": "c", "steps": 9}
    )
    store.write(other)
    status, output = sepnb("results", "--profile", "laptop")
    assert status == 0
    assert row_of_fake(output) == ["fake", "laptop", "6", "1", "3", "2", "1", "0"]
    assert "stale: laptop/fake/c-seed1: its config is not that of the grid: steps is 9 there" in output
    assert "stale: laptop/fake/b-seed1: init changed" in output
    assert "orphaned (in no grid): laptop/fake/z-seed1" in output


def row_of_fake(output: str) -> list[str]:
    return next(line for line in output.splitlines() if line.startswith("fake ")).split()


@pytest.fixture
def bad_and_good(checkout: Path, fake, registered) -> Path:
    """Two records of a fake experiment, of which one is no whole JSON; the path of the bad one."""
    grid = fake(methods=("a", "b", "c"))
    registered(grid)
    for config in grid.grid("laptop", [1])[:2]:
        Store().write(grid.run(config))
    path = Store().path("laptop", "fake", "a-seed1")
    path.write_text('{"schema": 1', encoding="utf-8")
    return path


@pytest.mark.attack(
    "one bad record among good ones, and a folder that leads in a circle, when results are listed"
)
def test_one_bad_record_is_listed_and_a_folder_that_cannot_be_read_is_not_empty(sepnb, bad_and_good) -> None:
    status, output = sepnb("results", "--profile", "laptop")
    assert status == 1 and row_of_fake(output) == ["fake", "laptop", "6", "1", "4", "0", "0", "1"]
    assert f"refused: {bad_and_good}: not whole JSON" in output
    folder = bad_and_good.parent
    shutil.rmtree(folder)
    folder.symlink_to(folder)  # a loop
    status, output = sepnb("results", "--profile", "laptop")
    assert status == 1 and "?" in row_of_fake(output) and f"refused: {folder}: cannot be read" in output


@pytest.mark.attack("one bad record in a grid that is resumed")
def test_a_run_goes_on_past_a_bad_record_and_leaves_it_to_be_looked_at(sepnb, bad_and_good, checkout) -> None:
    mine = (checkout / "results").rename(checkout / "mine")
    bad_and_good = mine / bad_and_good.relative_to(checkout / "results")
    arguments = ["run", "fake", "--profile", "laptop", "--store", str(mine), "--jobs", "1", "--seeds", "1"]
    status, output = sepnb(*arguments)
    assert status == 1 and f"refused: {bad_and_good}: not whole JSON" in output
    assert row_of_fake(output)[:5] == ["fake", "1", "1", "0", "0"]  # one was there, one ran
    assert bad_and_good.read_text(encoding="utf-8") == '{"schema": 1'
    status, output = sepnb(*arguments, "--fresh")
    assert status == 0 and "refused" not in output
    assert json.loads(bad_and_good.read_text(encoding="utf-8"))["key"] == "a-seed1"


@pytest.mark.attack("a store that cannot be written")
def test_a_store_that_cannot_be_written_is_refused_before_anything_runs(
    sepnb, checkout, fake, registered, monkeypatch
) -> None:
    def read_only(_: int) -> None:
        raise OSError(30, "Read-only file system")

    registered(fake(log=checkout / "log"))
    monkeypatch.setattr("os.fsync", read_only)
    status, output = sepnb("run", "fake", "--store", str(checkout / "private"))
    assert status == 2 and "no record can be written here (Read-only file system); free space" in output
    assert not (checkout / "log").exists()


@pytest.mark.attack("one bad record when all are replayed")
def test_published_records_are_replayed_beside_a_bad_one_which_is_listed(sepnb, bad_and_good) -> None:
    status, output = sepnb("check", "--published", "--profile", "laptop")
    assert status == 1 and f"refused: {bad_and_good}: not whole JSON" in output
    assert "1 published records: 1 equal" in output


@pytest.mark.attack("one bad record when claims are judged")
def test_claims_are_judged_without_a_bad_record_which_is_listed(sepnb, checkout) -> None:
    path = checkout / "results" / "laptop" / "in_window" / "rope-seed1.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"schema": 1, "schema": 1}', encoding="utf-8")
    status, output = sepnb("claims")
    assert status == 1 and f"refused: {path}: not whole JSON (the key 'schema' stands twice)" in output
    assert sum("not run" in line for line in output.splitlines()) > 100


HEAVY = ("torch", "pandas", "matplotlib", "numpy", "papermill", "sepnb.companion.run.tasks")


@pytest.mark.parametrize(
    ("code", "light"),
    [
        ("from sepnb.cli import app; app(['--help'], standalone_mode=False)", HEAVY),
        ("import sepnb.claims, sepnb.companion.book.site", ("torch", "matplotlib", "scipy.stats")),
    ],
)
def test_what_is_asked_often_imports_nothing_heavy(code: str, light: tuple[str, ...]) -> None:
    code += f"\nimport sys; print('heavy:', sorted(set(sys.modules) & set({light!r})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "heavy: []"


def test_doctor_finds_what_is_missing_or_other_than_locked() -> None:
    lock = f"""# a comment
numpy=={version("numpy")}
rich==0.0.1
no-such-package==1.0
other-system==1.0 ; sys_platform == 'nowhere'
torch=={version("torch").split("+")[0]}
"""
    missing, other = differing_versions(lock)
    assert missing == ["no-such-package"]
    assert other == [f"rich {version('rich')} (locked 0.0.1)"]


def test_doctor_sees_a_folder_that_is_no_checkout(sepnb, checkout) -> None:
    (checkout / "requirements.lock").unlink()
    status, output = sepnb("doctor")
    assert status == 1
    assert "requirements.lock is missing" in output and "no git checkout" in output


ATTACKS = """
import os
import pytest

@pytest.mark.attack("a door")
def test_a_door_is_shut():
    assert os.environ["SEPNB_WHOLE_ATTACKS"] and {door}

def test_no_attack():
    assert False
"""


def test_doctor_makes_every_attack_of_a_checkout(sepnb, checkout) -> None:
    (checkout / "pytest.ini").write_text("[pytest]\nmarkers = attack\n")
    assert sepnb("doctor", "--attack")[0] == 2
    (checkout / "tests").mkdir()
    for door, ended in (("shut", 0), ("", 1)):
        (checkout / "tests" / "test_house.py").write_text(ATTACKS.format(door=repr(door)), encoding="utf-8")
        assert sepnb("doctor", "--attack")[0] == ended
