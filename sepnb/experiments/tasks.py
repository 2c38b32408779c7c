"""Tasks whose answer stands in the text: train a model on one at its trained length L, then test it in texts
of up to 16 L, by length, depth, distance, and index of the answer.

A run learns from samples that are all new. Its first steps read twice as many texts of half the length, which
shortens the plateau before a task is learned; all methods take the same steps. Held-out samples are the same
for all.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from itertools import islice, repeat
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn

from ..data import registry
from ..evaluation import tasks
from ..evaluation.losses import as_trained
from ..evaluation.tasks.grid import by_bins, by_depth, drawn, found
from ..models import LanguageModel
from ..records.settings import without_defaults
from ..training.batch import Batch
from ..training.config import TrainingConfig
from ..training.device import autocast
from . import language_modelling as lm
from .run import HERE, At, Data, Fingerprint, Found, Measure, Metrics, Rows, Run, last

TRAINING_SEEDS = 1_000_000
"""Seeds of held-out samples lie below this, those of every stage of a training in a range of their own."""

VALIDATION_SEED, TEST_SEED = 1, 2
BINNED = ("distance", "source_index")
CHUNK = 16
"""Steps whose samples are drawn at once."""

FAR, NEAR = (4, 8), (0, 1)
"""Answers so many trained lengths back, in texts of eight, are told apart: the far ones decide what a model
uses."""

LEARNED = (0.9, 0.95)
"""Accuracies whose first step is told."""


@dataclass(frozen=True)
class Asked(Data):
    """What is asked, and how much.

    Args:
        task: a name in `SAMPLES`.
        text: the data set of its texts or stories; None for a task that has none.
        text_share: the training weight of all tokens of a batch that are not answers, if all answers together
            have weight 1.
        short_steps: how many of the steps read texts of L/2.
        queries: in a training text, of a task in which this can be chosen.
        watched: accuracy is told every so many steps, on `validation` samples of the length that is trained.
        times: lengths of the texts that are asked afterwards, in trained lengths.
        samples: of each of these lengths; of a task that is asked by depth, of each depth.
        depths: where answers stand, see `sepnb.evaluation.tasks.grid`.
        story: of stories, how many statements answer, 1, 2 or 3: the task of bAbI. None where there is no
            story.
        statements: the most of a story, see `sepnb.evaluation.tasks.questions`.
    """

    task: str
    short_steps: int
    text: str | None = None
    text_share: float = 0.0
    queries: int | None = None
    watched: int = 50
    validation: int = 64
    times: tuple[int, ...] = (1, 2, 4, 8, 16)
    samples: int = 128
    depths: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    story: int | None = None
    statements: int | None = None

    def resolved(self) -> dict[str, Any]:
        """Every field; `story` and `statements` only where there is a story."""
        return {"asked": without_defaults(asdict(self), story=None, statements=None)}

    @property
    def data_sets(self) -> tuple[str, ...]:
        return () if self.text is None else (self.text,)

    def generator(self, split: str) -> Callable[..., tasks.Samples]:
        """The task, called as `(n, length, seed=...)`, on the texts of a split."""
        return SAMPLES[self.task](self, split)

    def held_out(self, length: int) -> tasks.Samples:
        """Validation samples of a length."""
        return self.generator("validation")(self.validation, length, seed=VALIDATION_SEED)

    def stages(self, training: TrainingConfig) -> tuple[tuple[int, int, int], ...]:
        """Steps, texts in each, and their length: twice as many of half the length, then the others."""
        short, long = self.short_steps, training.steps - self.short_steps
        batch, length = training.batch_size, training.length
        return (short, 2 * batch, length // 2), (long, batch, length)

    def model(self, config: Run) -> LanguageModel:
        return LanguageModel(config.model, self.held_out(config.training.length).vocab_size)

    def batches(self, config: Run) -> Iterator[Batch]:
        for stage, (steps, batch, length) in enumerate(self.stages(config.training)):
            if steps:
                first = TRAINING_SEEDS * (2 + 2 * config.seed + stage)
                yield from self._stage(config, first, steps, batch, length, stage * self.short_steps)

    def _stage(
        self, config: Run, first: int, steps: int, batch: int, length: int, before: int
    ) -> Iterator[Batch]:
        """The steps of a stage, `before` of which were taken earlier. Positions are drawn anew from its
        start, unless losses beside the task count the steps of the whole run by the same draws."""
        positions, generate = config.training.positions, self.generator("train")
        taken = before if config.training.auxiliary is not None else 0
        sizes = {"batch_size": batch, "length": length, "seed": config.seed, "steps": taken + steps}
        at = repeat(None) if positions is None else islice(positions.positions(**sizes), taken, None)
        for start in range(0, steps, CHUNK):
            samples = generate(CHUNK * batch, length, seed=first + start)
            weights = self.weights(samples)
            for step in range(min(CHUNK, steps - start)):
                rows = slice(step * batch, (step + 1) * batch)
                yield Batch(samples.tokens[rows], samples.targets[rows], next(at), weights[rows])

    def weights(self, samples: tasks.Samples) -> np.ndarray:
        """What each token counts in training."""
        other = self.text_share * samples.scored.sum() / (~samples.scored).sum()
        return np.where(samples.scored, 1.0, other).astype(np.float32)

    def begins(self, config: Run, model: nn.Module, device: str) -> Fingerprint:
        held_out = self.held_out(config.training.length)
        return {"initial_nats": [score(config, model, held_out, device)["nats"]]}

    def watch(self, config: Run, model: LanguageModel, device: str) -> "Learning":
        return Learning(config, model, device)

    def ends(
        self,
        config: Run,
        model: LanguageModel | None,
        losses: list[float],
        watch: "Learning",
        device: str,
    ) -> Found:
        if model is None:
            return {}, watch.rows
        scored = score(config, model, self.held_out(config.training.length), device)
        metrics = {"steps": config.training.steps, "train_nats": last(config, losses)} | watch.metrics()
        return metrics | {f"val_{name}": value for name, value in scored.items()}, watch.rows

    def sources(self, config: Run, trainings: Sequence[TrainingConfig]) -> dict[str, Any]:
        read = {name: registry.get(name).sha256 for name in self.data_sets}
        seen = sum(one.targets for one in trainings) if read and self.story is None else 0  # stories: words
        return {"data": read, "bytes_seen": seen}


@lru_cache(maxsize=4)
def haystack(name: str, split: str) -> np.ndarray:
    """The documents of a split one after another, uint8, with braces turned into parentheses: what looks like
    a needle is one."""
    documents = getattr(lm.splits_of(name), split).documents
    joined = b"".join(document.data.tobytes() for document in documents)
    return np.frombuffer(joined.translate(bytes.maketrans(b"{}", b"()")), np.uint8)


def _needle(asked: Asked, split: str) -> Callable[..., tasks.Samples]:
    return partial(tasks.needle, haystack(asked.text, split), queries=asked.queries)


def _questions(asked: Asked, split: str) -> Callable[..., tasks.Samples]:
    of = {"split": split, "statements": asked.statements, "data_set": asked.text}
    return partial(tasks.questions, asked.story, **of)


SAMPLES: Mapping[str, Callable[[Asked, str], Callable[..., tasks.Samples]]] = {
    "mqar": lambda *_: tasks.mqar,
    "latest_value": lambda *_: tasks.latest_value,
    "needle": _needle,
    "indirect_index": lambda *_: tasks.indirect_index,
    "questions": _questions,
}
"""The generator of a task for a split: "train", "validation" or "test"."""


@torch.no_grad()
def score(config: Run, model: nn.Module, samples: tasks.Samples, device: str) -> dict[str, float]:
    """Nats of an answer's token, and the share of right ones, read as trained."""
    reader = as_trained(model, config.training.positions)
    with autocast(device, config.training.precision):
        logits = reader(torch.from_numpy(samples.tokens.copy()).to(device)).float().cpu()
    asked = torch.from_numpy(samples.scored)
    logits, targets = logits[asked], torch.from_numpy(samples.targets)[asked]
    right = (logits.argmax(-1) == targets).float().mean()
    return {"nats": F.cross_entropy(logits, targets).item(), "accuracy": right.item()}


