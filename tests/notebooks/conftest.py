"""Every chapter once per session at smoke: in an empty store, by the command that people type."""

from pathlib import Path

import pytest

from sepnb.companion import regression


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, regression.Number]]:
    """Chapter to its numbers, computed afresh."""
    work: Path = tmp_path_factory.mktemp("smoke")
    try:
        return regression.recompute(work)
    except regression.RecomputeError as error:
        told = str(error)
    pytest.fail(told, pytrace=False)
