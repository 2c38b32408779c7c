"""A plugin of pytest: the table of attacks, what was attacked, with how many cases, and how many held.

    python -m pytest -p tests.attacks -m attack --attacks results/attacks.json

An attack is a test with the mark `attack("what is attacked")`. A test counts as one case for each of its
parameters, or as many as it says with `record_property("cases", n)`; of one that fails, none has held.
`sepnb doctor --attack` runs this.
"""

import json
import os
import platform
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--attacks", type=Path, metavar="FILE", help="write the table of attacks to this file")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--attacks")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Table(path))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What a test attacks travels with its report, from other processes too."""
    for item in items:
        if mark := item.get_closest_marker("attack"):
            item.user_properties.append(("attack", *mark.args))


class Table:
    """Counts the cases of every attack and writes them when the session ends."""

    def __init__(self, path: Path) -> None:
        self.path, self.began = path, time.monotonic()
        self.attacks: dict[str, str] = {}
        self.cases: Counter[str] = Counter()
        self.held: Counter[str] = Counter()

    def pytest_sessionstart(self) -> None:
        """What is attacked is the code as it is now, not as it is at the end."""
        from sepnb.records import provenance

        self.code = (*provenance.code_state(), provenance.running_tree())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told = dict(report.user_properties)
        if "attack" not in told or (report.when != "call" and report.passed):
            return
        test = report.nodeid.partition("[")[0]
        self.attacks[test] = told["attack"]
        cases = 0 if report.skipped else told.get("cases", 1)
        self.cases[test] += cases
        self.held[test] += cases if report.passed else 0

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return
        rows = [
            {"attack": attack, "test": test, "cases": self.cases[test], "held": self.held[test]}
            for test, attack in sorted(self.attacks.items())
        ]
        content = {"made": self.made(), "attacks": rows}
        self.path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def made(self) -> dict[str, Any]:
        """Where and of what code."""
        import torch

        commit, dirty, tree = self.code
        return {
            "commit": commit,
            "dirty": dirty,
            "tree": tree,
            "platform": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
            "torch": torch.__version__,
            "day": datetime.now(UTC).date().isoformat(),
            "seconds": round(time.monotonic() - self.began),
            "whole": bool(os.environ.get("SEPNB_WHOLE_ATTACKS")),
        }
