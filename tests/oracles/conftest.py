"""Public implementations as witnesses: imported, never copied, and only where someone asked for them.

Every test here carries the marker `oracle`, which is not selected unless it is named: `make oracles` installs
the pinned packages of requirements-oracles.txt into a folder of their own and selects it. A package that is
missing then fails its test. What is held against what, and how far the two were apart, is printed at the end.
"""

import importlib
import importlib.util
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

_found: dict[str, tuple[float, float]] = {}


@pytest.fixture(scope="session")
def public() -> Callable[[str], types.ModuleType]:
    """`public(module)`: the module of a public package; what it warns of is no concern of this project."""

    def load(name: str) -> types.ModuleType:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)

    return load


@pytest.fixture(scope="session")
def leaf(public) -> Callable[[str], types.ModuleType]:
    """`leaf(module)`: as `public`, but without running the packages above it, which ask for more packages
    than the one file needs."""

    def load(name: str) -> types.ModuleType:
        parents = name.split(".")[:-1]
        if parents[0] in sys.modules:
            folders = sys.modules[parents[0]].__path__
        elif (found := importlib.util.find_spec(parents[0])) is not None:
            folders = found.submodule_search_locations
        else:
            raise ModuleNotFoundError(f"no package {parents[0]}; `make oracles` installs it")
        folder = Path(folders[0]).parent
        for depth, part in enumerate(parents, start=1):
            folder, parent = folder / part, ".".join(parents[:depth])
            if parent not in sys.modules:
                sys.modules[parent] = types.ModuleType(parent)
                sys.modules[parent].__path__ = [str(folder)]
        return public(name)

    return load


@pytest.fixture
def agree(request) -> Callable[[Tensor, Tensor, float], None]:
    """`agree(ours, theirs, bound)`: no entry is farther apart than the bound, and both say something."""

    def hold(ours: Tensor, theirs: Tensor, bound: float) -> None:
        ours, theirs = ours.detach().to(torch.float64), theirs.detach().to(torch.float64)
        assert ours.shape == theirs.shape
        assert ours.isfinite().all() and ours.abs().max() > 0
        apart = float((ours - theirs).abs().max())
        worst, _ = _found.get(request.node.nodeid, (0.0, bound))
        _found[request.node.nodeid] = max(worst, apart), bound
        assert apart <= bound

    return hold


def pytest_terminal_summary(terminalreporter):
    if not _found:
        return
    terminalreporter.section("largest difference from the public implementation, and the bound")
    for name, (apart, bound) in _found.items():
        terminalreporter.line(f"{apart:9.1e} {bound:9.1e}  {name.split('/')[-1]}")