class Learning:
    """Accuracy while a model is trained, on validation samples of the length that it is trained on then.

    `rows` tell it; `metrics` the first step at which it reached each of `LEARNED`, where it did.
    """

    def __init__(self, config: Run, model: LanguageModel, device: str) -> None:
        self.config, self.model, self.device = config, model, device
        self.rows: Rows = []

    def __call__(self, step: int) -> None:
        config = self.config
        of = config.data
        if step % of.watched:
            return
        length = of.stages(config.training)[step > of.short_steps][2]
        scored = score(config, self.model, of.held_out(length), self.device)
        self.rows.append({"kind": "learning", "step": step, "length": length, **scored})

    def metrics(self) -> Metrics:
        first = {
            level: next((row["step"] for row in self.rows if row["accuracy"] >= level), None)
            for level in LEARNED
        }
        return {f"steps_to_{level:g}": step for level, step in first.items() if step is not None}


def bins(config: Run, times: int) -> list[int]:
    """Edges of distances and of indices in a text of `times` L: 0, L, 2 L, 4 L and so on."""
    return [0, *(config.training.length * t for t in config.data.times if t < times), 2**40]


Readers = Callable[[int], Iterable[tuple[str, nn.Module]]]
"""The ways in which a text of so many trained lengths is read, by name."""


