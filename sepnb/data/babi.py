"""Stories with questions: tasks 1 to 3 of bAbI (Weston et al. 2015, arXiv 1502.05698), as words.

    Mary moved to the bathroom .   John went to the hallway .   Where is Mary ?  bathroom

Task 1 asks where a person is, task 2 where a thing is, task 3 where it was before: one, two or three
statements answer. `simulated-stories` has the same form and needs no download.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from ..validation import one_of
from . import registry
from .simulated import OBJECTS, PERSONS, PLACES

TASKS = (1, 2, 3)
SPLITS = ("train", "validation", "test")
_OTHERS = (
    "back before discarded down dropped got grabbed is journeyed left moved picked put the there to took "
    "travelled up was went Where"
)
WORDS = (*PLACES, *PERSONS, *OBJECTS, *_OTHERS.split(), ".", "?")
"""All words of the three tasks; the number of a word is its index here."""


@dataclass(frozen=True)
class Question:
    """A question with the statements before it.

    Attributes:
        statements: sentences of the story, each a tuple of words that ends with a full stop.
        words: of the question, up to its question mark.
        answer: a place.
        support: indices of the statements that answer; the last of these holds the answer.
    """

    statements: tuple[tuple[str, ...], ...]
    words: tuple[str, ...]
    answer: str
    support: tuple[int, ...]


def load(task: int, split: str, name: str = "babi") -> tuple[Question, ...]:
    """The questions of a task; the last tenth of its training stories are its validation.

    Of bAbI, tasks 1 and 2 have 10,000 questions for training and validation, task 3 has 1,000; each has
    1,000 for test.

    Args:
        task: 1, 2 or 3.
        split: "train", "validation" or "test".
        name: of the data set, "babi" or "simulated-stories".

    Raises:
        ValueError: an unknown task, split or name; otherwise as `DataSet.read`.
    """
    one_of("task", task, TASKS)
    one_of("split", split, SPLITS)
    one_of("name", name, registry.names("stories"))
    return _loaded(task, split, name)


@lru_cache
def _loaded(task: int, split: str, name: str) -> tuple[Question, ...]:
    parts = registry.get(name, "stories").read()
    wanted = rf"qa{task}_.*{'test' if split == 'test' else 'train'}\.txt"
    (text,) = (data for part, data in parts.items() if re.search(wanted, part))
    stories = _stories(text.tobytes().decode())
    kept = len(stories) - len(stories) // 10
    chosen = {"train": stories[:kept], "validation": stories[kept:], "test": stories}[split]
    return tuple(question for story in chosen for question in story)


def _stories(text: str) -> list[list[Question]]:
    """The questions of each story. A line has its number in the story; a question also its answer and the
    numbers of the lines that support it, between tabs."""
    stories: list[list[Question]] = []
    for line in text.splitlines():
        number, _, rest = line.partition(" ")
        if number == "1":
            stories.append([])
            statements, numbers = [], {}
        sentence, *answered = rest.split("\t")
        words = (*sentence.strip()[:-1].split(), sentence.strip()[-1])
        if not answered:
            numbers[number] = len(statements)
            statements.append(words)
            continue
        answer, lines = answered
        support = tuple(numbers[one] for one in lines.split())
        stories[-1].append(Question(tuple(statements), words, answer, support))
    return stories
