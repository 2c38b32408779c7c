"""Two things in a cube: in which of six directions from the first does the second lie?

The task of `volumes`, on any number of axes. There are three tokens, the class token and the two things, and
each thing stands in a cell of its own: nothing but their places tells the answer. In the trained cube every
arrangement can occur in training too; what is held out are larger cubes.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..data.draws import uniform
from ..models import LanguageModel, TransformerConfig
from ..models.image import with_origin
from ..validation import at_least

CLASS, FIRST, SECOND = 0, 1, 2
"""The three tokens, by their number in the vocabulary."""


def things(count: int) -> np.ndarray:
    """The tokens of the two things of `count` arrangements, int64 `[count, 2]`: always the same."""
    return np.tile(np.array([FIRST, SECOND], dtype=np.int64), (count, 1))


@dataclass(frozen=True)
class TwoThings:
    """Pairs of cells of a cube with `side` cells along each axis. The direction is that of the largest
    difference of coordinates, and no other is as large. All arrangements are equally likely."""

    axes: int
    side: int

    def __post_init__(self) -> None:
        at_least(1, axes=self.axes)
        at_least(2, side=self.side)

    @property
    def n_answers(self) -> int:
        return 2 * self.axes

    def answers(self, cells: np.ndarray) -> np.ndarray:
        """2 a where the second thing is before the first along axis a, 2 a + 1 where it is behind."""
        away = cells[:, 1] - cells[:, 0]
        axis = np.abs(away).argmax(axis=1)
        return 2 * axis + (np.take_along_axis(away, axis[:, None], axis=1)[:, 0] > 0)

    def draw(
        self, generator: np.random.PCG64, count: int, within: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Cells of both things in `count` arrangements, int64 `[n, 2, axes]` counted from 1, and the answers,
        int64 `[n]`; `within`: of a cube of this side, which stands anywhere in this one."""
        side = self.side if within is None else within
        if side > self.side:
            raise ValueError(f"within is {within}, and a side of the cube has {self.side} cells; give fewer")
        cells = np.zeros((count, 2, self.axes), dtype=np.int64)
        tied = np.ones(count, dtype=bool)
        while tied.any():  # what has no one largest difference is drawn again
            drawn = uniform(generator, int(tied.sum()) * 2 * self.axes).reshape(-1, 2, self.axes)
            cells[tied] = (drawn * side).astype(np.int64)
            away = np.abs(cells[:, 1] - cells[:, 0])
            largest = away.max(axis=1)
            tied = (largest == 0) | ((away == largest[:, None]).sum(axis=1) > 1)
        moves = (uniform(generator, count * self.axes) * (self.side - side + 1)).astype(np.int64)
        return 1 + cells + moves.reshape(count, 1, self.axes), self.answers(cells)


class PointClassifier(nn.Module):
    """A language model without a mask on three tokens, which is read at the first, the class token; that one
    stands at the origin, where no cell is, see `sepnb.models.image`."""

    def __init__(self, config: TransformerConfig, n_answers: int) -> None:
        super().__init__()
        self.config, self.n_answers = config, n_answers
        self.model = LanguageModel(config, max(n_answers, SECOND + 1))

    def forward(
        self, things: Int[Tensor, "B 2"], positions: Int[Tensor, "B 2 axes"]
    ) -> Float[Tensor, "B answers"]:
        """Logits of the answers to things at these cells."""
        tokens = torch.cat([torch.full_like(things[:, :1], CLASS), things], dim=1)
        axes = self.config.axes
        at = with_origin(positions if axes > 1 else positions[..., 0], axes)
        return self.model(tokens, at)[:, 0, : self.n_answers]

    def parameter_counts(self) -> dict[str, int]:
        return self.model.parameter_counts()
