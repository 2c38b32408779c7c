"""A small checkout of its own for each test: chapters, build folder and store in a temporary place."""

from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from sepnb import cli, experiments
from sepnb.companion.run.chapters import Chapter

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


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type:
    """The class of fake experiments, importable under the same name here and in worker processes."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    import fake_experiments

    return fake_experiments.Fake


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], None]:
    """`registered(experiment)`: the only one that there is, called fake."""

    def register(experiment: object) -> None:
        monkeypatch.setattr(experiments, "names", lambda: ["fake"])
        monkeypatch.setattr(experiments, "get", lambda name: experiment)

    return register


@pytest.fixture
def sepnb(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    """`sepnb(*arguments)`: a command as it is typed. Gives its exit status and what it prints."""
    monkeypatch.setattr(cli, "console", Console(width=200, highlight=False))

    def command(*arguments: object) -> tuple[int, str]:
        done = CliRunner().invoke(cli.app, list(map(str, arguments)))
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output

    return command
