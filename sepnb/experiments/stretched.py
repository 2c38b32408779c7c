"""Chapter 13: can positions be slowed down in a model that was not trained for it, so that it reads further?

A run trains a model as its task does, at the trained length L, and leaves the weights alone. Texts of k L are
then read at positions k times as slow, by one of `READINGS`, which validation texts of 8 L choose for each
trained model. Beside it the model reads them as it was trained, and through a window of L keys. The same of
novels is in `long_texts`, with the methods of this file.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch import nn

from ..encodings import RoPE, Sinusoidal
from ..models import LanguageModel
from ..training.checkpoints import Checkpoint
from . import tasks
from .ablation import COMPARED
from .ladder_methods import METHODS as LADDER
from .ladder_methods import readings_of
from .methods import POS_SHARE, SPINE, Method, listed
from .readings import CHOSEN_AT, LOG_ONLY, READINGS, read_by, slow_of
from .run import HERE, At, Fingerprint, Found, Measure, Metrics, Rows, Run, counts_of, last, restored
from .scales import Scales
from .sweep import MORE_SEEDS, Sweep
from .task_grid import GRIDS, TaskExperiment, run_of, sweep_of
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
BY_POSITION = {
    "separated": "separated-sinusoidal",
    "next to the content": "concatenated-sinusoidal",
    "added to the content": "sinusoidal",
    "RoPE": "rope",
}
"""The four models that chapter 13 compares, by where they have position."""


def _in_a_share(parts: int) -> dict[str, Any]:
    return {"encoding": lambda size: Sinusoidal(columns=size.width // parts)}


QUARTER = "sinusoidal-quarter"
FEW_WAVES = listed(
    Method(
        QUARTER,
        "dense, sinusoid added to a quarter of the columns",
        "sinusoidal",
        _in_a_share(POS_SHARE),
    )
)
"""A dense control: as many waves as the separated model has, added to content instead of beside
it. It tells a sum from a small number of waves."""

SPREAD, WEAK, STRONG = f"{QUARTER}-spread", "sinusoidal-weak", f"{QUARTER}-strong"
STRONG_ALL = "sinusoidal-strong"
FEW_OR_SMALL = listed(
    Method(
        SPREAD,
        "its waves spread over all columns",
        QUARTER,
        {"encoding": lambda size: Sinusoidal(columns=size.width // POS_SHARE, copies=POS_SHARE)},
    ),
    Method(WEAK, "content twice as large", "sinusoidal", {"embedding_std": 1.0}),
    Method(STRONG, "content half as large", QUARTER, {"embedding_std": 0.25}),
    Method(STRONG_ALL, "content half as large", "sinusoidal", {"embedding_std": 0.25}),
)
"""Why does the control read further than a dense model with all waves? It has fewer waves, in fewer columns,
and shorter position embeddings. The first of these has its waves and its length of embeddings, in all
columns. The others change the length beside content: to that of the control with all waves, to that of all
waves with those of the control, and to twice that with all waves."""


WAVES = {1: "sinusoidal", 2: "sinusoidal-half", 4: QUARTER, 8: "sinusoidal-8th"}
"""The dense models with a sinusoid in one of so many parts of the columns."""
SHARES = listed(
    Method(WAVES[2], "half of the columns", QUARTER, _in_a_share(2)),
    Method(WAVES[8], "an eighth of the columns", QUARTER, _in_a_share(8)),
)
"""Twice as many waves as the control has, and half as many, over the same range of frequencies."""

SQUEEZED, FASTEST, SLOWER = "sinusoidal-squeezed", f"{QUARTER}-fastest", "sinusoidal-slower"
ALL_IN_FEW = listed(
    Method(
        SQUEEZED,
        "all waves in few directions",
        QUARTER,
        {"encoding": lambda size: Sinusoidal(directions=size.width // POS_SHARE)},
    ),
    Method(
        FASTEST,
        "its waves the fastest quarter",
        QUARTER,
        {"encoding": lambda size: Sinusoidal(10_000.0 ** (1 / POS_SHARE), columns=size.width // POS_SHARE)},
    ),
    Method(SLOWER, "base 10^16", "sinusoidal", {"encoding": Sinusoidal(10_000.0**POS_SHARE)}),
)
"""Few waves leave most directions of the width to content. The first model leaves as many, and has all waves:
they are projected onto the columns that the control uses, and the embeddings are about as long. The waves of
the control are every fourth of all waves; the second model has the fastest quarter of them instead. The third
has as many waves as the width can hold: first those of the control, then slower ones, which hardly move."""

BASES = listed(
    Method("sinusoidal-base-8", "base 10^8", "sinusoidal", {"encoding": Sinusoidal(1e8)}),
    Method("sinusoidal-base-32", "base 10^32", "sinusoidal", {"encoding": Sinusoidal(1e32)}),
)
"""Of 64 waves half as many turn within a trained text as with the usual base, and a seventh."""
BY_POWER = {4: "sinusoidal", 8: "sinusoidal-base-8", 16: SLOWER, 32: "sinusoidal-base-32"}
"""The dense models with all waves, by the power of ten that is their base."""

RUNGS = {
    name: LADDER[name]
    for name in (
        *("rope-8th", "rope-partial", "rope-half", "p-rope-quarter"),
        *("rope-nope-2", "forgetting"),
    )
}
"""RoPE on a share of the columns, RoPE in the first of two layers alone, and forget gates: twelve seeds."""

FAST = listed(
    Method("rope-fast", "RoPE, all pairs fast", "rope", {"encoding": RoPE(base=10.0)}),
    Method(
        "separated-sinusoidal-fast",
        "separated, all waves fast",
        "separated-sinusoidal",
        {"encoding": Sinusoidal(base=10.0)},
    ),
    Method(
        "separated-sinusoidal-one",
        "separated, one wave",
        "separated-sinusoidal",
        {"encoding": Sinusoidal(columns=2)},
    ),
    Method(
        "separated-sinusoidal-repeated",
        "separated, waves that repeat every half length",
        "separated-sinusoidal",
        {"encoding": lambda size: Sinusoidal(period=size.length // 2)},
    ),
)
"""In recall, models without slow waves. The slowest wave of the first two turns once in 47 tokens, less than
the trained length, so that a longer text shows no new angle; but it shows several angles together as they
never were. The third model has a single wave, of one radian a token. The last has many waves and no new
position, because it reads all positions modulo L/2."""

MORE = {"mqar": (*FEW_WAVES, SLOWER, *RUNGS, *FAST), "latest_value": (*RUNGS, "separated-sinusoidal-one")}
"""What else has twelve seeds, by task."""

MAIN = ("sinusoidal", "concatenated-sinusoidal", "separated-sinusoidal", "rope")
"""What the rules of every task compare: twelve seeds, as the control has."""

EQUAL = "separated-sinusoidal-wide"
"""The separated model with as many parameters as RoPE: twelve seeds, too. The others have six."""

TIMES = (1, 2, 4, 8, 16, 32)
NATIVE, WINDOW, APART = (1, 2, 4, 8, 16), (8, 16), (8, 16, 32)
"""Lengths that are read as trained, through a window, and of which near and far answers are told apart."""

RATES = (7.5e-4, 1.5e-3, 3e-3, 6e-3)
TASKS = {grid.name: grid for grid in GRIDS if grid.name in ("mqar", "latest_value", "needle")}


def on_a_shared_training(run: Run, measure: Measure, times: tuple[int, ...], titled: str = Run.titled) -> Run:
    """The run that measures the trained model of a run, in texts of `times` trained lengths. The training
    alone is shared by the runs of `stretched` and `adapted`."""
    base = replace(run, experiment="trained", data=replace(run.data, times=(1,)))
    return replace(run, data=replace(run.data, times=times), measures=(measure,), base=base, titled=titled)


def about_the_training(config: Run, model: LanguageModel, start: Checkpoint) -> Metrics:
    """What a record says of a shared training of a task."""
    return counts_of(model) | {"train_nats": last(config, start.losses)}


def chosen(config: Run, readings: tuple[str, ...], model: LanguageModel, device: str) -> tuple[str, Rows]:
    """The reading of the least nats on validation samples of 8 L, and a row of each."""
    samples = config.data.held_out(CHOSEN_AT * config.training.length)
    scores = {
        name: tasks.score(config, read_by(model, name, CHOSEN_AT), samples, device) for name in readings
    }
    rows = [{"kind": "reading", "reading": name, **score} for name, score in scores.items()]
    return min(scores, key=lambda name: scores[name]["nats"]), rows


@dataclass(frozen=True)
class SlowedAnswers(Measure):
    """The answers that the trained model finds: as trained, through a window, and at slowed positions.

    Args:
        readings: among which validation samples choose.
    """

    readings: tuple[str, ...] = READINGS

    def resolved(self) -> dict[str, Any]:
        return {"readings": list(self.readings)}

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        reading, rows = chosen(config, self.readings, model, at.device)

        def ways(times: int) -> Iterator[tuple[str, nn.Module]]:
            if times in NATIVE:
                yield "native", model
            if times in WINDOW:
                yield "window", model.extended(window=config.training.length)
            if times > 1:
                yield "stretched", read_by(model, reading, times)

        metrics, more = tasks.asked(config, model, at.device, ways, APART)
        about = {"reading": READINGS.index(reading)} | about_the_training(config, model, at.start)
        return metrics | about, rows + more

    def begins(self, config: Run, start: Checkpoint, device: str, steps: int) -> Fingerprint:
        """The nats of the model under a slowed reading."""
        model, samples = restored(config, start, device), config.data.held_out(2 * config.training.length)
        slowed = read_by(model, slow_of(self.readings), 2)
        return {"slowed_nats": [tasks.score(config, slowed, samples, device)["nats"]]}


def base_of(experiment: str, profile: str, method: str, seed: int, rate: float, *, task: str) -> Run:
    """The training of a method on a task. What adds position to content is drawn at the scale that the sweep
    of the task chose for it."""
    run = run_of(experiment, profile, method, seed, rate, task=task)
    return Scales(TASKS[task].sweep).settled(profile, method, run)


def plan(
    sweep: Sweep,
    measure: Callable[[tuple[str, ...]], Measure],
    times: tuple[int, ...],
    experiment: str,
    profile: str,
    cell: str,
    seed: int,
) -> Run:
    """The run that measures the training of a cell at the best rate of this sweep, in texts of these lengths.
    What adds position to content has the scale that the sweep of the task chose (`base_of`)."""
    run = sweep.best_run(experiment, profile, cell, seed)
    return on_a_shared_training(run, measure(readings_of(run.model)), times)


SEEDS = (*range(1, 7), *range(9, 15))
"""Twelve, without those that chose the rates."""


def _stretched(task: str) -> TaskExperiment:
    grid, name, smoke = TASKS[task], f"stretched_{task}", ("separated-sinusoidal",)
    methods = (*METHODS, *MORE.get(task, ()))
    sweep = sweep_of(
        f"{name}_sweep",
        task,
        title=f"Learning rates of slowed positions: {grid.title.lower()}",
        order=8,
        methods=methods,
        smoke=smoke,
        seeds=(0, *MORE_SEEDS),
        config_of=partial(base_of, task=task),
        costs=grid.costs,
        rates=RATES,
    )
    return TaskExperiment(
        name=name,
        title=f"Positions slowed down: {grid.title.lower()}",
        question="""Does a trained model find answers in longer texts once its positions are slowed down,
            and nothing else is changed?""",
        order=9,
        methods=methods,
        smoke=smoke,
        seeds=SEEDS,
        other_seeds={name: SEEDS[:6] for name in METHODS if name not in (*MAIN, EQUAL)},
        costs={"smoke": 3.0, "laptop": grid.costs["laptop"] + 50},
        task=task,
        sweep=sweep,
        plan=partial(plan, sweep, SlowedAnswers, TIMES),
        waits=sweep.before,
    )


EXPERIMENTS = tuple(map(_stretched, TASKS))
"""`stretched_mqar`, `stretched_latest_value` and `stretched_needle`, each with a sweep, `<name>_sweep`."""
READ = next(experiment for experiment in EXPERIMENTS if experiment.task == "mqar")
"""That whose trained models are read in other ways too, here, in `score_terms` and in `each_pair`."""


@dataclass(frozen=True)
class EveryReading(SlowedAnswers):
    """The answers that a trained model finds as it was trained, by every reading, and by log n alone, with
    positions as they were trained."""

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        def ways(times: int) -> Iterator[tuple[str, nn.Module]]:
            yield "native", model
            if times > 1:
                yield LOG_ONLY, model.extended(log_scale=True)
                yield from ((name, read_by(model, name, times)) for name in self.readings)

        metrics, rows = tasks.asked(config, model, at.device, ways, (16,))
        return metrics | about_the_training(config, model, at.start), rows


EVERY = tuple(
    replace(
        of,
        name=name,
        title=f"Every way to slow positions down: {of.title.partition(': ')[2]}",
        question=question,
        methods=methods,
        smoke=smoke,
        other_seeds={},
        costs={"smoke": 4.0, "laptop": 100.0},
        plan=partial(plan, of.sweep, EveryReading, (1, 16)),
    )
    for of, name, methods, smoke, question in (
        (
            READ,
            "every_reading",
            (*MAIN, EQUAL, "forgetting"),
            READ.smoke,
            """Does it hang on the way in which positions are slowed down which models recall further, and
            does it take slower positions at all, or log n alone?""",
        ),
        (
            next(experiment for experiment in EXPERIMENTS if experiment.task == "latest_value"),
            "every_reading_latest_value",
            ("forgetting",),
            ("forgetting",),
            """Do forget gates find the latest value in longer texts once they are slowed down, or is log n
            alone enough?""",
        ),
    )
)
