"""What the four source documents say, statement by statement, and where each statement went."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
        source = document["source"]
        statements = [_statement(entry, source, faults) for entry in document["statements"]]
        documents.append(Document(source, document["title"], tuple(filter(None, statements))))
    found = SourceMap(tuple(documents))
    faults += _repeated(found.statements) + _dangling(found)
    if faults:
        raise SourceMapError(f"{path}:\n" + "\n".join(f"- {fault}" for fault in faults))
    return found


def _statement(entry: dict[str, Any], source: str, faults: list[str]) -> Statement | None:
    fields = {"id", "says", "kind", "target"}
    name = entry.get("id", f"an entry of {source}")
    if missing := fields - entry.keys():
        faults.append(f"{name} has no {', '.join(sorted(missing))}")
    if unknown := entry.keys() - fields - {"note"}:
        faults.append(f"{name} has unknown {', '.join(sorted(unknown))}; use id, says, kind, target, note")
    if empty := [key for key, value in entry.items() if not str(value or "").strip()]:
        faults.append(f"{name} leaves {', '.join(empty)} empty")
    return None if missing or unknown or empty else Statement(source=source, **entry)


def _repeated(statements: list[Statement]) -> list[str]:
    ids = Counter(statement.id for statement in statements)
    texts = Counter((statement.source, statement.says.lower()) for statement in statements)
    return [f"the id {name} is used {n} times" for name, n in ids.items() if n > 1] + [
        f"{source} says {text!r} {n} times" for (source, text), n in texts.items() if n > 1
    ]


def _dangling(source_map: SourceMap) -> list[str]:
    claims = {claim.id for claim in CLAIMS}
    chapters = {path.stem for path in (paths.root() / "notebooks").glob("*.py")}
    pages = {path.stem for path in (paths.root() / "book").glob("*.md")}
    there = {
        "claim": (claims, "the claim {!r}, which is not in the ledger"),
        "chapter": (chapters, "notebooks/{}.py, which does not exist"),
        "page": (pages, "book/{}.md, which does not exist"),
    }
    faults = []
    for statement in source_map.statements:
        name, kind, target = statement.id, statement.kind, statement.target
        known, missing = there.get(kind, ([target], ""))
        if kind not in KINDS:
            faults.append(f"{name} has kind {kind!r}; use one of {', '.join(KINDS)}")
        elif target not in known:
            faults.append(f"{name} points to {missing.format(target)}")
    return faults
