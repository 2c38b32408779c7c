"""What the four source documents say, statement by statement, and where each statement went."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import yaml

from sepnb import paths
from sepnb.claims.ledger import CLAIMS

KINDS = ("claim", "chapter", "page", "not-empirical")


class SourceMapError(ValueError):
    """`book/source_map.yml` says something that is not so; the message lists every fault."""


@dataclass(frozen=True)
class Statement:
    """One statement of a source document, in English, paraphrased or quoted briefly. Its target is, by its
    kind, a claim's id, the file name of a chapter or of a page in `book/`, or why nothing can be tested. A
    note is a slip of the source, or within which limits the statement is true."""

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


def load(path: Path | None = None) -> SourceMap:
    """The source map, by default `book/source_map.yml` of the checkout.

    Raises:
        SourceMapError: an unknown, missing or empty field, a repeated id or statement, or a target that does
            not exist.
    """
    path = paths.root() / "book" / "source_map.yml" if path is None else path
    raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    faults: list[str] = []
    documents = []
    for document in raw["documents"]:
        source, statements = document["source"], []
        for entry in document["statements"]:
            try:
                statements.append(Statement(source=source, **entry))
            except TypeError as error:  # an unknown or a missing field
                faults.append(f"{entry.get('id', f'an entry of {source}')}: {error}")
        documents.append(Document(source, document["title"], tuple(statements)))
    found = SourceMap(tuple(documents))
    if faults := faults + _faults(found.statements):
        raise SourceMapError(f"{path}:\n" + "\n".join(f"- {fault}" for fault in faults))
    return found


def _faults(statements: list[Statement]) -> list[str]:
    ids = Counter(one.id for one in statements)
    texts = Counter((one.source, str(one.says).lower()) for one in statements)
    faults = [f"the id {name} is used {n} times" for name, n in ids.items() if n > 1]
    faults += [f"{source} says {text!r} {n} times" for (source, text), n in texts.items() if n > 1]
    there = {
        "claim": {claim.id for claim in CLAIMS},
        "chapter": {path.stem for path in (paths.root() / "notebooks").glob("*.py")},
        "page": {path.stem for path in (paths.root() / "book").glob("*.md")},
    }
    for one in statements:
        if empty := [name for name in ("id", "says", "target") if not str(getattr(one, name) or "").strip()]:
            faults.append(f"{one.id} leaves {', '.join(empty)} empty")
        if one.kind not in KINDS:
            faults.append(f"{one.id} has kind {one.kind!r}; use one of {', '.join(KINDS)}")
        elif one.target not in there.get(one.kind, {one.target}):
            faults.append(f"{one.id} points to the {one.kind} {one.target!r}, which does not exist")
    return faults
