"""Tune one part of a trained model, at several learning rates, of which validation data choose the best.

What is tuned, and how, is an *arm*. A model is tuned on texts of 8 L, a quarter of the tokens of its
training; where the best rate is the lowest or the highest, a further one is tried, twice at most.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any, NamedTuple

from ..models import LanguageModel
from ..models.parts import Masks, counted, parts, reading_maps
from ..streams import Streams
from ..training.adapting import low_rank, rank_for, tune
from ..training.checkpoints import Checkpoint
from ..training.config import TrainingConfig
from ..training.loop import Diverged
from ..training.positions import DrawnFactors
from .methods import POS_SHARE
from .readings import CHOSEN_AT, read_by
from .run import At, Fingerprint, Measure, Metrics, Rows, Run, restored

TunedModel = tuple[LanguageModel, list[float]]
"""A tuned model, and the losses of the tuning, in nats."""

FACTORS = (8, 16)
"""Drawn anew in every step, with the position at which its texts begin."""

TURNED, OTHERS, EVENLY, BY_YARN = "yarn", "parts-1-32-log", "interpolation-log", "yarn-log"
"""RoPE is slowed by YaRN, as it is in practice, every other model by parts, with logits scaled by log n. A
dense sinusoid is slowed in a second way too, all waves alike: untuned, it recalls more so. And every
sinusoid is slowed by YaRN, with log n, too: untuned, they lose least in novels so, or nearly."""

TUNING_SEED = 1000
"""Added to the seed: a tuning draws other samples than the training did."""


class Arm(NamedTuple):
    """What is tuned.

    Fields: the part ("position", "content", "all", "maps": W_Q and W_K, "position maps": their columns that
    read positions, "low rank": a change of W_Q and W_K of low rank with as many numbers as the position part
    of the separated model); the rates that are tried; the factors that are drawn (none: `CHOSEN_AT`);
    whether positions are slowed down; the share of the tokens of the training; the way of slowing down, where
    it is not the usual one of the model.
    """

    part: str
    rates: tuple[float, ...]
    factors: tuple[int, ...] = FACTORS
    slowed: bool = True
    share: float = 0.25
    reading: str | None = None


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
    "low-rank-evenly": Arm("low rank", FAST, reading=EVENLY),
    "low-rank-one-factor-evenly": Arm("low rank", FAST, (), reading=EVENLY),
    "all-one-factor-evenly": Arm("all", SLOW, (), reading=EVENLY),
    "low-rank-one-factor-yarn": Arm("low rank", FAST, (), reading=BY_YARN),
    "position-one-factor-yarn": Arm("position", FAST, (), reading=BY_YARN),
    "position-not-slowed": Arm("position", FAST, (), slowed=False),
    "low-rank-not-slowed": Arm("low rank", FAST, (), slowed=False),
    "maps-not-slowed": Arm("maps", MIDDLE, (), slowed=False),
    "position-5": Arm("position", FAST, share=0.05),
    "position-1": Arm("position", FAST, share=0.01),
}


def cells(method: str, *arms: str) -> dict[str, tuple[str, str]]:
    """The method and the arm of a run, by what it is called."""
    return {f"{method}/{arm}": (method, arm) for arm in arms}


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
        self, config: Run, start: Checkpoint, batches: Iterator[Any], tuning: TrainingConfig, **how: Any
    ) -> TunedModel:
        """The trained model of a checkpoint with the part tuned, and the losses of the tuning, in nats. It is
        tuned at slowed positions and returned with its positions as trained.

        Args:
            how: device and the like, as of `sepnb.training.train`.

        Raises:
            Diverged: a loss is not finite.
        """
        model = restored(config, start, how["device"])
        around: AbstractContextManager[None] = nullcontext()
        if self.arm.part == "low rank":
            around = low_rank(model, rank_for(model, self.numbers(model)), config.seed)
        with around:
            slowed = self.reader(model, CHOSEN_AT)  # shares its parameters
            masks = masks_of(model, self.arm.part)
            losses = tune(slowed, batches, tuning, masks, seed=config.seed, **how)
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


def reading_of(run: Run, arm: Arm) -> str:
    """How the model of a run is slowed down: as the arm says, else in the usual way of such a model."""
    return arm.reading or (TURNED if run.model.encodings[0].name == "rope" else OTHERS)


def at_rates(run: Run, tuning: TrainingConfig, rates: Sequence[float]) -> tuple[TrainingConfig, ...]:
    """A tuning of a run at each of these rates; a smoke run has two steps of it, at the last two."""
    if run.profile == "smoke":
        tuning, rates = replace(tuning, steps=2), rates[-2:]
    return tuple(replace(tuning, learning_rate=rate) for rate in rates)


def tuning_of(run: Run, arm: str) -> Tuning:
    """The tunings of an arm for the model of a run: on texts of 8 L, as many tokens a step as the training
    had."""
    one, training = ARMS[arm], run.training
    texts = training.batch_size // CHOSEN_AT * (2 if run.profile == "gpu" else 1)  # four do not fill one
    length, batch = CHOSEN_AT * training.length, max(1, texts)
    tuning = replace(
        training,
        steps=max(2, round(one.share * training.targets / (batch * length))),
        batch_size=batch,
        length=length,
        weight_decay=0.0,
        positions=DrawnFactors(one.factors, training.length) if one.factors else None,
    )
    further = 0 if run.profile == "smoke" else 2
    return Tuning(one, reading_of(run, one), at_rates(run, tuning, one.rates), further)


def best_of(
    tried: Callable[[Metrics], Iterable[TrainingConfig]],
    tuned: Callable[[TrainingConfig], TunedModel],
    scored: Callable[[LanguageModel], dict[str, float]],
    *,
    unit: str,
    nats: float = 1.0,
) -> tuple[LanguageModel | None, Metrics, Rows]:
    """The model of the best tuning on validation data, its metrics, and a row of the kind "tuning" for each;
    a tuning that diverged has a row without a score, and if all did, the model is None.

    Args:
        tried: yields the tunings; called with the metrics, which hold the rate of the best one so far.
        tuned: returns a tuned model and its losses; may raise `Diverged`.
        scored: returns the scores of a tuned model; the least first score is best.
        unit, nats: the unit of the losses in the rows, and how many nats it is.
    """
    least, best, metrics, rows = inf, None, {}, []
    for tuning in tried(metrics):
        row: dict[str, Any] = {"kind": "tuning", "learning_rate": tuning.learning_rate}
        try:
            model, losses = tuned(tuning)
        except Diverged as error:
            rows.append(row | {"diverged_at_step": error.step})
            continue
        scores = scored(model)
        ends = {f"first_{unit}": losses[0] / nats, f"last_{unit}": losses[-1] / nats}
        rows.append(row | ends | scores)
        if (score := next(iter(scores.values()))) < least:
            least, best = score, model
            metrics |= {"tuning_rate": tuning.learning_rate, f"val_{unit}": score}
    return best, metrics, rows


def first_losses(
    tuned: Callable[..., TunedModel], tuning: TrainingConfig, steps: int, **how: Any
) -> Fingerprint:
    """The losses of the first `steps` of a tuning, as a part of a fingerprint; `tuned` is called with it and
    `how`."""
    return {"tuning_losses": tuned(tuning, stop_after=steps, **how)[1]}


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
