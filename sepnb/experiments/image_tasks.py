"""The two tasks of `images`: which class an image has, and in which direction one thing lies from another.

A classifier can go a long way on the first by the patches alone, wherever they are. The second needs places:
both things are in every picture, and only their arrangement decides.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..data.draws import generator_of, uniform
from ..data.images import Images, ImageSplits, sample_batches
from ..validation import at_least

HELD_OUT_SEED = 0
"""Draws the held-out pictures: the same for every method and every seed of a run."""


class Pictures(NamedTuple):
    """Images `[n, 1, S, S]` from 0 to 1, and their labels, int64 `[n]`."""

    images: Tensor
    labels: np.ndarray


@dataclass(frozen=True)
class Frame:
    """A square picture of `grid` x `grid` patches with sides of `patch` pixels."""

    patch: int
    grid: int

    @property
    def side(self) -> int:
        return self.patch * self.grid


class WholeImage:
    """Which class does the image have?"""

    spreads: ClassVar[bool] = False
    """Whether a picture can be drawn anew on a larger grid, its parts farther from each other."""

    def n_classes(self, splits: ImageSplits) -> int:
        return len(splits.classes)

    def batches(
        self, splits: ImageSplits, frame: Frame, *, batch_size: int, seed: int, steps: int
    ) -> Iterator[Pictures]:
        drawn = sample_batches(splits.train, batch_size=batch_size, seed=seed, steps=steps)
        return (Pictures(splits.unit(pixels), labels) for pixels, labels in drawn)

    def held_out(
        self, splits: ImageSplits, images: Images, frame: Frame, count: int, grid: int | None = None
    ) -> Pictures:
        """The first `count` images of a held-out split; ValueError if it has fewer, or for a larger grid."""
        if grid is not None:
            raise ValueError(f"an image is whole and is not spread; grid={grid} is for other tasks")
        if count > len(images):
            raise ValueError(f"{count} images are asked for, and {images!r} has fewer")
        return Pictures(splits.unit(images.pixels[:count]), images.labels[:count])


@dataclass(frozen=True)
class Direction:
    """In which direction from the first thing does the second lie: above, below, left or right?

    A thing is an image of one of the two `classes`, made smaller to `item` x `item` patches. Each of the two
    lies on whole patches of a black picture, clear of the other. The direction is that of the larger of the
    two distances, of rows or of columns, which are never equal. All arrangements are equally likely, so that
    each answer is right for a quarter of the pictures.
    """

    spreads: ClassVar[bool] = True

    classes: tuple[int, int]
    item: int

    def n_classes(self, splits: ImageSplits) -> int:
        return 4

    def arrangements(self, grid: int) -> np.ndarray:
        """Rows and columns, in patches, of the first and of the second thing: int64 `[K, 4]`. ValueError for
        a grid in which they do not fit beside each other."""
        at_least(2 * self.item, grid=grid)
        every = np.indices(4 * (grid - self.item + 1,)).reshape(4, -1).T
        rows, columns = np.abs(every[:, 2:] - every[:, :2]).T
        return every[(rows != columns) & (np.maximum(rows, columns) >= self.item)]

    def by_one_place(self, grid: int, canvas: int | None = None) -> float:
        """The accuracy of the best guess that knows where one thing is, and nothing of the other, on a grid
        or, with `canvas`, where that grid stands anywhere in a larger one."""
        side = grid if canvas is None else canvas
        at_least(grid, canvas=side)
        arranged = self.arrangements(grid)
        answers, counts = self.answers(arranged), np.zeros((side, side, 4))
        for row, column in np.ndindex(side - grid + 1, side - grid + 1):
            np.add.at(counts, (arranged[:, 0] + row, arranged[:, 1] + column, answers), 1)
        return float(counts.max(axis=-1).sum() / counts.sum())

    @staticmethod
    def answers(arranged: np.ndarray) -> np.ndarray:
        """0 above, 1 below, 2 left, 3 right: where the second thing is from the first, int64 `[n]`."""
        rows, columns = (arranged[:, 2:] - arranged[:, :2]).T
        vertical = np.abs(rows) > np.abs(columns)
        return np.where(vertical, np.where(rows < 0, 0, 1), np.where(columns < 0, 2, 3)).astype(np.int64)

    def batches(
        self, splits: ImageSplits, frame: Frame, *, batch_size: int, seed: int, steps: int
    ) -> Iterator[Pictures]:
        at_least(1, batch_size=batch_size, steps=steps)
        things, generator = self._things(splits, splits.train, frame), generator_of(seed, "pictures")
        return (self._drawn(things, frame, frame.grid, batch_size, generator) for _ in range(steps))

    def held_out(
        self, splits: ImageSplits, images: Images, frame: Frame, count: int, grid: int | None = None
    ) -> Pictures:
        """`count` pictures of a held-out split; with `grid` the same things on a larger grid."""
        generator = generator_of(HELD_OUT_SEED, "held-out pictures")
        things = self._things(splits, images, frame)
        return self._drawn(things, frame, frame.grid if grid is None else grid, count, generator)

    def _things(self, splits: ImageSplits, images: Images, frame: Frame) -> list[Tensor]:
        """By class, `[n, 1, s, s]`, s the side of a thing in pixels."""
        side = self.item * frame.patch
        whole = (splits.unit(images.pixels[images.labels == label]) for label in self.classes)
        return [F.interpolate(x, size=(side, side), mode="bilinear", antialias=True) for x in whole]

    def _drawn(
        self, things: list[Tensor], frame: Frame, grid: int, count: int, generator: np.random.PCG64
    ) -> Pictures:
        arrangements = self.arrangements(grid)
        which, *chosen = uniform(generator, 3 * count).reshape(3, count)
        arranged = arrangements[(which * len(arrangements)).astype(np.int64)]
        pictures = torch.zeros(count, 1, grid * frame.patch, grid * frame.patch)
        side = self.item * frame.patch
        for thing, draw, corners in zip(things, chosen, (arranged[:, :2], arranged[:, 2:]), strict=True):
            picked = thing[torch.from_numpy((draw * len(thing)).astype(np.int64))]
            for picture, image, (row, column) in zip(pictures, picked, corners * frame.patch, strict=True):
                picture[:, row : row + side, column : column + side] = image
        return Pictures(pictures, self.answers(arranged))


Task = WholeImage | Direction
