"""A language-model run: build, train, score. Shared by every experiment on text.

Sizes are set per profile and are the same for every method; a method sets the streams and the encoding only,
so that two methods differ in what their names say.
"""

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache, partial
from math import log
from typing import Any

import numpy as np
import torch
from torch import nn

from ..data import text
from ..evaluation.losses import Losses, as_trained, evaluate
from ..models import LanguageModel, kernels
from ..records.provenance import Clock
from ..records.store import Record
from ..training.loop import Diverged, train
from ..training.positions import Batch
from .base import Progress, TrainedRun, recorded
from .resuming import forget, trained_in_pieces

FINGERPRINT_STEPS = 5
FIRST_STEPS: ContextVar[int] = ContextVar("the steps of a fingerprint", default=FINGERPRINT_STEPS)
"""Fewer where a small fingerprint is taken."""
FINGERPRINT_WINDOWS = 8
CURVE_POINTS = 24

Metrics = dict[str, float | int]
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class TextConfig:
    """The text of a run and how much of each held-out document is scored, in bytes."""

    name: str
    validation_bytes: int
    test_bytes: int


@dataclass(frozen=True)
class ModelSize:
    """What a profile fixes for every method: the model and the schedule."""

    width: int
    wide: int
    """The width at which a separated model has about as many parameters as the dense one of `width`."""
    n_layers: int
    n_heads: int
    length: int
    batch_size: int
    steps: int


@dataclass(frozen=True)
class Size(ModelSize):
    """The same, and the text."""

    text: TextConfig
    precision: str = "float32"
    compiler: str | None = None


SIZES = {
    "smoke": Size(64, 80, 2, 4, 64, 8, 120, TextConfig("sympy", 1024, 2048)),
    "laptop": Size(128, 160, 4, 4, 128, 8, 1200, TextConfig("eltec-eng", 8_192, 51_200)),
    "gpu": Size(
        384, 464, 6, 8, 256, 64, 2000, TextConfig("eltec-eng", 65_536, 262_144), "bfloat16", "inductor"
    ),
}


@dataclass(frozen=True)
class LanguageModelRun(TrainedRun):
    """The frozen config of one run."""

    text: TextConfig

    @property
    def data_sets(self) -> tuple[str, ...]:
        return (self.text.name,)

    @property
    def scored_length(self) -> int:
        """Bytes predicted in one window of the held-out text, inside the trained length."""
        return self.training.length


@lru_cache(maxsize=2)
def splits_of(name: str) -> text.Splits:
    return text.load(name)


@lru_cache(maxsize=2)
def _entropies(name: str) -> text.Entropies:
    splits = splits_of(name)
    return text.entropies(splits.train, splits.test)


def build(config: LanguageModelRun) -> LanguageModel:
    """The untrained model of a run."""
    torch.manual_seed(config.seed)
    return LanguageModel(config.model)


def batches(config: LanguageModelRun) -> Iterator[np.ndarray | Batch]:
    """The same batches in the same order for every method of a seed that does not choose its own."""
    training = config.training
    draw = text.sample_batches if training.positions is None else training.positions.batches
    return draw(
        splits_of(config.text.name).train,
        batch_size=training.batch_size,
        length=training.length,
        seed=config.seed,
        steps=training.steps,
    )


def score(
    config: LanguageModelRun,
    model: LanguageModel,
    split: text.Text,
    per_document: int,
    device: str,
    at_most: int | None = None,
) -> Losses:
    """What the model pays for the first `per_document` bytes of each document, in windows of the run; for the
    first `at_most` windows only."""
    windows = text.windows(split, length=config.scored_length, per_document=per_document)
    how = {"device": device, "precision": config.training.precision}
    reader = as_trained(model, config.training.positions)
    return evaluate(reader, windows.tokens[:at_most], windows.document[:at_most], **how)


def initial_score(config: LanguageModelRun, model: LanguageModel, device: str) -> list[float]:
    """Bits per byte of the model on the first validation windows: part of a fingerprint."""
    held_out, each = splits_of(config.text.name).validation, config.text.validation_bytes
    return [score(config, model, held_out, each, device, FINGERPRINT_WINDOWS).bits_per_byte]


def trained(config: TrainedRun, model: nn.Module, batches: Iterator[Any], **how: Any) -> list[float]:
    """Train a model in place, as every run does; returns its losses, in nats."""
    auxiliary = config.training.bound_auxiliary(config.seed)
    return train(model, batches, config.training, auxiliary=auxiliary, **how)


