"""Evaluation: bits per byte at every position, and what a replaced context costs."""

from .losses import AtDrawnPositions, Losses, as_trained, evaluate, sliding

__all__ = ["AtDrawnPositions", "Losses", "as_trained", "evaluate", "sliding"]
