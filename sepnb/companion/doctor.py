"""Is this machine fit to run the book? Each finding is `ok`, `note` (works, but differs) or `problem`."""

import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from typing import NamedTuple

from sepnb import paths

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "chrome")
DISK_GB = 2.0


class Finding(NamedTuple):
    """What was looked at, how it is, and what was seen."""

    what: str
    state: str
    seen: str


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
        found or "not found; the browser tests and the editions need it",
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
    cards = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    yield Finding("device", "ok", ", ".join(cards) or "CPU only: profiles smoke and laptop")


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
