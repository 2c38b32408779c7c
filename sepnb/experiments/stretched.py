"""Chapter 12: can positions be slowed down in a model that was not trained for it, so that it reads further?

A run trains a model as its task does, at the trained length L, and leaves the weights alone. Texts of k L are
then read at positions k times as slow, by one of `READINGS`, which validation texts of 8 L choose for each
trained model. Beside it the model reads them as it was trained, and through a window of L keys.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch import nn

from ..data import registry
from ..models import LanguageModel
from ..records.provenance import Clock
from ..records.store import Record
from ..training import checkpoints
from ..training.checkpoints import Checkpoint
from ..training.loop import Diverged, train
from . import language_modelling as lm
from . import tasks
from .ablation import COMPARED
from .base import Progress, recorded
from .methods import SPINE, Method
from .readings import CHOSEN_AT, READINGS, read_by
from .sweep import MedianSweep, Sweep, Swept
from .task_grid import ALIKE, GRIDS, run_of
from .tasks import TaskRun
from .trained_once import trained_once
from .variant_methods import VARIANTS

METHODS: dict[str, Method] = {
    name: {**SPINE, **COMPARED, **VARIANTS}[name]
    for name in (
        *("sinusoidal", "concatenated-sinusoidal", "separated-sinusoidal", "rope"),
        *("separated-sinusoidal-constant", "strict-sinusoidal"),
        *("separated-sinusoidal-wide", "separated-phase"),
    )
}
"""One sinusoid added to the content, put beside it, and in a stream of its own; RoPE; then a stream that
stays as it is, one that never reads the text, the separated model with dense's parameters, and the one with a
content-to-position term."""

MAIN = ("sinusoidal", "concatenated-sinusoidal", "separated-sinusoidal", "rope")
"""What the rules compare: twelve seeds. The others have six."""

TIMES = (1, 2, 4, 8, 16, 32)
NATIVE, WINDOW, APART = (1, 2, 4, 8, 16), (8, 16), (8, 16, 32)
"""Lengths that are read as trained, through a window, and of which near and far answers are told apart."""

RATES = (7.5e-4, 1.5e-3, 3e-3, 6e-3)
TASKS = {
    grid.name: grid for grid in GRIDS if grid.name in ("mqar", "latest_value", "needle", "indirect_index")
}


@dataclass(frozen=True)
class StretchedRun(TaskRun):
    """A training on a task, and the readings among which validation samples choose."""

    readings: tuple[str, ...] = READINGS

    @property
    def base(self) -> TaskRun:
        """The training alone, which the runs of `adapted` share."""
        own = {name: getattr(self, name) for name in TaskRun.__dataclass_fields__}
        alike = {"experiment": "trained", "method": self.method.split("/")[0]}
        return TaskRun(**own | alike | {"asked": replace(self.asked, times=(1,))})


def trained(config: StretchedRun, device: str, progress: Progress | None = None) -> Checkpoint:
    """The trained model of a run. Diverged: a loss is not finite."""
    data = {name: registry.get(name).sha256 for name in config.data_sets}
    how = {"data": data, "device": device, "progress": progress}
    return trained_once(config.base, tasks.build, tasks.batches, **how)


def restored(config: StretchedRun, start: Checkpoint, device: str) -> LanguageModel:
    """The trained model, ready to be read."""
    model = tasks.build(config).to(device)
    checkpoints.restore(start, model, config.training)
    return model.eval()


def chosen(config: StretchedRun, model: LanguageModel, device: str) -> tuple[str, lm.Rows]:
    """The reading of the least nats on validation samples of 8 L, and a row of each."""
    samples = config.validation(CHOSEN_AT * config.training.length)
    scores = {
        name: tasks.score(config, read_by(model, name, CHOSEN_AT), samples, device)
        for name in config.readings
    }
    rows = [{"kind": "reading", "reading": name, **score} for name, score in scores.items()]
    return min(scores, key=lambda name: scores[name]["nats"]), rows


def look(
    config: StretchedRun, model: LanguageModel, start: Checkpoint, device: str
) -> tuple[lm.Metrics, lm.Rows]:
    """The answers that the trained model finds: as trained, through a window, and stretched."""
    reading, rows = chosen(config, model, device)

    def ways(times: int) -> Iterator[tuple[str, nn.Module]]:
        if times in NATIVE:
            yield "native", model
        if times in WINDOW:
            yield "window", model.extended(window=config.training.length)
        if times > 1:
            yield "stretched", read_by(model, reading, times)

    metrics, more = tasks.asked(config, model, device, ways, APART)
    return metrics | {"reading": READINGS.index(reading)}, rows + more


class Stretched(Swept):
    """Does a trained model find answers in longer texts once its positions are slowed down, and nothing else
    is changed?"""

    order = 9
    seeds = (*range(1, 7), *range(9, 15))
    """Twelve, without those that chose the rates."""
    smoke = ("separated-sinusoidal",)

    def __init__(self, task: str) -> None:
        grid = TASKS[task]
        self.task, self.name = task, f"stretched_{task}"
        self.title = f"Positions slowed down: {grid.title.lower()}"
        self.methods = tuple(METHODS)
        self.costs = {"smoke": 3.0, "laptop": grid.costs["laptop"] + 50}
        self.sweep = MedianSweep(
            f"{self.name}_sweep",
            title=f"Learning rates of slowed positions: {grid.title.lower()}",
            order=8,
            methods=self.methods,
            smoke=self.smoke,
            config_of=partial(base_of, task=task),
            costs=grid.costs,
            rates=tuple(2 * rate for rate in RATES) if task == "indirect_index" else RATES,
            score="val_nats",
            alike=ALIKE,
            default=1.5e-3,
            computes=tasks.run,
            begins=tasks.fingerprint,
        )

    def seeds_of(self, profile: str, cell: Any) -> tuple[int, ...]:
        every = super().seeds_of(profile, cell)
        return every if cell in MAIN else every[:6]

    def config(self, profile: str, cell: str, seed: int) -> StretchedRun:
        run = self.sweep.tuned(self.name, profile, cell, seed)
        return StretchedRun(**vars(run) | {"asked": replace(run.asked, times=TIMES)})

    def sweep_of(self, config: Any) -> tuple[Sweep, str]:
        return self.sweep, config.method

    def run(self, config: StretchedRun, *, device: str = "cpu", progress: Progress | None = None) -> Record:
        self.refuse(config)
        return measured(config, self.fingerprint(config, device=device), look, device, progress)

    def fingerprint(self, config: StretchedRun, *, device: str = "cpu") -> dict[str, list[float]]:
        """That of the training; and of the model after these first steps its nats under a slowed reading."""
        model = tasks.build(config).to(device)
        held_out = config.validation(config.training.length)
        initial = tasks.score(config, model, held_out, device)["nats"]
        how = {"device": device, "stop_after": lm.FIRST_STEPS.get()}
        losses = train(model, tasks.batches(config), config.training, **how)
        longer = config.validation(2 * config.training.length)
        slowed = tasks.score(config, read_by(model.eval(), "parts-1-32-log", 2), longer, device)["nats"]
        return {"initial_nats": [initial], "first_losses": losses, "slowed_nats": [slowed]}


def measured(
    config: StretchedRun,
    fingerprint: dict[str, list[float]],
    look: Any,
    device: str,
    progress: Progress | None,
) -> Record:
    """The record of a run: its training, and what `look` asks of the trained model."""
    clock = Clock(device)
    metrics: lm.Metrics = {"learning_rate": config.training.learning_rate}
    rows: lm.Rows = []
    try:
        start = trained(config, device, progress)
    except Diverged as error:  # a result like any other: kept, and without a score
        metrics["diverged_at_step"] = error.step
    else:
        model = restored(config, start, device)
        counts = model.parameter_counts()
        metrics |= {"train_cpu_s": start.cpu_s, "train_nats": lm.last(config, start.losses)}
        metrics |= {"parameters": counts["total"], "block_parameters": counts["blocks"]}
        more, rows = look(config, model, start, device)
        metrics |= more
    read_from = {name: registry.get(name).sha256 for name in config.data_sets}
    trainings = (config.training, *getattr(config, "tunings", ()))
    seen = sum(one.targets for one in trainings) if read_from else 0
    return recorded(config, clock, metrics, rows, fingerprint, data=read_from, bytes_seen=seen)


def base_of(experiment: str, profile: str, method: str, seed: int, rate: float, *, task: str) -> TaskRun:
    """The training of a method on a task. What adds position to content is drawn at the scale that the sweep
    of the task chose for it."""
    run, known = run_of(experiment, profile, method, seed, rate, task=task), TASKS[task].sweep
    return known.settled(profile, method, run) if method in known.methods else run


EXPERIMENTS = tuple(map(Stretched, TASKS))
