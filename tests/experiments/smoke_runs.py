"""Smoke runs of any experiment, shortened for a test, and what tells two runs apart."""

import dataclasses
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import torch

from sepnb import experiments
from sepnb.evaluation import protocols
from sepnb.evaluation.protocols import Protocol
from sepnb.experiments.long_windows import LongTexts
from sepnb.experiments.run import Run
from sepnb.models import LanguageModel
from sepnb.records.settings import flattened
from sepnb.records.store import Record
from sepnb.training import checkpoints
from sepnb.training.device import optimiser

from ..shared import MADE


@cache
def grid_of(name: str, profile: str) -> tuple[Any, ...]:
    """The runs of an experiment, built once for all tests that look through whole grids."""
    return tuple(experiments.get(name).grid(profile))


def shortened(config: Run, steps: int, **texts: Any) -> Run:
    """A run with fewer steps and hardly any text to score: every step and every window is the same code.

    Args:
        texts: what is changed of the texts that it reads past its trained length.
    """
    training = dataclasses.replace(config.training, steps=steps)
    data = dataclasses.replace(config.data, validation_bytes=64, test_bytes=128)
    config = dataclasses.replace(config, training=training, data=data)
    if not texts:
        return config
    old = texts_of(config)
    new = dataclasses.replace(old, **texts)
    measures = tuple(
        new if one == old else dataclasses.replace(one, texts=new) if hasattr(one, "texts") else one
        for one in config.measures
    )
    return dataclasses.replace(config, measures=measures)


def smoke(name: str, method: str, steps: int = 6, **changes: Any) -> Run:
    """A smoke run of any method of an experiment on texts, shortened."""
    return shortened(experiments.get(name).config("smoke", method, 1), steps, **changes)


def untrained(config: Run) -> LanguageModel:
    """An untrained model, with a table large enough for its position to be seen in the losses."""
    torch.manual_seed(0)
    model = LanguageModel(config.model)
    for table in model.transformer.input_encodings.parameters():
        torch.nn.init.normal_(table)
    return model.eval()


def texts_of(config: Run) -> LongTexts:
    """What a run reads past its trained length."""
    found = (getattr(one, "texts", one) for one in config.measures)
    return next(one for one in found if isinstance(one, LongTexts))


def unseen(config: Run, reading: Protocol) -> str:
    """The sides of a reading that the training of a run never showed."""
    longest = texts_of(config).beyond.longest
    return protocols.unseen(reading, config.model.encodings, config.training, longest=longest)


def with_measure(config: Run, **changes: Any) -> Run:
    """A run whose last measure is another in these fields."""
    *others, last = config.measures
    return dataclasses.replace(config, measures=(*others, dataclasses.replace(last, **changes)))


def untaught(config: Run, model: torch.nn.Module) -> checkpoints.Checkpoint:
    """The checkpoint of a model that took no step, and says that it paid something in one."""
    start = checkpoints.take(model, optimiser(model, config.training), [], {})
    return dataclasses.replace(start, losses=[6.0])


def differing(one: Any, other: Any) -> set[str]:
    """The settings, by dotted name, in which two runs or two configs differ."""
    a, b = flattened(one.resolved()), flattened(other.resolved())
    return {key for key in a.keys() | b.keys() if a.get(key) != b.get(key)}


def assert_same(one: Record, other: Record) -> None:
    """Two records of one run are equal, but for the time that was spent."""
    spent = {"train_cpu_s": 0.0}
    assert one.metrics | spent == other.metrics | spent
    assert one.rows == other.rows and one.fingerprint == other.fingerprint


def made(config: Any, rows: Sequence[dict[str, Any]] = (), **metrics: float) -> Record:
    """A record of a run that holds these metrics and rows, as if it had been computed."""
    provenance = {"dirty": False, "seed": config.seed, **MADE}
    return Record.of(config, metrics=metrics, rows=list(rows), fingerprint={}, provenance=provenance)


def bits_of(model: torch.nn.Module, windows: np.ndarray) -> np.ndarray:
    """Bits per byte of windows `[n, N+1]` but for the first byte, by the plain formula: `[n, N]`."""
    tokens = torch.from_numpy(windows)
    with torch.no_grad():
        p = model(tokens[:, :-1]).double().log_softmax(-1)
    return (-p.gather(-1, tokens[:, 1:, None])[..., 0] / math.log(2)).numpy()
