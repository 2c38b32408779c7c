"""What pages and chapters show of verdicts: the page of claims, the scoreboard, tables of methods."""

from sepnb.companion.evidence.shown import show, words

__all__ = ["show", "words"]
