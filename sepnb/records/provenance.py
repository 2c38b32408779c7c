"""Where a number comes from: code, machine, libraries, data, time.

Torch is imported where it is needed: the book and the command line ask for the commit without computing.
"""

import hashlib
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from .. import __version__, paths


def git_state(root: Path | None = None) -> tuple[str | None, bool | None]:
    """The commit, and whether tracked or new files differ from it; (None, None) outside a git checkout.

    Changes under `results/` do not count: a grid writes its own records there while it runs. A folder inside
    another project's checkout, such as an installed package, is outside: that commit is not of this code.
    """
    root = paths.root() if root is None else root

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        if git("rev-parse", "--show-prefix"):  # empty at the top of a checkout only
            return None, None
        commit = git("rev-parse", "HEAD")
        return commit, bool(git("status", "--porcelain", "--", ".", ":(exclude)results"))
    except (OSError, subprocess.CalledProcessError):
        return None, None


@cache
def code_state() -> tuple[str | None, bool | None]:
    """`git_state` when this process first asked: it runs that code, whatever is committed meanwhile."""
    return git_state()


def processor_name() -> str:
    """The processor's own name where the system tells it, else the architecture."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def device_facts(device: str) -> dict[str, str]:
    """Kind, name and driver of the device that computes."""
    import torch

    if torch.device(device).type != "cuda":
        return {"device": "cpu", "device_name": processor_name(), "driver": ""}
    try:
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        driver = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        driver = "unknown"
    return {"device": "cuda", "device_name": torch.cuda.get_device_name(device), "driver": driver}


def peak_memory_mb(device: str) -> float:
    """Largest memory in MiB: of the allocator on a GPU, of the process on a CPU."""
    import torch

    if torch.device(device).type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


@dataclass
class Clock:
    """Started when made; `facts` gives what a record needs to say about its run."""

    device: str = "cpu"
    commit: str | None = None
    dirty: bool | None = None
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    wall: float = field(default_factory=time.perf_counter)
    cpu: float = field(default_factory=time.process_time)

    def __post_init__(self) -> None:
        self.commit, self.dirty = code_state()
        if self.device.startswith("cuda"):
            import torch

            torch.cuda.reset_peak_memory_stats(self.device)

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
            "dirty": self.dirty,
            "seed": seed,
            "data": dict(data),
            "bytes_seen": bytes_seen,
            "threads": torch.get_num_threads(),
            "cores": os.cpu_count(),
            "started": self.started,
            "wall_s": round(time.perf_counter() - self.wall, 3),
            "cpu_s": self.cpu_s,
            "peak_memory_mb": round(peak_memory_mb(self.device), 1),
        }
