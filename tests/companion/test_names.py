"""The names that commands take: known, listed and answered when misspelt without waiting for torch."""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from sepnb.companion import gpus, names
from sepnb.experiments import names as every_experiment


def test_the_table_has_what_there_is() -> None:
    there = Path(names.__file__).with_suffix(".json").read_text(encoding="utf-8")
    assert there == names.made(), "python -m sepnb.companion.names writes it anew"


def test_the_table_is_true_of_the_gpu_profile_too() -> None:
    """It has one column for both published profiles."""
    from sepnb import experiments

    table = json.loads(Path(names.__file__).with_suffix(".json").read_text(encoding="utf-8"))["experiments"]
    for name, grid in table.items():
        assert {config.method for config in experiments.get(name).grid("gpu")} == set(grid["methods"])


def test_names_are_sorted_into_experiments_and_chapters(write_chapter) -> None:
    for name in ("01_order", "02_more"):
        write_chapter(name)
    asked = names.sort_out(["02_more", "in_window", "chapters", "in_window"], "smoke")
    assert asked.experiments == ["in_window"]
    assert [one.name for one in asked.chapters] == ["02_more", "01_order"]
    asked = names.sort_out(names.GROUPS, "smoke")
    assert asked.experiments == every_experiment()
    assert [one.name for one in asked.chapters] == ["01_order", "02_more"]


def test_a_pattern_means_the_names_that_it_fits(write_chapter) -> None:
    write_chapter("01_order")
    asked = names.sort_out(["seqpe_stream*", "*order"], "smoke")
    assert set(asked.experiments) == {name for name in every_experiment() if name.startswith("seqpe_stream")}
    assert len(asked.experiments) > 1 and [one.name for one in asked.chapters] == ["01_order"]
    with pytest.raises(ValueError, match=r"'nedle\*' is no chapter and no experiment; did you mean needle"):
        names.sort_out(["nedle*"], "smoke")


def test_what_needs_a_package_of_its_own_is_run_by_its_name_or_where_that_is_installed(monkeypatch) -> None:
    for there in (False, True):
        monkeypatch.setattr("sepnb.experiments.peer.installed", lambda there=there: there)
        for group in ("experiments", "*"):
            found = names.load(names.sort_out([group], "gpu"), "gpu")
            missing = set(every_experiment()) - {one.name for one in found}
            assert missing == (set() if there else {"encoding_speed"})
        (found,) = names.load(names.sort_out(["encoding_speed"], "gpu"), "gpu")
        assert found.name == "encoding_speed"


CALL = """
import runpy, sys
sys.argv = ["sepnb", *{arguments!r}]
try:
    runpy.run_module("sepnb", run_name="__main__")
except SystemExit as ended:
    print("ended:", ended.code or 0, sorted({{"torch", "pandas", "sphinx"}} & set(sys.modules)))
"""


def called(*arguments: str) -> tuple[str, str]:
    """What a command says in a process of its own, in one line, and its status with what it imported."""
    script = CALL.format(arguments=arguments)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    said, _, end = done.stdout.rpartition("ended: ")
    return " ".join((said + done.stderr).split()), end.strip()


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("run 01_oder", "did you mean 01_order"),
        ("run in_windw", "did you mean in_window"),
        ("run in_window --methods rop", "'rop' is no method of in_window at laptop; did you mean rope?"),
        (
            "run lr_screen --methods none --profile smoke",
            "'none' is no method of lr_screen at smoke",
        ),
        ("run in_window --seeds 1,x", "give whole numbers separated by commas"),
        ("run in_window --shard 3/2", "give i/n"),
        ("run in_window --device gpu0", "give cpu, cuda, one of several GPUs as cuda:1, or auto"),
        ("check 01_oder", "did you mean 01_order"),
        ("results in_windw", "did you mean in_window"),
        ("data eltec", "did you mean eltec-eng"),
        ("bench separatd", "did you mean separated"),
        ("probe model --text nowhere --length 5", "does not exist"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_nearest_and_without_torch(write_chapter, command, told) -> None:
    write_chapter("01_order")
    said, ended = called(*command.split())
    assert told in said and ended == "2 []"


@pytest.mark.parametrize(
    "command",
    [
        "run in_window --device cuda",
        "run in_window --profile gpu",
        "bench --device cuda",
        "build --device cuda",
    ],
)
def test_a_gpu_that_is_not_there_is_answered_without_torch(write_chapter, command) -> None:
    write_chapter("01_order")
    if gpus.missing() is None:
        pytest.skip("there is a GPU here, and torch is asked")
    said, ended = called(*command.split())
    assert "needs a GPU, and t" in said and "--device cpu computes without" in said and ended == "2 []"


def test_where_there_may_be_a_gpu_torch_is_asked(monkeypatch, tmp_path) -> None:
    """Whatever torch says of its build, and whether a driver is there."""
    torch = sys.modules["torch"]
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert gpus.missing() is None
    monkeypatch.delitem(sys.modules, "torch")
    for built, driver, asked in [
        ({"__version__": "2.13.0"}, True, False),
        ({"__version__": "2.13.0", "cuda": "13.0"}, False, False),
        ({"__version__": "2.13.0", "cuda": "13.0"}, True, True),
        ({"__version__": "2.13.0", "hip": "7.0"}, False, True),
        (None, False, True),
    ]:
        monkeypatch.setattr(gpus, "_built", lambda built=built: built)
        monkeypatch.setattr(gpus, "_driver", lambda driver=driver: driver)
        monkeypatch.setitem(sys.modules, "torch", torch) if asked else None
        assert (gpus.missing() is None) == asked
        monkeypatch.delitem(sys.modules, "torch", raising=False)


def test_what_needs_no_computing_imports_no_torch(write_chapter) -> None:
    write_chapter("01_order")
    said, ended = called("--version")
    assert said == f"sepnb {version('sepnb')}" and ended == "0 []"
    said, ended = called("-h")
    assert "Commands" in said and ended == "0 []"


@pytest.mark.parametrize("command", ["run", "results", "check", "data"])
def test_the_help_of_a_command_lists_the_names_that_it_takes(write_chapter, command) -> None:
    write_chapter("01_order")
    said, ended = called(command, "-h")
    lists = {"run": [*every_experiment(), "01_order"], "results": every_experiment()}
    lists |= {"check": ["01_order"], "data": ["eltec-eng", "babi"]}
    assert not [name for name in lists[command] if name not in said.replace(",", "").split()]
    assert ended == "0 []"


def test_a_name_that_only_the_sources_have_yet_is_looked_up_by_the_experiments_themselves(
    write_chapter, monkeypatch, tmp_path
) -> None:
    (tmp_path / "mine.py").write_text('class Mine(Experiment):\n    name = "mine"\n', encoding="utf-8")
    monkeypatch.setattr(names, "_WRITTEN", tmp_path)
    assert names.sort_out(["mine"], "smoke").experiments == ["mine"]
    with pytest.raises(ValueError, match="'mne' is no chapter and no experiment"):
        names.sort_out(["mne"], "smoke")
