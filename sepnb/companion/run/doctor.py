"""Is this machine fit to run the book? Each finding is `ok`, `note` (works, but differs) or `problem`."""

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

from rich.console import Console

from sepnb import paths
from sepnb.companion.run import screens

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "chrome")
DISK_GB = 2.0
JOBS_ON_A_GPU, GB_OF_A_JOB = 4, 8.0
"""Runs of the gpu profile that share a GPU unless `--jobs` says otherwise, and what one may need at most."""
BFLOAT16 = (8, 0)
"""The least compute capability of a GPU that has it."""


class Finding(NamedTuple):
    """What was looked at, how it is, and what was seen."""

    what: str
    state: str
    seen: str


def report(console: Console) -> bool:
    """Print what is found; whether nothing is a problem."""
    found = list(examine())
    console.print(screens.rows(("", "state", "seen"), found))
    return all(one.state != "problem" for one in found)


def attack() -> bool:
    """Make every attack of this checkout, the tests with the mark `attack`, at its whole number of cases;
    whether all held.

    Raises:
        ValueError: this is no checkout of the book.
    """
    root = paths.root()
    if not (root / "tests").is_dir():
        raise ValueError(f"{root} holds no tests: the attacks are made in a checkout of the book")
    command = [sys.executable, "-m", "pytest", "-q", "-m", "attack", "-n", str(min(2, os.cpu_count() or 1))]
    whole = os.environ | {"SEPNB_WHOLE_ATTACKS": "1"}
    return subprocess.run([*command, "--dist", "worksteal"], cwd=root, env=whole, check=False).returncode == 0


def examine() -> Iterator[Finding]:
    """Look at everything the commands rely on, cheapest first."""
    old = sys.version_info < (3, 11)
    yield Finding("Python", "problem" if old else "ok", f"{platform.python_version()} ({sys.executable})")
    yield from _versions()
    yield from _torch()
    yield from _data()
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    yield Finding(
        "Chromium",
        "ok" if found else "note",
        found or "not found; the browser tests need it",
    )
    build = paths.build()
    free = shutil.disk_usage(next(place for place in (build, *build.parents) if place.exists())).free / 1e9
    yield Finding("disk", "ok" if free >= DISK_GB else "problem", f"{free:.1f} GB free for {build}")
    yield _git()


def differing_versions(lock: str) -> tuple[list[str], list[str]]:
    """Packages of a lock file that are missing here, and those of another version, as texts.

    Lines whose environment marker does not hold on this machine are passed over.
    """
    from packaging.requirements import Requirement

    missing, other = [], []
    lines = (line.split("#")[0].strip() for line in lock.splitlines())
    for wanted in (Requirement(line) for line in lines if line and not line.startswith("-")):
        if wanted.marker and not wanted.marker.evaluate():
            continue
        try:
            here = importlib.metadata.version(wanted.name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(wanted.name)
            continue
        if not wanted.specifier.contains(here, prereleases=True):
            other.append(f"{wanted.name} {here} (locked {str(wanted.specifier).removeprefix('==')})")
    return missing, other


def _versions() -> Iterator[Finding]:
    lock = paths.root() / "requirements.lock"
    if not lock.exists():
        yield Finding("lock", "problem", f"{lock} is missing; is {paths.root()} a checkout of the book?")
        return
    missing, other = differing_versions(lock.read_text(encoding="utf-8"))
    if missing:
        yield Finding("packages", "problem", f"not installed: {', '.join(missing)}; run `make install`")
    if other:
        yield Finding("packages", "note", f"other than locked: {', '.join(other)}")
    if not missing and not other:
        yield Finding("packages", "ok", "as locked")


def _torch() -> Iterator[Finding]:
    try:
        import torch
    except ImportError as error:
        yield Finding("torch", "problem", f"cannot be imported: {error}")
        return
    threads = f"{torch.get_num_threads()} threads of {os.cpu_count()} cores"
    yield Finding("torch", "ok", f"{torch.__version__}, {threads}")
    gpus = range(torch.cuda.device_count())
    names = ", ".join(torch.cuda.get_device_name(number) for number in gpus)
    yield Finding("device", "ok", names or "CPU only: profiles smoke and laptop")
    for number in gpus:
        yield _gpu(number)
    yield _compiler("cuda" if names else "cpu")


def _gpu(number: int) -> Finding:
    """Whether a GPU has bfloat16, and memory for the runs that share it."""
    import torch

    free, needed = torch.cuda.mem_get_info(number)[0] / 1e9, JOBS_ON_A_GPU * GB_OF_A_JOB
    seen, bad = f"{free:.0f} GB free", torch.cuda.get_device_capability(number) < BFLOAT16
    if bad:
        seen += "; it computes no bfloat16, which the gpu profile needs"
    elif free < needed:
        fitting = max(1, int(free // GB_OF_A_JOB))
        seen += f", and {JOBS_ON_A_GPU} runs side by side may need {needed:.0f}; give --jobs {fitting}"
    return Finding(f"cuda:{number}", "problem" if bad else "note" if free < needed else "ok", seen)


def _compiler(device: str) -> Finding:
    """Whether torch.compile can work; on a GPU, which needs it, by a step that is compiled."""
    from sepnb.models.fast.kernels import CompilerMissing, check_compiler

    try:
        check_compiler("inductor", device)
    except CompilerMissing as error:
        return Finding("compiler", "problem" if device == "cuda" else "note", str(error))
    if device == "cpu":
        return Finding("compiler", "ok", "there")
    import torch

    try:
        x = torch.ones(64, 64, device=device, requires_grad=True)
        torch.compile(lambda x: (x @ x).square().mean())(x).backward()
        torch.cuda.synchronize()
    except Exception as error:  # whatever is not as torch.compile wants it
        return Finding(
            "compiler", "problem", f"a step is not compiled: {type(error).__name__}: {error}"[:300]
        )
    return Finding("compiler", "ok", "compiles a step")


def _data() -> Iterator[Finding]:
    from sepnb.data import registry

    for name in registry.names():
        status = registry.get(name).status()
        state = {"at hand": "ok", "missing": "note"}.get(status, "problem")
        remedy = "" if status == "at hand" else f"; `sepnb data {name}` gets it"
        yield Finding(f"data {name}", state, status + remedy)


def _git() -> Finding:
    from sepnb.records.provenance import git_state

    commit, dirty = git_state()
    if commit is None:
        seen = f"{paths.root()} is no git checkout; records made here cannot be published"
        return Finding("git", "note", seen)
    changes = "with uncommitted changes: records made now cannot be published" if dirty else "clean"
    return Finding("git", "note" if dirty else "ok", f"{commit[:12]}, {changes}")
