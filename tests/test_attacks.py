"""The table of attacks is of the tests that are here, and of nothing else; whoever fails is counted."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sepnb.companion import attacks

HERE = Path(__file__).parent


def _attacked(decorator: ast.expr) -> str | None:
    """What a decorator says is attacked; None for another decorator."""
    if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.attack":
        return ast.literal_eval(decorator.args[0])
    return None


def marked() -> dict[str, str]:
    """The name of every marked test, and what it attacks."""
    return {
        f"{file.relative_to(HERE.parent).as_posix()}::{node.name}": attacked
        for file in HERE.rglob("test_*.py")
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
        for attacked in map(_attacked, node.decorator_list)
        if attacked is not None
    }


def test_the_table_is_of_the_marked_tests_whole_of_a_commit_and_all_held():
    content = attacks.load()
    assert {row["test"]: row["attack"] for row in content["attacks"]} == marked()
    assert all(row["held"] == row["cases"] > 0 for row in content["attacks"])
    made = content["made"]
    assert made["whole"] and made["dirty"] is False and len(made["commit"]) == len(made["tree"]) == 40


def test_every_part_that_is_attacked_has_words_and_a_fold():
    page = attacks.page()
    parts = {attacks._part({"test": test}) for test in marked()}
    assert parts <= set(attacks.PARTS.values())
    assert all(f"{{dropdown}} {part}: every attack" in page for part in parts)
    assert sum(line.startswith("| ") for line in page.splitlines()) == len(marked()) + 3 + 3 * len(parts)


def test_without_a_table_the_page_says_how_to_make_it_and_a_bad_one_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("SEPNB_ROOT", str(tmp_path))
    assert attacks.page() == "Not run yet: `sepnb doctor --attack` makes this table.\n"
    (tmp_path / "results").mkdir()
    for text in ("{", "[]", '{"attacks": [{"attack": "a"}]}'):
        attacks.path().write_text(text)
        with pytest.raises(ValueError, match=r"attacks\.json is no table of attacks .*doctor --attack"):
            attacks.page()


ATTACKS = """
import pytest

@pytest.mark.attack("four doors")
@pytest.mark.parametrize("door", range(4))
def test_a_door_is_shut(door):
    assert door != 3

@pytest.mark.attack("a wall")
def test_a_wall_stands(tries):
    assert tries(2, 500) == 500

@pytest.mark.attack("a roof")
def test_a_roof_is_there():
    pytest.skip("no roof here")

def test_no_attack():
    assert False
"""


def test_the_command_counts_cases_what_failed_and_what_was_skipped_over_its_processes(tmp_path, monkeypatch):
    for name in ("conftest.py", "attacks.py"):
        (tmp_path / "tests").mkdir(exist_ok=True)
        shutil.copy(HERE / name, tmp_path / "tests")
    (tmp_path / "results").mkdir()
    (tmp_path / "tests" / "test_house.py").write_text(ATTACKS, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\nmarkers = attack\n")
    command = [sys.executable, "-m", "sepnb", "doctor", "--attack"]
    environment = os.environ | {"SEPNB_ROOT": str(tmp_path), "PYTHONPATH": str(HERE.parent), "CI": ""}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ended.returncode == 1, ended.stderr
    told = [line for line in ended.stdout.splitlines() if line.startswith("did not hold: ")]
    assert told == [
        "did not hold: four doors (tests/test_house.py::test_a_door_is_shut)",
        "did not hold: a roof (tests/test_house.py::test_a_roof_is_there)",
    ]
    content = json.loads((tmp_path / "results" / "attacks.json").read_text(encoding="utf-8"))
    counts = {row["attack"]: (row["cases"], row["held"]) for row in content["attacks"]}
    assert counts == {"four doors": (4, 3), "a wall": (500, 500), "a roof": (0, 0)}
    (tmp_path / "tests" / "attacks.py").unlink()
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ended.returncode == 2 and "the attacks are made in a checkout of the book" in ended.stdout
