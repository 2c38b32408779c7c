"""One table for every task: is the answer found, by length of the text and by where it stands there?"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch

from ... import validation
from .samples import Samples

DEPTHS = (0.1, 0.3, 0.5, 0.7, 0.9)
AT_ONCE = 2**14
"""Tokens in one pass."""


@torch.no_grad()
def answers(model: Callable, samples: Samples, *, device: str = "cpu") -> np.ndarray:
    """Which of the scored tokens a model predicts, bool `[n, N]`; False where nothing is scored.

    Args:
        model: takes tokens int64 `[B, N]`, returns logits `[B, N, V]`; its largest logit is its answer.
        samples: of a task.
        device: where the tokens are put.

    Raises:
        TypeError, ValueError: no such model, samples or device, or logits of another form.
    """
    validation.function("model", model)
    validation.instance("samples", samples, Samples)
    device = validation.device("device", device)
    rows = max(1, AT_ONCE // samples.tokens.shape[1])
    right = np.zeros_like(samples.scored)
    for start in range(0, len(samples), rows):
        part = slice(start, start + rows)
        tokens = torch.from_numpy(samples.tokens[part].copy()).to(device)
        logits = validation.tensor("what the model returns", model(tokens))
        sizes = {"B": len(tokens), "N": tokens.shape[1]}
        validation.shaped(sizes, "what the model returns", logits, "B N V+")
        right[part] = logits.argmax(-1).cpu().numpy() == samples.targets[part]
    return right & samples.scored


def grid(
    model: Callable,
    task: Callable[..., Samples],
    *,
    lengths: Sequence[int],
    depths: Sequence[float | int] | None = None,
    n: int = 200,
    seed: int = 0,
    device: str = "cpu",
) -> pd.DataFrame:
    """Accuracy by length and depth.

    Args:
        model: takes tokens int64 `[B, N]`, returns logits `[B, N, V]`. It is read as it is: put it into
            evaluation mode before.
        task: of `sepnb.evaluation.tasks`, its other options bound, as in `partial(needle, text)`.
        lengths: tokens of the texts.
        depths: rising, from 0, the start of the text, to 1, its end before the questions. A task with an
            option `depth` puts the answer there; of the others, the answers nearest to a depth form its cell.
        n: samples for each length (and for each depth, where the task takes one).
        seed: of the samples.
        device: where the tokens are put.

    Returns:
        One row for each length and depth: `length`, `depth`, `distance` and `source_index` (means over its
        answers), `accuracy` by token, `exact_match` by answer, and `n` answers. A cell without answers has no
        row.

    Raises:
        TypeError, ValueError: lengths or depths of another kind, or what the task refuses.
    """
    for name, value in (("model", model), ("task", task)):
        validation.function(name, value)
    device = validation.device("device", device)
    depths = DEPTHS if depths is None else depths
    for depth in _listed("depths", depths):
        validation.number("depth", depth, 0, 1)
    if list(depths) != sorted(set(depths)):
        raise ValueError(f"depths {list(depths)} must be one or more, rising")
    tables = [
        by_depth(found(model, samples, device=device), at).assign(length=length)
        for length in _listed("lengths", lengths)
        for at, samples in drawn(task, n, length, depths, seed)
    ]
    return pd.concat(tables, ignore_index=True)[COLUMNS]


def _listed(name: str, value: Any) -> Sequence[Any]:
    """A sequence of at least one item, not a string."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError(f"{name} must be a list or a tuple, got {validation.shown(value)}")
    if not len(value):
        raise ValueError(f"{name} is empty; give at least one")
    return value


COLUMNS = ["length", "depth", "distance", "source_index", "accuracy", "exact_match", "n"]


def drawn(
    task: Callable[..., Samples], n: int, length: int, depths: Sequence[float | int], seed: int
) -> list[tuple[Sequence[float | int], Samples]]:
    """The samples of one length with the depths of their answers: `n` for each depth of a task that has the
    option, else `n` in all, at any."""
    if "depth" not in inspect.signature(task).parameters:
        return [(depths, task(n, length, seed=seed))]
    return [((depth,), task(n, length, seed=seed, depth=depth)) for depth in depths]


def found(model: Callable, samples: Samples, *, device: str = "cpu") -> pd.DataFrame:
    """What a model finds, one row for each answer of the samples.

    Columns: `distance` from the question back to the answer and `source_index`, where the answer stands, both
    in tokens (means of an answer of several); `depth` of it, from 0, the start of the text, to 1, its end
    before the first question; `accuracy`, the share of right tokens, and `exact_match`, 1.0 or 0.0.
    """
    right = answers(model, samples, device=device)
    row, index = np.nonzero(samples.scored)
    source = samples.source[row, index]
    first_question = samples.scored.argmax(axis=1)[row]
    tokens = {
        "distance": index - source,
        "source_index": source,
        "depth": source / (first_question - 1).clip(min=1),
        "accuracy": right[row, index],
    }
    means = {name: each.reshape(-1, samples.answer_length).mean(axis=1) for name, each in tokens.items()}
    return pd.DataFrame({**means, "exact_match": (means["accuracy"] == 1).astype(float)})


def by_depth(answers: pd.DataFrame, depths: Sequence[float | int]) -> pd.DataFrame:
    """Means over the answers nearest to each depth, and their number `n`; `answers` are those of `found`."""
    nearest = np.abs(answers["depth"].to_numpy()[:, None] - np.array(depths)).argmin(axis=1)
    cells = answers.assign(depth=np.array(depths)[nearest]).groupby("depth")
    return cells.mean().assign(n=cells.size()).reset_index()


def by_bins(answers: pd.DataFrame, column: str, edges: Sequence[int]) -> pd.DataFrame:
    """Means over the answers whose `column`, "distance" or "source_index", lies in [start, stop), for each
    pair of neighbouring edges that holds one: columns `start`, `stop`, `accuracy`, `exact_match`, `n`."""
    bins = np.searchsorted(edges, answers[column], side="right") - 1
    inside = (bins >= 0) & (bins < len(edges) - 1)
    cells = answers[inside].groupby(bins[inside])
    table = cells[["accuracy", "exact_match"]].mean().assign(n=cells.size())
    at = table.index.to_numpy()
    edges = np.asarray(edges)
    return table.assign(start=edges[at], stop=edges[at + 1]).reset_index(drop=True)
