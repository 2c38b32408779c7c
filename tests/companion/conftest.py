"""A small checkout of its own for each test: chapters, build folder and store in a temporary place."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sepnb.companion.chapters import Chapter

HEADER = """\
# %% [markdown]
# Some words first.
#
# # The {name} chapter

# %% tags=["parameters"]
profile = "smoke"
seed = 0
device = "cpu"
"""
PUBLISH = """
# %%
from sepnb.records import numbers

numbers.publish("{name}", {{"answer": 42, "half": 0.5 + seed}}, profile=profile)
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty checkout that every path of sepnb points into."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "requirements.lock").write_text("torch==2.13.0\n", encoding="utf-8")
    monkeypatch.setenv("SEPNB_ROOT", str(tmp_path))
    monkeypatch.setenv("SEPNB_BUILD", str(tmp_path / "build"))
    monkeypatch.setenv("SEPNB_RESULTS", str(tmp_path / "results"))
    monkeypatch.delenv("SEPNB_READ_LOG", raising=False)
    return tmp_path


@pytest.fixture
def write_chapter(checkout: Path) -> Callable[..., Chapter]:
    """`write_chapter(name, body="")`: a chapter with `body` between its parameters and its last cell."""

    def write(name: str, body: str = "") -> Chapter:
        path = checkout / "notebooks" / f"{name}.py"
        path.write_text(HEADER.format(name=name) + body + PUBLISH.format(name=name), encoding="utf-8")
        return Chapter(path)

    return write
