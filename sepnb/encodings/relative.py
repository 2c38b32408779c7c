"""Functions of the relative position, evaluated once for each distance and not once for each pair.

Shape letters: B batch, H heads, N query length, M key length, T relative positions.
"""

from abc import abstractmethod
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..validation import integers, shaped, together, within
from .base import ScoreModule

LARGEST = 2**62
"""The largest position that has a distance from every other in int64."""


def widened(positions: Tensor) -> Tensor:
    """Integers as int64, in which no difference of positions overflows; real numbers as they are."""
    return positions if positions.is_floating_point() else positions.long()


def check_pairs(query_positions: Tensor, key_positions: Tensor, sizes: dict[str, int] | None = None) -> None:
    """Raise unless these are positions of queries and keys: integers on one device, `[N]` or `[B, N]`, and
    `[M]` or `[B, M]`, whose distances int64 holds. `sizes`: what B, N and M are, where that is known."""
    sizes = {} if sizes is None else sizes
    shaped(sizes, "query_positions", integers("query_positions", query_positions), "N", "B N")
    shaped(sizes, "key_positions", integers("key_positions", key_positions), "M", "B M")
    together(query_positions=query_positions, key_positions=key_positions)
    for name, positions in (("query_positions", query_positions), ("key_positions", key_positions)):
        within(name, positions, -LARGEST, LARGEST, "whose distances int64 holds")


def relative_positions(
    query_positions: Int[Tensor, "*queries N"], key_positions: Int[Tensor, "*keys M"]
) -> Int[Tensor, "*pairs N M"]:
    """`j - i`, key minus query, of every pair. Integers, so that no distance is rounded.

    Positions are `[N]` and `[M]`, or `[B, N]` and `[B, M]`; queries at shared positions may also meet keys at
    positions of each sequence, as after a cache in which these were mixed.
    """
    queries, keys = widened(query_positions), widened(key_positions)
    return keys[..., None, :] - queries[..., :, None]


def by_distance(
    function: Callable[[Tensor], Tensor],
    query_positions: Int[Tensor, "*queries N"],
    key_positions: Int[Tensor, "*keys M"],
    consecutive: bool = False,
) -> Float[Tensor, "*pairs H N M"]:
    """`function(j - i)` for every pair of a query at i and a key at j, as in `relative_positions`.

    Args:
        function: int `[T]`, relative positions of either sign, to `[H, T]`.
        consecutive: it is known that the keys are at p, p + 1, ..., p + M - 1 and the queries at the last N
            of these. No position is then read, which would make the host wait for a GPU.
    """
    n, m, device = query_positions.shape[-1], key_positions.shape[-1], query_positions.device
    if consecutive and n:
        table = function(torch.arange(1 - m, n, device=device))
        return table.unfold(-1, m, 1).flip(-2)  # row n begins at relative position -(M - N) - n
    relative = relative_positions(query_positions, key_positions)
    if relative.numel():
        lowest, highest = (int(end) for end in relative.aminmax())
        if highest - lowest < relative.numel():
            table = function(torch.arange(lowest, highest + 1, device=device))
            return table[:, relative - lowest].movedim(0, -3)
    # No pair, or more distances between the ends than there are pairs: one by one.
    return function(relative.flatten()).unflatten(-1, relative.shape).movedim(0, -3)


class DistanceBias(ScoreModule):
    """A bias that is a function of the distance alone, computed once for each distance."""

    toeplitz = True

    @abstractmethod
    def of_distance(self, relative: Tensor) -> Tensor:
        """Relative positions int `[T]`, key minus query, to `[H, T]`."""

    def forward(self, query_positions: Tensor, key_positions: Tensor, consecutive: bool = False) -> Tensor:
        return by_distance(self.of_distance, query_positions, key_positions, consecutive)


def are_consecutive(query_positions: Tensor, key_positions: Tensor) -> bool:
    """Whether the keys are at consecutive positions and the queries at the last of these; False where
    positions differ by sequence. Reads the values."""
    if key_positions.dim() > 1 or not key_positions.numel():
        return False
    n, m = query_positions.shape[-1], key_positions.shape[-1]
    steps = key_positions[0] + torch.arange(m, device=key_positions.device)
    return torch.equal(key_positions, steps) and torch.equal(query_positions, steps[m - n :])


def check_last(queries: int, keys: int) -> None:
    """Raise unless so many queries can be the last of so many keys."""
    if queries > keys:
        raise ValueError(f"{queries} queries cannot be the last of {keys} keys; give at most as many")


def clipped_relative(
    query_positions: Int[Tensor, "*queries N"], key_positions: Int[Tensor, "*keys M"], clip: int
) -> Int[Tensor, "*pairs N M"]:
    """`clip(j - i, -clip, clip) + clip`, from 0 for what is at least `clip` back to 2 clip."""
    return relative_positions(query_positions, key_positions).clamp(-clip, clip) + clip


def from_distances(x: Float[Tensor, "*B N M"]) -> Float[Tensor, "*B N M"]:
    """Columns for the distances M - 1 down to 0 to columns for the keys 0 to M - 1, as a view.

    The queries are the last N of M consecutive positions. Entry (n, j) becomes that of the distance
    (M - N) + n - j of the same row, and means nothing where the key is after the query. Dai et al. (2019,
    appendix B) reach the same by a column of padding and two reshapes.
    """
    n, m = x.shape[-2:]
    if m == 1:
        return x
    return x.flatten(-2)[..., n - 1 :].unfold(-1, m, m - 1)
