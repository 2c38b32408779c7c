"""Are a chapter's numbers still what they were? Fresh numbers against committed ones, metric by metric.

`tests/reference/<profile>/<chapter>.json` holds what a chapter published when the reference was taken, and
why it was taken. `tolerances.json` beside it says how far each metric may move; `tolerances` measures it.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sepnb import paths
from sepnb.companion.run.chapters import Chapter, discover, find, reads
from sepnb.records.numbers import Number, write_json


class RecomputeError(RuntimeError):
    """Chapters or experiments failed while their numbers were recomputed; the message holds the output."""


def folder(profile: str) -> Path:
    """Where the references of `profile` live."""
    return paths.root() / "tests" / "reference" / profile


def tolerances(profile: str) -> dict[str, dict[str, Any]]:
    """Chapter to metric to its tolerance entry; empty when none were measured yet."""
    file = folder(profile) / "tolerances.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def compare(chapter: str, got: Mapping[str, Number], profile: str) -> list[str]:
    """What differs between `got` and the committed reference, metric by metric in words.

    Whole numbers, truth values and text must be equal. A float must be within
    `atol + rtol * |reference|`; one without a tolerance is a problem, not a pass.
    """
    file = folder(profile) / f"{chapter}.json"
    if not file.exists():
        command = f'sepnb check {chapter} --measure --update --reason "…"'
        return [f"{chapter}/*: no reference; take one with `{command}`"]
    reference = _numbers(file)
    allowed = tolerances(profile).get(chapter, {})
    new, gone = sorted(got.keys() - reference.keys()), sorted(reference.keys() - got.keys())
    whys = {key: f"is new: got {got[key]!r}, no reference" for key in new}
    whys |= {key: f"is gone: the reference is {reference[key]!r}" for key in gone}
    for key in sorted(reference.keys() & got.keys()):
        whys[key] = _differs(got[key], reference[key], allowed.get(key))
    return [f"{chapter}/{key}: {why}" for key, why in whys.items() if why]


def _numbers(file: Path) -> dict[str, Number]:
    return json.loads(file.read_text(encoding="utf-8"))["numbers"]


def orphans(chapters: Iterable[str], profile: str) -> list[str]:
    """References of chapters that are no more."""
    known = {*chapters, "tolerances"}
    odd = [file for file in sorted(folder(profile).glob("*.json")) if file.stem not in known]
    return [f"{file.stem}/*: has a reference but no chapter; delete {file.name}" for file in odd]


def _differs(got: Number, reference: Number, entry: Mapping[str, Any] | None) -> str | None:
    difference = f"got {got!r}, reference {reference!r}"
    if entry is not None and "unpinned" in entry:
        return None
    if not (isinstance(got, float) or isinstance(reference, float)):
        return None if type(got) is type(reference) and got == reference else f"{difference}, must be equal"
    if isinstance(got, str) or isinstance(reference, str):
        return f"{difference}: one is text"
    if entry is None:
        return f"{difference}, no tolerance; `sepnb check --measure` measures one"
    off, width = abs(got - reference), entry["atol"] + entry["rtol"] * abs(reference)
    tolerance = f"tolerance {width:.3g} (atol {entry['atol']:g} + rtol {entry['rtol']:g} * |reference|)"
    return None if off <= width else f"{difference}, off by {off:.3g}, {tolerance}"


def named(chapter: Chapter, experiments: Iterable[str]) -> set[str]:
    """Those of `experiments` that the chapter's source has in quotes, alone or as `experiment/NAME`.

    What it says is a guess made before the chapter runs. `read` is what it did.
    """
    quoted = re.findall(r"""["'](?:experiment/)?(\w+)["']""", chapter.text)
    return set(quoted) & set(experiments)


def read(chapter: Chapter, profile: str, build: Path | None = None) -> set[str]:
    """The experiments whose records of `profile` the chapter asked for when it last ran, failed or not."""
    asked = (name.split("/") for name in reads((build or paths.build()) / profile / f"{chapter.name}.reads"))
    return {experiment for of, experiment in asked if of == profile}


def until_nothing_is_missing(
    chapters: Sequence[Chapter],
    wanted: Iterable[str],
    run_experiments: Callable[[list[str]], None],
    run_chapters: Callable[[list[Chapter]], None],
    read: Callable[[Chapter], set[str]],
) -> None:
    """Run the experiments of `wanted`, then the chapters; one that asked for more runs again with it.

    `run_chapters` must not raise if a chapter fails: a missing record may be the reason.
    """
    computed: set[str] = set()
    due, missing = list(chapters), set(wanted)
    while due:
        if missing:
            run_experiments(sorted(missing))
            computed |= missing
        run_chapters(due)
        due = [chapter for chapter in due if read(chapter) - computed]
        missing = {name for chapter in due for name in read(chapter)} - computed


def recompute(
    work: Path,
    *,
    chapters: Sequence[str] = (),
    profile: str = "smoke",
    threads: int = 1,
    seed: int = 0,
    environment: Mapping[str, str] | None = None,
    records: Path | None = None,
    quiet: bool = True,
) -> dict[str, dict[str, Number]]:
    """The numbers of chapters, all where none is named, computed afresh by `sepnb run` in the empty `work`.

    Args:
        seed: the chapters' parameter; the experiments run the grid of the profile.
        environment: more variables for the processes that compute.
        records: the `work` of an earlier call, whose records are taken before new ones are made.
        quiet: keep the commands' output for the message of a RecomputeError instead of showing it.
    """
    from sepnb import experiments

    build = work / "build"
    where = os.environ | {"SEPNB_BUILD": str(build), "SEPNB_RESULTS": str(build / profile / "results")}
    where |= environment or {}
    common = ["--profile", profile, "--device", "cpu", "--threads", str(threads)]
    common += ["--jobs", str(max(1, (os.cpu_count() or 1) // threads))]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT} if quiet else {}
    kept = None if records is None else records / "build" / profile / "results"
    if kept is not None and kept.is_dir():  # chapters that read no records leave none
        shutil.copytree(kept, build / profile / "results")
    failed: list[RecomputeError] = []

    def run(names: list[str], *more: str) -> None:
        command = [sys.executable, "-m", "sepnb.cli", "run", *names, *more, *common]
        done = subprocess.run(command, env=where, cwd=paths.root(), **output, text=True)
        if done.returncode:
            asked = f"sepnb run {' '.join(names)} --profile {profile}"
            raise RecomputeError(f"`{asked}` failed:\n{done.stdout or '(see above)'}")

    def run_chapters(due: list[Chapter]) -> None:
        failed.clear()
        try:
            run([chapter.name for chapter in due], "--seeds", str(seed))
        except RecomputeError as error:
            failed.append(error)

    chosen = [find(name) for name in chapters] or discover()
    wanted = {name for chapter in chosen for name in named(chapter, experiments.names())}
    until_nothing_is_missing(chosen, wanted, run, run_chapters, lambda one: read(one, profile, build))
    if failed:
        raise failed[0]
    published = {file.stem: file for file in sorted((build / profile).glob("*.json"))}
    return {name: _numbers(file) for name, file in published.items() if not name.endswith(".manifest")}


def update(numbers: Mapping[str, Mapping[str, Number]], profile: str, reason: str) -> list[Path]:
    """Make `numbers` (chapter to metric to value) the reference, and write down why and with what.

    A chapter whose numbers are equal to its reference keeps the old file, reason included.
    """
    if not reason.strip():
        raise ValueError("a reference moves for a reason; give --reason TEXT")
    from sepnb.records.provenance import git_state

    commit, dirty = git_state()
    made = {"reason": reason.strip(), "commit": commit, "dirty": dirty}
    made |= {"date": datetime.now(UTC).date().isoformat(), "python": sys.version.split()[0]}
    made |= {package: version(package) for package in ("torch", "numpy")}
    written = []
    for chapter, metrics in numbers.items():
        file = folder(profile) / f"{chapter}.json"
        if file.exists() and _numbers(file) == dict(metrics):
            continue
        write_json(file, {"chapter": chapter, "profile": profile, "made": made, "numbers": dict(metrics)})
        written.append(file)
    return written
