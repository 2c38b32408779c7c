"""The results store: one JSON record a run, written whole or not at all, refused when it was changed.

`results/<profile>/<experiment>/<key>.json` holds the resolved config, the metrics, tidy rows, a fingerprint
that can be replayed, and where the numbers come from. A checksum over the canonical content tells a record
that was cut short or edited by hand from one that a run wrote.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from .. import paths
from ..paths import write_atomically
from .settings import other_settings

SCHEMA = 1
ROOM = 2**20
"""Bytes, more than any record has."""


class RecordError(ValueError):
    """A record that cannot be trusted; the message starts with its path and says what is wrong."""


@dataclass(frozen=True)
class Record:
    """One run's result with its provenance. `stale` says why its code no longer gives these numbers."""

    experiment: str
    profile: str
    key: str
    config: dict[str, Any]
    metrics: dict[str, float | int]
    rows: list[dict[str, Any]]
    fingerprint: dict[str, list[float]]
    provenance: dict[str, Any]
    stale: str | None = field(default=None, compare=False)

    @classmethod
    def of(cls, config: Any, **results: Any) -> "Record":
        """The record of a run of `config`, with its metrics, rows, fingerprint, provenance."""
        named = {"experiment": config.experiment, "profile": config.profile, "key": config.key}
        return cls(**named, config=config.resolved(), **results)

    def held_to(self, config: Any) -> "Record":
        """This record, stale where its config is not that of the grid's run of its name."""
        why = self.stale or other_settings(self.config, config.resolved())
        return self if why == self.stale else replace(self, stale=why)

    def content(self) -> dict[str, Any]:
        """What is stored, without the checksum and without the mark of staleness."""
        content = asdict(self)
        del content["stale"]
        return {"schema": SCHEMA, **content}


def canonical(content: Any) -> str:
    """JSON with one spelling for one content: sorted keys, no spaces. A ValueError says where a number is NaN
    or infinite."""
    try:
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except ValueError:
        for where, number in _not_finite(content):
            raise ValueError(f"{where} is {number}, and a record holds finite numbers only") from None
        raise


def as_stored(content: Any) -> Any:
    """The content as a file of JSON gives it back: a tuple is a list."""
    return json.loads(canonical(content))


