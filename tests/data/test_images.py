"""The two sets of images: how they are read, split, drawn, and made larger."""

import gzip

import numpy as np
import pytest
import torch

from sepnb.data import containers, registry, text
from sepnb.data.draws import generator_of
from sepnb.data.images import Images, load, on_canvas, parse_idx, sample_batches, upscaled

from ..shared import refused

SPLITS = ("train", "validation", "test")
SIZES = {"digits": (1_097, 300, 400), "fashion-mnist": (55_000, 5_000, 10_000)}


def idx(array: np.ndarray) -> bytes:
    """The idx file of an array of unsigned bytes, as the format is described."""
    head = bytes([0, 0, 8, array.ndim])
    return head + b"".join(side.to_bytes(4, "big") for side in array.shape) + array.tobytes()


# --- what is read


def test_an_idx_file_is_the_array_that_was_written():
    for shape in ((3,), (2, 3), (2, 4, 5), (0,)):
        array = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
        assert np.array_equal(parse_idx(idx(array)), array) and parse_idx(idx(array)).shape == shape


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no idx file of unsigned bytes"),
        (b"<html>", "no idx file of unsigned bytes"),
        (b"\0\0\x0d\1\0\0\0\1\0\0\0\0", "no idx file of unsigned bytes"),  # floats
        (idx(np.zeros((2, 3), np.uint8))[:-1], r"an idx file of shape \[2, 3\] with 5 values"),
        (idx(np.zeros((2, 3), np.uint8)) + b"x", r"an idx file of shape \[2, 3\] with 7 values"),
        (idx(np.zeros((2, 3), np.uint8))[:7], r"an idx file of shape \[\] with 0 values"),
    ],
)
def test_what_is_no_idx_file_is_refused(data, message):
    refused(message, parse_idx, data)


def digits() -> np.ndarray:
    """The lines of the file, which is at hand without a data folder: 64 values and the digit, int64."""
    lines = registry.get("digits").read()["digits.csv"].tobytes().decode().splitlines()
    return np.array([line.split(",") for line in lines], dtype=np.int64)


def test_the_owners_test_images_are_the_test_split(data_set):
    read = data_set("fashion-mnist").read()
    splits = load("fashion-mnist")
    assert np.array_equal(splits.test.pixels.ravel(), read["t10k-images-idx3-ubyte"][16:])
    assert np.array_equal(splits.test.labels, read["t10k-labels-idx1-ubyte"][8:])
    first = read["train-images-idx3-ubyte"][16 : 16 + 784]
    label = read["train-labels-idx1-ubyte"][8]
    held = splits.train if splits.train.pixels[0].tobytes() == first.tobytes() else splits.validation
    place = [image.tobytes() for image in held.pixels].index(first.tobytes())
    assert held.labels[place] == label


# --- splits


@pytest.mark.parametrize("name", registry.names("images"))
def test_splits_share_no_image_and_lose_none(name, data_set):
    registered, splits = data_set(name), load(name)
    parts = [getattr(splits, split) for split in SPLITS]
    assert tuple(map(len, parts)) == SIZES[name]
    assert splits.sha256 == registered.sha256 and registered.licence and registered.source and registered.note
    for part in parts:
        assert part.pixels.dtype == np.uint8 and part.labels.dtype == np.int64
        assert part.pixels.max() == splits.brightest and part.pixels.min() == 0
        assert np.array_equal(np.unique(part.labels), np.arange(len(splits.classes)))
        assert not part.pixels.flags.writeable and not part.labels.flags.writeable


def test_the_held_out_digits_are_those_that_the_seed_draws_and_no_image_is_in_two_splits():
    """No two digits of the file are equal, so that images can be told apart by their pixels."""
    splits, table = load("digits"), digits()
    assert table[0, -1] == 0 and len(table) == 1_797  # the first line of the file is a nought
    order = (np.random.PCG64(0).random_raw(1_797) >> np.uint64(11)).argsort(kind="stable")
    for split, chosen in (
        ("validation", order[:300]),
        ("test", order[300:700]),
        ("train", np.sort(order[700:])),
    ):
        assert np.array_equal(getattr(splits, split).labels, table[chosen, -1])
        assert np.array_equal(getattr(splits, split).pixels.reshape(-1, 64), table[chosen, :-1])
    assert len(set(map(bytes, table[:, :-1].astype(np.uint8)))) == 1_797


def test_a_set_of_images_is_no_text_and_a_text_no_set_of_images():
    refused(r"digits holds images, see sepnb\.data\.images\.load; sets of text are", text.load, "digits")
    refused(r"sympy holds text, see sepnb\.data\.text\.load; sets of images are", load, "sympy")
    refused("unknown data set 'fashion'; did you mean fashion-mnist", load, "fashion")
    kinds = ("text", "images", "stories")
    assert registry.names() == [name for kind in kinds for name in registry.names(kind)]


