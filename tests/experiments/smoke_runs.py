"""Smoke runs of any experiment, shortened for a test, and what tells two runs apart."""

import dataclasses
import math
from typing import Any, TypeVar

import numpy as np
import torch

from sepnb.experiments import language_modelling as lm
from sepnb.experiments.base import TrainedRun
from sepnb.records.settings import flattened
from sepnb.records.store import Record

Run = TypeVar("Run", bound=lm.LanguageModelRun)


def shortened(config: Run, steps: int, **changes: Any) -> Run:
    """A run with fewer steps and hardly any text to score: every step and every window is the same code."""
    return dataclasses.replace(
        config,
        training=dataclasses.replace(config.training, steps=steps),
        text=dataclasses.replace(config.text, validation_bytes=64, test_bytes=128),
        **changes,
    )


def differing(one: TrainedRun, other: TrainedRun) -> set[str]:
    """The settings, by dotted name, in which two runs differ."""
    a, b = flattened(one.resolved()), flattened(other.resolved())
    return {key for key in a.keys() | b.keys() if a.get(key) != b.get(key)}


def assert_same(one: Record, other: Record) -> None:
    """Two records of one run are equal, but for the time that was spent."""
    spent = {"train_cpu_s": 0.0}
    assert one.metrics | spent == other.metrics | spent
    assert one.rows == other.rows and one.fingerprint == other.fingerprint


def bits_of(model: torch.nn.Module, windows: np.ndarray) -> np.ndarray:
    """Bits per byte of windows `[n, N+1]` but for the first byte, by the plain formula: `[n, N]`."""
    tokens = torch.from_numpy(windows)
    with torch.no_grad():
        p = model(tokens[:, :-1]).double().log_softmax(-1)
    return (-p.gather(-1, tokens[:, 1:, None])[..., 0] / math.log(2)).numpy()