def asked(
    config: Run,
    model: LanguageModel,
    device: str,
    ways: Readers,
    apart: Sequence[int] = (FAR[1],),
) -> Found:
    """What the trained model finds in test samples: rows of the kinds "depth", "distance" and "source_index"
    by reader and length, and chance; metrics over all answers of a length, and over the near and the far
    ones: `near/<reader>` and `far/<reader>` in texts of 8 L, with `/<k>x` behind them in texts of k L.

    Args:
        ways: how each length is read.
        apart: the lengths, in L, of which near answers (less than L back) and far ones (half the text back or
            more) are told apart.
    """
    metrics, rows, ask = {}, [], config.data
    model.eval()
    for times in ask.times:
        length = times * config.training.length
        samples = drawn(ask.generator("test"), ask.samples, length, ask.depths, TEST_SEED)
        for guess in samples[0][1].chance:
            metrics[f"chance/{guess}/{times}x"] = float(np.mean([each.chance[guess] for _, each in samples]))
        for name, reader in ways(times):
            with autocast(device, config.training.precision):
                tables = [(at, found(reader, each, device=device)) for at, each in samples]
            every = pd.concat([table for _, table in tables])
            metrics[f"accuracy/{name}/{times}x"] = float(every["accuracy"].mean())
            metrics[f"exact_match/{name}/{times}x"] = float(every["exact_match"].mean())
            if times in apart:
                back, at = every["distance"] / config.training.length, f"/{times}x" * (times != FAR[1])
                for place, (least, most) in {"near": NEAR, "far": (times // 2, times)}.items():
                    there = every.loc[(back >= least) & (back < most), "accuracy"]
                    if len(there):  # a few samples may have no answer there
                        metrics[f"{place}/{name}{at}"] = float(there.mean())
            cells = [("depth", pd.concat([by_depth(table, at) for at, table in tables]))]
            cells += [(column, by_bins(every, column, bins(config, times))) for column in BINNED]
            rows += [
                {"kind": kind, "reader": name, "times": times, **row}
                for kind, table in cells
                for row in table.round(5).to_dict("records")
            ]
    return metrics, rows


@dataclass(frozen=True)
class Answers(Measure):
    """What the trained model finds in test samples, read in the ways of its method.

    Args:
        ways: called as `(method, model, positions, times)`.
    """

    ways: Callable[..., Iterable[tuple[str, nn.Module]]]

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        ways = partial(self.ways, config.method, model, config.training.positions)
        return asked(config, model, at.device, ways)
