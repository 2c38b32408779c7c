"""What a trained classifier of images is asked: as trained, with its patches shuffled, on larger pictures.

The held-out pictures are the same for every method and every seed of a run.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..data import images
from ..data.draws import generator_of, uniform
from ..models import ImageClassifier
from ..training import autocast
from .image_tasks import HELD_OUT_SEED, Pictures

if TYPE_CHECKING:
    from .images import ImageRun

READ_AT_ONCE = 250


@lru_cache(maxsize=1)
def splits_of(name: str) -> images.ImageSplits:
    return images.load(name)


def held_out(config: "ImageRun", split: str, change: str | None = None, grid: int = 0) -> Pictures:
    """The pictures of a held-out split, as they are or made larger."""
    splits, frame = splits_of(config.images), config.size.frame
    chosen, side = getattr(splits, split), grid * frame.patch
    spread = grid if change == "spread" else None
    pictures = config.asked.held_out(splits, chosen, frame, config.size.held_out, grid=spread)
    if change == "upscaled":
        return pictures._replace(images=images.upscaled(pictures.images, side))
    if change == "canvas":
        placed = images.on_canvas(pictures.images, side, seed=HELD_OUT_SEED, step=frame.patch)
        return pictures._replace(images=placed)
    return pictures


def shuffled(n: int, patches: int) -> Tensor:
    """A random order of the patches for each of `n` pictures, int64 `[n, patches]`."""
    drawn = uniform(generator_of(HELD_OUT_SEED, "patches"), n * patches).reshape(n, patches)
    return torch.from_numpy(drawn.argsort(axis=1, kind="stable"))


def score(
    config: "ImageRun", model: ImageClassifier, pictures: Pictures, device: str, *, shuffle: bool = False
) -> dict[str, float]:
    """The share of right answers, and nats per answer. `shuffle` gives every patch the place of another."""
    scaled = splits_of(config.images).standardised(pictures.images)
    labels = torch.from_numpy(pictures.labels.copy())
    places = None
    if shuffle:
        at = model.positions(*model.grid(scaled))
        places = at[shuffled(len(scaled), len(at))]
    right, nats = 0, 0.0
    model.eval()
    with torch.no_grad():
        for start in range(0, len(scaled), READ_AT_ONCE):
            stop = start + READ_AT_ONCE
            own = None if places is None else places[start:stop].to(device)
            with autocast(device, config.training.precision):
                logits = model(scaled[start:stop].to(device), own).float().cpu()
            right += int((logits.argmax(-1) == labels[start:stop]).sum())
            nats += float(F.cross_entropy(logits, labels[start:stop], reduction="sum"))
    return {"accuracy": right / len(scaled), "nats": nats / len(scaled)}


def read(
    config: "ImageRun", model: ImageClassifier, device: str
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Metrics and rows of the test pictures: as trained, with patches shuffled, and larger."""
    plain = held_out(config, "test")
    metrics = score(config, model, plain, device)
    metrics["shuffled_accuracy"] = score(config, model, plain, device, shuffle=True)["accuracy"]
    side, rows = config.size.frame.grid, []
    for change, grid in config.views:
        pictures = held_out(config, "test", change, grid)
        for rule in config.rules:
            reader = model.extended(fit=(side, side)) if rule == "fit" else model
            found = score(config, reader, pictures, device)
            rows.append({"kind": "view", "change": change, "grid": grid, "rule": rule, **found})
            metrics[f"{change}-{grid}/{rule}"] = found["accuracy"]
    return metrics, rows
