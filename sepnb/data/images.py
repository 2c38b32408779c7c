"""Images to train and to evaluate on: load them, draw batches, make them larger in two ways.

::

    splits = load("fashion-mnist")
    for pixels, labels in sample_batches(splits.train, batch_size=64, seed=0, steps=9):  # uint8 [64, 28, 28]
        images = splits.standardised(splits.unit(pixels))  # float32 [64, 1, 28, 28]
        ...
    larger = upscaled(splits.unit(splits.test.pixels), 56)
    canvas = on_canvas(splits.unit(splits.test.pixels), 56, seed=0)

Both start from unscaled pixels, so that the margin of a canvas is not what scaling made of it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from sepnb.data import registry
from sepnb.data.draws import generator_of, uniform
from sepnb.validation import at_least

SPLIT_SEED = 0
"""Draws which images are held out. Changing it changes every split."""

VALIDATION = {"digits": 300, "fashion-mnist": 5_000}
TEST = {"digits": 400}
"""Images that are held out where the owner has not assigned them."""


@dataclass(frozen=True, eq=False)
class Images:
    """Images of one split, in a fixed order: `pixels` uint8 `[n, H, W]`, `labels` int64 `[n]`, read-only."""

    name: str
    pixels: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"Images({self.name!r}, {len(self):,} of {self.pixels.shape[1]} x {self.pixels.shape[2]})"


@dataclass(frozen=True, eq=False)
class ImageSplits:
    """A data set cut into three splits that share no image.

    Attributes:
        brightest: the value of a white pixel; a black one is 0.
        classes: their names, in the order of the labels.
        sha256: of the whole data set, as the registry states it.
    """

    name: str
    train: Images
    validation: Images
    test: Images
    brightest: int
    classes: tuple[str, ...]
    sha256: str

    @cached_property
    def mean_and_spread(self) -> tuple[float, float]:
        """Mean and spread of the training pixels, from 0 to 1, for `standardised`."""
        counts = np.bincount(self.train.pixels.ravel(), minlength=self.brightest + 1) / self.train.pixels.size
        values = np.arange(len(counts)) / self.brightest
        mean = float(counts @ values)
        return mean, float(counts @ (values - mean) ** 2) ** 0.5

    def unit(self, pixels: np.ndarray) -> Float[Tensor, "n 1 H W"]:
        """Pixels from 0 to 1, in float32."""
        return torch.from_numpy(pixels.astype(np.float32) / self.brightest)[:, None]

    def standardised(self, images: Float[Tensor, "n 1 H W"]) -> Float[Tensor, "n 1 H W"]:
        """Images from `unit`, so that the training images have mean 0 and mean square 1."""
        mean, spread = self.mean_and_spread
        return (images - mean) / spread


def load(name: str) -> ImageSplits:
    """The images called `name`, hash asserted, in three splits.

    `digits`: 8 x 8 pixels; test and validation images are drawn once and for all. The writers of the held-out
    digits have others in the training images.
    `fashion-mnist`: 28 x 28 pixels; the owner's test images; 5,000 of the others are drawn for validation.

    Raises:
        ValueError: an unknown name, or that of a text; otherwise as `DataSet.read`.
    """
    data_set = registry.get(name, "images")
    splits = _drawn_apart(name, *_READERS[name](data_set.read()))
    return ImageSplits(
        name,
        *(Images(f"{name}/{split}", *splits[split]) for split in ("train", "validation", "test")),
        brightest=_BRIGHTEST[name],
        classes=_CLASSES[name],
        sha256=data_set.sha256,
    )


_Pair = tuple[np.ndarray, np.ndarray]
"""Pixels and labels."""


def _drawn_apart(name: str, held: _Pair, test: _Pair | None) -> dict[str, _Pair]:
    """The three splits. What is drawn comes in the order of the draw, the rest as the owner has it."""
    order = uniform(np.random.PCG64(SPLIT_SEED), len(held[1])).argsort(kind="stable")
    ends = np.cumsum([VALIDATION[name], TEST.get(name, 0)])
    validation, drawn, rest = np.split(order, ends)
    chosen = {"train": np.sort(rest), "validation": validation, "test": drawn}
    splits = {split: tuple(part[which] for part in held) for split, which in chosen.items()}
    splits |= {} if test is None else {"test": test}
    for part in chain(*splits.values()):
        part.setflags(write=False)
    return splits


def parse_idx(data: bytes | np.ndarray) -> np.ndarray:
    """The array in a file of the idx format (LeCun and Cortes): two zero bytes, the type, the number of
    dimensions, each of them as a big-endian int32, the values row by row. uint8 only.

    Raises:
        ValueError: another format, or fewer or more values than it says.
    """
    raw = np.frombuffer(data, np.uint8)
    if len(raw) < 4 or raw[0] or raw[1] or raw[2] != 0x08:
        raise ValueError("no idx file of unsigned bytes: it begins with 0 0 8 and the number of dimensions")
    start = 4 + 4 * int(raw[3])
    shape = raw[4:start].view(">i4").tolist() if len(raw) >= start else []
    if len(raw) < start or len(raw) - start != np.prod(shape, dtype=np.int64):
        raise ValueError(f"an idx file of shape {shape} with {max(len(raw) - start, 0)} values")
    return raw[start:].reshape(shape)


def _digits(parts: Mapping[str, np.ndarray]) -> tuple[_Pair, None]:
    """One line an image: 64 values from 0 to 16, row by row, and the digit."""
    table = np.loadtxt(parts["digits.csv"].tobytes().decode().splitlines(), delimiter=",", dtype=np.int64)
    return (table[:, :-1].reshape(-1, 8, 8).astype(np.uint8), table[:, -1].copy()), None


def _fashion(parts: Mapping[str, np.ndarray]) -> tuple[_Pair, _Pair]:
    def read(split: str) -> _Pair:
        pixels, labels = parts[f"{split}-images-idx3-ubyte"], parts[f"{split}-labels-idx1-ubyte"]
        return parse_idx(pixels), parse_idx(labels).astype(np.int64)

    return read("train"), read("t10k")


_READERS: dict[str, Callable[[Mapping[str, np.ndarray]], tuple[_Pair, _Pair | None]]] = {
    "digits": _digits,
    "fashion-mnist": _fashion,
}
_BRIGHTEST = {"digits": 16, "fashion-mnist": 255}
_CLASSES = {
    "digits": tuple("0123456789"),
    "fashion-mnist": (
        "T-shirt/top", "trouser", "pullover", "dress", "coat",
        "sandal", "shirt", "sneaker", "bag", "ankle boot",
    ),
}  # fmt: skip


def sample_batches(
    images: Images, *, batch_size: int, seed: int, steps: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield `steps` batches, uint8 `[batch_size, H, W]` and int64 `[batch_size]`, pass by pass.

    In every pass over the images each occurs once, in an order drawn anew; a batch may end one pass and begin
    the next.

    Raises:
        ValueError: a size below one, or a batch larger than the split.
    """
    at_least(1, batch_size=batch_size, steps=steps)
    if batch_size > len(images):
        raise ValueError(f"batch_size is {batch_size}, and {images!r} has fewer images")
    generator, left = np.random.PCG64(seed), np.empty(0, dtype=np.int64)

    def batch() -> tuple[np.ndarray, np.ndarray]:
        nonlocal left
        if len(left) < batch_size:
            left = np.concatenate([left, uniform(generator, len(images)).argsort(kind="stable")])
        chosen, left = left[:batch_size], left[batch_size:]
        return images.pixels[chosen], images.labels[chosen]

    return (batch() for _ in range(steps))


