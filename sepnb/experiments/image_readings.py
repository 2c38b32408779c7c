"""What a trained classifier of images is asked: as trained, with its patches shuffled, at places far out, on
larger pictures.

The held-out pictures are the same for every method and every seed of a run.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..data import images
from ..data.draws import generator_of, uniform
from ..models import ImageClassifier, TransformerConfig
from ..training.loop import TrainingConfig, autocast
from ..training.shifts import GridShiftSteps
from .image_tasks import HELD_OUT_SEED, Pictures

if TYPE_CHECKING:
    from .images import ImageRun

READ_AT_ONCE = 250


@lru_cache(maxsize=1)
def splits_of(name: str) -> images.ImageSplits:
    return images.load(name)


def sides_unseen(
    model: TransformerConfig,
    training: TrainingConfig,
    trained: int,
    *,
    furthest: int,
    more: bool,
    apart: bool,
    between: bool = False,
) -> str:
    """The sides of a reading on a grid that training never showed, such as "index+length", or "none".

    - *index*: a coordinate is encoded that no step and no loss had, or one between two cells;
    - *length*: there are more tokens than in training;
    - *distance*: the coordinates of two tokens differ as they never did.

    An encoding that does not hear a side never meets a new one. What is heard of the class token, which is at
    the origin, is not counted.

    Args:
        model, training: of the run.
        trained: cells along a side of the trained grid, counted from 1.
        furthest: the largest coordinate of the reading.
        more, apart: whether there are more tokens, or differences that are larger.
        between: whether places lie between cells.
    """
    covered = trained + 1
    if isinstance(training.positions, GridShiftSteps):
        covered = max(covered, training.positions.trained_indices())
    if training.auxiliary is not None:
        covered = max(covered, training.auxiliary.trained_indices(1))
    sides = {
        "index": any(e.reads_index for e in model.encodings) and (between or furthest >= covered),
        "length": more,
        "distance": any(e.saturates_at > trained for e in model.encodings) and (between or apart),
    }
    return "+".join(name for name, there in sides.items() if there) or "none"


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
    config: "ImageRun",
    model: ImageClassifier,
    pictures: Pictures,
    device: str,
    *,
    shuffle: bool = False,
    move: tuple[int, ...] | None = None,
) -> dict[str, float]:
    """The share of right answers, and nats per answer. `shuffle` gives every patch the place of another;
    `move` moves the places of all patches by so many rows and columns."""
    scaled = splits_of(config.images).standardised(pictures.images)
    labels = torch.from_numpy(pictures.labels.copy())
    at, places = model.positions(*model.grid(scaled)), None
    if move is not None:
        at = at + torch.tensor(move)
        places = at.expand(len(scaled), -1, -1)
    if shuffle:
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
    """Metrics and rows of the test pictures: as trained, with patches shuffled, moved, and larger; shuffled
    on canvases, too, under the rule that suits them."""
    plain = held_out(config, "test")
    metrics = score(config, model, plain, device)
    metrics["shuffled_accuracy"] = score(config, model, plain, device, shuffle=True)["accuracy"]
    side, rows = config.size.frame.grid, []
    for name, move in config.moves.items():
        found = score(config, model, plain, device, move=move)
        new = config.unseen(side, move=move)
        rows.append({"kind": "moved", "move": name, "by": list(move), "unseen": new, **found})
        metrics[f"moved-{name}"] = found["accuracy"]
    for change, grid in config.views:
        pictures = held_out(config, "test", change, grid)
        for rule in config.rules_of(change):
            reader = model.extended(fit=(side, side)) if rule == "fit" else model
            found = score(config, reader, pictures, device)
            about = {"change": change, "grid": grid, "rule": rule, "unseen": config.unseen(grid, rule)}
            rows.append({"kind": "view", **about, **found})
            metrics[f"{change}-{grid}/{rule}"] = found["accuracy"]
            if change == "canvas" and rule == config.suited(change):
                found = score(config, reader, pictures, device, shuffle=True)
                rows.append({"kind": "shuffled", **about, **found})
                metrics[f"{change}-{grid}/shuffled"] = found["accuracy"]
    return metrics, rows
