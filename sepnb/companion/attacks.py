"""The attacks on this project: run them, and set their table for the book.

An attack is a test that carries the mark `attack`; `tests/attacks.py` counts its cases. Both are of a
checkout, an installed package has neither.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from sepnb import paths
from sepnb.companion import screens
from sepnb.records.markup import code, said, table

COUNTED = ("attacks", "cases", "held")


def path() -> Path:
    """Where the published table lies."""
    return paths.root() / "results" / "attacks.json"


def load() -> dict[str, Any]:
    """The published table: `made`, where and of what code; `attacks`, of each what is attacked, the test,
    its cases and how many held. ValueError where it is no such table."""
    try:
        content = json.loads(path().read_text(encoding="utf-8"))
        _ = [(row["attack"], row["test"], row["cases"], row["held"]) for row in content["attacks"]]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path()} is no table of attacks ({error}); run `sepnb doctor --attack`") from None
    return content


def run(console: Console) -> bool:
    """Make every attack at its whole number of cases, and write the table; whether all held.

    Raises:
        ValueError: this is no checkout of the book, or the table was not written.
    """
    root = paths.root()
    if not (root / "tests" / "attacks.py").exists():
        raise ValueError(f"{root} holds no tests: the attacks are made in a checkout of the book")
    command = [sys.executable, "-m", "pytest", "-q", "-m", "attack", "-p", "tests.attacks"]
    command += ["--attacks", str(path()), "-n", str(min(2, os.cpu_count() or 1)), "--dist", "worksteal"]
    began = path().stat().st_mtime_ns if path().exists() else 0
    ended = subprocess.run(command, cwd=root, env=os.environ | {"SEPNB_WHOLE_ATTACKS": "1"}, check=False)
    if not path().exists() or path().stat().st_mtime_ns == began:
        raise ValueError(f"pytest ended with status {ended.returncode}, and no table was written")
    content = load()
    console.print(screens.rows(("part", *COUNTED), _summary(content)))
    for row in content["attacks"]:
        if row["held"] < row["cases"] or not row["cases"]:
            screens.say(console, f"did not hold: {row['attack']} ({row['test']})", "red")
    screens.say(console, f"The table is {path()}")
    return ended.returncode == 0


PARTS = {
    "book": "published pages",
    "companion": "commands, grids and builds",
    "data": "data sets and archives",
    "models": "models and what is kept of them",
    "notebooks": "a fresh clone",
    "plots": "published pages",
    "protocol": "other people's models",
    "records": "records",
    "seqpe": "public functions",
    "test_packaging": "workflows",
    "test_public_doors": "public functions",
    "training": "training and checkpoints",
}
"""What is attacked by the tests of a folder, or of a file beside the folders."""


def _part(row: dict[str, Any]) -> str:
    name = row["test"].split("::")[0].split("/")[1].removesuffix(".py")
    return PARTS.get(name, name)


def _summary(content: dict[str, Any]) -> list[tuple[str, int, int, int]]:
    """Of each part how many attacks, cases, and cases that held; all of them last."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for row in content["attacks"]:
        parts.setdefault(_part(row), []).append(row)
    groups = [*sorted(parts.items()), ("all", content["attacks"])]
    return [
        (part, len(rows), *(sum(row[of] for row in rows) for of in ("cases", "held")))
        for part, rows in groups
    ]


def page() -> str:
    """The table as MyST text: a line a part, and every attack in folds."""
    if not path().exists():
        return "Not run yet: `sepnb doctor --attack` makes this table.\n"
    content = load()
    made, summary = content["made"], _summary(content)
    where = f"{said(made['platform'])} with Python {said(made['python'])} and torch {said(made['torch'])}"
    counts = [(part, *map("{:,}".format, numbers)) for part, *numbers in summary]
    lines = [
        f"Made on {said(made['day'])} in {screens.duration(made['seconds'])} on {where}, at commit "
        f"{code(made['commit'][:9])}, where git calls the content of the package {code(made['tree'][:9])}.",
        "",
        *table(("part", *COUNTED), counts, right=COUNTED),
    ]
    heads = ("attack", "what has to hold", "cases", "held")
    for part, *_ in summary[:-1]:
        rows = [
            (said(row["attack"]), said(_promise(row["test"])), f"{row['cases']:,}", f"{row['held']:,}")
            for row in content["attacks"]
            if _part(row) == part
        ]
        lines += [f"````{{dropdown}} {part}: every attack", "", *table(heads, rows, right=heads[2:])[:-1]]
        lines += ["````", ""]
    return "\n".join(lines)


def _promise(test: str) -> str:
    """What a test promises: its name, in words."""
    return test.rpartition("::")[2].removeprefix("test_").replace("_", " ")
