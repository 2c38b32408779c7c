"""Questions with filler: a reader finds every answer, fillers change none, chance is what guesses get."""

import itertools
from collections import Counter

import numpy as np
import pytest

from sepnb.data import babi, registry
from sepnb.evaluation.tasks import questions

from .. import stories
from ..shared import refused

OFFLINE = "simulated-stories"
WORDS = np.array(babi.WORDS)
LONGEST = {1: 32, 2: 71, 3: 136}
"""Words of the longest story with its question, of both sets."""

every_task = pytest.mark.parametrize("task", babi.TASKS)
every_set = pytest.mark.parametrize("name", registry.names("stories"))


def sentences(tokens):
    """A text as lists of words, full stops included; the question is the last."""
    found = [[]]
    for word in WORDS[tokens].tolist():
        found[-1].append(word)
        if word == ".":
            found.append([])
    return found


def whole(text):
    """Its statements, without the first one where that is cut."""
    *statements, _ = sentences(text)
    return statements if statements[0][0] in stories.PERSONS else statements[1:]


@every_set
@every_task
@pytest.mark.parametrize("times", [1, 16])
def test_a_reader_of_the_text_finds_every_answer(name, task, times, data_set):
    data_set(name)
    for split in babi.SPLITS:
        length = times * LONGEST[task]
        samples = questions(task, 60, length, seed=3, split=split, data_set=name)
        assert samples.tokens.shape == (60, length)
        for tokens, targets in zip(samples.tokens, samples.targets, strict=True):
            assert WORDS[targets[-1]] == stories.answer(whole(tokens), sentences(tokens)[-1])


@every_task
def test_the_source_holds_the_target_in_a_statement_and_the_last_word_asks(task):
    samples = questions(task, 300, 2 * LONGEST[task], seed=1, data_set=OFFLINE)
    assert {samples.tokens.dtype, samples.targets.dtype, samples.source.dtype} == {np.dtype("int64")}
    assert samples.tokens.min() >= 0 and samples.vocab_size == len(WORDS)
    assert max(samples.tokens.max(), samples.targets.max()) < samples.vocab_size
    assert samples.scored[:, -1].all() and samples.scored.sum() == 300
    assert (samples.source[:, :-1] == -1).all() and samples.answer_length == 1
    assert (samples.targets[:, :-1] == samples.tokens[:, 1:]).all()
    source = samples.source[:, -1]
    assert (samples.tokens[np.arange(300), source] == samples.targets[:, -1]).all()
    assert (WORDS[samples.tokens[:, -1]] == "?").all()
    for tokens, at in zip(samples.tokens, source, strict=True):
        *told, asked = sentences(tokens)
        ends = np.cumsum([len(sentence) for sentence in told])
        sentence = told[int(np.searchsorted(ends, at, side="right"))]
        assert sentence[0] in stories.PERSONS and "the" in sentence
        if task == 1:
            assert sentence[0] == asked[2]


@every_task
def test_only_the_first_sentence_is_cut_and_it_is_a_filler(task):
    known = {s for question in babi.load(task, "test", OFFLINE) for s in question.statements}
    begun = Counter()
    for length in range(2 * LONGEST[task], 2 * LONGEST[task] + 8):
        samples = questions(task, 100, length, seed=2, split="test", data_set=OFFLINE)
        for tokens, source in zip(samples.tokens, samples.source[:, -1], strict=True):
            first, *others, asked = sentences(tokens)
            assert {tuple(sentence) for sentence in others} <= known
            assert any(tuple(first) == sentence[-len(first) :] for sentence in known)
            assert source >= len(first)
            assert not (stories.OBJECTS | stories.PERSONS) & set(asked) & set(first)
            begun[len(first)] += 1
    assert set(begun) == set(range(1, 8)) - ({1} if min(begun) > 1 else set())


@every_set
@every_task
def test_fillers_tell_nothing_of_what_is_asked(name, task, data_set):
    """At sixteen times the length nothing more is said of persons or things that matter than in a story."""
    data_set(name)
    known = {
        (q.words, q.statements)
        for q in babi.load(task, "train", name)
        if len(q.statements) <= (4, 10, 20)[task - 1]
    }
    short = {}
    for words, statements in known:
        short.setdefault(words, set()).add(statements)
    samples = questions(task, 40, 16 * LONGEST[task], seed=4, data_set=name)
    for tokens in samples.tokens:
        told, asked = whole(tokens), tuple(sentences(tokens)[-1])
        things = stories.OBJECTS & set(asked)
        about = [tuple(s) for s in told if (stories.PERSONS | things) & set(asked) & set(s)]
        holders = {s[0] for s in about}
        left = [tuple(s) for s in told if s[0] in holders]
        assert left == sorted(left, key=left.index) or len(left) > len(set(left))  # they may repeat
        assert any(left == [s for s in statements if s[0] in holders] for statements in short[asked])
        assert len(told) > 8 * len(left)


