"""Tasks whose answer stands in the text: does a model use what it can see?"""

from ...validation import brought_by
from .needle import needle
from .order import indirect_index, ordered_copy
from .questions import questions
from .recall import latest_value, mqar, occurrence
from .samples import Samples

with brought_by("run"):
    from .grid import answers, grid

__all__ = [
    "Samples",
    "answers",
    "grid",
    "indirect_index",
    "latest_value",
    "mqar",
    "needle",
    "occurrence",
    "ordered_copy",
    "questions",
]
