"""Unpack data sets into their parts, by name: one function per packed form.

Functions that take a `folder` read the folder of a data set; the others unpack what its owner publishes. They
raise FileNotFoundError if the files are missing and `Unreadable` if they cannot be decoded. Nothing is
verified here: the registry compares the parts with its hashes. No part may unpack to more than `most` bytes,
a limit from the registry: a small archive can hold gigabytes.
"""

import gzip
import importlib.metadata
import importlib.util
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO
from xml.etree import ElementTree

SYMPY_VERSION = "1.14.0"
# The mathematics of sympy, without tests, benchmarks, generated parsers, physics and printing: about 9 MB.
SYMPY_PACKAGES = (
    "assumptions", "calculus", "combinatorics", "concrete", "core", "functions", "geometry", "integrals",
    "logic", "matrices", "ntheory", "polys", "series", "sets", "simplify", "solvers",
)  # fmt: skip


_DAMAGE = (tarfile.TarError, lzma.LZMAError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error, struct.error)
_FAULTS = (*_DAMAGE, EOFError, RuntimeError)  # what zipfile raises of a password or a method that it lacks
MOST = 1 << 30


class Unreadable(ValueError):
    """Files that are there but do not decode."""


@contextmanager
def _whole(what: str) -> Iterator[None]:
    """Faults of any kind of archive, said in one way."""
    try:
        yield
    except _FAULTS as error:
        raise Unreadable(f"{what} ({error or type(error).__name__})") from error


def _read(stream: BinaryIO, name: str, most: int) -> bytes:
    data = stream.read(most + 1)
    if len(data) > most:
        raise Unreadable(f"{name} unpacks to more than {most:,} bytes, the most that was expected")
    return data


def sympy_sources(folder: Path, most: int = MOST) -> dict[str, bytes]:
    """Python sources of the installed sympy, by path relative to the package, sorted; no argument is used.

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


def eltec_archive(folder: Path, most: int = MOST) -> dict[str, bytes]:
    """The novels (`ENG*.txt`) of `ELTeC-eng-txt.tar.xz`, sorted by file name."""
    path = folder / "ELTeC-eng-txt.tar.xz"
    novels = {}
    with _whole(f"{path} is not a whole .tar.xz"), tarfile.open(path, mode="r:xz") as archive:
        for member in archive:
            name = member.name.rpartition("/")[2]
            if member.isfile() and name.startswith("ENG"):
                novels[name] = _read(archive.extractfile(member), name, most)
    return dict(sorted(novels.items()))


def wikitext_files(folder: Path, most: int = MOST) -> dict[str, bytes]:
    """The three token files under their owner's names, from `{train,valid,test}.txt.xz`."""
    parts = {}
    for split in ("train", "valid", "test"):
        path = folder / f"{split}.txt.xz"
        with _whole(f"{path} is not a whole .xz file"), lzma.open(path) as file:
            parts[f"wiki.{split}.tokens"] = _read(file, path.name, most)
    return parts


BABI_FILES = (
    "en-10k/qa1_single-supporting-fact_train.txt",
    "en-10k/qa2_two-supporting-facts_train.txt",
    "en/qa3_three-supporting-facts_train.txt",
    "en/qa1_single-supporting-fact_test.txt",
    "en/qa2_two-supporting-facts_test.txt",
    "en/qa3_three-supporting-facts_test.txt",
)
"""Of the first three of bAbI's twenty tasks, by path in the archive's folder."""


def babi_archive(folder: Path, most: int = MOST) -> dict[str, bytes]:
    """The stories of tasks 1 to 3 from `babi_tasks_1-20_v1-2_en.tar.xz`."""
    return babi_tar(folder / "babi_tasks_1-20_v1-2_en.tar.xz", most)


