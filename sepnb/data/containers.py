"""From the forms in which the texts are packed to their parts, by name: one function per form.

The first three read what lies in a data set's folder; the others unpack what its owner publishes. They raise
FileNotFoundError where the files are not there and `Unreadable` where they are but cannot be decoded. Nothing
is verified here: the registry compares the parts with its hashes.
"""

import importlib.metadata
import importlib.util
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from sepnb.data import tei

SYMPY_VERSION = "1.14.0"
# The mathematics of sympy, without tests, benchmarks, generated parsers, physics and printing: about 9 MB.
SYMPY_PACKAGES = (
    "assumptions", "calculus", "combinatorics", "concrete", "core", "functions", "geometry", "integrals",
    "logic", "matrices", "ntheory", "polys", "series", "sets", "simplify", "solvers",
)  # fmt: skip


class Unreadable(ValueError):
    """Files that are there but do not decode."""


def sympy_sources(folder: Path) -> dict[str, bytes]:
    """Python sources of the installed sympy, by path relative to the package, sorted; `folder` is not used.

    sympy is found without being imported, which would take longer than reading it.
    """
    spec = importlib.util.find_spec("sympy")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("sympy is not installed")
    installed = importlib.metadata.version("sympy")
    if installed != SYMPY_VERSION:
        raise Unreadable(
            f"sympy {installed} is installed, and the text is the source of sympy {SYMPY_VERSION}: "
            f"install what requirements.lock says (pip install sympy=={SYMPY_VERSION})"
        )
    package = Path(spec.origin).parent
    sources = (path for name in SYMPY_PACKAGES for path in (package / name).rglob("*.py"))
    names = {path.relative_to(package).as_posix(): path for path in sources}
    return {
        name: path.read_bytes()
        for name, path in sorted(names.items())
        if not {"tests", "benchmarks"} & set(name.split("/"))
    }


def eltec_archive(folder: Path) -> dict[str, bytes]:
    """The novels (`ENG*.txt`) of `ELTeC-eng-txt.tar.xz`, sorted by file name."""
    path = folder / "ELTeC-eng-txt.tar.xz"
    novels = {}
    with path.open("rb") as file:
        try:
            with tarfile.open(fileobj=file, mode="r:xz") as archive:
                for member in archive:
                    name = member.name.rpartition("/")[2]
                    if member.isfile() and name.startswith("ENG"):
                        novels[name] = archive.extractfile(member).read()
        except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
            raise Unreadable(f"{path} is not a whole .tar.xz ({error})") from error
    return dict(sorted(novels.items()))


def wikitext_files(folder: Path) -> dict[str, bytes]:
    """The three token files under their owner's names, from `{train,valid,test}.txt.xz`."""
    parts = {}
    for split in ("train", "valid", "test"):
        path = folder / f"{split}.txt.xz"
        try:
            with lzma.open(path) as file:
                parts[f"wiki.{split}.tokens"] = file.read()
        except (lzma.LZMAError, EOFError) as error:
            raise Unreadable(f"{path} is not a whole .xz file ({error})") from error
    return parts


def eltec_zip(archive: Path) -> dict[str, bytes]:
    """The novels of an archive of the repository COST-ELTeC/ELTeC-eng: bodies of `level1/ENG*.xml`."""
    novels = {}
    for name, xml in _zip_members(archive, "*/level1/ENG*.xml"):
        try:
            novels[f"{PurePosixPath(name).stem}.txt"] = tei.body_text(xml)
        except ValueError as error:
            raise Unreadable(f"{name} is no TEI document ({error})") from error
    return novels


def wikitext_zip(archive: Path) -> dict[str, bytes]:
    """The three token files of `wikitext-2-v1.zip`."""
    return {PurePosixPath(name).name: data for name, data in _zip_members(archive, "*/wiki.*.tokens")}


def _zip_members(archive: Path, pattern: str) -> Iterator[tuple[str, bytes]]:
    """Path and bytes of the members of a zip file whose path matches `pattern`."""
    try:
        with zipfile.ZipFile(archive) as packed:
            for name in packed.namelist():
                if PurePosixPath(name).match(pattern):
                    yield name, packed.read(name)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise Unreadable(f"not a whole zip file ({error})") from error
