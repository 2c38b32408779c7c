"""How many dimensions does position need after training? Position is removed from trained models, in novels.

DroPE (Gelberg et al. 2025) trains a model with RoPE, takes RoPE away, and tunes the model a little at its
trained length; it then reads longer texts, without positions that they could leave. To take RoPE away is to
slow its positions down for ever: at frequencies of 0 nothing turns. A separated model has the same limit,
in which every token has the position embedding of the first.

A run takes a model that `adapted_text` tunes, too, stops its positions, and tunes it on texts of the trained
length L, a quarter of the bytes of its training; the validation text, inside L, chooses the rate. It then
reads longer texts with logits scaled by log n. Its partner is tuned alike with positions that move, and reads
longer texts at slowed ones. One arm goes the way back: content is tuned without position, and then the
position part alone with it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..encodings import PositionInterpolation
from ..encodings.context import LONGEST
from ..models import LanguageModel
from ..training.adapting import tune
from ..training.checkpoints import Checkpoint
from ..training.config import TrainingConfig
from . import language_modelling as lm
from .long_texts import STRETCHED, Tuned, read_when_tuned
from .run import Measure, Run, restored
from .texts import TextExperiment
from .tuning import FAST, SLOW, Arm, TunedModel, Tuning, at_rates, cells, masks_of, reading_of

STOPPED = PositionInterpolation(LONGEST)
"""No position of a text turns a wave by as much as float32 can tell from 0."""

AHEAD = 4
"""On the way back, how many times as high as that of content the rate of the position part is."""


ARMS: Mapping[str, tuple[Arm, dict[str, Any]]] = {
    "removed": (Arm("all", SLOW, ()), {"stopped": True}),
    "kept": (Arm("all", SLOW, ()), {}),
    "content-removed": (Arm("content", SLOW, ()), {"stopped": True}),
    "position-back": (Arm("position", FAST, ()), {"before": "content"}),
}
"""What is tuned, and how, see `Removing`."""

CELLS = {
    **cells("rope", "removed", "kept"),
    **cells("separated-sinusoidal", "removed", "kept", "content-removed", "position-back"),
}


def without_position(model: LanguageModel) -> LanguageModel:
    """The same weights, reading every token at the first position.

    Raises:
        ValueError: a model whose positions are not made of waves.
    """
    return model.extended(extension=STOPPED)


@dataclass(frozen=True)
class Removing(Tuning):
    """The tunings of a model at its trained length.

    Args:
        stopped: whether positions stand still.
        before: the part that is tuned before, without position.
    """

    stopped: bool = False
    before: str | None = None

    def reader(self, model: LanguageModel, factor: int) -> LanguageModel:
        """One without position has none to slow down: its logits alone are scaled."""
        if not self.stopped:
            return super().reader(model, factor)
        return model if factor <= 1 else model.extended(log_scale=True)

    def tuned(
        self, config: Run, start: Checkpoint, batches: Iterator[Any], tuning: TrainingConfig, **how: Any
    ) -> TunedModel:
        """See `Tuning.tuned`; a model whose positions stand still is given back so."""
        model, batches = restored(config, start, how["device"]), list(batches)
        if self.before is not None:
            first = replace(tuning, learning_rate=tuning.learning_rate / AHEAD)
            tune(without_position(model), iter(batches), first, masks_of(model, self.before), **how)
        read = without_position(model) if self.stopped else model
        losses = tune(read, iter(batches), tuning, masks_of(model, self.arm.part), **how)
        return read.eval(), losses


def removing_of(run: Run, name: str) -> Removing:
    """The tunings of an arm for the model of a run, as many bytes a step as the training had."""
    arm, how = ARMS[name]
    tuning = replace(run.training, steps=round(arm.share * run.training.steps), weight_decay=0.0)
    further = 0 if run.profile == "smoke" else 2
    return Removing(arm, reading_of(run, arm), at_rates(run, tuning, arm.rates), further, **how)


@dataclass(frozen=True)
class Removed(Tuned):
    """The readings of a model that is tuned without position, or with it, at the trained length."""

    def resolved(self) -> dict[str, Any]:
        how = {"stopped": self.tuning.stopped, "before": self.tuning.before, "part": self.tuning.arm.part}
        return super().resolved() | {"removed": how | {"chosen_at": 1}}

    def validated(self, config: Run, tuned: LanguageModel, device: str) -> float:
        """The validation text inside the trained length: nothing longer is seen before the test."""
        return lm.score(config, tuned, "validation", device).bits_per_byte


def measures(run: Run, arm: str) -> tuple[Measure, ...]:
    return (Removed(read_when_tuned(run), removing_of(run, arm)),)


EXPERIMENT = TextExperiment(
    name="removed_text",
    title="Position removed after training: novels",
    question="""Can position be removed from a trained model, does such a model read longer novels than one
        whose positions are slowed down, and does tuning the position part alone bring position back?""",
    order=10,
    sweeps=STRETCHED.sweeps,
    methods=tuple(CELLS),
    smoke=("rope/removed", "separated-sinusoidal/position-back"),
    costs={"smoke": 5.0, "laptop": 230.0},
    parts=CELLS,
    measures=measures,
    shared=True,
)
