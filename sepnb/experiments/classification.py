"""A run that trains a classifier of things at places: build, train, ask. Shared by `images` and `volumes`."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Protocol

import numpy as np
from torch import nn

from ..models import TransformerConfig
from ..records.provenance import Clock
from ..records.store import Record
from ..training.loop import Diverged, Labelled, TrainingConfig, train
from .base import Experiment, Progress, RunConfig
from .language_modelling import FINGERPRINT_STEPS, Metrics, Rows


class ClassifierRun(RunConfig, Protocol):
    """What is needed of a run's config."""

    model: TransformerConfig
    training: TrainingConfig


class Classification(Experiment):
    """An experiment whose runs are classifiers; a subclass says which, what they read and what they are
    asked."""

    reads_test: ClassVar[bool] = True
    """Whether a run is asked what the test inputs are; a screening must not."""

    @abstractmethod
    def built(self, config: Any) -> nn.Module:
        """The untrained model of a run."""

    @abstractmethod
    def batches(self, config: Any) -> Iterator[Labelled]:
        """What it reads in training."""

    @abstractmethod
    def first(self, config: Any, model: nn.Module, device: str) -> list[float]:
        """Nats of a model on the first validation inputs: part of a fingerprint."""

    @abstractmethod
    def validated(self, config: Any, model: nn.Module, device: str) -> dict[str, float]:
        """Accuracy and nats on the validation inputs."""

    @abstractmethod
    def asked(self, config: Any, model: nn.Module, device: str) -> tuple[Metrics, Rows]:
        """Metrics and rows of the test inputs, in every reading."""

    def sources(self, config: Any) -> dict[str, Any]:
        """Hashes of the data, and how many bytes are read in training: of a run that draws all it reads,
        none."""
        return {"data": {}, "bytes_seen": 0}

    def run(self, config: Any, *, device: str = "cpu", progress: Progress | None = None) -> Record:
        clock, training = Clock(device), config.training
        model = self.built(config).to(device)
        fingerprint = {"initial_nats": self.first(config, model, device)}
        metrics, rows = _told(config, model), []
        begun = Clock(device)
        on_step = None if progress is None else lambda step: progress(step + 1, training.steps)
        try:
            losses = self._trained(config, model, device=device, on_step=on_step)
            metrics["train_cpu_s"] = begun.cpu_s
            metrics["train_nats"] = float(np.mean(losses[-max(1, training.steps // 20) :]))
            validation = self.validated(config, model, device)
            metrics |= {f"val_{name}": value for name, value in validation.items()}
            if self.reads_test:
                further, rows = self.asked(config, model, device)
                metrics |= further
        except Diverged as error:  # a result like any other: kept, and without a score
            losses = error.losses
            metrics["diverged_at_step"] = error.step
        return Record.of(
            config,
            metrics=metrics,
            rows=rows,
            fingerprint=fingerprint | {"first_losses": losses[:FINGERPRINT_STEPS]},
            provenance=clock.facts(seed=config.seed, **self.sources(config)),
        )

    def fingerprint(self, config: Any, *, device: str = "cpu") -> dict[str, list[float]]:
        """The untrained model's nats, and the first training losses of the run's schedule."""
        model = self.built(config).to(device)
        initial = self.first(config, model, device)
        losses = self._trained(config, model, device=device, stop_after=FINGERPRINT_STEPS)
        return {"initial_nats": initial, "first_losses": losses}

    def _trained(self, config: Any, model: nn.Module, **how: Any) -> list[float]:
        auxiliary = config.training.bound_auxiliary(config.seed)
        return train(model, self.batches(config), config.training, auxiliary=auxiliary, **how)


def _told(config: ClassifierRun, model: nn.Module) -> Metrics:
    """What is known of a run before its first step."""
    counts = model.parameter_counts()
    metrics: Metrics = {
        "parameters": counts["total"],
        "block_parameters": counts["blocks"],
        "learning_rate": config.training.learning_rate,
    }
    if config.training.positions is not None:
        met = config.training.positions.coverage(seed=config.seed, steps=config.training.steps)
        metrics |= {f"covered_{what}": share for what, share in met.items()}
    return metrics