def _not_finite(content: Any, where: str = "") -> Iterator[tuple[str, float]]:
    """Where NaN and infinities are, as `metrics.loss` or `rows[3].bits`."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _not_finite(value, f"{where}.{key}" if where else str(key))
    elif isinstance(content, list | tuple):
        for index, value in enumerate(content):
            yield from _not_finite(value, f"{where}[{index}]")
    elif isinstance(content, float) and not isfinite(content):
        yield where, content


def digest(content: Any) -> str:
    """SHA-256 of the canonical form, in hexadecimal."""
    return hashlib.sha256(canonical(content).encode()).hexdigest()


class Store:
    """Records under one folder. The published store refuses records of a tree with uncommitted changes.

    Args:
        root: the folder; None is the published one.
        refused: where a dictionary is given, `load` leaves out the records that cannot be trusted and puts
            them in here, path to reason. Without it the first of them is raised.
    """

    def __init__(self, root: Path | None = None, *, refused: dict[Path, RecordError] | None = None) -> None:
        self.root = Path(root) if root is not None else paths.results()
        self.refused = refused

    @cached_property
    def published(self) -> bool:
        return self.root.resolve() == (paths.root() / "results").resolve()

    def path(self, profile: str, experiment: str, key: str) -> Path:
        """Where a record of these names lies; a RecordError for one that no file below the root can have."""
        for name, part in {"profile": profile, "experiment": experiment, "key": key}.items():
            if not _is_name(part):
                from ..validation import shown  # torch is imported where there is something to say

                raise RecordError(
                    f"{self.root}: the {name} is {shown(part)}, which names no file or folder of this "
                    f"store; give a name without / that does not begin with a dot"
                )
        return self.root / profile / experiment / f"{key}.json"

    def write(self, record: Record) -> Path:
        """Store a record, replacing one of the same key, and clear its mark of staleness; returns its path.
        RecordError, with nothing written, if a number is not finite or `read` would refuse the content."""
        if not isinstance(record, Record):
            raise TypeError(f"record must be a Record, as Record.of makes it, got a {type(record).__name__}")
        path = self.path(record.profile, record.experiment, record.key)
        try:
            content = record.content()
            content["checksum"] = digest(content)
        except (ValueError, TypeError, RecursionError) as error:
            raise RecordError(f"{path}: {error}; find out why the run gave it") from None
        if why := _fault(content):
            raise RecordError(f"{path}: {why}; find out why the run gave it")
        write_atomically(path, json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n")
        if self._stale(record.profile).get(f"{record.experiment}/{record.key}"):
            self.mark_stale(record.profile, record.experiment, record.key, None)
        return path

    def try_write(self, profile: str, experiment: str) -> None:
        """Check, before a record is computed, that it could be written; RecordError if not."""
        folder = self.root / profile / experiment
        try:
            paths.try_writing(folder, ROOM)
        except OSError as error:
            why = f"no record can be written here ({error.strerror})"
            remedy = "free space or make it a writable folder, or give --store DIR"
            raise RecordError(f"{folder}: {why}; {remedy}") from None

    @contextmanager
    def claim(self, profile: str, experiment: str, key: str) -> Iterator[bool]:
        """Claim the computation of a record until the block ends; yields whether the claim was granted.

        A claim is released when its process ends, even by a crash. On a file system without locks every claim
        is granted; a record computed twice is then written whole twice.
        """
        lock = _one_at_a_time(self.path(profile, experiment, key))
        try:
            lock.acquire(blocking=False)
            granted = True
        except Timeout:
            granted = False
        except NotImplementedError:
            granted = True
        try:
            yield granted
        finally:
            lock.release()

    def read(self, path: Path) -> Record:
        """The record at `path`.

        Raises:
            RecordError: it is no whole JSON, was changed by hand, lies in the wrong place, or is published
                without being of a commit.
        """
        path = Path(path)
        content = _parsed(path, "delete it and run it again")
        if why := _fault(content):
            raise RecordError(f"{path}: {why}; run it again")
        record = Record(**{name: content[name] for name in _TYPES})
        place = self.path(record.profile, record.experiment, record.key)
        if place != path and place.resolve() != path.resolve():
            place = f"{record.profile}/{record.experiment}/{record.key}"
            raise RecordError(f"{path}: it says that it is {place}; move it back or run it again")
        if self.published and (dirty := record.provenance.get("dirty")) is not False:
            how = "made from a tree with uncommitted changes" if dirty else "of no commit"
            raise RecordError(f"{path}: {how}; commit the code, then run it again")
        return record

    def load(self, profile: str, experiment: str) -> dict[str, Record]:
        """All records of an experiment by key, staleness included; none is an empty dictionary.

        Raises:
            RecordError: the folder or the marks of staleness cannot be read; or a record cannot be trusted,
                unless this store collects those in `refused`.
        """
        _note_read(f"{profile}/{experiment}")
        stale, found = self._stale(profile), {}
        for path in self.files(profile, experiment):
            try:
                record = self.read(path)
            except RecordError as error:
                if self.refused is None:
                    raise
                self.refused[path] = error
            else:
                found[record.key] = replace(record, stale=stale.get(f"{experiment}/{record.key}"))
        return found

    def files(self, profile: str, experiment: str) -> list[Path]:
        """The files of an experiment's records, sorted; none where there is no such folder. RecordError where
        it is there and cannot be read."""
        folder = self.root / profile / experiment
        try:
            return sorted(path for path in folder.iterdir() if path.suffix == ".json")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise RecordError(
                f"{folder}: cannot be read ({error.strerror}); make it a readable folder"
            ) from None

    def _stale(self, profile: str) -> dict[str, str]:
        path = self.root / profile / "stale.json"
        remedy = "delete it and run `sepnb check --published`"
        marks = _parsed(path, remedy) if path.exists() else {}
        if not isinstance(marks, dict):
            raise RecordError(f"{path}: no mapping of records to reasons; {remedy}")
        return marks

    def mark_stale(self, profile: str, experiment: str, key: str, reason: str | None) -> None:
        """Say that the code no longer gives this record's numbers; None takes the mark back."""
        path = self.root / profile / "stale.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        with _one_at_a_time(path):
            marks = self._stale(profile)
            marks.pop(f"{experiment}/{key}", None)
            if reason is not None:
                marks[f"{experiment}/{key}"] = reason
            if marks:
                write_atomically(path, json.dumps(marks, indent=1, sort_keys=True) + "\n")
            else:
                path.unlink(missing_ok=True)


