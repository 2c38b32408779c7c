"""Questions over stories that are stretched by sentences of other stories.

    … garden . Mary moved to the bathroom . John went to the office . Daniel took the milk . Where is Mary ?

Tokens are words. The answer is asked at the question mark; its source is the word of the story that gives it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain

import numpy as np

from ... import validation
from ...data import babi
from .samples import Draws, Samples, asked, sized

OWN = {1: 4, 2: 10, 3: 20}
"""The most statements of a story, by task: the story is as hard in a long text as in a short one."""

_NUMBER = {word: number for number, word in enumerate(babi.WORDS)}
_PLACES = np.array([_NUMBER[place] for place in babi.PLACES])
_FINE = 2**40
"""Into so many parts is 0 to 1 divided where a filler is drawn."""


def questions(
    task: int,
    n: int,
    length: int,
    *,
    seed: int,
    split: str = "train",
    statements: int | None = None,
    data_set: str = "babi",
) -> Samples:
    """bAbI with filler: the statements of a story, among sentences that do not change its answer.

    The statements keep their order and stand anywhere. Fillers are drawn as often as they occur in the
    stories of the split. They mention neither the thing in question nor anyone who is in the question,
    supports the answer or ever touches that thing. The text begins with a filler, cut so that the length is
    exact. In a long text the relevant persons are therefore mentioned least, and an answer found there needs
    far context but, in tasks 1 and 2, hardly the question.

    The source of an answer is the place in the last of the statements that support it. In task 3, "Where was
    the milk before the kitchen ?", this is the earlier place, not the kitchen, which the question itself
    names. An answer is one word: of a model that writes one word, accuracy, exact match and containment are
    the same number; of one that writes on, containment also counts a right word that comes later.

    Args:
        task: 1, 2 or 3: how many statements answer.
        n: samples.
        length: words of each, full stops and the question included; at least the longest story and question.
        seed: the same seed gives the same samples.
        split: "train", "validation" or "test", of the stories.
        statements: the most of a story, for short texts; by default 4, 10 and 20, and no more.
        data_set: "babi", or "simulated-stories", which needs no download.

    Returns:
        Samples over `sepnb.data.babi.WORDS`. Chance levels beside the usual: "last place", the place named
        last before the question; "majority", the commonest answer of training; "question only", the
        commonest one to the same question.

    Raises:
        TypeError, ValueError: an unknown task, split or data set, or a size that leaves no sample.
        DataMissing, DataDamaged: see `sepnb.data.dataset.DataSet.read`.
    """
    babi.load(task, split, data_set)  # refuses what it does not know
    most = OWN[task] if statements is None else validation.whole("statements", statements, 1, OWN[task])
    stories = _stories(task, split, data_set, most)
    sized(n, length, stories.least, f"a story of task {task} and its question")
    draws, rows = Draws(seed, f"questions-{task}-{split}"), np.arange(n)
    chosen, room = draws.below(len(stories.answers), n), length - stories.asked.shape[1]
    order, holder = _arranged(stories, chosen, room, draws)
    lengths = stories.lengths[order]
    first = np.cumsum(lengths, axis=1) - lengths - (lengths.sum(axis=1) - room)[:, None]
    row, slot, word = np.nonzero(np.arange(stories.sentences.shape[1]) < lengths[:, :, None])
    at = first[row, slot] + word
    tokens = np.concatenate([np.empty((n, room), np.int64), stories.asked[chosen]], axis=1)
    tokens[row[at >= 0], at[at >= 0]] = stories.sentences[order[row, slot], word][at >= 0]
    sources = first[rows, holder] + stories.words[chosen]
    answers = asked(tokens, np.full((n, 1), length - 1), sources[:, None])
    return Samples(tokens, *answers, _chance(stories, chosen, tokens[:, :room]), len(babi.WORDS))


class _Stories:
    """The questions of a task and a split as arrays, and the sentences that may stand between statements.

    Letters: Q questions, S sentences of the split, W words of the longest one.

    Attributes:
        sentences, lengths: int `[S + 1, W]` and `[S + 1]`; the last one has no words.
        own, counts: the sentences of each story, `[Q, most]`, filled up with the last one; how many, `[Q]`.
        supports, words: the statement that holds the answer, and which of its words is the answer, `[Q]`.
        asked, answers: words of the question, `[Q, …]`, and the answer, `[Q]`.
        group, shares: `shares[g]`, `[S]`, is the cumulative frequency, from 0 to 1, of the fillers of group
            g, constant at other sentences; `group`, `[Q]`, is the group of each question.
        majority, usual: the commonest answer of training, and to each question, `[Q]`.
        least: words of the longest story with its question.
    """

    def __init__(self, task: int, split: str, data_set: str, most: int) -> None:
        every = babi.load(task, split, data_set)
        often = Counter(chain.from_iterable(question.statements for question in every))
        self.lengths = np.array([*map(len, often), 0])
        self.sentences = np.zeros((len(self.lengths), self.lengths.max()), np.int64)
        for number, sentence in enumerate(often):
            self.sentences[number, : len(sentence)] = _numbers(sentence)
        short = [question for question in every if len(question.statements) <= most]
        groups = {touched: _free(often, *touched) for touched in map(_touched, short)}
        kept = [question for question in short if groups[_touched(question)].any()]
        if not kept:
            least = min(len(question.statements) for question in every)
            raise ValueError(f"statements is {most}; stories of task {task} have {least} or more")
        sums = [np.cumsum(free) for free in groups.values()]
        self.shares = np.stack([share / max(share[-1], 1) for share in sums])
        number_of = {touched: number for number, touched in enumerate(groups)}
        self.group = np.array([number_of[_touched(question)] for question in kept])
        self.counts = np.array([len(question.statements) for question in kept])
        self.own = np.full((len(kept), most), len(often))
        index = {sentence: number for number, sentence in enumerate(often)}
        for row, question in zip(self.own, kept, strict=True):
            row[: len(question.statements)] = [index[one] for one in question.statements]
        self.supports = np.array([question.support[-1] for question in kept])
        self.words = np.array([q.statements[q.support[-1]].index(q.answer) for q in kept])
        self.asked = np.array([_numbers(question.words) for question in kept])
        self.answers = np.array([_NUMBER[question.answer] for question in kept])
        self.least = int(self.lengths[self.own].sum(axis=1).max()) + self.asked.shape[1]
        trained = [q for q in babi.load(task, "train", data_set) if len(q.statements) <= most]
        self.majority = _commonest(question.answer for question in trained)
        answers = {question.words: [] for question in trained}
        for question in trained:
            answers[question.words].append(question.answer)
        usual = {words: _commonest(given) for words, given in answers.items()}
        self.usual = np.array([usual.get(question.words, self.majority) for question in kept])


_stories = lru_cache(_Stories)


def _numbers(words: Iterable[str]) -> list[int]:
    return [_NUMBER[word] for word in words]


def _commonest(answers: Iterable[str]) -> int:
    return _NUMBER[Counter(answers).most_common(1)[0][0]]


def _touched(question: babi.Question) -> tuple[frozenset[str], frozenset[str]]:
    """Persons and things of whom no filler may tell."""
    things = set(babi.OBJECTS) & set(question.words)
    persons = {question.statements[i][0] for i in question.support} | set(question.words)
    persons |= {statement[0] for statement in question.statements if things & set(statement)}
    return frozenset(persons & set(babi.PERSONS)), frozenset(things)


def _free(
    often: Mapping[tuple[str, ...], int], persons: frozenset[str], things: frozenset[str]
) -> np.ndarray:
    """How often each sentence occurs `[S]`, 0 for those that tell of these persons or things."""
    return np.array([count * (s[0] not in persons and not things & set(s)) for s, count in often.items()])


def _arranged(
    stories: _Stories, chosen: np.ndarray, room: int, draws: Draws
) -> tuple[np.ndarray, np.ndarray]:
    """The sentences of each text in their order, and which of them holds the answer.

    Args:
        chosen: `[n]`, the questions.
        room: words of each text before its question.

    Returns:
        Int `[n, slots]`, filled up with the sentence without words, and `[n]`. A text has `room` words or
        more; what is too much is in its first sentence, a filler.
    """
    n, own, counts = len(chosen), stories.own[chosen], stories.counts[chosen, None]
    left = room - stories.lengths[own].sum(axis=1, keepdims=True)  # words of fillers
    slots = int(left.max()) // int(stories.lengths[:-1].min()) + 1
    drawn = draws.below(_FINE, n, slots) / _FINE + stories.group[chosen, None]
    steps = stories.shares + np.arange(len(stories.shares))[:, None]  # all groups in one rising list
    fillers = np.searchsorted(steps.ravel(), drawn, side="right") % stories.shares.shape[1]
    last = (np.cumsum(stories.lengths[fillers], axis=1) >= left).argmax(axis=1)[:, None]
    total = counts + last + 1
    slot = np.arange(total.max())
    keys = draws.distinct(n, len(slot) - 1, len(slot) - 1)  # in each row a permutation
    keys = np.where(slot[1:] < total, keys, len(slot))
    is_own = np.pad(np.argsort(np.argsort(keys, axis=1), axis=1) < counts, ((0, 0), (1, 0)))
    statement = np.cumsum(is_own, axis=1) - 1  # at an own sentence: which of the story's
    filler = last - (slot - 1 - statement)  # the filler drawn last comes first: too much is in it alone
    order = np.where(
        is_own,
        np.take_along_axis(own, statement.clip(0), axis=1),
        np.take_along_axis(fillers, filler.clip(0), axis=1),
    )
    order[slot >= total] = len(stories.lengths) - 1
    return order, (is_own & (statement == stories.supports[chosen, None])).argmax(axis=1)


def _chance(stories: _Stories, chosen: np.ndarray, story: np.ndarray) -> dict[str, float]:
    """Accuracy of guesses that do not understand: from the places in the texts, or from the questions."""
    answers, rows = stories.answers[chosen], np.arange(len(chosen))
    named = story[:, :, None] == _PLACES
    counts, right = named.sum(axis=1), answers[:, None] == _PLACES
    last = story.shape[1] - 1 - named.any(axis=2)[:, ::-1].argmax(axis=1)
    return {
        "uniform": 1 / len(_PLACES),
        "mode in context": float((_PLACES[counts.argmax(axis=1)] == answers).mean()),
        "random source": float(((counts * right).sum(axis=1) / counts.sum(axis=1)).mean()),
        "last place": float((story[rows, last] == answers).mean()),
        "majority": float((stories.majority == answers).mean()),
        "question only": float((stories.usual[chosen] == answers).mean()),
    }
