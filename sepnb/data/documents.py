"""What a text is: documents of bytes, in three splits, with one hash over what they say.

A model here reads bytes, so a document is an array of bytes and nothing is tokenised. The hash is taken over
the decoded text and never over an archive: the same words packed by another tool are the same data.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

Bytes = np.ndarray  # uint8, one dimension, read-only


def canonical_sha256(documents: Iterable[tuple[str, Bytes | bytes]]) -> str:
    """SHA-256 of documents in the given order: for each its name, a tab, its length, a newline, its bytes.

    Names and lengths are hashed too, so that moving a border between two documents changes the hash.
    """
    digest = hashlib.sha256()
    for name, data in documents:
        digest.update(f"{name}\t{len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Document:
    """One novel, article or source file. `data` holds its bytes (uint8, read-only)."""

    name: str
    author: str
    data: Bytes

    def __len__(self) -> int:
        return len(self.data)


@dataclass(frozen=True, eq=False)
class Text:
    """Documents of one split, in a fixed order."""

    name: str
    documents: tuple[Document, ...]

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
    """A data set cut into texts that share no document (and, where authors are known, no author).

    `sha256` is the hash of the whole data set as the registry states it; each split has its own as well.
    """

    name: str
    train: Text
    validation: Text
    test: Text
    sha256: str
    licence: str
    source: str
    note: str
