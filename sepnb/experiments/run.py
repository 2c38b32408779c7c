"""A run as data, and the one way from its config to its record.

A run is one model, one training, what it is trained on, and what is measured of the trained model.
`record_of` reads from top to bottom: build, train, score, measure, record. A run can be computed anywhere and
in any order.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn

from .. import paths
from ..models import TransformerConfig
from ..records.provenance import Clock, code_state
from ..records.settings import plain
from ..records.store import Record, digest
from ..training import checkpoints
from ..training.checkpoints import Checkpoint
from ..training.compiled import CompiledSteps
from ..training.config import TrainingConfig
from ..training.device import optimiser
from ..training.loop import Diverged, train

FINGERPRINT_STEPS = 5

Progress = Callable[[int, int], None]
"""Called as `progress(done, total)` while a run computes."""
OWN = ("experiment", "profile", "method", "seed", "model", "training")
"""Fields of a run that a record holds by these names; data and measures say themselves what it holds."""

Metrics = dict[str, float | int]
Rows = list[dict[str, Any]]
Found = tuple[Metrics, Rows]
"""What is said of a model, as metrics and as rows."""
Fingerprint = dict[str, list[float]]


@dataclass(frozen=True)
class At:
    """Where a trained model is measured.

    Args:
        device: on which it is.
        start: of a training that several runs share, the state at its end.
        progress: called as `progress(done, looks)`.
    """

    device: str = "cpu"
    start: Checkpoint | None = None
    progress: Progress | None = None

    def done(self, looks: int) -> None:
        """Report that all looks of a measure are taken."""
        if self.progress is not None:
            self.progress(looks, looks)


HERE = At()


class Data(ABC):
    """What the models of an experiment are trained on and scored by: a text, a task, pictures. A subclass is
    a frozen dataclass; `config` is the run that asks."""

    data_sets: tuple[str, ...] = ()
    """Names of what has to be at hand."""

    @abstractmethod
    def resolved(self) -> dict[str, Any]:
        """What a record says of it, by the name that the record has for it."""

    @abstractmethod
    def model(self, config: "Run") -> nn.Module:
        """The model, with weights from the generator of the process."""

    @abstractmethod
    def batches(self, config: "Run") -> Iterator[Any]:
        """The same batches in the same order for every method of a seed that does not choose its own."""

    @abstractmethod
    def begins(self, config: "Run", model: nn.Module, device: str) -> Fingerprint:
        """What the untrained model pays: a part of the fingerprint."""

    @abstractmethod
    def ends(
        self, config: "Run", model: nn.Module | None, losses: list[float], watch: Any, device: str
    ) -> Found:
        """Metrics and rows of the training and, unless it diverged (`model` is None), of its model."""

    @abstractmethod
    def sources(self, config: "Run", trainings: Sequence[TrainingConfig]) -> dict[str, Any]:
        """Arguments of `recorded`: hashes of the data, and the bytes that these trainings read."""

    def watch(self, config: "Run", model: nn.Module, device: str) -> Callable[[int], None] | None:
        """A function to call after every step with the number of steps taken, or None."""
        return None

    def tokens(self, training: TrainingConfig) -> int:
        """Tokens of one input of the model in training."""
        return training.length


class Measure(ABC):
    """What is asked of a trained model. A subclass is a frozen dataclass."""

    tunings: tuple[TrainingConfig, ...] = ()
    """Further trainings of the trained model, as declared. A record counts their bytes in `bytes_seen`, and
    not those of rates that a run tried besides; its rows of the kind "tuning" have all."""

    def resolved(self) -> dict[str, Any]:
        """What a record says of it, by the names that the record has for it."""
        return {}

    looks: int = 0
    """How many steps of progress it reports."""

    @abstractmethod
    def __call__(self, config: "Run", model: Any, at: At = HERE) -> Found:
        """Metrics and rows of the trained model of a run."""

    def begins(self, config: "Run", start: Checkpoint, device: str, steps: int) -> Fingerprint:
        """Its part of the fingerprint of a run on a shared training, after the first `steps`."""
        return {}


Kind = TypeVar("Kind", bound=Measure)


@dataclass(frozen=True)
class Run:
    """The frozen config of a run that trains one model.

    Args:
        experiment, profile, method, seed: who declares it, and its cell of the grid.
        model, training: the configs of both.
        data: what it is trained on.
        measures: what is asked of the trained model, in this order.
        base: where several runs share one training, the run that is this training; None trains its own.
        besides: settings that a record holds by name and nothing else does.
        titled: what a table calls the run, see `label`.
    """

    experiment: str
    profile: str
    method: str
    seed: int
    model: TransformerConfig
    training: TrainingConfig
    data: Data
    measures: tuple[Measure, ...] = ()
    base: "Run | None" = None
    besides: tuple[tuple[str, Any], ...] = ()
    titled: str = "{name}, learning rate {rate:g}"

    @property
    def label(self) -> str:
        """What a table calls its row: `titled`, with its method, rate, steps and last measure."""
        about = {"name": self.method.replace("/", ", "), "rate": self.training.learning_rate}
        last = self.measures[-1] if self.measures else None
        return self.titled.format(**about, steps=self.training.steps, last=last)

    @property
    def key(self) -> str:
        """The file name of its record: readable, and different for every different config."""
        name = f"{self.method.replace('/', '-')}-lr{self.training.learning_rate:g}-seed{self.seed}"
        return f"{name}-{digest(self.resolved())[:8]}"

    @property
    def data_sets(self) -> tuple[str, ...]:
        return self.data.data_sets

    @property
    def tokens(self) -> int:
        """Tokens of one input of the model in training."""
        return self.data.tokens(self.training)

    def of(self, kind: type[Kind]) -> Kind:
        """Its one measure of this kind."""
        (measure,) = (measure for measure in self.measures if isinstance(measure, kind))
        return measure

    def resolved(self) -> dict[str, Any]:
        """Every setting in plain JSON types. What was added when records existed is left out at its default:
        the name of a record is a digest of this."""
        settings = {name: plain(getattr(self, name)) for name in OWN}
        for part in (self.data, *self.measures):
            settings |= part.resolved()
        return settings | dict(self.besides)

    def build(self) -> nn.Module:
        """The untrained model."""
        torch.manual_seed(self.seed)
        return self.data.model(self)

    def batches(self) -> Iterator[Any]:
        """All batches of the training."""
        return self.data.batches(self)


def record_of(config: Run, *, device: str = "cpu", progress: Progress | None = None) -> Record:
    """Train the model of a run, or take it from the run that shares its training, and measure it. A training
    that diverged is a result like any other: it is kept, and nothing is measured."""
    clock, done = Clock(device), config.training.steps
    total = done + sum(measure.looks for measure in config.measures)

    def report(before: int) -> Progress | None:
        return None if progress is None else lambda step, _: progress(before + step, total)

    get = _trained_here if config.base is None else _trained_before
    model, start, metrics, rows, fingerprint = get(config, device, report(0))
    for measure in config.measures if model is not None else ():
        own, more = measure(config, model, At(device, start, report(done)))
        metrics, rows, done = metrics | own, rows + more, done + measure.looks
    trainings = (config.training, *(tuning for measure in config.measures for tuning in measure.tunings))
    return recorded(config, clock, metrics, rows, fingerprint, **config.data.sources(config, trainings))


def _trained_here(
    config: Run, device: str, progress: Progress | None
) -> tuple[nn.Module | None, None, Metrics, Rows, Fingerprint]:
    data, model = config.data, config.build().to(device)
    fingerprint = data.begins(config, model, device)
    watch = data.watch(config, model, device)
    losses, metrics = attempted(config, model, device, progress, watch)
    ended = None if "diverged_at_step" in metrics else model
    own, rows = data.ends(config, ended, losses, watch, device)
    fingerprint["first_losses"] = losses[:FINGERPRINT_STEPS]
    return ended, None, metrics | own, rows, fingerprint


def _trained_before(
    config: Run, device: str, progress: Progress | None
) -> tuple[nn.Module | None, Checkpoint | None, Metrics, Rows, Fingerprint]:
    begun = fingerprint(config, device=device)
    metrics: Metrics = {"learning_rate": config.training.learning_rate}
    try:
        start = trained_once(config.base, device=device, progress=progress)
    except Diverged as error:
        return None, None, metrics | {"diverged_at_step": error.step}, [], begun
    metrics["train_cpu_s"] = start.cpu_s
    return restored(config, start, device), start, metrics, [], begun


def trained_once(base: Run, *, device: str = "cpu", progress: Progress | None = None) -> Checkpoint:
    """The training that several runs share, as the run `base`: made once and kept in `build/checkpoints` for
    the runs of one commit. A tree with uncommitted changes keeps none and takes none.

    Raises:
        Diverged: a loss is not finite.
    """
    commit, dirty = code_state()
    about = {"commit": commit, "data": base.data.sources(base, ()).get("data", {}), "device": device}
    about |= {"torch": str(torch.__version__), "config": base.resolved()}
    path = paths.build() / "checkpoints" / f"{digest(about)[:24]}{checkpoints.SUFFIX}"
    if dirty is False and (kept := checkpoints.kept(path, about)):
        return kept
    clock, training = Clock(device), base.training
    model = base.build().to(device)
    adamw = optimiser(model, training)
    on_step = None if progress is None else lambda step: progress(step + 1, training.steps)
    losses = trained(base, model, device=device, adamw=adamw, on_step=on_step)
    checkpoint = checkpoints.take(model, adamw, losses, about, cpu_s=clock.cpu_s)
    if dirty is False:
        checkpoints.save(path, checkpoint)
    return checkpoint


def restored(config: Run, start: Checkpoint, device: str) -> Any:
    """The trained model of a checkpoint, ready to be read."""
    model = config.build().to(device)
    checkpoints.restore(start, model, config.training)
    return model.eval()


def trained(config: Run, model: nn.Module, **how: Any) -> list[float]:
    """Train a model in place on the batches of a run; returns its losses, in nats.

    Args:
        how: as of `sepnb.training.train`.

    Raises:
        Diverged: a loss is not finite.
    """
    auxiliary = config.training.bound_auxiliary(config.seed)
    return train(model, config.batches(), config.training, auxiliary=auxiliary, **how)


def counts_of(model: Any) -> Metrics:
    """What a record says of the size of a model."""
    counts = model.parameter_counts()
    return {"parameters": counts["total"], "block_parameters": counts["blocks"]}


def attempted(
    config: Run,
    model: nn.Module,
    device: str,
    progress: Progress | None = None,
    watch: Callable[[int], None] | None = None,
) -> tuple[list[float], Metrics]:
    """Train a model; returns the losses, in nats, and the metrics of every record. With a compiler these say
    in how many steps compiled graphs ran, and how many graphs in the last. `watch` is called each step."""
    training, compiled = config.training, CompiledSteps()

    def on_step(step: int) -> None:
        if watch is not None:
            watch(step + 1)
        if progress is not None:
            progress(step + 1, training.steps)

    metrics = counts_of(model) | {"learning_rate": training.learning_rate}
    begun = Clock(device)
    try:
        losses = trained(config, model, device=device, on_step=on_step, runs=compiled)
    except Diverged as error:
        losses = error.losses
        metrics["diverged_at_step"] = error.step
    if training.compiler is not None:
        metrics |= {"compiled_steps": compiled.steps, "graphs_a_step": compiled.graphs}
    metrics |= {f"train_{name}": seconds for name, seconds in begun.gpu_s.items()}
    return losses, metrics | {"train_cpu_s": round(begun.cpu_s, 3)}


def fingerprint(config: Run, *, device: str = "cpu", steps: int = FINGERPRINT_STEPS) -> Fingerprint:
    """The first numbers of a run, in about a second: what the untrained model pays, the losses of the first
    `steps` of its schedule in nats and, on a shared training, what its measures begin with."""
    model = config.build().to(device)
    numbers = config.data.begins(config, model, device)
    adamw = optimiser(model, config.training)
    losses = trained(config, model, device=device, adamw=adamw, stop_after=steps)
    numbers["first_losses"] = losses
    if config.base is not None:
        start = checkpoints.take(model, adamw, losses, {})
        for measure in config.measures:
            numbers |= measure.begins(config, start, device, steps)
    return numbers


def last(config: Run, losses: list[float]) -> float:
    """The mean loss of the last twentieth of a training, in nats."""
    return float(np.mean(losses[-max(1, config.training.steps // 20) :]))


def recorded(
    config: Any,
    clock: Clock,
    metrics: Mapping[str, float | int],
    rows: Sequence[Mapping[str, Any]],
    fingerprint: Mapping[str, Sequence[float]],
    *,
    data: Mapping[str, str] | None = None,
    bytes_seen: int = 0,
) -> Record:
    """The record of a run that began when the clock did, with the hashes of its data and the bytes that it
    read in training: none, where all inputs are drawn."""
    facts = clock.facts(seed=config.seed, data=data or {}, bytes_seen=bytes_seen)
    return Record.of(config, metrics=metrics, rows=rows, fingerprint=fingerprint, provenance=facts)