@every_task
def test_the_statements_stand_anywhere_and_answers_at_both_parities(task):
    length = 16 * LONGEST[task]
    samples = questions(task, 1000, length, seed=5, data_set=OFFLINE)
    source = samples.source[:, -1]
    assert source.min() < 0.1 * length and source.max() > 0.95 * (length - 8)
    by_depth = np.histogram(source, bins=5, range=(0, length))[0]
    assert by_depth.min() > 0.03 * len(source)
    assert abs((source % 2).mean() - 0.5) < 0.05


@every_task
@pytest.mark.parametrize("split", babi.SPLITS)
def test_chance_is_what_the_guesses_get(task, split):
    samples = questions(task, 1500, 2 * LONGEST[task], seed=6, split=split, data_set=OFFLINE)
    trained = [q for q in babi.load(task, "train", OFFLINE) if len(q.statements) <= (4, 10, 20)[task - 1]]
    given = {
        words: Counter(q.answer for q in same).most_common(1)[0][0]
        for words, same in itertools.groupby(sorted(trained, key=lambda q: q.words), key=lambda q: q.words)
    }
    ((majority, _),) = Counter(q.answer for q in trained).most_common(1)
    rng, right = np.random.default_rng(0), Counter()
    for tokens, targets in zip(samples.tokens, samples.targets, strict=True):
        *told, asked = sentences(tokens)
        places = [word for sentence in told for word in sentence if word in stories.PLACES]
        counts = Counter(places)
        most = [place for place in sorted(counts) if counts[place] == max(counts.values())]
        guesses = {
            "uniform": rng.choice(sorted(stories.PLACES)),
            "mode in context": most[0],
            "random source": rng.choice(places),
            "last place": places[-1],
            "majority": majority,
            "question only": given.get(tuple(asked), majority),
        }
        right.update(name for name, guess in guesses.items() if guess == WORDS[targets[-1]])
    assert set(samples.chance) == set(guesses)
    for name, level in samples.chance.items():
        drawn = name in ("uniform", "random source")
        assert right[name] / 1500 == pytest.approx(level, abs=0.04 if drawn else 0.02)


def test_a_seed_says_all_and_another_says_something_else():
    first, again, other = (questions(1, 20, 80, seed=seed, data_set=OFFLINE) for seed in (5, 5, 6))
    assert (first.tokens == again.tokens).all() and (first.source == again.source).all()
    assert (first.tokens != other.tokens).any(axis=1).all()
    held_out = questions(1, 20, 80, seed=5, split="test", data_set=OFFLINE)
    assert (first.tokens != held_out.tokens).any(axis=1).all()


@every_task
def test_fewer_statements_fit_into_shorter_texts(task):
    most = 2 * task
    short = questions(task, 200, 20 * task, seed=0, statements=most, data_set=OFFLINE)
    for tokens, targets in zip(short.tokens, short.targets, strict=True):
        assert WORDS[targets[-1]] == stories.answer(whole(tokens), sentences(tokens)[-1])
    with pytest.raises(ValueError, match=f"length is {20 * task}; a story of task {task} and its question"):
        questions(task, 200, 20 * task, seed=0, data_set=OFFLINE)


def test_what_leaves_no_sample_is_refused(unhooked):
    how = {"seed": 0, "data_set": OFFLINE}
    refused("statements is 1; stories of task 1 have 2 or more", questions, 1, 2, 64, **how, statements=1)
    refused("length is 31; a story of task 1 and its question take at least 32", questions, 1, 2, 31, **how)


def test_the_downloaded_stories_are_asked_for_by_name(monkeypatch, tmp_path):
    monkeypatch.setenv("SEPNB_DATA", str(tmp_path))
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path)
    babi._loaded.cache_clear()
    with pytest.raises(registry.DataMissing, match="`sepnb data babi`"):
        questions(1, 2, 64, seed=0)
