"""Kernels that begin with the libraries loaded: forks of a process that imported them once.

A chapter's kernel is still a process of its own. A fork saves it four seconds of imports, as long as a short
chapter runs. Kernels are forked on a CPU under Linux only: elsewhere, what libraries have opened does not
survive a fork.

A kernel and its client talk through files where that is possible: a TCP port that was free when the client
looked can be another kernel's by the time that the kernel binds it.

Papermill writes a notebook to the disk twice a cell; `SAVED_ONCE` names an engine that writes it at the end.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir, mkdtemp
from typing import Any
from uuid import uuid4
from weakref import finalize

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner
from papermill.engines import NBClientEngine, papermill_engines

from sepnb.companion.run import forker
from sepnb.companion.run.workers import THREAD_VARIABLES

AT_START = (*THREAD_VARIABLES, "PYTHONHASHSEED", "PYTHONPATH")
"""Variables that an interpreter or a library reads once: kernels that differ in one have no common parent."""

# The level silences a warning about unencrypted sockets, which ipykernel prints on every start.
COMMAND = [
    sys.executable,
    "-m",
    "ipykernel_launcher",
    "--IPKernelApp.log_level=CRITICAL",
    "-f",
    "{connection_file}",
]


def manager(environment: Mapping[str, str], device: str) -> type[AsyncKernelManager]:
    """What starts kernels of this interpreter with `environment`, by a fork where `can_fork`."""
    specification = KernelSpec(argv=COMMAND, env=environment, display_name="sepnb", language="python")

    class Here(AsyncKernelManager):
        kernel_spec = specification

        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            if os.name == "posix" and len(gettempdir()) < 80:  # a socket's path has at most 104 characters
                sockets = mkdtemp(prefix="sepnb-")
                finalize(self, rmtree, sockets, ignore_errors=True)
                self.transport, self.ip = "ipc", os.path.join(sockets, "kernel")
            if can_fork(device):
                self.kernel_id = str(uuid4())
                self.provisioner = Forked(kernel_id=self.kernel_id, kernel_spec=specification, parent=self)

    return Here


SAVED_ONCE = "saved once"


class SavedOnce(NBClientEngine):
    """Papermill's own engine, without a place to write to while it executes."""

    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, *args: Any, **options: Any) -> Any:
        place, nb_man.output_path = nb_man.output_path, None
        try:
            return super().execute_managed_notebook(nb_man, *args, **options)
        finally:
            nb_man.output_path = place


papermill_engines.register(SAVED_ONCE, SavedOnce)


def can_fork(device: str) -> bool:
    return sys.platform == "linux" and device == "cpu"


class Forked(LocalProvisioner):
    """Starts the kernel of a specification as a fork."""

    async def launch_kernel(self, cmd: list[str], **options: Any) -> dict[str, Any]:
        environment = dict(options["env"])
        self.cwd = str(options.get("cwd") or os.getcwd())
        asked = {"command": cmd, "environment": environment, "folder": self.cwd}
        parent = _parent(tuple((name, environment.get(name)) for name in AT_START))
        with suppress(BrokenPipeError):
            parent.stdin.write(json.dumps(asked) + "\n")
            parent.stdin.flush()
        if not (pid := parent.stdout.readline()):
            _parent.cache_clear()
            raise RuntimeError(f"no kernel: {' '.join(parent.args)} ended with status {parent.wait()}")
        self.process = Fork(int(pid))
        self.pid = self.pgid = self.process.pid
        return self.connection_info


class Fork:
    """What a provisioner asks of a process, for one that is the child of another."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        """None while it lives, 1 afterwards: only its parent knows the real exit status."""
        try:
            self.send_signal(0)
        except ProcessLookupError:
            return 1
        return None

    def wait(self) -> int | None:
        return self.poll()

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@cache
def _parent(variables: tuple[tuple[str, str | None], ...]) -> Any:
    """The process that forks: one for each value of the variables `AT_START`, as long as this one lives."""
    environment = {**os.environ, **{name: value for name, value in variables if value is not None}}
    parent = subprocess.Popen(
        [sys.executable, "-P", str(Path(forker.__file__))],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    atexit.register(_end, parent)
    return parent


def _end(parent: Any) -> None:
    for pipe in (parent.stdin, parent.stdout):
        pipe.close()
    parent.kill()
    parent.wait()