def attempted(
    config: TrainedRun,
    model: nn.Module,
    batches: Iterator[Any],
    device: str,
    progress: Progress | None,
    watch: Callable[[int], None] | None = None,
    pieces: Callable[..., tuple[list[float], float, int]] | None = None,
) -> tuple[list[float], Metrics]:
    """The losses of a training, in nats, and what every record says of it. One that diverged is a result like
    any other: it is kept, and has no score. One with a compiler says in how many steps compiled graphs ran,
    and how many in the last of them. `watch` is called after each step with how many were taken; `pieces`
    trains in place of `trained`, so that it can be resumed: see `resuming`."""
    training, counts = config.training, model.parameter_counts()
    compiled = kernels.CompiledSteps()

    def on_step(step: int) -> None:
        compiled.end_step()
        if watch is not None:
            watch(step + 1)
        if progress is not None:
            progress(step + 1, training.steps)

    metrics: Metrics = {
        "parameters": counts["total"],
        "block_parameters": counts["blocks"],
        "learning_rate": training.learning_rate,
    }
    begun, before = Clock(device), 0.0
    try:
        if pieces is None:
            losses = trained(config, model, batches, device=device, on_step=on_step)
        else:
            losses, before, step = pieces(device=device, on_step=on_step)
            metrics |= {"resumed_at_step": step} if step else {}
    except Diverged as error:
        losses = error.losses
        metrics["diverged_at_step"] = error.step
    if training.compiler is not None:
        metrics |= {"compiled_steps": compiled.steps, "graphs_a_step": compiled.graphs}
    metrics |= {f"train_{name}": seconds for name, seconds in begun.gpu_s.items()}
    return losses, metrics | {"train_cpu_s": round(before + begun.cpu_s, 3)}


def last(config: TrainedRun, losses: list[float]) -> float:
    """The mean loss of the last twentieth of a training, in nats."""
    return float(np.mean(losses[-max(1, config.training.steps // 20) :]))


def fingerprint(config: LanguageModelRun, *, device: str = "cpu") -> dict[str, list[float]]:
    """The untrained model's bits per byte, and the first training losses, in nats, of the run's schedule."""
    model = build(config)
    initial = initial_score(config, model, device)
    losses = trained(config, model, batches(config), device=device, stop_after=FIRST_STEPS.get())
    return {"initial_bits_per_byte": initial, "first_losses": losses}


def _curve(losses: list[float]) -> Rows:
    """The training losses in bits per byte, averaged over equal pieces of the schedule."""
    bits = np.array(losses) / log(2)
    pieces = np.array_split(np.arange(len(losses)), CURVE_POINTS)
    return [
        {"kind": "curve", "step": int(steps.mean()), "bits_per_byte": float(bits[steps].mean())}
        for steps in pieces
        if len(steps)
    ]


def run(
    config: LanguageModelRun,
    *,
    device: str = "cpu",
    progress: Progress | None = None,
    test: bool = True,
    after: Callable[[LanguageModel], tuple[Metrics, Rows]] | None = None,
    every: int | None = None,
) -> Record:
    """Train one model and score it on held-out text.

    Args:
        config: the run.
        device: where it is computed.
        progress: called as `progress(done, total)` after each training step.
        test: score the test text too; a screening reads the validation text only.
        after: what else is asked of the trained model, in metrics and rows; of one that diverged, nothing.
        every: steps after which a long training is kept, so that it can be resumed; None keeps nothing.
    """
    clock, splits = Clock(device), splits_of(config.text.name)
    model = build(config)
    initial = initial_score(config, model, device)
    pieces = None
    if every is not None:
        pieces = partial(
            trained_in_pieces,
            config,
            model,
            lambda: batches(config),
            every=every,
            data=splits.sha256,
            replayed=lambda: fingerprint(config, device=device)["first_losses"],
        )
    losses, metrics = attempted(config, model, batches(config), device, progress, pieces=pieces)
    rows = _curve(losses)
    if "diverged_at_step" not in metrics:
        validation = score(config, model, splits.validation, config.text.validation_bytes, device)
        metrics["val_bits_per_byte"] = validation.bits_per_byte
        metrics["train_bits_per_byte"] = last(config, losses) / log(2)
        asked = [_tested(config, model, splits, device)] if test else []
        asked += [after(model)] if after is not None else []
        for further, more in asked:
            metrics, rows = metrics | further, rows + more
    if every is not None:
        forget(config, splits.sha256, device)
    begins = {"initial_bits_per_byte": initial, "first_losses": losses[:FINGERPRINT_STEPS]}
    read = {"data": {config.text.name: splits.sha256}, "bytes_seen": config.training.targets}
    return recorded(config, clock, metrics, rows, begins, **read)


def _tested(
    config: LanguageModelRun, model: LanguageModel, splits: text.Splits, device: str
) -> tuple[Metrics, Rows]:
    """The score of the test text, and rows of it by position in a window and by document."""
    scored = score(config, model, splits.test, config.text.test_bytes, device)
    entropies = _entropies(config.text.name)
    length = config.scored_length
    edges = [0, *(2**k for k in range(length.bit_length()) if 2**k <= length)]
    names = [document.name for document in splits.test.documents]
    rows = [{"kind": "position", **row} for row in scored.by_position(edges)]
    rows += [{"kind": "document", **row, "document": names[row["document"]]} for row in scored.by_document()]
    return {
        "bits_per_byte": scored.bits_per_byte,
        "test_bytes": scored.bits.size,
        "unigram_bits_per_byte": entropies.unigram,
        "bigram_bits_per_byte": entropies.bigram,
    }, rows
