"""What language models are trained on and scored by: a text. Shared by every experiment on texts.

Sizes are set per profile and are the same for every method; a method sets the streams and the encoding only,
so that two methods differ in what their names say.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import Any

import numpy as np

from ..data import text
from ..evaluation.losses import Losses, as_trained, evaluate
from ..models import LanguageModel
from ..training.batch import Batch
from ..training.config import TrainingConfig
from .run import HERE, At, Data, Fingerprint, Found, Measure, Rows, Run, last

FINGERPRINT_WINDOWS = 8
CURVE_POINTS = 24


@dataclass(frozen=True)
class TextConfig(Data):
    """The text of a run and how much of each held-out document is scored, in bytes; `window`, the bytes that
    are predicted in one window of it (None: as many as in training), is no setting of its own."""

    name: str
    validation_bytes: int
    test_bytes: int
    window: int | None = None

    @property
    def data_sets(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def splits(self) -> text.Splits:
        return splits_of(self.name)

    def resolved(self) -> dict[str, Any]:
        scored = {"validation_bytes": self.validation_bytes, "test_bytes": self.test_bytes}
        return {"text": {"name": self.name, **scored}}

    def model(self, config: Run) -> LanguageModel:
        return LanguageModel(config.model)

    def batches(self, config: Run) -> Iterator[np.ndarray | Batch]:
        return windows_of(self.splits.train, config.training, config.seed)

    def begins(self, config: Run, model: LanguageModel, device: str) -> Fingerprint:
        scored = score(config, model, "validation", device, FINGERPRINT_WINDOWS)
        return {"initial_bits_per_byte": [scored.bits_per_byte]}

    def ends(
        self, config: Run, model: LanguageModel | None, losses: list[float], watch: Any, device: str
    ) -> Found:
        metrics = {}
        if model is not None:
            paid = score(config, model, "validation", device).bits_per_byte
            metrics = {"val_bits_per_byte": paid, "train_bits_per_byte": last(config, losses) / log(2)}
        return metrics, _curve(losses)

    def sources(self, config: Run, trainings: Sequence[TrainingConfig]) -> dict[str, Any]:
        seen = sum(training.targets for training in trainings)
        return {"data": {self.name: self.splits.sha256}, "bytes_seen": seen}


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
    "smoke": Size(64, 80, 2, 4, 64, 8, 60, TextConfig("sympy", 256, 512)),
    "laptop": Size(128, 160, 4, 4, 128, 8, 1200, TextConfig("eltec-eng", 8_192, 51_200)),
    "gpu": Size(
        384, 464, 6, 8, 256, 64, 2000, TextConfig("eltec-eng", 65_536, 262_144), "bfloat16", "inductor"
    ),
}


splits_of = lru_cache(maxsize=2)(text.load)


@lru_cache(maxsize=2)
def _entropies(name: str) -> text.Entropies:
    splits = splits_of(name)
    return text.entropies(splits.train, splits.test)


def windows_of(held: text.Text, training: TrainingConfig, seed: int) -> Iterator[np.ndarray | Batch]:
    """The windows of a text that a training reads, with their positions where it draws some."""
    draw = text.sample_batches if training.positions is None else training.positions.batches
    sizes = {"batch_size": training.batch_size, "length": training.length, "steps": training.steps}
    return draw(held, seed=seed, **sizes)


def score(config: Run, model: LanguageModel, split: str, device: str, at_most: int | None = None) -> Losses:
    """The losses on the first bytes of each document of "validation" or "test", as many as the run sets, in
    windows of the run; if given, on the first `at_most` windows only."""
    of = config.data
    length, each = of.window or config.training.length, getattr(of, f"{split}_bytes")
    cut = text.windows(getattr(of.splits, split), length=length, per_document=each)
    how = {"device": device, "precision": config.training.precision}
    reader = as_trained(model, config.training.positions)
    return evaluate(reader, cut.tokens[:at_most], cut.document[:at_most], **how)


def _curve(losses: list[float]) -> Rows:
    """The training losses in bits per byte, averaged over equal pieces of the schedule."""
    bits = np.array(losses) / log(2)
    pieces = np.array_split(np.arange(len(losses)), CURVE_POINTS)
    return [
        {"kind": "curve", "step": int(steps.mean()), "bits_per_byte": float(bits[steps].mean())}
        for steps in pieces
        if len(steps)
    ]


@dataclass(frozen=True)
class Inside(Measure):
    """The score of the test text inside the trained length, and rows of it by position in a window and by
    document. What chooses a method must not read it."""

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        of, scored = config.data, score(config, model, "test", at.device)
        entropies, length = _entropies(of.name), of.window or config.training.length
        edges = [0, *(2**k for k in range(length.bit_length()) if 2**k <= length)]
        names = [document.name for document in of.splits.test.documents]
        rows = [{"kind": "position", **row} for row in scored.by_position(edges)]
        rows += [
            {"kind": "document", **row, "document": names[row["document"]]} for row in scored.by_document()
        ]
        return {
            "bits_per_byte": scored.bits_per_byte,
            "test_bytes": scored.bits.size,
            "unigram_bits_per_byte": entropies.unigram,
            "bigram_bits_per_byte": entropies.bigram,
        }, rows


INSIDE = Inside()
