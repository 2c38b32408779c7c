"""Where a number comes from: code, machine, libraries, data, time.

Torch is imported where it is needed: the book and the command line ask for the commit without computing.
"""

import hashlib
import os
import platform
import re
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from .. import __version__, paths

PACKAGE = Path(__file__).resolve().parents[1]


def _said(command: Sequence[str], folder: Path | None = None) -> str | None:
    """What a command prints; None where it fails or is not there."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def git_state(root: Path | None = None) -> tuple[str | None, bool | None]:
    """The commit, and whether tracked or new files differ from it; (None, None) outside a git checkout.

    Changes under `results/` do not count: a grid writes its own records there while it runs. A folder inside
    another project's checkout, such as an installed package, is outside: that commit is not of this code.
    """
    root = paths.root() if root is None else root
    commit = _said(["git", "rev-parse", "HEAD"], root)
    changed = _said(["git", "status", "--porcelain", "--", ".", ":(exclude)results"], root)
    below = _said(["git", "rev-parse", "--show-prefix"], root)  # empty at the top of a checkout only
    return (None, None) if commit is None or changed is None or below else (commit, bool(changed))


def history() -> set[str] | None:
    """The checked-out commit and its ancestors; None in a shallow clone or outside a git checkout."""
    root = paths.root()
    if git_state()[0] is None or _said(["git", "rev-parse", "--is-shallow-repository"], root) != "false":
        return None
    return set((_said(["git", "rev-list", "HEAD"], root) or "").split())


def tree_digest(folder: Path) -> str:
    """The git tree hash of a folder, computed from the content of its files.

    It equals `git rev-parse HEAD:sepnb` while the files are as committed, and survives a rewritten history.
    The git index is not consulted, because it can declare files unchanged. All files count except caches and
    hidden files.
    """
    entries = []
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name == "__pycache__" or path.suffix in (".pyc", ".pyo"):
            continue
        if path.is_dir():
            mode, digest = "40000", tree_digest(path)
            if digest == EMPTY_TREE:
                continue  # git knows no empty folders
        else:
            content = path.read_bytes()
            mode = "100755" if path.stat().st_mode & 0o111 else "100644"
            digest = _object(b"blob", content)
        order = path.name + ("/" if mode == "40000" else "")
        entries.append((order.encode(), f"{mode} {path.name}".encode() + b"\0" + bytes.fromhex(digest)))
    return _object(b"tree", b"".join(entry for _, entry in sorted(entries)))


def _object(kind: bytes, content: bytes) -> str:
    return hashlib.sha1(kind + b" %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


EMPTY_TREE = _object(b"tree", b"")


def running_tree() -> str:
    """`tree_digest` of the package that this process runs, wherever `SEPNB_ROOT` points."""
    return tree_digest(PACKAGE)


def committed_tree() -> str | None:
    """The tree of `sepnb/` in the commit of the checkout; None outside of one."""
    return _said(["git", "rev-parse", "HEAD:sepnb"], paths.root())


@cache
def code_state() -> tuple[str | None, bool | None]:
    """`git_state` at the first call in this process, which keeps running that code whatever is committed.

    A checkout that looks clean but does not hold the running code counts as dirty: another checkout at
    `SEPNB_ROOT`, or files that git was told to assume unchanged.
    """
    commit, dirty = git_state()
    if dirty is False and running_tree() != committed_tree():
        dirty = True
    return commit, dirty


@cache
def code_tree() -> str:
    """`running_tree` when this process first asked."""
    return running_tree()


def processor_name() -> str:
    """The processor's own name where the system tells it, else the architecture."""
    info = Path("/proc/cpuinfo")
    text = info.read_text(errors="replace") if info.exists() else ""
    named = re.search(r"^model name[^:\n]*:(.*)$", text, re.MULTILINE)
    return named[1].strip() if named else platform.processor() or platform.machine()


def device_facts(device: str) -> dict[str, str]:
    """Kind, name and driver of the device that computes."""
    import torch

    if torch.device(device).type != "cuda":
        return {"device": "cpu", "device_name": processor_name(), "driver": ""}
    answer = _said(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])
    driver = answer.split()[0] if answer else "unknown"
    return {"device": "cuda", "device_name": torch.cuda.get_device_name(device), "driver": driver}


def peak_memory_mb(device: str) -> float:
    """Largest memory in MiB: of the allocator on a GPU, of the process on a CPU."""
    import torch

    if torch.device(device).type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


class Clock:
    """Started when made; `facts` gives what a record needs to say about its run."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self.wall, self.cpu = time.perf_counter(), time.process_time()
        (self.commit, self.dirty), self.tree = code_state(), code_tree()
        if device.startswith("cuda"):
            import torch

            torch.cuda.reset_peak_memory_stats(device)
            self.begun = torch.cuda.Event(enable_timing=True)
            self.begun.record(torch.cuda.current_stream(device))

    @property
    def gpu_s(self) -> dict[str, float]:
        """Seconds on the GPU's own clock since the start, gaps included in which it waited for the host;
        nothing on a CPU."""
        if not self.device.startswith("cuda"):
            return {}
        import torch

        end = torch.cuda.Event(enable_timing=True)
        end.record(torch.cuda.current_stream(self.device))
        end.synchronize()
        return {"gpu_s": round(self.begun.elapsed_time(end) / 1000, 3)}  # in ms

    @property
    def cpu_s(self) -> float:
        """CPU seconds of this process since the start."""
        return round(time.process_time() - self.cpu, 3)

    def facts(self, *, seed: int, data: Mapping[str, str], bytes_seen: int) -> dict[str, Any]:
        """Everything a record stores about how it was made."""
        import numpy as np
        import torch

        lock = paths.root() / "requirements.lock"
        return {
            **device_facts(self.device),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
            "platform": f"{platform.system()}-{platform.machine()}",
            "sepnb": __version__,
            "lock_sha256": hashlib.sha256(lock.read_bytes()).hexdigest() if lock.exists() else "",
            "commit": self.commit,
            "tree": self.tree,
            "dirty": self.dirty,
            "seed": seed,
            "data": dict(data),
            "bytes_seen": bytes_seen,
            "threads": torch.get_num_threads(),
            "cores": os.cpu_count(),
            "started": self.started,
            "wall_s": round(time.perf_counter() - self.wall, 3),
            "cpu_s": self.cpu_s,
            **self.gpu_s,
            "peak_memory_mb": round(peak_memory_mb(self.device), 1),
        }
