"""The results store: one JSON record a run, written whole or not at all, refused when it is not what was written.

`results/<profile>/<experiment>/<key>.json` holds the resolved config, the metrics, tidy rows, a fingerprint
that can be replayed, and where the numbers come from. A checksum over the canonical content tells a record
that was cut short or edited by hand from one that a run wrote.
"""

import hashlib
import json
import os
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from . import paths

SCHEMA = 1


class RecordError(ValueError):
    """A record that cannot be trusted; the message starts with its path and says what is wrong."""


@dataclass(frozen=True)
class Record:
    """One run's result with its provenance. `stale` says why its code no longer gives these numbers."""

    experiment: str
    profile: str
    key: str
    config: dict[str, Any]
    metrics: dict[str, float]
    rows: list[dict[str, Any]]
    fingerprint: dict[str, list[float]]
    provenance: dict[str, Any]
    stale: str | None = field(default=None, compare=False)

    def content(self) -> dict[str, Any]:
        """What is stored, without the checksum and without the mark of staleness."""
        content = asdict(self)
        del content["stale"]
        return {"schema": SCHEMA, **content}


def canonical(content: Any) -> str:
    """JSON with one spelling for one content: sorted keys, no spaces, no NaN.

    Raises:
        ValueError: a number is NaN or infinite.
    """
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(content: Any) -> str:
    """SHA-256 of the canonical form, in hexadecimal."""
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def write_atomically(path: Path, text: str) -> None:
    """Write a text file whole or not at all: a reader sees the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # mkstemp makes files that only their owner may read
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


class Store:
    """Records under one folder. The published store refuses records of a tree with uncommitted changes."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = Path(root) if root is not None else paths.results()

    @property
    def published(self) -> bool:
        return self.root.resolve() == (paths.root() / "results").resolve()

    def path(self, profile: str, experiment: str, key: str) -> Path:
        return self.root / profile / experiment / f"{key}.json"

    def write(self, record: Record) -> Path:
        """Store a record, replacing the one of the same key, and clear its mark of staleness."""
        path = self.path(record.profile, record.experiment, record.key)
        content = record.content()
        text = json.dumps({**content, "checksum": digest(content)}, indent=1, sort_keys=True, allow_nan=False)
        write_atomically(path, text + "\n")
        if self._stale(record.profile).get(f"{record.experiment}/{record.key}"):
            self.mark_stale(record.profile, record.experiment, record.key, None)
        return path

    def read(self, path: Path) -> Record:
        """The record at `path`.

        Raises:
            RecordError: it is no whole JSON, was changed by hand, lies in the wrong place, or is dirty and published.
        """
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise RecordError(
                f"{path}: not a whole JSON record ({error}); delete it and run it again"
            ) from None
        if not isinstance(content, dict) or content.get("schema") != SCHEMA:
            found = content.get("schema") if isinstance(content, dict) else type(content).__name__
            raise RecordError(f"{path}: schema {found!r}, this version reads {SCHEMA}; run it again")
        checksum = content.pop("checksum", None)
        if checksum != digest(content):
            raise RecordError(
                f"{path}: its content does not match its checksum, so it was edited; run it again"
            )
        del content["schema"]
        record = Record(**content)
        if self.path(record.profile, record.experiment, record.key).resolve() != Path(path).resolve():
            place = f"{record.profile}/{record.experiment}/{record.key}"
            raise RecordError(f"{path}: it says that it is {place}; move it back or run it again")
        if self.published and record.provenance.get("dirty") is not False:
            raise RecordError(
                f"{path}: made from a tree with uncommitted changes; commit the code, then run it again"
            )
        return record

    def load(self, profile: str, experiment: str) -> dict[str, Record]:
        """All records of an experiment by key, staleness included; none is an empty dictionary."""
        _note_read(f"{profile}/{experiment}")
        stale = self._stale(profile)
        records = [self.read(path) for path in sorted((self.root / profile / experiment).glob("*.json"))]
        return {
            record.key: Record(**{**vars(record), "stale": stale.get(f"{experiment}/{record.key}")})
            for record in records
        }

    def _stale(self, profile: str) -> dict[str, str]:
        path = self.root / profile / "stale.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def mark_stale(self, profile: str, experiment: str, key: str, reason: str | None) -> None:
        """Say that the code no longer gives this record's numbers; None takes the mark back."""
        marks = self._stale(profile)
        marks.pop(f"{experiment}/{key}", None)
        if reason is not None:
            marks[f"{experiment}/{key}"] = reason
        path = self.root / profile / "stale.json"
        if marks:
            write_atomically(path, json.dumps(marks, indent=1, sort_keys=True) + "\n")
        else:
            path.unlink(missing_ok=True)


def _note_read(what: str) -> None:
    """Tell whoever executes a chapter which records it read, so that a change of them runs it again."""
    if log := os.environ.get("SEPNB_READ_LOG"):
        with open(log, "a", encoding="utf-8") as stream:
            stream.write(what + "\n")