def _one_at_a_time(path: Path) -> FileLock:
    """What a process holds while it reads a file and writes it anew; the lock lies in the build folder, so
    that none is left beside the records."""
    name = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]
    folder = paths.build() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / f"{name}.lock")


_TYPES: dict[str, type] = {
    **dict.fromkeys(("experiment", "profile", "key"), str),
    **dict.fromkeys(("config", "metrics", "fingerprint", "provenance"), dict),
    "rows": list,
}
"""What a stored record consists of."""
_PARTS = {"metrics": float | int, "fingerprint": list, "rows": dict}
"""What these hold."""
_FACTS = {
    **{"seed": int, "commit": str | None, "cpu_s": float | int},
    **dict.fromkeys(("started", "torch", "device_name"), str),
}
"""What every reader of the provenance asks for."""


def _fault(content: Any) -> str | None:
    """Why JSON is no record that a run wrote; None where it is."""
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        found = content.get("schema") if isinstance(content, dict) else type(content).__name__
        return f"schema {found!r}, this version reads {SCHEMA}"
    signed = {name: value for name, value in content.items() if name != "checksum"}
    try:
        expected = digest(signed)
    except (ValueError, RecursionError) as error:
        return f"{error}, so it was edited"
    if content.get("checksum") != expected:
        return "its content does not match its checksum, so it was edited"
    if wrong := signed.keys() ^ {"schema", *_TYPES}:
        return f"{', '.join(sorted(wrong))} missing or unknown"
    for name, kind in _TYPES.items():
        if not isinstance(content[name], kind):
            return f"{name} is a {type(content[name]).__name__} and no {kind.__name__}"
    for name, kind in _PARTS.items():
        parts = content[name]
        for part in parts.values() if isinstance(parts, dict) else parts:
            if not isinstance(part, kind):
                return f"{name} holds a {type(part).__name__}"
    for name, numbers in content["fingerprint"].items():
        for number in numbers:
            if not isinstance(number, float | int):
                return f"{name} of its fingerprint holds a {type(number).__name__}"
    for name, kind in _FACTS.items():
        fact = content["provenance"].get(name)
        if not isinstance(fact, kind):
            return f"the {name} of its provenance is {fact!r}"
    if (seed := content["config"].get("seed", recorded := content["provenance"]["seed"])) != recorded:
        return f"its seed is {seed!r} in its config and {recorded} in its provenance"
    for name in ("profile", "experiment", "key"):
        if not _is_name(content[name]):
            return f"its {name} {content[name]!r} is no name of a file or a folder"
    return None


def _is_name(part: Any) -> bool:
    """Whether this names a file or a folder right below another one."""
    return isinstance(part, str) and Path(part).name == part != "" and part[0] != "." and "\0" not in part


def _parsed(path: Path, remedy: str) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_unique)
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror}); {remedy}") from None
    except (ValueError, RecursionError) as error:  # also of bytes that are no text
        raise RecordError(f"{path}: not whole JSON ({error}); {remedy}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; of a key that stands twice a person would read one value and a program the other."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for index, (key, _) in enumerate(pairs) if key in dict(pairs[:index]))
        raise ValueError(f"the key {twice!r} stands twice")
    return found


def _note_read(what: str) -> None:
    """Log which records a chapter read, so that a change in these records runs the chapter again."""
    if log := os.environ.get("SEPNB_READ_LOG"):
        with open(log, "a", encoding="utf-8") as stream:
            stream.write(what + "\n")
