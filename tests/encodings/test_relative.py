"""Functions of the distance, evaluated once for each, are what they are for every pair."""

import pytest
import torch

from sepnb.encodings.relative import are_consecutive, by_distance, clipped_relative, from_distances

from .drawn import F64, GAPS, POSITIONS, ROWS, UNSORTED, random


def two_heads(relative: torch.Tensor) -> torch.Tensor:
    """No two relative positions have the same value in either head."""
    x = relative.to(F64)
    return torch.stack([x + 0.25, x**3])


@pytest.mark.parametrize("keys", POSITIONS.values(), ids=POSITIONS)
@pytest.mark.parametrize("n", [1, 3, 7])
def test_a_function_of_the_distance_reaches_every_pair_of_any_positions(keys, n):
    queries = keys[..., -n:]
    found = by_distance(two_heads, queries, keys, are_consecutive(queries, keys))
    assert found.shape == (*keys.shape[:-1], 2, n, 7)
    relative = keys[..., None, :] - queries[..., :, None]
    assert torch.equal(found, two_heads(relative).movedim(0, -3))


def test_shared_queries_meet_keys_of_each_row():
    found = by_distance(two_heads, torch.tensor([12, 13]), ROWS)
    assert torch.equal(found, by_distance(two_heads, torch.tensor([12, 13]).expand(2, -1), ROWS))


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


def test_no_queries_are_answered_with_nothing():
    assert by_distance(two_heads, torch.arange(0), torch.arange(4)).shape == (2, 0, 4)


def test_consecutive_are_positions_in_steps_of_one_with_the_queries_at_their_end():
    keys = torch.arange(9) + 40
    assert are_consecutive(keys, keys) and are_consecutive(keys[-2:], keys)
    assert not are_consecutive(keys[:2], keys)
    for other in (GAPS, UNSORTED, ROWS, torch.arange(0)):
        assert not are_consecutive(other, other)


def test_the_gradient_of_a_distance_is_the_sum_over_its_pairs():
    for queries, keys in ((torch.arange(4, 7), torch.arange(7)), (UNSORTED, GAPS)):
        table, weights = random(2, 100).requires_grad_(), random(2, len(queries), len(keys), seed=1)
        known = are_consecutive(queries, keys)
        (by_distance(lambda r, t=table: t[:, r + 50], queries, keys, known) * weights).sum().backward()
        expected = torch.zeros(2, 100, dtype=F64)
        for n, i in enumerate(queries.tolist()):
            for m, j in enumerate(keys.tolist()):
                expected[:, j - i + 50] += weights[:, n, m]
        torch.testing.assert_close(table.grad, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 5), (2, 2), (3, 5), (6, 6), (5, 9)])
def test_shifted_rows_hold_the_distance_of_every_visible_pair(n, m):
    """Column s holds the distance m - 1 - s; the classic mistake is to be off by one."""
    descending = torch.arange(m - 1, -1, -1, dtype=F64).expand(2, n, m).contiguous()
    shifted = from_distances(descending)
    assert shifted.shape == (2, n, m)
    for row in range(n):
        query = m - n + row
        assert shifted[1, row, : query + 1].tolist() == [query - j for j in range(query + 1)]


def test_clipped_rows_count_from_the_farthest_past_to_the_farthest_future():
    assert clipped_relative(torch.tensor([5]), torch.tensor([0, 3, 4, 5, 6, 9]), 2).tolist() == [
        [0, 0, 1, 2, 3, 4]
    ]
