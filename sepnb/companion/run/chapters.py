"""Which chapters there are, and whether what they produced is still what they would produce now.

A chapter is *current* if its inputs hash as they did when it last ran (see `fingerprint`), the folders of
records that it read are unchanged, and its outputs are the ones it wrote. Content decides, never a
modification time. The manifest that stores this is written last, so that an unfinished run leaves none.
Nothing here imports torch: a check that finds nothing to do takes milliseconds.
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
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sepnb import paths
from sepnb.companion.run.runs import store_for
from sepnb.records.numbers import write_json

NUMBERED = re.compile(r"\d\d_[a-z0-9_]+")
# What acts on chapters from outside cannot change what a chapter prints, unless the chapter imports it.
OUTSIDE = ("cli.py", "claims", "companion")
INSIDE = tuple(f"companion/run/{name}.py" for name in ("execute", "forker", "kernels"))


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
    def parameters(self) -> dict[str, Any]:
        """Names and default values, which are literals, of the one cell tagged `parameters`."""
        import jupytext

        cells = jupytext.reads(self.text, fmt="py:percent").cells
        tagged = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
        if len(tagged) != 1:
            raise ValueError(f"{self.path}: {len(tagged)} cells tagged 'parameters'; a chapter has one")
        found = {}
        for node in ast.parse(tagged[0].source).body:
            try:
                (target,) = node.targets  # type: ignore[attr-defined]
                found[target.id] = ast.literal_eval(node.value)  # type: ignore[attr-defined]
            except (AttributeError, ValueError):
                line = f"`{ast.unparse(node)}` in the parameters cell"
                raise ValueError(f"{self.path}: {line} is not name = literal") from None
        return found

    def output(self, profile: str, kind: str = "ipynb") -> Path:
        """A file it leaves; kinds: `ipynb`, `json` (numbers), `failed.ipynb`, `manifest.json`, `reads`."""
        return paths.build() / profile / f"{self.name}.{kind}"


def discover() -> list[Chapter]:
    """The chapters in reading order: `notebooks/NN_name.py`."""
    files = sorted((paths.root() / "notebooks").glob("*.py"))
    return [Chapter(path) for path in files if NUMBERED.fullmatch(path.stem)]


def find(name: str) -> Chapter:
    """The chapter called `name`; ValueError with the near matches when there is none."""
    known = {chapter.name: chapter for chapter in discover()}
    if name not in known:
        raise ValueError(f"no chapter is called {name!r}; {nearest(name, known)}")
    return known[name]


MANY = 80
"""Names that an answer lists at most."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of the error message on an unknown name: near matches, or else the known names, at most the
    first `MANY`."""
    known = sorted(known)
    if near := get_close_matches(name, known, n=3, cutoff=0.5):
        return f"did you mean {', '.join(near)}?"
    more = f" and {len(known) - MANY} more" if len(known) > MANY else ""
    return f"there are {', '.join(known[:MANY]) or 'none'}{more}"


def digest(files: Iterable[Path], base: Path) -> str:
    """SHA-256 over names (relative to `base`) and contents of `files`, in sorted order."""
    total = hashlib.sha256()
    for file in sorted(set(files)):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        total.update(f"{file.relative_to(base).as_posix()} {content}\n".encode())
    return total.hexdigest()


def fingerprint(chapter: Chapter, parameters: Mapping[str, Any]) -> dict[str, str]:
    """What a chapter's outputs follow from, known before it runs: part to hash."""
    package = Path(__file__).resolve().parents[2]
    modules = [file for file in package.rglob("*.py") if _matters(file.relative_to(package), chapter)]
    lock = paths.root() / "requirements.lock"
    stated = json.dumps(dict(parameters), sort_keys=True)
    versions = (f"{package} {version(package)}" for package in ("torch", "numpy", "pandas"))
    return {
        "the chapter": hashlib.sha256(chapter.path.read_bytes()).hexdigest(),
        "sepnb": digest(modules, package),
        "the parameters": hashlib.sha256(stated.encode()).hexdigest(),
        "requirements.lock": digest([lock], lock.parent) if lock.exists() else "",
        "an installed version": " ".join([sys.version.split()[0], *versions]),
    }


def _matters(module: Path, chapter: Chapter) -> bool:
    if module.parts[0] not in OUTSIDE or module.as_posix() in INSIDE:
        return True
    name = rf"companion\b.*\b{module.parts[1]}" if module.parts[0] == "companion" else "claims"
    return re.search(rf"^\s*(from|import)\b.*\b{name}\b", chapter.text, re.M) is not None


def reads(log: Path) -> list[str]:
    """The folders of records, `profile/experiment`, that a chapter's last run loaded, failed or not."""
    return sorted(set(log.read_text(encoding="utf-8").split())) if log.exists() else []


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
    now, held = fingerprint(chapter, parameters), manifest["reads"]
    changed = [part for part in now if manifest["made_from"].get(part) != now[part]]
    changed += [f"results of {name}" for name in held if records_digest(name, profile) != held[name]]
    if changed:
        return f"{', '.join(changed)} changed"
    if _outputs(chapter, profile) != manifest["outputs"]:
        return "its outputs are missing or were edited"
    return None


def _outputs(chapter: Chapter, profile: str) -> dict[str, str]:
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
        "reads": {name: records_digest(name, profile) for name in reads(chapter.output(profile, "reads"))},
        "outputs": _outputs(chapter, profile),
        "seconds": round(seconds, 1),
    }
    write_json(chapter.output(profile, "manifest.json"), manifest)


def last_seconds(chapter: Chapter, profile: str) -> float | None:
    """How long the last successful run took, if one is remembered."""
    file = chapter.output(profile, "manifest.json")
    return json.loads(file.read_text(encoding="utf-8"))["seconds"] if file.exists() else None
