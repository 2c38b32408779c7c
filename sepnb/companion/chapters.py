"""Which chapters there are, and whether what they produced is still what they would produce now.

A chapter is *current* when four things hold: its source, the package, its parameters and the lock file
hash to what they were when it last ran; every folder of records that it read holds what it held; its
outputs exist and are the ones it wrote. Content decides, never a modification time. The manifest that
remembers this lies beside the executed notebook and is written last, so that a run that did not finish
leaves none.

Nothing here imports torch or jupytext unless a title or parameter is asked for: finding out that there is
nothing to do takes milliseconds.
"""

import ast
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from sepnb import paths
from sepnb.companion.runs import store_for
from sepnb.records.numbers import write_json

NUMBERED = re.compile(r"\d\d_[a-z0-9_]+")
# What acts on chapters from outside cannot change what a chapter prints, unless the chapter imports it.
OUTSIDE = ("cli.py", "claims.py", "claims", "companion")
INSIDE = ("companion/execute.py",)


@dataclass(frozen=True)
class Chapter:
    """One jupytext percent script: `path` is its source, `name` the file's stem."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.stem

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def _cells(self) -> list[Any]:
        import jupytext

        return jupytext.reads(self.text, fmt="py:percent").cells

    @cached_property
    def title(self) -> str:
        """The first markdown heading; the name where there is none."""
        for cell in self._cells:
            if cell.cell_type == "markdown" and (found := re.search(r"^#+\s+(.+)$", cell.source, re.M)):
                return found.group(1).strip()
        return self.name

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Names and default values of the cell tagged `parameters`.

        Raises:
            ValueError: no such cell, or more than one, or a value that is not a literal.
        """
        tagged = [c for c in self._cells if "parameters" in c.metadata.get("tags", [])]
        if len(tagged) != 1:
            raise ValueError(f"{self.path}: {len(tagged)} cells tagged 'parameters'; a chapter has one")
        found = {}
        for node in ast.parse(tagged[0].source).body:
            try:
                (target,) = node.targets  # type: ignore[attr-defined]
                found[target.id] = ast.literal_eval(node.value)  # type: ignore[attr-defined]
            except (AttributeError, ValueError):
                line = ast.unparse(node)
                raise ValueError(
                    f"{self.path}: `{line}` in the parameters cell is not name = literal"
                ) from None
        return found

    def output(self, profile: str, kind: str = "ipynb") -> Path:
        """A file it leaves; kinds: `ipynb`, `json` (numbers), `failed.ipynb`, `manifest.json`, `reads`."""
        return paths.build() / profile / f"{self.name}.{kind}"


def discover(folder: Path | None = None) -> list[Chapter]:
    """The chapters in reading order: `notebooks/NN_name.py`."""
    folder = paths.root() / "notebooks" if folder is None else folder
    return [Chapter(path) for path in sorted(folder.glob("*.py")) if NUMBERED.fullmatch(path.stem)]


def find(name: str, among: Iterable[Chapter] | None = None) -> Chapter:
    """The chapter called `name`; ValueError with the near matches when there is none."""
    known = {chapter.name: chapter for chapter in (discover() if among is None else among)}
    if name not in known:
        near = get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(known) or 'none'}"
        raise ValueError(f"no chapter is called {name!r}; {hint}")
    return known[name]


def digest(files: Iterable[Path], base: Path) -> str:
    """SHA-256 over names (relative to `base`) and contents of `files`, in sorted order."""
    total = hashlib.sha256()
    for file in sorted(set(files)):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        total.update(f"{file.relative_to(base).as_posix()} {content}\n".encode())
    return total.hexdigest()