def test_files_that_are_cut_off_or_of_another_kind_are_unreadable(tmp_path):
    for name in containers.FASHION_FILES:
        (tmp_path / name).write_bytes(gzip.compress(name.encode()))
    assert containers.fashion_files(tmp_path)["t10k-labels-idx1-ubyte"] == b"t10k-labels-idx1-ubyte.gz"
    last = tmp_path / containers.FASHION_FILES[-1]
    for bad in (last.read_bytes()[:-5], b"<html>"):
        last.write_bytes(bad)
        with pytest.raises(containers.Unreadable, match=r"t10k-labels-idx1-ubyte\.gz is not a whole \.gz"):
            containers.fashion_files(tmp_path)
    last.unlink()
    with pytest.raises(FileNotFoundError):
        containers.fashion_files(tmp_path)


# --- pixels


def test_the_training_images_have_mean_0_and_mean_square_1():
    splits = load("digits")
    unit = splits.unit(splits.train.pixels)
    images = splits.standardised(unit)
    assert images.shape == (1_097, 1, 8, 8) and images.dtype == torch.float32
    assert images.double().mean().item() == pytest.approx(0, abs=1e-6)
    assert images.double().square().mean().item() == pytest.approx(1, abs=1e-6)
    assert unit.min() == 0 and unit.max() == 1


# --- batches


def few(n: int = 7) -> Images:
    pixels = np.arange(n, dtype=np.uint8)[:, None, None] * np.ones((1, 2, 2), np.uint8)
    return Images("few", pixels, np.arange(n))


def test_every_image_occurs_once_in_every_pass_with_its_label():
    drawn = list(sample_batches(few(), batch_size=3, seed=4, steps=14))
    labels = np.concatenate([labels for _, labels in drawn])
    assert all(np.array_equal(pixels[:, 1, 1], labels) for pixels, labels in drawn)
    passes = labels.reshape(6, 7)
    assert all(np.array_equal(np.sort(order), np.arange(7)) for order in passes)
    assert len({tuple(order) for order in passes}) > 4


def test_the_order_is_that_of_the_seed_and_longer_runs_begin_alike():
    def order(seed: int, steps: int) -> list[int]:
        return [
            int(label)
            for _, labels in sample_batches(few(), batch_size=2, seed=seed, steps=steps)
            for label in labels
        ]

    assert order(0, 9)[:8] == order(0, 4) and order(0, 4) != order(1, 4)
    expected = (np.random.PCG64(0).random_raw(7) >> np.uint64(11)).argsort(kind="stable")
    assert order(0, 3) == expected[:6].tolist()


# --- larger images


def test_an_upscaled_image_is_what_torch_makes_of_it_and_keeps_flat_areas():
    images = torch.rand(3, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    larger = upscaled(images, 20)
    expected = torch.nn.functional.interpolate(images, size=(20, 20), mode="bilinear")
    assert torch.equal(larger, expected)
    assert torch.allclose(upscaled(torch.full((1, 1, 8, 8), 0.3), 19), torch.full((1, 1, 19, 19), 0.3))
    assert torch.equal(upscaled(images, 8), images)


@pytest.mark.parametrize("step", [1, 4])
def test_on_a_canvas_the_image_keeps_its_pixels_and_all_else_is_black(step):
    images = torch.rand(40, 2, 8, 8, generator=torch.Generator().manual_seed(0)) + 0.1
    canvas = on_canvas(images, 24, seed=3, step=step)
    corners = set()
    for image, square in zip(images, canvas, strict=True):
        rows, columns = (torch.nonzero(square[0].amax(axis)).flatten() for axis in (1, 0))
        assert len(rows) == len(columns) == 8
        row, column = int(rows[0]), int(columns[0])
        assert torch.equal(square[:, row : row + 8, column : column + 8], image)
        assert int((square != 0).sum()) == image.numel()
        corners.add((row, column))
    assert all(row % step == column % step == 0 for row, column in corners)
    assert {0, 16} <= {row for row, _ in corners} | {column for _, column in corners}
    assert len(corners) > 10


def test_places_are_those_of_the_seed_and_of_no_pixel():
    one, other = torch.ones(5, 1, 4, 4), torch.full((5, 1, 4, 4), 2.0)
    first = on_canvas(one, 12, seed=1)
    assert torch.equal(on_canvas(other, 12, seed=1) / 2, first)
    assert not torch.equal(on_canvas(one, 12, seed=2), first)
    drawn = (generator_of(1, "canvas").random_raw(10) >> np.uint64(11)) * 2.0**-53
    row, column = (int(value * 9) for value in drawn[:2])
    assert first[0, 0, row, column] == 1 and first[0].sum() == 16
    assert first[0, 0, row : row + 4, column : column + 4].sum() == 16
    assert torch.equal(on_canvas(one, 4, seed=0), one)


def test_batches_and_canvases_that_are_too_small_are_refused(unhooked):
    too_many = {"batch_size": 8, "seed": 0, "steps": 1}
    refused(r"batch_size is 8, and Images\('few', 7 of 2 x 2\) has fewer", sample_batches, few(), **too_many)
    refused("steps is 0", sample_batches, few(), batch_size=2, seed=0, steps=0)
    refused("step is 0", on_canvas, torch.zeros(1, 1, 8, 8), 9, seed=0, step=0)
    refused("side is 0", upscaled, torch.zeros(1, 1, 8, 8), 0)
    refused("7 pixels is smaller than the images, 8 x 6", on_canvas, torch.zeros(1, 1, 8, 6), 7, seed=0)
