"""What the losses of SeqPE read: candidates that can be candidates, windows that are the same window."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sepnb.seqpe.digits import edited, numeral_of, value_of
from sepnb.seqpe.sampling import KINDS, CandidateSampler, WindowSampler, distinct

from ..shared import refused

TEXT = {"ranges": (20_000,), "window": (256,)}
IMAGE = {"ranges": (100, 60), "window": (17, 17)}
VOLUME = {"ranges": (9, 20, 7), "window": (4, 4, 4)}
SPACES = {"one": TEXT, "two": IMAGE, "three": VOLUME}


def generator(seed: int = 0) -> np.random.PCG64:
    return np.random.PCG64(seed)


def sampler(space: dict, kind: str, **changes) -> CandidateSampler:
    return CandidateSampler(**space, **{"anchors": 40, "kinds": ((kind, 1.0),)} | changes)


def squared(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return ((a - b) ** 2).sum(axis=-1)


# --- candidates


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 2, 3, 32])
def test_candidates_are_distinct_in_range_and_never_the_anchor(space, kind, k):
    drawn = sampler(space, kind, candidates=k).draw(generator())
    n = len(space["ranges"])
    assert drawn.anchors.shape == (40, n) and drawn.candidates.shape == (40, k, n)
    assert drawn.anchors.dtype == drawn.candidates.dtype == np.int64
    for positions in (drawn.anchors, drawn.candidates):
        assert (positions >= 0).all() and (positions < space["ranges"]).all()
    for anchor, candidates in zip(drawn.anchors, drawn.candidates, strict=True):
        assert len({tuple(c) for c in [anchor, *candidates]}) == k + 1


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_an_edited_candidate_is_never_the_nearest(space):
    """They stand first: without them the nearest is the same."""
    drawn = sampler(space, "edited", candidates=16, edited=0.5, anchors=200).draw(generator())
    plain = sampler(space, "uniform", candidates=16, anchors=200).draw(generator())
    assert np.array_equal(drawn.anchors, plain.anchors)
    away = squared(drawn.candidates, drawn.anchors[:, None])
    changed = (drawn.candidates != plain.candidates).any(axis=-1)
    assert not changed[:, 8:].any() and changed[:, :8].mean() > 0.1
    assert (away[changed] > np.broadcast_to(away.min(axis=1)[:, None], away.shape)[changed]).all()


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_a_window_holds_all_candidates_and_stands_anywhere_or_around_the_anchor(space):
    for kind in ("window", "around"):
        drawn = sampler(space, kind, candidates=24).draw(generator())
        spread = drawn.candidates.max(axis=1) - drawn.candidates.min(axis=1)
        assert (spread < space["window"]).all()
        apart = np.abs(drawn.candidates - drawn.anchors[:, None]).max(axis=(1, 2))
        assert (apart < max(space["window"])).all() == (kind == "around")


def test_the_kinds_have_their_shares():
    mixed = CandidateSampler((20_000,), anchors=4000, kinds=(("uniform", 0.4), ("window", 0.6)))
    drawn = mixed.draw(generator())
    windows = np.ptp(drawn.candidates[..., 0], axis=1) < 256
    assert abs(windows.mean() - 0.6) < 0.03


def test_the_nearest_candidate_of_the_released_setting_is_mostly_far_away():
    """The released text program has quantiles 98, 1,528 and 11,766 of the distance to the nearest."""
    drawn = CandidateSampler((20_000,), anchors=3000).draw(generator())
    near = np.sqrt(squared(drawn.candidates, drawn.anchors[:, None]).min(axis=1))
    low, middle, high = np.quantile(near, [0.1, 0.5, 0.9])
    assert 60 < low < 160 and 1000 < middle < 2200 and 10_500 < high < 13_000


def test_a_seed_gives_the_same_positions_and_a_state_resumes_them():
    one, whole = CandidateSampler((500,)), generator(3)
    first, second = one.draw(whole), one.draw(whole)
    again = generator(3)
    assert all(np.array_equal(a, b) for a, b in zip(one.draw(again), first, strict=True))
    resumed = generator(99)
    resumed.state = again.state
    assert all(np.array_equal(a, b) for a, b in zip(one.draw(resumed), second, strict=True))
    assert not np.array_equal(first.anchors, second.anchors)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kinds": (("near", 1.0),)}, "unknown kind 'near'; use one of uniform, edited, window, around"),
        ({"kinds": (("uniform", 0.5),)}, "sum to 1"),
        ({"window": (4, 4)}, "give a side for each"),
        ({"ranges": (32,)}, r"ranges \(32,\) hold 32 positions, too few for 32 candidates"),
        ({"window": (20,)}, r"window \(20,\) hold 20 positions"),
        ({"trained": (600,)}, "does not fit into"),
        ({"trained": (64,), "places": 65}, "65 places in a window of 64"),
        ({"trained": (64,), "away": (500,)}, "the last start is"),
        ({"trained": (64,), "away": (1, 1)}, "differ in coordinates"),
    ],
)
def test_candidates_and_windows_that_cannot_be_drawn_are_refused(changes, message, unhooked):
    kind = WindowSampler if "trained" in changes else CandidateSampler
    refused(message, kind, **{"ranges": (500,)} | changes)


# --- distinct numbers


@given(counts=st.lists(st.integers(5, 40), min_size=1, max_size=8), seed=st.integers(0, 99))
def test_distinct_numbers_are_distinct_and_below_their_count(counts, seed):
    chosen = distinct(generator(seed), np.array(counts), 5)
    assert (chosen >= 0).all() and (chosen < np.array(counts)[:, None]).all()
    assert all(len(set(row)) == 5 for row in chosen.tolist())


def test_every_ordered_choice_is_as_likely():
    chosen = distinct(generator(), np.full(24_000, 4), 2)
    found = Counter(map(tuple, chosen.tolist()))
    assert found.keys() == set(itertools.permutations(range(4), 2))
    assert max(abs(count - 2000) for count in found.values()) < 200


# --- numerals


@given(value=st.integers(0, 10**9), base=st.integers(2, 60))
def test_a_numeral_is_its_number(value, base):
    numeral = numeral_of(value, base)
    assert value_of(numeral, base) == value and all(0 <= digit < base for digit in numeral)
    assert numeral == [0] or numeral[0] > 0


@pytest.mark.parametrize(
    ("what", "expected"), [(0.0, [1, 2, 7, 3]), (0.25, [1, 2]), (0.5, [1, 3, 2]), (0.75, [1, 2, 7])]
)
def test_each_edit_by_hand(what, expected):
    assert edited([1, 2, 3], what, 0.7, 0.7, base=10) == expected


# --- windows

WINDOWS = {
    "text": WindowSampler((20_000,), (512,), windows=64, away=(128,)),
    "image": WindowSampler((100, 100), (14, 14), windows=64, places=64, away=(14, 14)),
    "volume": WindowSampler((12, 30, 9), (4, 6, 3), windows=64, places=20, away=(4, 6, 3)),
    "from-1": WindowSampler((12, 9), (4, 6), windows=64, places=20, away=(4, 3), first=1),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_the_student_reads_the_teachers_places_moved_on_every_axis_alike(name):
    windows = WINDOWS[name]
    teacher, student = windows.draw(generator())
    assert teacher.shape == student.shape == (64, windows.places, len(windows.ranges))
    moved = student - teacher
    assert (moved == moved[:, :1]).all()
    inside = teacher - windows.first
    assert (inside >= 0).all() and (inside < windows.trained).all()
    assert (student >= windows.first).all() and (student < windows.ranges).all()
    assert all(len({tuple(place) for place in rows}) == windows.places for rows in teacher.tolist())
    assert (moved[:, 0] >= windows.away).any(axis=1).all()


def test_starts_reach_from_the_first_allowed_to_the_last_that_fits():
    """The window of the released text program: from 128 on, to 19,488, one more than are drawn there."""
    windows = WindowSampler((20_000,), (512,), windows=20_000, places=1, away=(128,))
    teacher, student = windows.draw(generator())
    moved = (student - teacher)[:, 0, 0]
    assert moved.min() < 140 and moved.min() >= 128 and 19_470 < moved.max() <= 19_488


@pytest.mark.parametrize("away", [(0, 0), (0, 5), (5, 0)])
def test_a_zero_of_what_is_far_enough_allows_every_start_and_does_not_stay_at_the_origin(away):
    windows = WindowSampler((9, 9), (2, 2), windows=4000, places=1, away=away)
    teacher, student = windows.draw(generator())
    starts = Counter(map(tuple, (student - teacher)[:, 0].tolist()))
    assert starts.keys() == set(itertools.product(range(8), repeat=2))
    assert max(starts.values()) < 2 * 4000 / 64