def fingerprint(chapter: Chapter, parameters: Mapping[str, Any]) -> dict[str, str]:
    """What a chapter's outputs follow from, known before it runs: part to hash."""
    package = Path(__file__).resolve().parents[1]
    modules = [file for file in package.rglob("*.py") if _matters(file.relative_to(package), chapter)]
    lock = paths.root() / "requirements.lock"
    stated = json.dumps(dict(parameters), sort_keys=True)
    return {
        "the chapter": hashlib.sha256(chapter.path.read_bytes()).hexdigest(),
        "sepnb": digest(modules, package),
        "the parameters": hashlib.sha256(stated.encode()).hexdigest(),
        "requirements.lock": digest([lock], lock.parent) if lock.exists() else "",
        "an installed version": " ".join(
            [sys.version.split()[0], *map(_version, ("torch", "numpy", "pandas"))]
        ),
    }


def reads(chapter: Chapter, profile: str) -> dict[str, str]:
    """The folders of records that the chapter's last run loaded, and a hash of what they hold now."""
    log = chapter.output(profile, "reads")
    names = sorted(set(log.read_text(encoding="utf-8").split("\n")) - {""}) if log.exists() else []
    return {name: records_digest(name, profile) for name in names}


def records_digest(name: str, profile: str) -> str:
    """Hash of the records `name` (`profile/experiment`), stale marks included, as seen at `profile`."""
    of, experiment = name.split("/")
    folder = store_for(profile).path(of, experiment, "any").parent
    marks = folder.parent / "stale.json"
    stale = json.loads(marks.read_text(encoding="utf-8")) if marks.exists() else {}
    mine = {key: why for key, why in stale.items() if key.startswith(f"{experiment}/")}
    return digest(folder.glob("*.json"), folder) + json.dumps(mine, sort_keys=True)


def why_run(chapter: Chapter, profile: str, parameters: Mapping[str, Any]) -> str | None:
    """Why the chapter must run, in a few words; None when its outputs are current."""
    try:
        manifest = json.loads(chapter.output(profile, "manifest.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return "the last run failed" if chapter.output(profile, "failed.ipynb").exists() else "never ran"
    except json.JSONDecodeError:
        return "its manifest is damaged"
    now = fingerprint(chapter, parameters)
    changed = [part for part in now if manifest["made_from"].get(part) != now[part]]
    changed += [
        f"results of {name}"
        for name, held in manifest["reads"].items()
        if records_digest(name, profile) != held
    ]
    if changed:
        return f"{', '.join(changed)} changed"
    if outputs(chapter, profile) != manifest["outputs"]:
        return "its outputs are missing or were edited"
    return None


def outputs(chapter: Chapter, profile: str) -> dict[str, str]:
    """Hashes of the executed notebook and the chapter numbers; empty text for a missing one."""
    files = [chapter.output(profile, kind) for kind in ("ipynb", "json")]
    return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() if f.exists() else "" for f in files}


def forget(chapter: Chapter, profile: str) -> None:
    """Remove what earlier runs left, the manifest first, so that nothing old passes for current."""
    for kind in ("manifest.json", "json", "ipynb", "failed.ipynb", "reads"):
        chapter.output(profile, kind).unlink(missing_ok=True)


def remember(chapter: Chapter, profile: str, made_from: Mapping[str, str], seconds: float) -> None:
    """Write the manifest of a run that succeeded; `made_from` is the fingerprint taken before it began."""
    manifest = {
        "made_from": dict(made_from),
        "reads": reads(chapter, profile),
        "outputs": outputs(chapter, profile),
        "seconds": round(seconds, 1),
    }
    write_json(chapter.output(profile, "manifest.json"), manifest)


def last_seconds(chapter: Chapter, profile: str) -> float | None:
    """How long the last successful run took, if one is remembered."""
    file = chapter.output(profile, "manifest.json")
    return json.loads(file.read_text(encoding="utf-8"))["seconds"] if file.exists() else None


def _matters(module: Path, chapter: Chapter) -> bool:
    if module.parts[0] not in OUTSIDE or module.as_posix() in INSIDE:
        return True
    name = module.stem if module.parts[0] == "companion" else "claims"
    return re.search(rf"^\s*(from|import)\b.*\b{name}\b", chapter.text, re.M) is not None


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} none"
