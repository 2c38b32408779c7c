"""Verdicts that prose quotes, and the claims that come first on their page: those of the book's conclusion.

    It needs no stream ({verdict}`the-untied-term-needs-no-stream: held`).

The page shows the word that the ledger has now. The word in the source is the one with which the sentence was
written: a test holds it against the ledger, so that a sentence is written anew when its verdict turns.
"""

import re

from sepnb import paths

CONCLUSION = "notebooks/90_conclusion.py"
QUOTED = re.compile(r"\{verdict\}`([\w-]+): ([\w ]+)`")


def quoted(text: str) -> list[tuple[str, str]]:
    """The claims that a text quotes, in its order, each with the word that was written."""
    return QUOTED.findall(text)


def headlines() -> tuple[str, ...]:
    """The claims that the conclusion quotes, each once."""
    text = (paths.root() / CONCLUSION).read_text(encoding="utf-8")
    return tuple(dict.fromkeys(name for name, _ in quoted(text)))
