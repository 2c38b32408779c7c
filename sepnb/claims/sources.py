"""What the four source documents say, statement by statement, and where each statement went."""

from dataclasses import dataclass

import yaml

from sepnb import paths


@dataclass(frozen=True)
class Statement:
    """One statement of a source document, in English, paraphrased or quoted briefly. Its kind is `claim`,
    `chapter`, `page` or `not-empirical`, and its target accordingly a claim's id, the file name of a chapter
    or of a page in `book/`, or why nothing can be tested. A note is a slip of the source, or within which
    limits the statement is true."""

    id: str
    source: str
    says: str
    kind: str
    target: str
    note: str = ""


@dataclass(frozen=True)
class Document:
    """A source document: its short name, what it is, and its statements in order."""

    source: str
    title: str
    statements: tuple[Statement, ...]


@dataclass(frozen=True)
class SourceMap:
    """The four documents."""

    documents: tuple[Document, ...]

    @property
    def statements(self) -> list[Statement]:
        return [statement for document in self.documents for statement in document.statements]


def load() -> SourceMap:
    """The source map of the checkout, `book/source_map.yml`; an unknown or a missing field of a statement is
    a TypeError. That all it points to exists is tested."""
    raw = yaml.safe_load((paths.root() / "book" / "source_map.yml").read_text(encoding="utf-8"))
    documents = []
    for one in raw["documents"]:
        statements = tuple(Statement(source=one["source"], **entry) for entry in one["statements"])
        documents.append(Document(one["source"], one["title"], statements))
    return SourceMap(tuple(documents))
