"""Positions of one coordinate and of several: which dimension counts tokens, and how they are cut and joined.

On one axis positions are `[N]`, or `[B, N]` where sequences differ; on n axes they are points, such as the
row and the column of a patch, `[N, n]` or `[B, N, n]`. Two sequences of N tokens and N points of two
coordinates may have the same shape; so code that counts tokens needs the number of axes, and asks here.
"""

import torch
from torch import Tensor

from ..validation import whole
from .base import InputModule

MOST_AXES = 64
"""Coordinates of a position that anybody asks for."""


def shapes(batch: int, n: int, axes: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shapes of positions of `n` tokens: shared by all sequences, and with those of each."""
    point = () if axes == 1 else (axes,)
    return (n, *point), (batch, n, *point)


def tokens_of(positions: Tensor, axes: int = 1) -> int:
    """How many tokens, of each sequence, these are the positions of."""
    return positions.shape[-1 if axes == 1 else -2]


def differ(positions: Tensor, axes: int = 1) -> bool:
    """Whether every sequence has positions of its own."""
    return positions.dim() > (1 if axes == 1 else 2)


def cut(positions: Tensor, start: int, stop: int, axes: int = 1) -> Tensor:
    """Those of the tokens `start` to `stop` - 1."""
    return positions[..., start:stop] if axes == 1 else positions[..., start:stop, :]


def joined(earlier: Tensor, later: Tensor, batch: int, axes: int = 1) -> Tensor:
    """The positions of the tokens of both; where only one differs by sequence, the other is repeated."""
    if differ(earlier, axes) != differ(later, axes):
        earlier, later = (x if differ(x, axes) else x.expand(batch, *x.shape) for x in (earlier, later))
    return torch.cat([earlier, later], dim=-1 if axes == 1 else -2)


def following(held: Tensor | None, count: int, device: torch.device, axes: int = 1) -> Tensor:
    """The `count` positions after those that are held: `[count]`, or `[B, count]` where sequences differ.
    Several axes, on which no point comes after another, are a ValueError."""
    if axes > 1:
        raise ValueError(f"on {axes} axes no position comes after another; give positions, [{count}, {axes}]")
    steps = torch.arange(count, device=device)
    return steps if held is None else held.amax(dim=-1, keepdim=True) + 1 + steps


def highest(positions: Tensor, axes: int = 1) -> list[int | float]:
    """The largest value of every coordinate. Reads the positions; there must be some."""
    if axes == 1:
        return [positions.max().item()]
    return positions.flatten(0, -2).amax(dim=0).tolist()


def check_dims(dims: int) -> None:
    """Raise unless `dims` is an int from 1 to `MOST_AXES`."""
    whole("dims", dims, 1, MOST_AXES, needs="a position has at least 1 coordinate")


class OneCoordinate(InputModule):
    """A module for positions of one coordinate, given one of several: of a row and a column the row alone."""

    def __init__(self, module: InputModule, index: int) -> None:
        super().__init__()
        self.module, self.index = module, index
        self.limit = None if module.limit is None else (*(None,) * index, module.limit)

    def refusal(self, position: int | float) -> str:
        return (
            f"coordinate {self.index} of a position is {position:g}, past the {self.module.limit} that its "
            f"encoding has; build it for more, or use an encoding without an end"
        )

    def forward(self, positions: Tensor) -> Tensor:
        return self.module(positions[..., self.index])
