"""Chapter 19: the experiments that ask trained models for what stands in their text, one a task.

Every method has a learning rate of its own for every task, by the sweep of that task, and a scale of its own
where it adds position to content or has a table of positions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from ..models import TransformerConfig
from ..streams import Streams
from ..training.config import TrainingConfig
from . import language_modelling as lm
from .base import Experiment
from .methods import changed
from .run import Run
from .sweep import Sweep
from .task_methods import FEW, METHODS, PLACES, WITH_EQUALS, readers
from .tasks import Answers, Asked

SIZES = {
    "smoke": lm.ModelSize(32, 40, 2, 4, 64, 2, 12),
    "laptop": lm.ModelSize(64, 80, 2, 4, 64, 32, 1500),
    "gpu": lm.ModelSize(128, 160, 4, 8, 256, 32, 8000),
}
ON_GPU = {"precision": "bfloat16", "compiler": "inductor"}
LEAST = {"validation": 4, "samples": 1, "depths": (0.1, 0.5, 0.9), "watched": 6}
"""Of a smoke run."""
OFFLINE = {"eltec-eng": "sympy", "babi": "simulated-stories"}
"""What a smoke run reads in the place of a data set: it needs no download."""

RATES = (7.5e-4, 1.5e-3, 3e-3)
ALIKE = 0.01
"""Nats of an answer; a task that is solved leaves less."""


GUESSES = {"mqar": ("sinusoidal-content-gap",)}
"""Methods that guess at every rate and scale, by task: that their best one stands at an end says nothing."""


class Task(NamedTuple):
    """A task, the methods that learn it, and how long they train.

    Fields: `title`; `methods`; `steps` of a laptop's run, two thirds of them on texts of half the length; the
    rough `seconds` of such a run; the trained `length` on a laptop; `asked`, further arguments of `Asked`;
    `batches`, a factor on the texts of a step, if a text has one answer only; the `rates` that are tried;
    `gpu_steps`, the steps on a GPU, and `gpu_samples`, its samples at each depth, if fewer.
    """

    title: str
    methods: tuple[str, ...]
    steps: int
    seconds: float
    length: int = 64
    asked: Mapping[str, Any] = {}
    batches: int = 1
    rates: tuple[float, ...] = RATES
    gpu_steps: int = 8000
    gpu_samples: int | None = None


NOVELS = {"text": "eltec-eng", "text_share": 0.1, "queries": 4, "samples": 32}
STORIES = {"text": "babi", "text_share": 0.1, "story": 1, "statements": 2}

TASKS: dict[str, Task] = {
    "mqar": Task("Recall by content", tuple(METHODS), 1500, 60.0),
    "latest_value": Task("The latest value of a key", tuple(METHODS), 1500, 60.0),
    "needle": Task(
        "Needles in novels", tuple(WITH_EQUALS), 1000, 100.0, 128, NOVELS, gpu_steps=4000, gpu_samples=8
    ),
    "indirect_index": Task("Find, and go some places on", PLACES, 6000, 200.0, rates=(1.5e-3, 3e-3, 6e-3)),
    "questions": Task(
        "Questions over stories",
        (*FEW, "seqpe"),
        1500,
        180.0,
        48,
        STORIES | {"validation": 256, "samples": 256},
        batches=4,
    ),
}


def asked_of(profile: str, name: str, steps: int) -> Asked:
    """What a task asks at a profile; a smoke run asks little, of texts that need no download."""
    asked = Asked(name, 2 * steps // 3, **TASKS[name].asked)
    if profile == "gpu":
        samples = TASKS[name].gpu_samples or asked.samples
        return replace(asked, depths=tuple((2 * i + 1) / 20 for i in range(10)), samples=samples)
    if profile == "smoke":
        return replace(asked, text=OFFLINE.get(asked.text), **LEAST)
    return asked


def run_of(experiment: str, profile: str, method: str, seed: int, rate: float, *, task: str) -> Run:
    """The run of a method on a task at the size of its profile, at a learning rate."""
    size, of = SIZES[profile], TASKS[task]
    if profile != "smoke":
        taken = of.steps if profile == "laptop" else of.gpu_steps
        size = replace(size, steps=taken, batch_size=of.batches * size.batch_size)
    size = replace(size, length=size.length * of.length // 64)
    dense = Streams.dense(size.width)
    model = TransformerConfig(dense, size.n_layers, size.n_heads, "none", max_length=size.length)
    training = TrainingConfig(
        size.steps,
        size.batch_size,
        size.length,
        rate,
        warmup=0.05,
        **ON_GPU if profile == "gpu" else {},
    )
    model, training = changed(model, "model", method, size), changed(training, "training", method, size)
    return Run(experiment, profile, method, seed, model, training, asked_of(profile, task, size.steps))


def sweep_of(name: str, task: str, **about: Any) -> Sweep:
    """A sweep of rates on a task.

    Args:
        about: title, order, methods and the like; `config_of` by default trains them as the task does.
    """
    shared = {"score": "val_nats", "alike": ALIKE, "default": 1.5e-3, "rates": TASKS[task].rates}
    return Sweep(name=name, **{"config_of": partial(run_of, task=task)} | shared | about)


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskExperiment(Experiment):
    """An experiment whose models learn a task, at the rates of one sweep."""

    task: str
    sweep: Sweep

    def short_steps(self, profile: str) -> int:
        """The steps on texts of half the trained length, with which every run begins."""
        return self.grid(profile)[0].data.short_steps


def _grid(name: str) -> TaskExperiment:
    task = TASKS[name]
    every = METHODS.keys() <= {*task.methods}
    shared = {"methods": task.methods, "costs": {"smoke": 1.5, "laptop": task.seconds}}
    smoke = ("rope", "separated-randomised") if every else task.methods[-2:]
    sweep = sweep_of(
        f"{name}_sweep",
        name,
        title=f"Learning rates: {task.title.lower()}",
        order=7,
        smoke=smoke[:1],
        scaled=True,
        stops=GUESSES.get(name, ()),
        **shared,
    )
    return TaskExperiment(
        name=name,
        title=task.title,
        question="Which methods learn a task at their trained length, and find the answer in longer texts?",
        order=8,
        task=name,
        sweep=sweep,
        smoke=smoke,
        plan=partial(sweep.measured, (Answers(readers),)),
        waits=sweep.before,
        **shared,
    )


GRIDS = tuple(map(_grid, TASKS))
"""`mqar`, `latest_value`, `needle`, `indirect_index` and `questions`, each with a sweep, `<name>_sweep`."""
