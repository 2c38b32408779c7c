"""What all tests share. It imports nothing of sepnb itself: the hook that checks shapes must come first."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import jaxtyping
import pytest
import torch

ROOT = Path(__file__).parents[1]
SHAPED = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(ROOT.glob("sepnb/**/*.py"))
    if "jaxtyping" in path.read_text(encoding="utf-8")
]
"""The modules whose annotations hold shapes. All of these are checked, in every test. The others are left as
they are: wrapped, the checks of a config alone took the tests as long again."""
jaxtyping.install_import_hook(SHAPED, "beartype.beartype")

# One thread: the models are tiny, and threads that wait for one another would cost more than they share.
torch.set_num_threads(1)

# The same examples every time and on every machine; the first call of a torch function may take its time.
hypothesis.settings.register_profile("sepnb", derandomize=True, deadline=None)
hypothesis.settings.load_profile("sepnb")


@pytest.fixture(scope="session")
def data_set() -> Callable:
    """`data_set(name)`: the registered data set, at hand and checked; a damaged one fails the test.

    One that is missing skips the test and says which it is and how to get it (in CI that fails, see below).
    """
    from sepnb.data import registry

    def at_hand(name: str) -> registry.DataSet:
        found = registry.get(name)
        try:
            found.read()
        except registry.DataMissing as missing:
            pytest.skip(str(missing))
        return found

    return at_hand


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Sums in one order: what is run twice is equal to the last bit."""
    from sepnb.analysis import timing

    with timing.one_thread():
        yield


@pytest.fixture
def unhooked(monkeypatch):
    """No shape checks from outside: what `sepnb` itself says of bad input to a user, who has no such hook."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture
def tries() -> Callable[[int, int], int]:
    """`tries(few, whole)`: how often an attack is made that draws what it does.

    The whole number for `sepnb doctor --attack`, few in every other run.
    """
    return lambda few, whole: whole if os.environ.get("SEPNB_WHOLE_ATTACKS") else few


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Workers must name the same tests, which an object's address in a name prevents."""
    if odd := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(f"the id of a test holds an address; leave out ids=str: {odd[0]}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    return report if item.get_closest_marker("gpu") else _nothing_skipped_in_ci(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    return _nothing_skipped_in_ci((yield))


def _nothing_skipped_in_ci(report):
    """Where CI is set, a test that skips itself has failed: a green run means that everything was run."""
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome, report.longrepr = "failed", f"not to be skipped in CI: {reason}"
    return report
