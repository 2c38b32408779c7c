"""From the parts of a data set to documents of bytes in three splits.

A model here reads bytes, so a document is an array of bytes and nothing is tokenised.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sepnb.data import registry
from sepnb.data.dataset import Bytes, DataSet, canonical_sha256
from sepnb.validation import instance, option

_SPLITS = ("train", "validation", "test")


@dataclass(frozen=True, eq=False)
class Document:
    """One novel, article or source file. `data` holds its bytes, uint8 `[N]`; other data are a TypeError."""

    name: str
    author: str
    data: Bytes

    def __post_init__(self) -> None:
        option("name", self.name, str)
        option("author", self.author, str)
        if not isinstance(self.data, np.ndarray) or self.data.dtype != np.uint8 or self.data.ndim != 1:
            raise TypeError(
                f"the data of document {self.name!r} must be one-dimensional and uint8, got "
                f"{getattr(self.data, 'dtype', type(self.data).__name__)}; give np.frombuffer(data, np.uint8)"
            )

    def __len__(self) -> int:
        return len(self.data)


@dataclass(frozen=True, eq=False)
class Text:
    """Documents of one split, in a fixed order."""

    name: str
    documents: tuple[Document, ...]

    def __post_init__(self) -> None:
        option("name", self.name, str)
        for document in instance("documents", self.documents, tuple, "(Document(...),)"):
            instance("a document", document, Document)

    @property
    def bytes(self) -> int:
        """Bytes of all documents together."""
        return sum(len(document) for document in self.documents)

    @cached_property
    def sha256(self) -> str:
        """`canonical_sha256` of the documents."""
        return canonical_sha256((document.name, document.data) for document in self.documents)

    def __repr__(self) -> str:
        return f"Text({self.name!r}, {len(self.documents)} documents, {self.bytes:,} bytes)"


@dataclass(frozen=True, eq=False)
class Splits:
    """A data set cut into texts that share no document (and, where authors are known, no author); `sha256` is
    that of the whole, as the registry states it; each split has its own as well."""

    name: str
    train: Text
    validation: Text
    test: Text
    sha256: str


def load(name: str) -> Splits:
    """The text called `name`, hash asserted, in three splits.

    `sympy`: one document a source file; a hash of its path decides its split (80 % train, 10 % each other).
    `eltec-eng`: one document a novel; 20 test and 10 validation novels, each by an author who has no other
    novel here, so that no author is in two splits and no two held-out novels share one.
    `wikitext-2`: one document an article, in the official splits.

    Raises:
        ValueError: an unknown name, or that of a set of images; otherwise as `DataSet.read`.
    """
    data_set = registry.get(name, "text")
    held: dict[str, list[Document]] = {split: [] for split in _SPLITS}
    for split, document in _DOCUMENTS[name](data_set):
        held[split].append(document)
    return Splits(
        name, *(Text(f"{name}/{split}", tuple(held[split])) for split in _SPLITS), sha256=data_set.sha256
    )


def _source_files(data_set: DataSet) -> Iterator[tuple[str, Document]]:
    for name, data in data_set.read().items():
        share = hashlib.sha256(name.encode()).digest()[0] / 256
        split = "test" if share < 0.1 else "validation" if share < 0.2 else "train"
        yield split, Document(name, "SymPy Development Team", data)


def _novels(data_set: DataSet) -> Iterator[tuple[str, Document]]:
    read = data_set.read()
    for part in data_set.parts:
        yield part.split, Document(part.name.removesuffix(".txt"), part.author, read[part.name])


# A level-1 heading stands between blank lines; formulas broken over lines look alike but do not.
_TITLE = re.compile(rb"^ \n = ([^=\s].*) = \n(?= \n)", re.MULTILINE)


def _articles(data_set: DataSet) -> Iterator[tuple[str, Document]]:
    read = data_set.read()
    for part in data_set.parts:
        data: Bytes = read[part.name]
        headings = list(_TITLE.finditer(data.tobytes()))
        articles = np.split(data, [heading.start() for heading in headings])[1:]
        for number, (heading, article) in enumerate(zip(headings, articles, strict=True)):
            yield part.split, Document(f"{number:03d} {heading[1].decode()}", "Wikipedia", article)


_DOCUMENTS: dict[str, Callable[[DataSet], Iterator[tuple[str, Document]]]] = {
    "sympy": _source_files,
    "eltec-eng": _novels,
    "wikitext-2": _articles,
}
