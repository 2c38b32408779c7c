"""Kernels are processes of their own that begin with the libraries loaded and leave with who started them."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from sepnb.companion.run import kernels
from sepnb.companion.run.execute import Job, execute
from sepnb.records import numbers

from ..shared import alive, wait_until

BEGUN = """
# %%
import os
import sys

from ipykernel.kernelapp import IPKernelApp

begun = {"pid": os.getpid(), "parent": os.getppid(), "torch": int("torch" in sys.modules)}
begun["own"] = int(os.environ["SEPNB_READ_LOG"].endswith("{name}.reads") and "sepnb.paths" not in sys.modules)
begun["ports"] = int(IPKernelApp.instance().transport == "tcp")
from sepnb.records import numbers

numbers.publish("{name}", begun, profile=profile)
"""
ASLEEP = """
# %%
import os
import time
from pathlib import Path

Path("pid.new").write_text(str(os.getpid()), encoding="utf-8")
Path("pid.new").rename("pid")  # a file that is there is whole
time.sleep(120)
"""


def begun(write_chapter, name: str) -> dict[str, float]:
    """What a kernel sees in its first cell."""
    chapter = write_chapter(name, BEGUN.replace("{name}", name))
    chapter.path.write_text(chapter.text.rpartition("\n# %%\nfrom sepnb.records")[0] + "\n", encoding="utf-8")
    outcome = execute(Job(chapter, "smoke"))
    assert outcome.status == "ran", outcome
    return numbers.load(name, "smoke")


@pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked under Linux")
def test_kernels_share_what_was_imported_and_nothing_else(write_chapter) -> None:
    first, second = (begun(write_chapter, name) for name in ("01_first", "02_second"))
    assert first["torch"] == second["torch"] == 1
    assert first["own"] == second["own"] == 1
    assert first["parent"] == second["parent"] != os.getpid()
    assert first["pid"] != second["pid"]


def test_where_nothing_can_be_forked_a_kernel_begins_with_nothing(write_chapter, monkeypatch) -> None:
    assert not kernels.can_fork("cuda:1")
    monkeypatch.setattr(kernels, "can_fork", lambda device: False)
    alone = begun(write_chapter, "01_alone")
    assert (alone["torch"], alone["own"], alone["parent"]) == (0, 1, os.getpid())


@pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked under Linux")
def test_a_chapter_says_what_kept_its_kernel_from_beginning_and_the_next_one_runs(
    write_chapter, monkeypatch, tmp_path
) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit(7)\n", encoding="utf-8")
    kernels._parent.cache_clear()
    monkeypatch.setattr(kernels.forker, "__file__", str(broken))
    outcome = execute(Job(write_chapter("01_none"), "smoke"))
    assert outcome.failure is not None
    assert "broken.py ended with status 7" in outcome.failure.error
    monkeypatch.undo()
    assert kernels._parent.cache_info().currsize == 0


@pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked under Linux")
@pytest.mark.parametrize("end", ["terminate", "kill"])
def test_a_kernel_that_has_left_by_itself_may_be_told_to_leave(end) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    kernel = kernels.Forked(kernel_id="gone")
    kernel.process = kernels.Fork(gone.pid)
    with ThreadPoolExecutor(1) as aside:  # an open browser keeps a loop running in the thread of the tests
        aside.submit(asyncio.run, getattr(kernel, end)()).result()


@pytest.mark.skipif(os.name != "posix", reason="elsewhere a kernel has ports")
def test_a_kernel_is_given_no_port_that_another_could_take_and_leaves_no_socket(
    write_chapter, monkeypatch, tmp_path
) -> None:
    folder = tmp_path / "s"  # the path of a socket may have 107 characters
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    assert begun(write_chapter, "01_alone")["ports"] == 0
    gc.collect()
    assert not list(folder.iterdir())


def test_a_kernel_leaves_with_a_build_that_is_killed(write_chapter, checkout) -> None:
    chapter, pid = write_chapter("01_asleep", ASLEEP), checkout / "pid"
    program = (
        "from pathlib import Path; from sepnb.companion.run.chapters import Chapter;"
        "from sepnb.companion.run.execute import Job, execute;"
        f"execute(Job(Chapter(Path({str(chapter.path)!r})), 'smoke'))"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as build:
        wait_until(pid.exists)
        kernel = int(pid.read_text(encoding="utf-8"))
        assert alive(kernel)
        build.send_signal(signal.SIGKILL)
    wait_until(lambda: not alive(kernel))
