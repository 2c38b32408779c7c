"""Key bytes: which are chosen, how a list is kept and found again, and what is told apart by it."""

import numpy as np
import pytest

from sepnb.evaluation import Losses
from sepnb.evaluation.key_tokens import apart, drawn_bytes, found, key_bytes, listed
from sepnb.evaluation.long_windows import LongWindows

from ..shared import refused

RNG = np.random.default_rng(0)
SHORT, LONG = RNG.uniform(0, 4, size=(2, 6, 20))
NAMES = ["emma", "a novel that is not read", "persuasion"]


def windows(documents=(0, 0, 0, 2, 2, 2), starts=(0, 20, 40, 0, 20, 40)) -> LongWindows:
    return LongWindows(np.zeros((6, 21), dtype=int), np.array(documents), {}, starts=np.array(starts))


@pytest.mark.parametrize("first", [0, 8])
def test_those_whose_loss_falls_most_are_chosen_and_none_before_the_contexts_differ(first):
    marked = key_bytes(SHORT, LONG, share=0.1, first=first)
    fall = SHORT - LONG
    assert marked.sum() == round(0.1 * 6 * (20 - first)) and not marked[:, :first].any()
    rest = fall[:, first:][~marked[:, first:]]
    assert fall[marked].min() > rest.max() > 0


def test_a_byte_that_gains_nothing_is_never_chosen():
    fallen = np.zeros((2, 10))
    fallen[1, 7], fallen[0, 2] = 1.0, -3.0
    assert np.argwhere(key_bytes(fallen, np.zeros((2, 10)), share=1.0, first=1)).tolist() == [[1, 7]]


def test_a_list_is_kept_by_document_and_offset_and_found_again_in_any_windows():
    held, marked = windows(), key_bytes(SHORT, LONG, share=0.2, first=4)
    rows = listed(marked, held, NAMES)
    assert {row["document"] for row in rows} == {"emma", "persuasion"}
    assert all(row["offsets"] == sorted(set(row["offsets"])) for row in rows)
    keys = {row["document"]: row["offsets"] for row in rows}
    assert np.array_equal(found(keys, held, NAMES), marked)
    # Bit i of a window is that of byte i + 1: of a window that starts elsewhere it is the same byte.
    window, place = np.argwhere(marked)[0]
    moved = windows(starts=held.starts + 3)
    assert found(keys, moved, NAMES)[window, place - 3]
    assert not found({"emma": [0]}, held, NAMES).any(), "the first byte of a document is never scored"


def test_levels_are_told_apart_and_bytes_with_less_context_left_out():
    bits = np.tile(np.arange(20.0), (6, 1))
    marked = np.zeros((6, 20), dtype=bool)
    marked[2, 15] = True
    key, rest = apart(Losses(bits, np.arange(6)), marked, 10)
    others = np.delete(bits[:, 10:].ravel(), 2 * 10 + 5)
    assert key == 15 and rest == pytest.approx(others.mean())
    assert marked.sum() == 1
    with pytest.raises(ValueError, match="no byte is marked; the windows hold none of the list"):
        apart(Losses(bits, np.arange(6)), np.zeros((6, 20), dtype=bool), 10)


def test_drawn_bytes_are_as_many_and_the_same_each_time():
    one = drawn_bytes((6, 20), share=0.2, first=5)
    assert one.sum() == round(0.2 * 6 * 15) and not one[:, :5].any()
    assert np.array_equal(one, drawn_bytes((6, 20), share=0.2, first=5))


def test_what_cannot_be_chosen_from_is_refused():
    for share in (0.0, 1.5):
        refused(
            f"share is {share}; give more than 0 and at most 1", key_bytes, SHORT, LONG, share=share, first=4
        )
    refused("first is 20; it must be at most 19", key_bytes, SHORT, LONG, share=0.1, first=20)
    refused(r"\[6, 20\] and long \[3, 20\]; give both", key_bytes, SHORT, LONG[:3], share=0.1, first=4)
