"""Chapter 13: is the position part alone all that has to be tuned, for a model to read further?

A run takes the trained model of `stretched`, slows its positions down, and tunes a part of it on texts of
8 L, a quarter of the tokens of the training. Texts of 8 L, 16 L and 32 L are then read at positions slowed
down as much; 16 L and 32 L were never tuned on. A run is called `<method>/<arm>`: what is tuned, and at which
rates, is in `tuning`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch import nn

from ..models import LanguageModel
from ..training.batch import Batch
from ..training.config import TrainingConfig
from ..validation import named
from . import stretched, tasks
from .readings import CHOSEN_AT
from .run import HERE, At, Found, Run
from .stretched import about_the_training, on_a_shared_training
from .task_grid import TaskExperiment
from .tuning import TUNING_SEED, OfTuning, Tuning, cells, tuning_of

READ = (1, 8, 16, 32)
"""Trained lengths of the texts."""

COMPARED = {
    **cells("separated-sinusoidal", "position", "all"),
    **cells("sinusoidal", "all", "maps", "low-rank", "low-rank-evenly"),
    **cells("rope", "all", "maps", "low-rank"),
    **cells("concatenated-sinusoidal", "position"),
}
"""What the rules compare: twelve seeds. The others have six."""

CELLS = {
    **COMPARED,
    **cells("separated-sinusoidal-constant", "position"),
    **cells("strict-sinusoidal", "position"),
    **cells("concatenated-sinusoidal", "all"),
    **cells("separated-sinusoidal", "position-maps", "content", "position-one-factor"),
    **cells("separated-sinusoidal", "all-one-factor", "position-not-slowed", "position-5", "position-1"),
}


@dataclass(frozen=True)
class TunedAnswers(OfTuning):
    """The answers that a model finds after one part was tuned."""

    tuning: Tuning

    def resolved(self) -> dict[str, Any]:
        each = [tuning.resolved() for tuning in self.tunings]
        return {"readings": [self.tuning.reading], "tunings": each}

    def samples(self, config: Run, tuning: TrainingConfig) -> Iterator[Batch]:
        """The batches of a tuning: new samples of the task in texts of 8 L, those of a seed for every
        method."""
        sizes = {name: getattr(tuning, name) for name in ("batch_size", "length", "steps")}
        drawn, generate = tuning.positions, config.data.generator("train")
        at = [None] * tuning.steps if drawn is None else drawn.positions(seed=config.seed, **sizes)
        for step, positions in enumerate(at):
            first = tasks.TRAINING_SEEDS * (TUNING_SEED + config.seed) + step
            samples = generate(tuning.batch_size, tuning.length, seed=first)
            weights = config.data.weights(samples)
            yield Batch(samples.tokens, samples.targets, positions, weights)

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        """At the trained length also the answers of the model without the tuning."""
        held_out = config.data.held_out(CHOSEN_AT * config.training.length)

        def scored(tuned: LanguageModel) -> dict[str, float]:
            return tasks.score(config, self.tuning.reader(tuned, CHOSEN_AT), held_out, at.device)

        best, metrics, rows = self.best(config, model, at, scored, unit="nats")

        def ways(times: int) -> Iterator[tuple[str, nn.Module]]:
            if times == 1:
                yield "native", model
            elif times == CHOSEN_AT:
                yield "window", best.extended(window=config.training.length)
            yield "adapted", self.tuning.reader(best, times)

        more, asked = tasks.asked(config, model, at.device, ways, READ[1:])
        about = about_the_training(config, model, at.start) | {"tuned_numbers": self.tuning.numbers(model)}
        return metrics | about | more, rows + asked


def plan(of: TaskExperiment, experiment: str, profile: str, cell: str, seed: int) -> Run:
    method, arm = named("cell", cell, CELLS)
    run = of.sweep.best_run(experiment, profile, method, seed)
    shared = on_a_shared_training(run, TunedAnswers(tuning_of(run, arm)), READ, "{name}")
    return replace(shared, method=cell)


def _adapted(of: TaskExperiment) -> TaskExperiment:
    return replace(
        of,
        name=f"adapted_{of.task}",
        title=of.title.replace("slowed down", "slowed down and tuned"),
        question="""Does a model read further once its positions are slowed down and its position part
            alone is tuned, as well as one of which everything is?""",
        order=10,
        methods=tuple(CELLS),
        smoke=("separated-sinusoidal/position", "sinusoidal/low-rank"),
        other_seeds={cell: of.seeds[:6] for cell in CELLS if cell not in COMPARED},
        costs={"smoke": 4.0, "laptop": of.costs["laptop"] + 40},
        plan=partial(plan, of),
    )


EXPERIMENTS = tuple(map(_adapted, stretched.EXPERIMENTS))
"""`adapted_mqar`, `adapted_latest_value` and `adapted_needle`; of novels `adapted_text`, in `long_texts`."""
