"""Chapter 12: is the position part alone all that has to be tuned, for a model to read further?

A run takes the trained model of `stretched`, slows its positions down, and tunes a part of it on texts of
8 L, a quarter of the tokens of the training. Texts of 8 L, 16 L and 32 L are then read at positions slowed
down as much; 16 L and 32 L were never tuned on. Every tuning is made at four learning rates, of which
validation texts of 8 L choose. What is tuned, and how, is the *arm* of a run: `<method>/<arm>`.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from math import inf
from typing import Any, NamedTuple

import numpy as np
from torch import nn

from ..models import LanguageModel
from ..models.parts import Masks, counted, parts, reading_maps
from ..records.store import Record
from ..streams import Streams
from ..training import checkpoints
from ..training.adapting import low_rank, rank_for, tune
from ..training.checkpoints import Checkpoint
from ..training.config import TrainingConfig
from ..training.loop import Diverged, Weighted, train
from ..training.positions import DrawnFactors
from . import language_modelling as lm
from . import tasks
from .base import Progress
from .methods import POS_SHARE
from .readings import read_by
from .stretched import EXPERIMENTS as STRETCHED
from .stretched import Stretched, StretchedRun, measured, restored

TIMES = 8
"""Trained lengths of the texts of a tuning."""

FACTORS = (8, 16)
"""Drawn anew in every step, with the position at which its texts begin."""

READ = (1, 8, 16, 32)
READING = {True: "yarn", False: "parts-1-32-log"}
"""By whether the model turns queries and keys: RoPE is slowed by YaRN, as it is in practice, every other
model by parts, with logits scaled by log n."""

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
    "position-not-slowed": Arm("position", FAST, (), slowed=False),
    "position-5": Arm("position", FAST, share=0.05),
    "position-1": Arm("position", FAST, share=0.01),
}

CELLS = (
    *(f"separated-sinusoidal/{arm}" for arm in ("position", "all")),
    *(f"sinusoidal/{arm}" for arm in ("all", "maps", "low-rank")),
    *(f"rope/{arm}" for arm in ("all", "maps", "low-rank")),
    "concatenated-sinusoidal/position",
    "separated-sinusoidal-constant/position",
    "strict-sinusoidal/position",
    "concatenated-sinusoidal/all",
    *(f"separated-sinusoidal/{arm}" for arm in ("position-maps", "content", "position-one-factor")),
    *(f"separated-sinusoidal/{arm}" for arm in ("all-one-factor", "position-not-slowed")),
    *(f"separated-sinusoidal/{arm}" for arm in ("position-5", "position-1")),
)
COMPARED = CELLS[:9]
"""What the rules compare: twelve seeds. The others have six."""


@dataclass(frozen=True)
class AdaptedRun(StretchedRun):
    """The training of `stretched`, and the tunings of one part, which differ in their rate."""

    tunings: tuple[TrainingConfig, ...] = ()

    @property
    def arm(self) -> Arm:
        return ARMS[self.method.split("/")[1]]

    @property
    def reading(self) -> str:
        """How the model is slowed down."""
        return self.readings[0]

    @property
    def label(self) -> str:
        return self.method.replace("/", ", ")


def reader(config: Any, model: LanguageModel, factor: int) -> LanguageModel:
    """The model as this arm reads texts of `factor` trained lengths."""
    return read_by(model, config.reading, factor) if config.arm.slowed else model


def masks_of(model: LanguageModel, part: str) -> Masks | None:
    """What a part may change; None: everything that has a gradient."""
    if part in ("position", "content"):
        return parts(model)[part]
    if part == "position maps":
        return reading_maps(model, model.config.position_streams)
    return reading_maps(model) if part == "maps" else None


def trained_numbers(config: Any, model: LanguageModel) -> int:
    """How many numbers an arm tunes; of a low rank as many as it should."""
    if config.arm.part == "low rank":
        width = config.model.streams.d_model
        streams = Streams(pos=width // POS_SHARE, sem=width - width // POS_SHARE)
        separated = replace(config.model, streams=streams, encoding="sinusoidal")
        return counted(parts(LanguageModel(separated, model.vocab_size))["position"])
    masks = masks_of(model, config.arm.part)
    return model.parameter_counts()["total"] if masks is None else counted(masks)


def samples_of(config: AdaptedRun, tuning: TrainingConfig) -> Iterator[Weighted]:
    """The batches of a tuning: new samples of the task in texts of 8 L, those of a seed for every method."""
    sizes = {
        "batch_size": tuning.batch_size,
        "length": tuning.length,
        "seed": config.seed,
        "steps": tuning.steps,
    }
    drawn, generate = tuning.positions, config.generator("train")
    at = [None] * tuning.steps if drawn is None else drawn.positions(**sizes)
    for step, positions in enumerate(at):
        first = tasks.TRAINING_SEEDS * (TUNING_SEED + config.seed) + step
        samples = generate(tuning.batch_size, tuning.length, seed=first)
        other = config.asked.text_share * samples.scored.sum() / (~samples.scored).sum()
        weights = np.where(samples.scored, 1.0, other).astype(np.float32)
        yield Weighted(samples.tokens, samples.targets, weights, positions)


def tuned(
    config: Any, model: LanguageModel, batches: Iterator[Any], tuning: TrainingConfig, **how: Any
) -> tuple[LanguageModel, list[float]]:
    """The trained model with the part of an arm tuned, in place, and the losses of the tuning, in nats. It is
    tuned as it is read at slowed positions, and given back as it was trained to be read.

    Args:
        config: a run of this file or of `long_texts`.
        how: device and `stop_after`, as in `sepnb.training.train`.

    Raises:
        Diverged: a loss is not finite.
    """
    around: AbstractContextManager[None] = nullcontext()
    if config.arm.part == "low rank":
        around = low_rank(model, rank_for(model, trained_numbers(config, model)), config.seed)
    with around:
        slowed = reader(config, model, TIMES)  # shares its parameters
        losses = tune(slowed, batches, tuning, masks_of(model, config.arm.part), seed=config.seed, **how)
    return model.eval(), losses


def tunings_of(arm: Arm, training: TrainingConfig, profile: str) -> tuple[TrainingConfig, ...]:
    """The tunings of an arm, which differ in their rate, for a model of this training: on texts of 8 L, as
    many tokens a step as the training had. A smoke run has two steps of one text, at two rates."""
    texts = training.batch_size // TIMES * (2 if profile == "gpu" else 1)  # four would not fill a GPU
    length, batch = TIMES * training.length, max(1, texts)
    tuning = replace(
        training,
        steps=max(2, round(arm.share * training.targets / (batch * length))),
        batch_size=batch,
        length=length,
        weight_decay=0.0,
        positions=DrawnFactors(arm.factors, training.length) if arm.factors else None,
    )
    smoke = profile == "smoke"
    tuning = replace(tuning, steps=2, batch_size=1) if smoke else tuning
    return tuple(replace(tuning, learning_rate=rate) for rate in arm.rates[-2 if smoke else 0 :])


def look(
    config: AdaptedRun, model: LanguageModel, start: Checkpoint, device: str
) -> tuple[lm.Metrics, lm.Rows]:
    """The tuning that validation samples of 8 L prefer, a row of each, and the answers that its model finds;
    at the trained length also those of the model without it."""
    best, rows, held_out = (inf, model), [], config.validation(TIMES * config.training.length)
    metrics: lm.Metrics = {"tuned_numbers": trained_numbers(config, model)}
    for tuning in config.tunings:
        row: dict[str, Any] = {"kind": "tuning", "learning_rate": tuning.learning_rate}
        try:
            fresh, samples = restored(config, start, device), samples_of(config, tuning)
            changed, losses = tuned(config, fresh, samples, tuning, device=device)
        except Diverged as error:
            rows.append(row | {"diverged_at_step": error.step})
            continue
        score = tasks.score(config, reader(config, changed, TIMES), held_out, device)
        rows.append(row | {"first_nats": losses[0], "last_nats": losses[-1], **score})
        if score["nats"] < best[0]:
            best = score["nats"], changed
            metrics |= {"tuning_rate": tuning.learning_rate, "val_nats": score["nats"]}

    def ways(times: int) -> Iterator[tuple[str, nn.Module]]:
        if times == 1:
            yield "native", model
        elif times == TIMES:
            yield "window", best[1].extended(window=config.training.length)
        yield "adapted", reader(config, best[1], times)

    more, asked = tasks.asked(config, model, device, ways, READ[1:])
    return metrics | more, rows + asked


class Adapted(Stretched):
    """Does a model read further once its positions are slowed down and its position part alone is tuned, as
    well as one of which everything is?"""

    order = 10
    smoke = ("separated-sinusoidal/position", "sinusoidal/low-rank")

    def __init__(self, task: str) -> None:
        super().__init__(task)
        self.sweep = next(one.sweep for one in STRETCHED if one.task == task)
        self.name, self.title = f"adapted_{task}", self.title.replace("slowed down", "slowed down and tuned")
        self.methods = CELLS
        self.costs = {"smoke": 4.0, "laptop": self.costs["laptop"] + 40}

    def seeds_of(self, profile: str, cell: Any) -> tuple[int, ...]:
        every = super(Stretched, self).seeds_of(profile, cell)
        return every if cell in COMPARED else every[:6]

    def config(self, profile: str, cell: str, seed: int) -> AdaptedRun:
        method, name = cell.split("/")
        run = super().config(profile, method, seed)
        parts = vars(run) | {"method": cell, "asked": replace(run.asked, times=READ)}
        parts |= {"readings": (READING[method == "rope"],)}
        return AdaptedRun(**parts, tunings=tunings_of(ARMS[name], run.training, profile))

    def sweep_of(self, config: Any) -> Any:
        return self.sweep, config.method.split("/")[0]

    def run(self, config: AdaptedRun, *, device: str = "cpu", progress: Progress | None = None) -> Record:
        self.refuse(config)
        return measured(config, self.fingerprint(config, device=device), look, device, progress)

    def fingerprint(self, config: AdaptedRun, *, device: str = "cpu") -> dict[str, list[float]]:
        """That of the training, and the first losses of the first tuning of the model after these steps."""
        model = tasks.build(config).to(device)
        initial = tasks.score(config, model, config.validation(config.training.length), device)["nats"]
        how = {"device": device, "stop_after": lm.FIRST_STEPS.get()}
        adamw = checkpoints.optimiser(model, config.training)
        losses = train(model, tasks.batches(config), config.training, adamw=adamw, **how)
        start = checkpoints.take(model, adamw, losses, {})
        fresh, first = restored(config, start, device), config.tunings[0]
        _, tuning = tuned(config, fresh, samples_of(config, first), first, **how)
        return {"initial_nats": [initial], "first_losses": losses, "tuning_losses": tuning}


EXPERIMENTS = tuple(Adapted(task) for task in ("mqar", "latest_value", "needle"))
