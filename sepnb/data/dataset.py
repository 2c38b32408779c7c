"""A data set: its content (by hash), its owner, where it may lie, and how to get it.

A data set is known by its decoded canonical text, never by an archive. It may lie in `SEPNB_DATA/<name>/` in
any form that decodes to that text; content that does not match the hash is not used.
"""

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import platformdirs

from sepnb import __version__, paths
from sepnb.data import containers

Bytes = np.ndarray  # uint8, one dimension, read-only
Parts = Mapping[str, Bytes | bytes]
Unpack = Callable[[Path, int], dict[str, bytes]]
"""Called with a path and the most bytes that a part may have."""


class DataMissing(FileNotFoundError):
    """A data set is in none of the places where it was looked for."""


class DataDamaged(ValueError):
    """Something lies where the data set should, but it is not what its hash says."""


def canonical_sha256(documents: Iterable[tuple[str, Bytes | bytes]]) -> str:
    """SHA-256 of documents in the given order: for each its name, a tab, its length, a newline, its bytes.

    Names and lengths are hashed too, so that moving a border between two documents changes the hash.
    """
    digest = hashlib.sha256()
    for name, data in documents:
        digest.update(f"{name}\t{len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()


@dataclass(frozen=True)
class Part:
    """One file of the decoded text; split and author only where the set assigns them file by file."""

    name: str
    bytes: int
    sha256: str
    split: str = ""
    author: str = ""


@dataclass(frozen=True)
class DataSet:
    """One registered data set.

    Attributes:
        sha256: `canonical_sha256` of the decoded parts in order.
        parts: the files of the decoded text; empty where a package brings them and only the whole is hashed.
        note: what a check of the owner's bytes can show and what it cannot.
        decode: reads the parts from what lies in a folder (see `sepnb.data.containers`).
        addresses: URLs of the archive in the order in which they are tried, encrypted ones first; empty if a
            package provides the text.
        unpack: reads the parts from that archive.
        files: if the owner publishes several files, their names below each address; `unpack` then returns
            the one part of each file, which is named after the file without its last suffix.
    """

    name: str
    title: str
    sha256: str
    licence: str
    source: str
    note: str
    decode: Unpack = field(repr=False)
    parts: tuple[Part, ...] = field(default=(), repr=False)
    addresses: tuple[str, ...] = ()
    unpack: Unpack | None = field(default=None, repr=False)
    kind: Literal["text", "images", "stories"] = "text"
    files: tuple[str, ...] = field(default=(), repr=False)

    @property
    def folder(self) -> Path:
        """Where the set lies in the data folder."""
        return paths.data() / self.name

    @property
    def most(self) -> int:
        """Bytes that a part may unpack to: twice the largest registered one, for what decoding leaves out."""
        return 2 * max(part.bytes for part in self.parts) if self.parts else containers.MOST

    @property
    def fetched(self) -> Path:
        """Where `fetch` puts the decoded text: the parts one after the other."""
        return self.folder / "decoded.bin"

    @property
    def cached(self) -> Path:
        """Where the decoded form of an archive is kept, so that it is decompressed once on a machine."""
        return platformdirs.user_cache_path("sepnb") / "decoded" / f"{self.name}-{self.sha256[:16]}.bin"

    def read(self) -> dict[str, Bytes]:
        """The parts by name in canonical order, uint8, read-only; their hash is asserted at every call.

        Raises:
            DataMissing: it is nowhere; the message says where it was looked for and how to get it.
            DataDamaged: all that was found differs from what is registered; the message says where and how.
        """
        problems = []
        for file in (self.fetched, self.cached) if self.parts else ():
            try:
                return self.check(self._split(file), file)
            except FileNotFoundError:
                pass
            except (OSError, DataDamaged) as problem:
                if file == self.fetched:  # a bad cached copy is no problem: it is made anew below
                    problems.append(self._said(problem))
        try:
            parts = self.check(self.decode(self.folder, self.most), self.folder)
        except FileNotFoundError:
            if problems:
                raise DataDamaged("\n".join(problems)) from None
            raise DataMissing(self._missing()) from None
        except (OSError, containers.Unreadable, DataDamaged) as problem:
            raise DataDamaged("\n".join([*problems, self._said(problem)])) from problem
        if self.parts:
            with suppress(OSError):  # a place that cannot be written is no obstacle
                paths.write_atomically(self.cached, b"".join(parts.values()))
        return parts

    def status(self) -> Literal["at hand", "missing", "damaged"]:
        """Whether `read` succeeds. It does read: a second for the largest set the first time."""
        try:
            self.read()
        except DataMissing:
            return "missing"
        except DataDamaged:
            return "damaged"
        return "at hand"

    def fetch(self, *, progress: bool = True, timeout: float = 30.0) -> str:
        """Make the text available, downloading it only if needed; returns a message on where it is from.

        A download is compared with the registered hashes before it is kept. `progress` shows a bar;
        `timeout` is how many seconds to wait for each answer of a server.

        Raises:
            DataMissing: no address gave the registered text; the message says what each of them gave.
            DataDamaged: there is nothing to download and what is installed is not the registered text, or the
                data folder is none.
        """
        try:
            self.read()
            return "at hand"
        except (DataMissing, DataDamaged):
            if not self.addresses:
                raise
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            trouble = f"data set {self.name} cannot be put into {self.folder} ({error.strerror})"
            raise DataDamaged(f"{trouble}; set SEPNB_DATA to a folder that can be written") from error
        failures = []
        for address in self.addresses:
            try:
                parts = self.check(self._delivered(address, progress, timeout), address)
            except (ConnectionError, DataDamaged) as failure:
                failures.append(str(failure))
                continue
            paths.write_atomically(self.fetched, b"".join(parts.values()))
            return f"came from {address} and lies in {self.fetched}"
        raise DataMissing(
            f"data set {self.name} could not be fetched. Tried:\n  "
            + "\n  ".join(failures)
            + f"\nPut its files into {self.folder}, or set SEPNB_DATA to a folder that holds {self.name}/"
        )

    def _delivered(self, address: str, progress: bool, timeout: float) -> dict[str, bytes]:
        """The parts from one address."""
        if not self.files:
            return download(address, self._unpack, progress, timeout)
        parts = {}
        for name in self.files:
            whole = download(f"{address}/{name}", self._unpack, progress, timeout)
            (parts[Path(name).stem],) = whole.values()
        return parts

    def _unpack(self, archive: Path) -> dict[str, bytes]:
        return self.unpack(archive, self.most)

    def check(self, found: Parts, where: Path | str) -> dict[str, Bytes]:
        """`found` as read-only arrays in canonical order, if it is what is registered.

        An absent part, one that differs or another hash of the whole is DataDamaged in `where`.
        """
        names = [part.name for part in self.parts] or list(found)
        whole = {name: np.frombuffer(found[name], np.uint8) for name in names if name in found}
        got = canonical_sha256(whole.items())
        if got == self.sha256:
            return whole
        lists = {"absent": [name for name in names if name not in found]}
        kept = [part for part in self.parts if part.name in found]
        lists["differ"] = [p.name for p in kept if hashlib.sha256(whole[p.name]).hexdigest() != p.sha256]
        differences = "".join(f"; {what}: {', '.join(parts)}" for what, parts in lists.items() if parts)
        raise DataDamaged(
            f"{self.name}: what lies in {where} is not the registered text "
            f"(hash {got[:12]}, registered {self.sha256[:12]}){differences}"
        )

    def _said(self, problem: Exception) -> str:
        explained = isinstance(problem, DataDamaged)
        return str(problem) if explained else f"{self.name} cannot be read from {self.folder}: {problem}"

    def _split(self, file: Path) -> dict[str, Bytes]:
        data = np.fromfile(file, np.uint8)
        data.setflags(write=False)
        ends = np.cumsum([part.bytes for part in self.parts])
        if len(data) != ends[-1]:
            raise DataDamaged(f"{file} has {len(data):,} bytes, the registered text {ends[-1]:,}")
        return {part.name: data[end - part.bytes : end] for part, end in zip(self.parts, ends, strict=True)}

    def _missing(self) -> str:
        what = f"data set {self.name} is missing: {self.title}"
        if not self.addresses:
            return f"{what}. It is {self.source}"
        return (
            f"{what}. Looked in {self.folder} and for {self.cached}. To have it, run "
            f"`sepnb data {self.name}`, or set SEPNB_DATA to a folder that holds {self.name}/"
        )


def download(
    address: str, unpack: Callable[[Path], dict[str, bytes]], progress: bool, timeout: float
) -> dict[str, bytes]:
    """What `unpack` makes of the archive at `address`, which is deleted in any case.

    Raises:
        ConnectionError: an HTTP status other than success, no answer in time, a transfer that ended early, or
            something that does not unpack; the message says at which address.
    """
    import pooch  # its progress bar looks for widgets when it is imported in a notebook, and warns
    import requests

    who = {"User-Agent": f"sepnb/{__version__}"}  # some owners refuse requests that do not say who asks
    get = pooch.HTTPDownloader(progressbar=progress, chunk_size=1 << 16, timeout=timeout, headers=who)
    with tempfile.TemporaryDirectory(prefix="sepnb-") as folder:
        archive = Path(folder) / "archive"
        try:
            get(address, str(archive), None)
            return unpack(archive)
        except (requests.RequestException, containers.Unreadable) as error:
            raise ConnectionError(f"{address}: {error}") from error
