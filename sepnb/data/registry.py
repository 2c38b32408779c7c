"""The texts this project uses: what they say (by hash), whose they are, where they lie, how to get them.

A data set is known by its decoded canonical text, never by an archive. It may lie in `SEPNB_DATA/<name>/` in
any form that decodes to that text; what the hash does not confirm is not used.
"""

import difflib
import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import platformdirs

from sepnb import paths
from sepnb.data import containers
from sepnb.data.documents import Bytes, canonical_sha256

Parts = Mapping[str, Bytes | bytes]


class DataMissing(FileNotFoundError):
    """A data set is in none of the places where it was looked for."""


class DataDamaged(ValueError):
    """Something lies where the data set should, but it is not what its hash says."""


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
        address: what `fetch` downloads from the owner; None where there is nothing to download.
        note: what a check of the owner's bytes can show and what it cannot.
        decode: reads the parts from what lies in a folder (see `sepnb.data.containers`).
    """

    name: str
    title: str
    sha256: str
    licence: str
    source: str
    note: str
    decode: Callable[[Path], dict[str, bytes]] = field(repr=False)
    parts: tuple[Part, ...] = field(default=(), repr=False)
    address: str | None = None

    @property
    def folder(self) -> Path:
        """Where the set lies in the data folder."""
        return paths.data() / self.name

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
            except DataDamaged as problem:
                if file == self.fetched:  # a bad cached copy is no problem: it is made anew below
                    problems.append(str(problem))
        try:
            parts = self.check(self.decode(self.folder), self.folder)
        except FileNotFoundError:
            if problems:
                raise DataDamaged("\n".join(problems)) from None
            raise DataMissing(self._missing()) from None
        except containers.Unreadable as problem:
            raise DataDamaged("\n".join([*problems, f"{self.name}: {problem}"])) from problem
        if self.parts:
            keep(parts, self.cached, required=False)
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

    def check(self, found: Parts, where: Path | str) -> dict[str, Bytes]:
        """`found` as read-only arrays in canonical order, if it is what is registered; `where` is for errors.

        Raises:
            DataDamaged: a part is absent or differs, or the whole has another hash.
        """
        names = [part.name for part in self.parts] or list(found)
        whole = {name: np.frombuffer(found[name], np.uint8) for name in names if name in found}
        got = canonical_sha256(whole.items())
        if got == self.sha256:
            return whole
        absent = [name for name in names if name not in found]
        differ = [part.name for part in self.parts if part.name in found and not _is(whole[part.name], part)]
        lists = [
            f"{what}: {', '.join(which)}" for what, which in (("absent", absent), ("differ", differ)) if which
        ]
        raise DataDamaged(
            f"{self.name}: what lies in {where} is not the registered text "
            f"(hash {got[:12]}…, registered {self.sha256[:12]}…). {'; '.join(lists)}".rstrip()
        )

    def _split(self, file: Path) -> dict[str, Bytes]:
        data = np.fromfile(file, np.uint8)
        data.setflags(write=False)
        ends = np.cumsum([part.bytes for part in self.parts])
        if len(data) != ends[-1]:
            raise DataDamaged(
                f"{self.name}: {file} has {len(data):,} bytes, the registered text {ends[-1]:,}"
            )
        return {part.name: data[end - part.bytes : end] for part, end in zip(self.parts, ends, strict=True)}

    def _missing(self) -> str:
        get = f"run `sepnb data {self.name}` to get it from its owner" if self.address else self.source
        return (
            f"data set {self.name} is missing: {self.title}. Looked in {self.folder} and for {self.cached}. "
            f"To have it: {get}; or set SEPNB_DATA to a folder that holds {self.name}/"
        )


def _is(data: Bytes, part: Part) -> bool:
    return len(data) == part.bytes and hashlib.sha256(data).hexdigest() == part.sha256


def keep(parts: Mapping[str, Bytes], file: Path, *, required: bool) -> None:
    """Write the parts one after the other to `file`, which appears whole or not at all.

    A place that cannot be written is an OSError if the copy is `required`, and otherwise no error.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        try:
            with os.fdopen(handle, "wb") as out:
                for data in parts.values():
                    out.write(data)
            os.replace(draft, file)
        finally:
            Path(draft).unlink(missing_ok=True)
    except OSError:
        if required:
            raise


def _novels() -> tuple[Part, ...]:
    rows = Path(__file__).with_name("eltec-eng.tsv").read_text(encoding="utf-8").splitlines()[1:]
    fields = (row.split("\t") for row in rows)
    return tuple(Part(name, int(size), sha256, split, author) for name, split, author, size, sha256 in fields)


_SETS = (
    DataSet(
        name="sympy",
        title=f"Python sources of sympy {containers.SYMPY_VERSION}, sixteen packages of its mathematics",
        sha256="29ad4432eb8a242b7252a131d90b4f6ff03314a8b15e0af999fe659d4dbecee5",
        licence="BSD-3-Clause (SymPy Development Team)",
        source=f"installed with this project: sympy=={containers.SYMPY_VERSION} of requirements.lock",
        note="The offline default. The hash is that of the files of the release on the Python Package Index.",
        decode=containers.sympy_sources,
    ),
    DataSet(
        name="eltec-eng",
        title="ELTeC-eng, 99 English novels first published from 1840 to 1920",
        sha256="116f1d0de2355348bb018228d5c1bcde31ffa009ab942b8735f0793126a7dc68",
        licence="texts in the public domain; markup CC BY 4.0 (COST Action CA16204)",
        source="https://github.com/COST-ELTeC/ELTeC-eng, DOI 10.5281/zenodo.3462435",
        note=(
            "The owner publishes TEI files and no checksum of their text. The hashes are those of the plain "
            "text of the bodies at commit 3db3b67, one paragraph a line; ENG18460_Reynolds is left out."
        ),
        decode=containers.eltec_archive,
        parts=_novels(),
        address="https://github.com/COST-ELTeC/ELTeC-eng/archive/3db3b6738a836f0e1b276b6c9703e42f4297f978.zip",
    ),
    DataSet(
        name="wikitext-2",
        title="WikiText-2, 720 good and featured articles of the English Wikipedia, tokenised by words",
        sha256="1be73e804b3920ba346c657b160c59b62cfff11fcb4ee9757457d481065e1afe",
        licence="CC BY-SA 3.0 and GFDL (Wikipedia's authors; Merity et al. 2017)",
        source="Merity et al., Pointer Sentinel Mixture Models (2017), wikitext-2-v1.zip",
        note="The hashes are those of the three token files in the owner's archive.",
        decode=containers.wikitext_files,
        parts=(
            Part(
                "wiki.train.tokens",
                10_797_148,
                "9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f",
                "train",
            ),
            Part(
                "wiki.valid.tokens",
                1_121_681,
                "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8",
                "validation",
            ),
            Part(
                "wiki.test.tokens",
                1_256_449,
                "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0",
                "test",
            ),
        ),
        address="https://s3.amazonaws.com/research.metamind.io/wikitext/wikitext-2-v1.zip",
    ),
)
_BY_NAME = {data_set.name: data_set for data_set in _SETS}


def names() -> list[str]:
    """Names of the registered data sets."""
    return list(_BY_NAME)


def get(name: str) -> DataSet:
    """The data set of that name. An unknown one is a ValueError that lists the near matches."""
    if name not in _BY_NAME:
        near = difflib.get_close_matches(name, _BY_NAME, n=3, cutoff=0.4) or names()
        raise ValueError(f"no data set is called {name!r}; did you mean {' or '.join(near)}?")
    return _BY_NAME[name]
