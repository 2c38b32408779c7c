"""Escape text from records and messages for a page of the book (MyST).

A record is data: HTML, roles, formulas and links in it must appear literally and have no effect.
"""

import re
from collections.abc import Iterable, Sequence


def said(value: object) -> str:
    """A value as text on one line, every character of which stands for itself."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", " ".join(str(value).split()))


def code(value: object) -> str:
    """A value in the type of code, on one line."""
    text = " ".join(str(value).split())
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text or ' '}{pad}{fence}"


def row(*cells: object) -> str:
    """A row of a table, of cells that are MyST already: what is not ours went through `said` or `code`."""
    return "| " + " | ".join(re.sub(r"(?<!\\)\|", r"\|", str(c)).replace("\n", " ") for c in cells) + " |"


def table(heads: Sequence[str], rows: Iterable[Iterable[object]], *, right: Iterable[str] = ()) -> list[str]:
    """The lines of a table and an empty one; the columns headed by `right` are set to the right."""
    right = set(right)
    rule = row(*("---:" if head in right else "---" for head in heads))
    return [row(*heads), rule, *(row(*cells) for cells in rows), ""]


def within(name: str, lines: Iterable[str]) -> list[str]:
    """The lines in a container of the class `sepnb-<name>`, which the style sheet knows, and an empty one."""
    return [f"```{{container}} sepnb-{name}", *lines, "```", ""]


_VALUE = r"[+\N{MINUS SIGN}-]?[\d.,]+(?:e[+-]\d+)?(?:\s?%|\N{MULTIPLICATION SIGN})?"
_NUMBER = re.compile(rf"{_VALUE}(?:\s±\s{_VALUE})?|\N{{EN DASH}}|not run")


def numeric_columns(rows: Sequence[Sequence[str]]) -> list[bool]:
    """Whether each column of a table of texts holds only numbers or what stands for one, and a digit."""
    width = max(map(len, rows), default=0)
    columns = [[row[at] for row in rows if at < len(row) and row[at]] for at in range(width)]
    return [
        all(map(_NUMBER.fullmatch, column)) and any(re.search(r"\d", text) for text in column)
        for column in columns
    ]
