"""One timed experiment: steps of forward and backward passes, timed in turns in one process on one machine.

A run is one cell. Its fingerprint holds outputs, not speeds: it shows whether the computation changed. A
record is of the code of its own commit; `sepnb bench` shows what later changes cost or gain in time.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor

from ..analysis.timing import interleaved, paired_ratio
from ..models import LanguageModel, Transformer, TransformerConfig
from ..models.fast.kernels import check_compiler
from ..records.provenance import Clock
from ..records.store import Record, digest
from ..training.config import PRECISIONS
from ..training.device import autocast
from ..validation import one_of
from .base import Experiment
from .run import Metrics, Progress, Rows, recorded

Built = TypeVar("Built", Transformer, LanguageModel)
Step = Callable[[], Any]
Core = Callable[[], Sequence[Tensor]]
Steps = Mapping[str, Step]
Times = Mapping[str, Sequence[float]]
Ratios = Mapping[str, tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class TimedRun:
    """One cell, as data: what is timed, and what that comes to. A kind of cell is a frozen dataclass that
    adds its sizes, the steps, and the ratios that are told of their times.

    Args:
        experiment, profile: as in every run.
        length, batch_size: of what is computed.
        repeats: timed rounds.
        precision: of the forward passes, see `sepnb.training.PRECISIONS`.
        seed: draws weights and inputs.

    Raises:
        ValueError: an unknown precision, or a size below 1.
    """

    experiment: str
    profile: str
    length: int
    batch_size: int
    repeats: int
    precision: str = "float32"
    seed: int = 0

    compiler: ClassVar[str | None] = None
    """A backend of torch.compile, where a kind of cell has a field of this name."""

    def __post_init__(self) -> None:
        one_of("precision", self.precision, PRECISIONS)
        if min(self.length, self.batch_size) < 1:
            raise ValueError(f"length is {self.length} and batch_size {self.batch_size}; both are at least 1")

    @property
    @abstractmethod
    def cell(self) -> str:
        """The sizes, as a part of a file name."""

    @property
    def key(self) -> str:
        return f"{self.method}-{self.cell}-seed{self.seed}-{digest(self.resolved())[:8]}"

    def resolved(self) -> dict[str, Any]:
        return asdict(self)

    @abstractmethod
    def steps(self, device: str) -> Steps:
        """What is timed, by name."""

    def check(self, steps: Steps) -> None:
        """Raise RuntimeError where steps compute something else than they should, if a cell can tell."""

    @abstractmethod
    def ratios(self, times: Times) -> Ratios:
        """By column, two steps: its value is the time of the first over that of the second."""

    @abstractmethod
    def counted(self, times: Times, steps: Steps) -> Metrics:
        """What a record says besides: sizes, and what the multiply-adds allow."""

    def rows(self, times: Times) -> Rows:
        """The seconds of every round, a row each."""
        return [
            {"kind": "round", "repeat": repeat} | {f"{name}_s": s[repeat] for name, s in times.items()}
            for repeat in range(self.repeats)
        ]

    @abstractmethod
    def fingerprint(self, device: str) -> dict[str, list[float]]:
        """Numbers that the models put out, never compiled."""

    def normal(self, *shape: int, device: str) -> Tensor:
        """Inputs drawn with the seed of the run."""
        return torch.randn(shape, generator=torch.Generator().manual_seed(self.seed)).to(device)

    def tokens(self, length: int, device: str) -> Tensor:
        """A batch of tokens `[B, N]` drawn with the seed of the run."""
        generator = torch.Generator().manual_seed(self.seed)
        return torch.randint(256, (self.batch_size, length), generator=generator).to(device)

    def step(self, core: Core, leaves: Sequence[Tensor], gradients: Sequence[Tensor]) -> Step:
        """One forward and backward pass of `core`, whose outputs get these gradients; it returns the outputs
        and the gradients of the leaves."""

        def step() -> list[Tensor]:
            for leaf in leaves:
                leaf.grad = None
            with autocast(gradients[0].device.type, self.precision):
                outputs = core()
            torch.autograd.backward(outputs, [g.to(x.dtype) for g, x in zip(gradients, outputs, strict=True)])
            return [*(x.detach() for x in outputs), *(leaf.grad for leaf in leaves if leaf.grad is not None)]

        return step


def built(kind: type[Built], model: TransformerConfig, seed: int, device: str) -> Built:
    """A `Transformer` or a `LanguageModel` with weights of this seed."""
    torch.manual_seed(seed)
    return kind(model).to(device)


def run(config: TimedRun, *, device: str = "cpu", progress: Progress | None = None) -> Record:
    """Time one cell; on a CPU with one thread, whatever the process may use.

    Raises:
        CompilerMissing: a compiled step on a machine without a C++ compiler.
        RuntimeError: see `TimedRun.check`.
    """
    check_compiler(config.compiler, device)
    clock = Clock(device)
    if config.compiler is not None:
        torch.compiler.reset()  # a process that compiled many models before would fall back to eager
    steps = config.steps(device)
    config.check(steps)
    on_repeat = None if progress is None else lambda repeat: progress(repeat + 1, config.repeats)
    times = interleaved(steps, repeats=config.repeats, device=device, on_repeat=on_repeat)
    metrics: Metrics = {}
    for name, (above, below) in config.ratios(times).items():
        ratio = paired_ratio(times[above], times[below])
        metrics |= {name: ratio.median, f"{name}_lower": ratio.lower, f"{name}_upper": ratio.upper}
    metrics |= config.counted(times, steps) | {"timed_threads": 1}
    if config.compiler is not None:
        torch.compiler.reset()
    return recorded(config, clock, metrics, config.rows(times), config.fingerprint(device))


def fingerprint(config: TimedRun, *, device: str = "cpu", **_: object) -> dict[str, list[float]]:
    return config.fingerprint(device)


def plan(kind: type[TimedRun], experiment: str, profile: str, cell: dict[str, Any], seed: int) -> TimedRun:
    return kind(experiment=experiment, profile=profile, seed=seed, **cell)


def timed(kind: type[TimedRun], cells: Callable[..., Sequence[dict[str, Any]]], **about: Any) -> Experiment:
    """An experiment whose runs are timed. It runs after all that computes: it is timed best when nothing else
    does.

    Args:
        kind: the class of its configs.
        cells: their fields, called with the profile and the methods of it.
    """
    how = {"plan": partial(plan, kind), "crossed": cells, "computes": run, "begins": fingerprint}
    return Experiment(**{"order": 10, "seeds": (0,), "alone": True} | how | about)
