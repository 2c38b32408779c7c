"""Tasks: an independent reader finds every answer, nothing leaks, and chance is what guessing gets."""

import itertools
from collections import Counter
from functools import partial

import numpy as np
import pytest
import torch

from sepnb.evaluation import tasks
from sepnb.evaluation.tasks import order, recall

from ..shared import refused

HAYSTACK = np.frombuffer(b"It was a dark and stormy night; the rain fell in torrents. " * 40, np.uint8)
NEEDLE = partial(tasks.needle, HAYSTACK)
TASKS = {
    "mqar": tasks.mqar,
    "latest_value": tasks.latest_value,
    "occurrence": tasks.occurrence,
    "indirect_index": tasks.indirect_index,
    "ordered_copy": tasks.ordered_copy,
    "needle": NEEDLE,
}
every_task = pytest.mark.parametrize("task", TASKS.values(), ids=list(TASKS))


def answers_of_the_text(task, tokens):
    """What a reader who knows the layout answers, token by token of the questions, from the text alone."""
    tokens = tokens.tolist()
    if task is tasks.mqar:
        body, asked = tokens[:-8], tokens[-8:]
        return [body[body.index(key) + 1] for key in asked]
    if task is tasks.latest_value:
        body, asked = tokens[:-6], tokens[-6:]
        written = [[b for a, b in itertools.pairwise(body) if a == key] for key in asked]
        return [values[-1] for values in written if len(values) > 1]
    if task is tasks.occurrence:
        body, asked = tokens[:-8], tokens[-8:]
        written = {key: [b for a, b in itertools.pairwise(body) if a == key] for key in range(4)}
        return [
            written[key][which - 4 - recall.VALUES]
            for key, which in zip(asked[::2], asked[1::2], strict=True)
        ]
    if task is tasks.indirect_index:
        body, asked = tokens[:-8], tokens[-8:]
        shifts = [*range(-4, 0), *range(1, 5)]
        first = order.SYMBOLS + order.ANCHORS
        return [body[body.index(x) + shifts[s - first]] for s, x in zip(asked[::2], asked[1::2], strict=True)]
    if task is tasks.ordered_copy:
        return [token for token in tokens[:-8] if token < order.SYMBOLS]
    text = bytes(tokens)
    size = 12 if text.rfind(b"{", 0, -6) == len(text) - 11 else 6  # the last brace of the text is missing
    text, asked = text[: len(text) + 1 - size], text[len(text) + 1 - size :]
    names = asked[1::6]
    return [digit for name in names for digit in text[text.index(b"{%c" % name) + 2 :][:3]]


@every_task
@pytest.mark.parametrize("length", [64, 257])
def test_a_reader_of_the_text_finds_every_answer(task, length):
    samples = task(50, length, seed=3)
    for tokens, targets, scored in zip(samples.tokens, samples.targets, samples.scored, strict=True):
        assert targets[scored].tolist() == answers_of_the_text(task, tokens)


@every_task
def test_the_source_holds_the_target_before_all_questions(task):
    samples = task(200, 96, seed=1)
    assert (
        samples.tokens.shape
        == samples.targets.shape
        == samples.scored.shape
        == samples.source.shape
        == (200, 96)
    )
    assert {samples.tokens.dtype, samples.targets.dtype, samples.source.dtype} == {np.dtype("int64")}
    assert samples.tokens.min() >= 0 and max(samples.tokens.max(), samples.targets.max()) < samples.vocab_size
    row, index = np.nonzero(samples.scored)
    source = samples.source[row, index]
    assert (samples.tokens[row, source] == samples.targets[row, index]).all()
    assert (source < samples.scored.argmax(axis=1)[row]).all()
    assert (samples.source[~samples.scored] == -1).all()
    assert (samples.scored.sum(axis=1) >= 1).all()
    assert (samples.scored.sum(axis=1) % samples.answer_length == 0).all()


@every_task
def test_a_seed_says_all_and_another_says_something_else(task):
    first, again, other = (task(20, 80, seed=seed) for seed in (5, 5, 6))
    assert (first.tokens == again.tokens).all() and (first.source == again.source).all()
    assert (first.tokens != other.tokens).any(axis=1).all()


@every_task
def test_answers_stand_at_every_index_and_at_both_parities(task):
    samples = task(4000, 64, seed=2)
    source = samples.source[samples.scored]
    counts = np.bincount(source, minlength=64)
    least = source.min()  # a value stands behind its key
    spread = counts[least : source.max() + 1]
    assert least <= 4 and (spread > 0).all()
    assert abs((source % 2).mean() - 0.5) < 0.05
    if task not in (tasks.ordered_copy, NEEDLE):  # their answers are several tokens in a row
        first = samples.scored.argmax(axis=1)
        after = samples.targets[np.arange(len(samples)), first]
        assert Counter(after.tolist()).most_common(1)[0][1] < 0.1 * len(samples)


@every_task
def test_chance_is_what_the_guesses_get(task):
    """The guess from a random source: over many draws its accuracy is the level that the task states."""
    samples = task(4000, 64, seed=4)
    assert set(samples.chance) == {"uniform", "mode in context", "random source"}
    rng = np.random.default_rng(0)
    right = []
    for tokens, targets, scored, source in zip(
        samples.tokens, samples.targets, samples.scored, samples.source, strict=True
    ):
        for place, index in enumerate(np.flatnonzero(scored)):
            right.append(tokens[rng.choice(candidates(task, tokens, index, place, source))] == targets[index])
    assert np.mean(right) == pytest.approx(samples.chance["random source"], abs=0.02)