def upscaled(images: Float[Tensor, "n C H W"], side: int) -> Float[Tensor, "n C side side"]:
    """The same images with sides of `side` pixels, bilinear (`torch.nn.functional.interpolate`)."""
    at_least(1, side=side)
    return F.interpolate(images, size=(side, side), mode="bilinear", align_corners=False)


def on_canvas(
    images: Float[Tensor, "n C H W"], side: int, *, seed: int, step: int = 1
) -> Float[Tensor, "n C side side"]:
    """Each image at a place of its own on a black square of `side` pixels.

    Args:
        images: from `ImageSplits.unit`, where black is 0.
        side: of the canvas, in pixels; not smaller than the images.
        seed: draws the places; that of an image does not depend on the other images' pixels.
        step: places are multiples of so many pixels from the corner. The side of a patch keeps patches as
            they were cut in training; 1 allows every place.
    """
    n, channels, height, width = images.shape
    at_least(1, side=side, step=step)
    if side < max(height, width):
        raise ValueError(f"a canvas of {side} pixels is smaller than the images, {height} x {width}")
    drawn = uniform(generator_of(seed, "canvas"), 2 * n).reshape(n, 2)
    rows, columns = (
        (drawn[:, axis] * ((side - own) // step + 1)).astype(np.int64) * step
        for axis, own in enumerate((height, width))
    )
    canvas = images.new_zeros(n, channels, side, side)
    for image, row, column, place in zip(images, rows, columns, canvas, strict=True):
        place[:, row : row + height, column : column + width] = image
    return canvas