def scikit_learn_digits(folder: Path, most: int = MOST) -> dict[str, bytes]:
    """`digits.csv`, which scikit-learn distributes packed; `folder` is not used, and nothing is imported."""
    found = importlib.util.find_spec("sklearn")
    if found is None or not found.submodule_search_locations:
        raise FileNotFoundError("scikit-learn is not installed, and the digits come with it")
    package = Path(found.submodule_search_locations[0])
    return {"digits.csv": _gunzipped(package / "datasets" / "data" / "digits.csv.gz", most)}


FASHION_FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
"""As the owner of Fashion-MNIST publishes them; without `.gz` they name the parts."""


def fashion_files(folder: Path, most: int = MOST) -> dict[str, bytes]:
    """The four files of Fashion-MNIST from `*-ubyte.gz`."""
    return {name.removesuffix(".gz"): _gunzipped(folder / name, most) for name in FASHION_FILES}


def gzip_file(archive: Path, most: int = MOST) -> dict[str, bytes]:
    """What a single packed file holds; it does not say its name."""
    return {"": _gunzipped(archive, most)}


def _gunzipped(path: Path, most: int) -> bytes:
    with _whole(f"{path.name} is not a whole .gz file"), gzip.open(path) as file:
        return _read(file, path.name, most)


def eltec_zip(archive: Path, most: int = MOST) -> dict[str, bytes]:
    """The novels of an archive of the repository COST-ELTeC/ELTeC-eng: bodies of `level1/ENG*.xml`."""
    novels = {}
    for name, xml in _zip_members(archive, "*/level1/ENG*.xml", most):
        try:
            novels[f"{PurePosixPath(name).stem}.txt"] = body_text(xml)
        except ValueError as error:
            raise Unreadable(f"{name} is no TEI document ({error})") from error
    return novels


_TEI = "{http://www.tei-c.org/ns/1.0}"


def body_text(xml: bytes) -> bytes:
    """UTF-8 text of the `<body>` of a novel in TEI, as the European Literary Text Collection publishes it.

    One line for each block - heading, paragraph, quotation - with a blank line between two. Notes are left
    out, empty elements such as page breaks leave no trace, runs of white space become one space, and the
    parts of a quotation (verses, the paragraphs of a letter) share its line.

    Raises:
        ValueError: not well-formed XML, or no TEI body in it.
    """
    try:
        body = ElementTree.fromstring(xml).find(f"{_TEI}text/{_TEI}body")
    except ElementTree.ParseError as error:
        raise ValueError(f"not well-formed XML: {error}") from error
    if body is None:
        raise ValueError("no <text><body> of the TEI namespace in it")
    return ("\n\n".join(_blocks(body)) + "\n").encode()


def _blocks(division: ElementTree.Element) -> Iterator[str]:
    """The blocks in reading order; divisions nest, and every other child of one is a block."""
    for child in division:
        if child.tag == f"{_TEI}div":
            yield from _blocks(child)
        elif text := " ".join("".join(child.itertext()).split()):
            yield text


def babi_tar(archive: Path, most: int = MOST) -> dict[str, bytes]:
    """The stories of tasks 1 to 3 from `tasks_1-20_v1-2.tar.gz`, or from its files packed in another way."""
    found = {}
    with _whole(f"{archive.name} is not a whole packed .tar"), tarfile.open(archive, mode="r:*") as packed:
        for member in packed:
            name = member.name.partition("/")[2]
            if member.isfile() and name in BABI_FILES:
                found[name] = _read(packed.extractfile(member), name, most)
    return found


def wikitext_zip(archive: Path, most: int = MOST) -> dict[str, bytes]:
    """The three token files of `wikitext-2-v1.zip`."""
    members = _zip_members(archive, "*/wiki.*.tokens", most)
    return {PurePosixPath(name).name: data for name, data in members}


def _zip_members(archive: Path, pattern: str, most: int) -> Iterator[tuple[str, bytes]]:
    """Path and bytes of the members of a zip file whose path matches `pattern`."""
    with _whole("not a whole zip file"), zipfile.ZipFile(archive) as packed:
        for name in packed.namelist():
            if PurePosixPath(name).match(pattern):
                with packed.open(name) as member:
                    yield name, _read(member, name, most)