def candidates(task, tokens, index, place, source):
    """Indices that the question could mean for somebody who does not read its name, or its order."""
    if task is tasks.mqar:
        return source[source >= 0]
    if task is tasks.latest_value:
        return [i + 1 for i in range(len(tokens) - 7) if tokens[i] == tokens[index]]
    if task is tasks.occurrence:
        return [i + 1 for i in range(len(tokens) - 9) if tokens[i] == tokens[index - 1]]
    if task is tasks.indirect_index:
        return np.flatnonzero(tokens[:-8] < order.SYMBOLS)
    if task is tasks.ordered_copy:
        return np.flatnonzero(tokens[:-8] < order.SYMBOLS)
    opened = [i for i in np.flatnonzero(tokens[:-11] == ord("{")) if i < len(tokens) - 11]
    return [i + 2 + place % 3 for i in opened]


def test_the_latest_value_needs_order_in_every_scored_query():
    samples = tasks.latest_value(500, 64, seed=7)
    for tokens, scored in zip(samples.tokens, samples.scored, strict=True):
        for key in tokens[scored]:
            assert (tokens[:-6] == key).sum() >= 2
    few = tasks.latest_value(200, 64, seed=7, keys=6, writes=2)  # two writes of six keys: one key, twice
    assert (few.scored.sum(axis=1) == 1).all()


@pytest.mark.parametrize("depth", [0, 0.37, 0.5, 1])
def test_a_needle_stands_at_its_depth_and_the_others_anywhere(depth):
    samples = NEEDLE(2000, 100, seed=1, depth=depth)
    room = 100 + 1 - 6
    digits = samples.source[samples.scored].reshape(2000, 3)
    assert (digits - 2 == round(depth * (room - 6)) + np.arange(3)).all()
    opened = (samples.tokens[:, :room] == ord("{")).sum(axis=1)
    assert (opened == 4).all()
    where = np.unique(np.nonzero(samples.tokens[:, :room] == ord("{"))[1])
    assert len(where) > room - 6 - 12  # all indices but those that would cover the needle


def test_the_other_needles_are_spread_as_all_arrangements_are():
    """Around a needle in the middle of a small room, every arrangement of the other two is equally common."""
    room = 6 * 3 + 4
    samples = NEEDLE(20_000, room + 5, seed=3, depth=0.5, needles=3)
    starts = [tuple(np.flatnonzero(row[:room] == ord("{"))) for row in samples.tokens]
    place = round(0.5 * (room - 6))
    free = [i for i in range(room - 5) if abs(i - place) >= 6]
    possible = {tuple(sorted((place, a, b))) for a in free for b in free if b - a >= 6}
    counts = Counter(tuple(int(i) for i in one) for one in starts)
    assert set(counts) == possible
    assert max(counts.values()) < 1.2 * min(counts.values())


def test_a_text_that_holds_a_needle_is_refused():
    held = np.frombuffer(b"a text with {K123} in it " * 20, np.uint8)
    refused("leave that part out", tasks.needle, held, 2, 100, seed=0)
    refused("do not fit", NEEDLE, 2, 6 * 5 - 1, seed=0, depth=0.4)
    refused("uint8", tasks.needle, np.zeros(500), 2, 100, seed=0, error=TypeError)


@every_task
@pytest.mark.parametrize("bad", [{"n": 0}, {"n": 2.0}, {"length": 4}, {"length": 64.0}, {"seed": -1}])
def test_a_size_that_leaves_no_sample_is_refused(task, bad):
    given = {"n": 2, "length": 64, "seed": 0} | bad
    with pytest.raises((TypeError, ValueError), match=next(iter(bad))):
        task(given["n"], given["length"], seed=given["seed"])


def reader(task):
    """A model that answers as a reader of the text does, right at every scored token."""

    def model(tokens):
        logits = torch.zeros(*tokens.shape, 256)
        for row, text in enumerate(tokens.numpy()):
            samples = known[text.tobytes()]
            logits[row, torch.arange(len(text)), torch.from_numpy(samples)] = 1
        return logits

    known = {}

    def remembered(n, length, **options):
        samples = task(n, length, **options)
        known.update({t.tobytes(): y for t, y in zip(samples.tokens, samples.targets, strict=True)})
        return samples

    return model, remembered


def test_the_grid_has_a_row_a_cell_and_a_reader_is_right_everywhere():
    model, task = reader(tasks.mqar)
    table = tasks.grid(model, task, lengths=[64, 128], n=100)
    assert table.columns.tolist() == [
        "length", "depth", "distance", "source_index", "accuracy", "exact_match", "n",
    ]  # fmt: skip
    assert len(table) == 10 and (table["accuracy"] == 1).all() and (table["exact_match"] == 1).all()
    assert (table.groupby("length")["n"].sum() == 800).all()
    assert table.groupby("length")["source_index"].apply(lambda x: x.is_monotonic_increasing).all()


def test_the_grid_puts_needles_at_its_depths_and_counts_digits_and_answers():
    def half_right(tokens):  # every digit is 7
        return torch.nn.functional.one_hot(torch.full_like(tokens, ord("7")), 256).float()

    table = tasks.grid(half_right, NEEDLE, lengths=[90], depths=[0, 0.5, 1], n=3000)
    assert table["depth"].tolist() == [0, 0.5, 1] and (table["n"] == 3000).all()
    assert table["source_index"].tolist() == [3, 3 + round(0.5 * 79), 3 + 79]
    assert table["accuracy"].to_numpy() == pytest.approx(0.1, abs=0.015)
    assert table["exact_match"].to_numpy() == pytest.approx(0.001, abs=0.002)


def test_depths_that_do_not_rise_are_refused():
    model, task = reader(tasks.mqar)
    for depths in ([], [0.5, 0.1], [2.0]):
        refused("depth", tasks.grid, model, task, lengths=[64], depths=depths)
