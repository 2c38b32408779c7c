"""Where things live: the checkout, the records, what is built, the data; and how a file is written there.

Every place can be moved by an environment variable, so that tests and hosts without a writable checkout need
no other switch.
"""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from uuid import uuid4

import platformdirs

HERE = Path(__file__).resolve().parents[1]


def root() -> Path:
    """The checkout: `SEPNB_ROOT`, or the folder that holds the package."""
    return Path(os.environ.get("SEPNB_ROOT", HERE))


def writable() -> Path:
    """The parent of the folders that commands write: the checkout or, for an installed package, the user's
    cache folder."""
    installed = "SEPNB_ROOT" not in os.environ and not (HERE / "pyproject.toml").is_file()
    return platformdirs.user_cache_path("sepnb") if installed else root()


def results() -> Path:
    """The published records: `SEPNB_RESULTS`, or `results/` of the checkout."""
    return Path(os.environ.get("SEPNB_RESULTS", writable() / "results"))


def build() -> Path:
    """Build products, safe to delete: `SEPNB_BUILD`, or `build/` of the checkout."""
    return Path(os.environ.get("SEPNB_BUILD", writable() / "build"))


def data() -> Path:
    """Downloaded data: `SEPNB_DATA`, or the user's cache folder."""
    return Path(os.environ.get("SEPNB_DATA", platformdirs.user_cache_path("sepnb") / "data"))


ABANDONED = 3600
"""Seconds after which no draft of a file is still being written."""


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all: a reader sees the old file or the new one, never a part.

    Drafts that killed writers left in its folder are removed once they are an hour old.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for old in path.parent.glob(".*.part"):
        with suppress(OSError):  # somebody else removed it
            if time.time() - old.stat().st_mtime > ABANDONED:
                old.unlink()
    draft = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        with draft.open("xb") as stream:
            stream.write(content if isinstance(content, bytes) else content.encode())
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def keep_only(folder: Path, pattern: str, files: Mapping[Path, str]) -> None:
    """Make these the files of a folder that fit the pattern: what is new or changed is written, others go."""
    for path, text in files.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            write_atomically(path, text)
    for old in set(folder.glob(pattern)) - set(files):
        old.unlink()


def try_writing(folder: Path, size: int) -> None:
    """Create the folder, and raise OSError if it cannot take a file of `size` bytes. The trial file has no
    name, so that nothing remains however the process ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=folder) as trial:
        trial.write(bytes(size))
        trial.flush()
        os.fsync(trial.fileno())
