"""Chapter 13: is the position part alone all that has to be tuned, for a model to read further?

A run takes the trained model of `stretched`, slows its positions down, and tunes a part of it on texts of
8 L, a quarter of the tokens of the training. Texts of 8 L, 16 L and 32 L are then read at positions slowed
down as much; 16 L and 32 L were never tuned on. Every tuning is made at four learning rates, of which
validation texts of 8 L choose; where they choose the lowest or the highest, a further one is tried, twice at
most. What is tuned, and how, is the *arm* of a run: `<method>/<arm>`.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from torch import nn

from ..models import LanguageModel
from ..models.parts import Masks, counted, parts, reading_maps
from ..streams import Streams
from ..training.adapting import low_rank, rank_for, tune
from ..training.batch import Batch
from ..training.checkpoints import Checkpoint
from ..training.config import TrainingConfig
from ..training.positions import DrawnFactors
from ..validation import named
from . import stretched, tasks
from .methods import POS_SHARE
from .readings import read_by
from .run import HERE, At, Fingerprint, Found, Measure, Metrics, Rows, Run, restored
from .stretched import about_the_training, on_a_shared_training
from .task_grid import TaskExperiment
from .tuning import TunedModel, best_of, first_losses

TIMES = 8
"""Trained lengths of the texts of a tuning."""

FACTORS = (8, 16)
"""Drawn anew in every step, with the position at which its texts begin."""

READ = (1, 8, 16, 32)
TURNED, OTHERS = "yarn", "parts-1-32-log"
"""RoPE is slowed by YaRN, as it is in practice, every other model by parts, with logits scaled by log n."""

TUNING_SEED = 1000
"""Added to the seed: a tuning draws other samples than the training did."""


class Arm(NamedTuple):
    """What is tuned.

    Fields: the part ("position", "content", "all", "maps": W_Q and W_K, "position maps": their columns that
    read positions, "low rank": a change of W_Q and W_K of low rank with as many numbers as the position part
    of the separated model); the rates that are tried; the factors that are drawn (none: that of `TIMES`);
    whether positions are slowed down; the share of the tokens of the training.
    """

    part: str
    rates: tuple[float, ...]
    factors: tuple[int, ...] = FACTORS
    slowed: bool = True
    share: float = 0.25


FAST, MIDDLE, SLOW = (2e-3, 4e-3, 8e-3, 1.6e-2), (1e-3, 2e-3, 4e-3, 8e-3), (5e-4, 1e-3, 2e-3, 4e-3)

ARMS: Mapping[str, Arm] = {
    "position": Arm("position", FAST),
    "position-maps": Arm("position maps", FAST),
    "all": Arm("all", SLOW),
    "maps": Arm("maps", MIDDLE),
    "low-rank": Arm("low rank", FAST),
    "content": Arm("content", SLOW),
    "position-one-factor": Arm("position", FAST, ()),
    "all-one-factor": Arm("all", SLOW, ()),
    "maps-one-factor": Arm("maps", MIDDLE, ()),
    "low-rank-one-factor": Arm("low rank", FAST, ()),
    "position-not-slowed": Arm("position", FAST, (), slowed=False),
    "position-5": Arm("position", FAST, share=0.05),
    "position-1": Arm("position", FAST, share=0.01),
}


def cells(method: str, *arms: str) -> dict[str, tuple[str, str]]:
    """The method and the arm of a run, by what it is called."""
    return {f"{method}/{arm}": (method, arm) for arm in arms}


CELLS = {
    **cells("separated-sinusoidal", "position", "all"),
    **cells("sinusoidal", "all", "maps", "low-rank"),
    **cells("rope", "all", "maps", "low-rank"),
    **cells("concatenated-sinusoidal", "position"),
    **cells("separated-sinusoidal-constant", "position"),
    **cells("strict-sinusoidal", "position"),
    **cells("concatenated-sinusoidal", "all"),
    **cells("separated-sinusoidal", "position-maps", "content", "position-one-factor"),
    **cells("separated-sinusoidal", "all-one-factor", "position-not-slowed", "position-5", "position-1"),
}
COMPARED = tuple(CELLS)[:9]
"""What the rules compare: twelve seeds. The others have six."""


def masks_of(model: LanguageModel, part: str) -> Masks | None:
    """What a part may change; None: everything that has a gradient."""
    if part in ("position", "content"):
        return parts(model)[part]
    if part == "position maps":
        return reading_maps(model, model.config.position_streams)
    return reading_maps(model) if part == "maps" else None


@dataclass(frozen=True)
class Tuning:
    """The tunings of one part of a trained model, which differ in their rate.

    Args:
        arm: what is tuned.
        reading: how the model is slowed down.
        each: the trainings that every run has.
        further: how many more there may be: while the best of them has the lowest or the highest rate of all,
            one of half that rate, or of twice.
    """

    arm: Arm
    reading: str
    each: tuple[TrainingConfig, ...]
    further: int = 0

    def reader(self, model: LanguageModel, factor: int) -> LanguageModel:
        """The model as this arm reads texts of `factor` trained lengths."""
        return read_by(model, self.reading, factor) if self.arm.slowed else model

    def numbers(self, model: LanguageModel) -> int:
        """How many numbers are tuned; of a low rank as many as it should."""
        if self.arm.part == "low rank":
            width = model.config.streams.d_model
            streams = Streams(pos=width // POS_SHARE, sem=width - width // POS_SHARE)
            separated = replace(model.config, streams=streams, encoding="sinusoidal")
            return counted(parts(LanguageModel(separated, model.vocab_size))["position"])
        masks = masks_of(model, self.arm.part)
        return model.parameter_counts()["total"] if masks is None else counted(masks)

    def tuned(
        self,
        config: Run,
        start: Checkpoint,
        batches: Iterator[Any],
        tuning: TrainingConfig,
        *,
        device: str,
        stop_after: int | None = None,
    ) -> TunedModel:
        """The trained model of a checkpoint with the part tuned, and the losses of the tuning, in nats. It is
        tuned at slowed positions and returned with its positions as trained.

        Raises:
            Diverged: a loss is not finite.
        """
        model = restored(config, start, device)
        around: AbstractContextManager[None] = nullcontext()
        if self.arm.part == "low rank":
            around = low_rank(model, rank_for(model, self.numbers(model)), config.seed)
        with around:
            slowed, masks = self.reader(model, TIMES), masks_of(model, self.arm.part)  # shares its parameters
            how = {"seed": config.seed, "device": device, "stop_after": stop_after}
            losses = tune(slowed, batches, tuning, masks, **how)
        return model.eval(), losses

    def tried(self, metrics: Metrics) -> Iterator[TrainingConfig]:
        """The trainings in turn: those that every run has, then further ones while the best of all, whose
        rate `metrics` holds by then, is at an end of them."""
        yield from self.each
        rates = {one.learning_rate for one in self.each}
        for _ in range(self.further):
            best = metrics.get("tuning_rate")
            if best is None or best not in (min(rates), max(rates)):
                return
            rates.add(rate := best / 2 if best == min(rates) else best * 2)
            yield replace(self.each[0], learning_rate=rate)


def tuning_of(run: Run, arm: str) -> Tuning:
    """The tunings of an arm for the model of a run: on texts of 8 L, as many tokens a step as the training
    had. A smoke run has two steps of one text, at two rates."""
    one, training, smoke = ARMS[arm], run.training, run.profile == "smoke"
    texts = training.batch_size // TIMES * (2 if run.profile == "gpu" else 1)  # four would not fill a GPU
    length, batch = TIMES * training.length, max(1, texts)
    tuning = replace(
        training,
        steps=max(2, round(one.share * training.targets / (batch * length))),
        batch_size=batch,
        length=length,
        weight_decay=0.0,
        positions=DrawnFactors(one.factors, training.length) if one.factors else None,
    )
    tuning = replace(tuning, steps=2, batch_size=1) if smoke else tuning
    rates = one.rates[-2 if smoke else 0 :]
    reading = TURNED if run.model.encodings[0].name == "rope" else OTHERS
    each = tuple(replace(tuning, learning_rate=rate) for rate in rates)
    return Tuning(one, reading, each, further=0 if smoke else 2)


class OfTuning(Measure):
    """Measures a model after tuning one part of it."""

    tuning: Tuning

    @property
    def tunings(self) -> tuple[TrainingConfig, ...]:
        return self.tuning.each

    @abstractmethod
    def samples(self, config: Run, tuning: TrainingConfig) -> Iterator[Any]:
        """The batches of a tuning: those of a seed for every method."""

    def tune(self, config: Run, start: Checkpoint, tuning: TrainingConfig, **how: Any) -> TunedModel:
        """The trained model of a checkpoint with its part tuned on those batches."""
        return self.tuning.tuned(config, start, self.samples(config, tuning), tuning, **how)

    def best(
        self,
        config: Run,
        model: LanguageModel,
        at: At,
        scored: Callable[[LanguageModel], dict[str, float]],
        **unit: Any,
    ) -> tuple[LanguageModel, Metrics, Rows]:
        """See `best_of`; where all tunings diverged, the model as it was trained."""
        tune = partial(self.tune, config, at.start, device=at.device)
        best, metrics, rows = best_of(self.tuning.tried, tune, scored, **unit)
        return model if best is None else best, metrics, rows

    def begins(self, config: Run, start: Checkpoint, device: str, steps: int) -> Fingerprint:
        return first_losses(partial(self.tune, config, start), self.tunings[0], steps, device=device)


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
        held_out = config.data.held_out(TIMES * config.training.length)

        def scored(tuned: LanguageModel) -> dict[str, float]:
            return tasks.score(config, self.tuning.reader(tuned, TIMES), held_out, at.device)

        best, metrics, rows = self.best(config, model, at, scored, unit="nats")

        def ways(times: int) -> Iterator[tuple[str, nn.Module]]:
            if times == 1:
                yield "native", model
            elif times == TIMES:
                yield "window", best.extended(window=config.training.length)
            yield "adapted", self.tuning.reader(best, times)

        more, asked = tasks.asked(config, model, at.device, ways, READ[1:])
        about = about_the_training(config, model, at.start) | {"tuned_numbers": self.tuning.numbers(model)}
        return metrics | about | more, rows + asked


def plan(of: TaskExperiment, experiment: str, profile: str, cell: str, seed: int) -> Run:
    method, arm = named("cell", cell, CELLS)
    run = of.sweep.tuned(experiment, profile, method, seed)
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
