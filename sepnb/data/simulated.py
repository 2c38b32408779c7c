"""A small world that writes stories in the form of bAbI: the offline default of questions.

Persons move, take things and drop them, and after every second statement a question is asked, if one has an
answer. Words and layout are those of bAbI, so that what reads the one reads the other.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from .draws import uniform

STORIES = {"train": 300, "test": 100}
"""Of each task."""

QUESTIONS = 5
"""Of each story."""

TOUCHES = 0.4
"""How often a person who is drawn takes or drops something, if there is anything to take or drop."""

PERSONS = ("Daniel", "John", "Mary", "Sandra")
OBJECTS = ("apple", "football", "milk")
PLACES = ("bathroom", "bedroom", "garden", "hallway", "kitchen", "office")
_MOVES = ("moved to", "went to", "went back to", "journeyed to", "travelled to")
_TAKES = ("got", "took", "grabbed", "picked up")
_DROPS = ("dropped", "left", "discarded", "put down")


def stories(folder: Path, most: int = 0) -> dict[str, bytes]:
    """The parts of the data set, always the same; the arguments are not used."""
    return {
        f"qa{task}_{split}.txt": _written(task, seed, count).encode()
        for task in (1, 2, 3)
        for seed, (split, count) in enumerate(STORIES.items())
    }


class _World:
    """Where persons are, and where things have been.

    A place is kept with the number of the statement that tells it. `been` has the places of a thing, one
    after the other, and `touched` the statement that took or dropped it last.
    """

    def __init__(self, drawn: Iterator[float]) -> None:
        self.drawn = drawn
        self.at: dict[str, tuple[str, int]] = {}
        self.holder: dict[str, str | None] = {}
        self.been: dict[str, list[tuple[str, int]]] = {}
        self.touched: dict[str, int] = {}

    def one(self, options: Sequence[Any]) -> Any:
        return options[int(next(self.drawn) * len(options))]

    def moved(self, number: int) -> str:
        person = self.one(PERSONS)
        here = self.at.get(person, ("",))[0]
        place = self.one([other for other in PLACES if other != here])
        self.at[person] = place, number
        for thing, holder in self.holder.items():
            if holder == person:
                self.been[thing].append(self.at[person])
        return f"{person} {self.one(_MOVES)} the {place}."

    def touch(self, number: int) -> str | None:
        """A thing is taken or dropped; None where the person who was drawn has nothing to take or drop."""
        person = self.one(PERSONS)
        if person not in self.at:
            return None
        here = self.at[person]
        free = [thing for thing in OBJECTS if self.holder.get(thing) is None]
        near = [thing for thing in free if thing not in self.been or self.been[thing][-1][0] == here[0]]
        held = [thing for thing, holder in self.holder.items() if holder == person]
        if not near + held:
            return None
        thing = self.one(near + held)
        self.touched[thing] = number
        if thing in held:
            self.holder[thing] = None
            return f"{person} {self.one(_DROPS)} the {thing}."
        self.holder[thing] = person
        self.been[thing] = [*self.been.get(thing, [])[:-1], here]
        return f"{person} {self.one(_TAKES)} the {thing} there."

    def question(self, task: int) -> str | None:
        """With its answer and what supports it; None where nothing can be asked yet."""
        if task == 1:
            person = self.one(list(self.at))
            place, told = self.at[person]
            return f"Where is {person}? \t{place}\t{told}"
        known = [thing for thing, places in self.been.items() if len(places) >= task - 1]
        if not known:
            return None
        thing = self.one(known)
        (place, told), touched = self.been[thing][-1], self.touched[thing]
        if task == 2:
            return f"Where is the {thing}? \t{place}\t{touched} {told}"
        before, earlier = self.been[thing][-2]
        return f"Where was the {thing} before the {place}? \t{before}\t{touched} {told} {earlier}"


@lru_cache
def _written(task: int, seed: int, count: int) -> str:
    generator = np.random.PCG64([task, seed])
    drawn = (value for _ in repeat(None) for value in uniform(generator, 2**14).tolist())
    return "".join(_story(task, drawn) for _ in range(count))


def _story(task: int, drawn: Iterator[float]) -> str:
    world, lines, asked, since = _World(drawn), [], 0, 0
    while asked < QUESTIONS:
        number = len(lines) + 1
        line = world.question(task) if since == 2 else None
        if line:
            asked, since = asked + 1, 0
        else:
            touched = world.touch(number) if task > 1 and next(drawn) < TOUCHES else None
            line, since = touched or world.moved(number), since % 2 + 1
        lines.append(f"{number} {line}\n")
    return "".join(lines)
