"""Functions of the distance, evaluated once for each, are what they are for every pair."""

import torch

from sepnb.encodings.relative import are_consecutive, by_distance

from .drawn import F64, GAPS, ROWS, UNSORTED


def two_heads(relative: torch.Tensor) -> torch.Tensor:
    """No two relative positions have the same value in either head."""
    x = relative.to(F64)
    return torch.stack([x + 0.25, x**3])


def test_far_apart_positions_are_answered_without_a_table_of_all_between():
    asked = []
    far = torch.tensor([0, 10**9])

    def counting(relative: torch.Tensor) -> torch.Tensor:
        asked.append(relative.numel())
        return two_heads(relative)

    found = by_distance(counting, far, far)
    assert asked == [4] and torch.equal(found, two_heads(far - far[:, None]))


def test_consecutive_positions_are_asked_for_once_each_and_are_never_read():
    asked = []

    def counting(relative: torch.Tensor) -> torch.Tensor:
        asked.append(relative.numel())
        return two_heads(relative)

    # The flag alone decides: what the tensors hold does not matter, as on a GPU it would cost a wait.
    found = by_distance(counting, torch.zeros(3, dtype=torch.int64), torch.zeros(8, dtype=torch.int64), True)
    assert asked == [3 + 8 - 1]
    assert torch.equal(found, by_distance(two_heads, torch.arange(5, 8), torch.arange(8)))


def test_consecutive_are_positions_in_steps_of_one_with_the_queries_at_their_end():
    keys = torch.arange(9) + 40
    assert are_consecutive(keys, keys) and are_consecutive(keys[-2:], keys)
    assert not are_consecutive(keys[:2], keys)
    for other in (GAPS, UNSORTED, ROWS, torch.arange(0)):
        assert not are_consecutive(other, other)
