"""Chapter 6: a trained RoPE model under each context extension, as it is and tuned at four times its length.

One model per seed is trained as `in_window` trains its RoPE. A run takes it through one extension: read as it
is under the new frequencies (*frozen*), and after a tuning on texts of 4 L (*tuned*). Plain RoPE is tuned in
the same way, so that what the frequencies do is told from what the tuning does; and it is read through a
window, which changes no frequency at all.

Every tuning starts from the same checkpoint of the seed, optimiser included, reads the same bytes in the same
order, as many a step as the training did, and is repeated at three learning rates, of which the validation
text at 4 L chooses. Every seed reads one of the six blocks of text that `extrapolation` tells apart.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, log
from typing import Any, ClassVar

from ..data import text
from ..encodings import context
from ..encodings.context import Extension
from ..evaluation.long_windows import Beyond, blocks_of
from ..evaluation.losses import evaluate
from ..evaluation.protocols import Protocol, masks, sliding_windows, unseen
from ..models import LanguageModel
from ..records.provenance import Clock
from ..records.store import Record
from ..training import checkpoints
from ..training.checkpoints import Checkpoint
from ..training.config import TrainingConfig
from ..training.device import optimiser
from ..training.loop import Diverged, train
from ..validation import one_of
from . import language_modelling as lm
from .base import Progress, recorded
from .extrapolation import ExtrapolationRun, read
from .in_window import LR_SCREEN
from .methods import run_of
from .sweep import Sweep
from .texts import TextExperiment
from .trained_once import trained_once

FACTOR = 4
"""Of the context: texts of the tuning are this many trained lengths long, and extensions are built for it."""

TIMES = 16
"""Texts that are read are this many trained lengths long; a frozen model is read with this factor too."""

SHARE = 20
"""A tuning takes one step for so many of the training."""

RATES = (0.1, 0.3, 1.0)
"""Learning rates of a tuning, in shares of the highest one of the training, which ends at the first."""

TUNING_SEED = 1_000_000
"""Added to the seed: a tuning draws other windows of the training text than the training did."""

VALIDATION_WINDOWS = 40
"""Windows of the validation text, of the length of the tuning, that choose the rate."""

EXTENSIONS: dict[str, Callable[[int, int], Extension | None]] = {
    "position-interpolation": lambda factor, length: context.PositionInterpolation(factor),
    "ntk-aware": lambda factor, length: context.NTKAware(factor),
    "ntk-by-parts": context.NTKByParts,
    "yarn": context.YaRN,
    "llama3": context.Llama3,
    "raised-base": lambda *_: context.RaisedBase(500_000.0),  # of Xiong et al. (2023), for any factor
    "rope": lambda *_: None,
}
"""The methods: extensions for contexts of `factor` times `length`, with the options of their sources, then
plain RoPE, whose run asks for more readings."""

METHODS = tuple(EXTENSIONS)

BEYOND = {
    "smoke": Beyond(64, TIMES, documents=2, windows=1, part=1, tight=1, batch_bytes=2048),
    "laptop": Beyond(128, TIMES, documents=20, windows=2, part=2, tight=6, batch_bytes=2048),
    "gpu": Beyond(256, TIMES, documents=20, windows=4, part=4, tight=10, batch_bytes=131_072),
}


@dataclass(frozen=True)
class ContextExtensionRun(ExtrapolationRun):
    """The run of `in_window` that trains the plain model, a method, and what is read before and after a
    tuning."""

    tunings: tuple[TrainingConfig, ...]

    @property
    def label(self) -> str:
        return self.method

    @property
    def base(self) -> lm.LanguageModelRun:
        """The run that trains the plain model; all methods of a seed share it."""
        own = {name: getattr(self, name) for name in lm.LanguageModelRun.__dataclass_fields__}
        return lm.LanguageModelRun(**own | {"method": "rope"})

    @property
    def extension(self) -> Extension | None:
        return EXTENSIONS[self.method](FACTOR, self.beyond.length)

    @property
    def far_extension(self) -> Extension | None:
        """That of the longest texts, where the method follows a factor."""
        far = EXTENSIONS[self.method](TIMES, self.beyond.length)
        return None if far == self.extension else far

    @property
    def stages(self) -> dict[str, tuple[Protocol, ...]]:
        """What is read, by the state of the model: "frozen", "frozen-16" and "tuned". Every tuned model is
        read at stride 1 through L too, so that its gain from further back is told from that of the tuning."""
        length = self.beyond.length
        tight, coarse, _ = sliding_windows(length)
        tuned = (Protocol("tuned"), replace(tight, id="tuned-oracle"))
        frozen = Protocol("frozen")
        if self.method != "rope":
            far = {} if self.far_extension is None else {f"frozen-{TIMES}": (Protocol(f"frozen-{TIMES}"),)}
            return {"frozen": (frozen,), **far, "tuned": tuned}
        masked = [Protocol(f"frozen-{name}", **mask) for name, mask in masks(length).items()]
        return {
            "frozen": (tight, replace(coarse, scope="part"), frozen, *masked),
            "tuned": (*tuned, Protocol("tuned-window", window=FACTOR * length)),
        }

    @property
    def readings(self) -> tuple[Protocol, ...]:
        return tuple(reading for stage in self.stages.values() for reading in stage)

    def unseen(self, reading: Protocol) -> str:
        """Frequencies that were changed afterwards leave the sides that training never showed as they are:
        what is new is the number of the keys, and a difference of positions. A tuned model has seen more."""
        seen = self.beyond.length * (FACTOR if reading.id.startswith("tuned") else 1)
        longest, encodings = self.beyond.longest, self.model.encodings
        return unseen(reading, encodings, self.training, longest=longest, trained=(seen, seen))

    def resolved(self) -> dict[str, Any]:
        used = {"frozen": self.extension, f"frozen-{TIMES}": self.far_extension}
        named = {stage: one.resolved() for stage, one in used.items() if one is not None}
        return super().resolved() | {"extensions": named}


def trained(
    config: ContextExtensionRun, *, device: str = "cpu", progress: Progress | None = None
) -> Checkpoint:
    """The plain model of the seed, see `trained_once`. Diverged: a loss is not finite."""
    data = lm.splits_of(config.base.text.name).sha256
    return trained_once(config.base, lm.build, lm.batches, data=data, device=device, progress=progress)


def tune(
    config: ContextExtensionRun,
    start: Checkpoint,
    tuning: TrainingConfig,
    *,
    device: str = "cpu",
    stop_after: int | None = None,
) -> tuple[LanguageModel, list[float]]:
    """The model of a checkpoint under the extension, trained on by one tuning, and its losses in nats.

    Raises:
        Diverged: a loss is not finite.
    """
    model = LanguageModel(config.model).to(device)
    adamw = checkpoints.restore(start, model, tuning)
    model = model.extended(extension=config.extension)  # shares its parameters with the one restored
    drawn = text.sample_batches(
        lm.splits_of(config.text.name).train,
        batch_size=tuning.batch_size,
        length=tuning.length,
        seed=TUNING_SEED + config.seed,
        steps=tuning.steps,
    )
    losses = train(model, drawn, tuning, device=device, adamw=adamw, stop_after=stop_after)
    return model, losses


def _validated(
    config: ContextExtensionRun, model: LanguageModel, device: str, at_most: int = VALIDATION_WINDOWS
) -> float:
    """Bits per byte at the length of the tuning, on the first two such windows of each validation text."""
    length = config.tunings[0].length
    cut = text.windows(lm.splits_of(config.text.name).validation, length=length, per_document=2 * length)
    return evaluate(model, cut.tokens[:at_most], **config.how(device, length)).bits_per_byte


def tuned(
    config: ContextExtensionRun, start: Checkpoint, *, device: str = "cpu"
) -> tuple[LanguageModel | None, lm.Rows]:
    """The tuning whose rate the validation text prefers, and a row of the kind "tuning" for each rate; None
    where all of them diverged, whose rows hold no score."""
    best: tuple[float, LanguageModel | None] = (inf, None)
    rows: lm.Rows = []
    for tuning in config.tunings:
        row = {"kind": "tuning", "learning_rate": tuning.learning_rate}
        try:
            model, losses = tune(config, start, tuning, device=device)
        except Diverged as error:
            rows.append(row | {"diverged_at_step": error.step})
            continue
        score = _validated(config, model, device)
        row |= {"first_bits_per_byte": losses[0] / log(2), "last_bits_per_byte": losses[-1] / log(2)}
        rows.append(row | {"val_bits_per_byte": score})
        if score < best[0]:
            best = score, model
    return best[1], rows


def metrics_of(rows: lm.Rows, length: int) -> lm.Metrics:
    """Bits per byte by reading and bin, with k = 1, 2, 4, 8, 16 for the bin that ends at k times `length`:
    `<reading>/<k>x` on all windows of the run but for the sliding-window baselines at stride 1, and
    `tight/<reading>/<k>x` on the few that these read, for every reading."""
    scopes = {"part": "", "tight": "tight/"}
    read = [row for row in rows if row["kind"] == "reading"]
    return {f"{scopes[r['scope']]}{r['reading']}/{r['stop'] // length}x": r["bits_per_byte"] for r in read}


def _read(config: ContextExtensionRun, start: Checkpoint, device: str) -> tuple[lm.Metrics, lm.Rows]:
    """The readings of every stage; `bits_per_byte` is that of the plain model inside its length."""
    plain = LanguageModel(config.model).to(device)
    checkpoints.restore(start, plain, config.training)
    models = {"frozen": plain.extended(extension=config.extension)}
    if config.far_extension is not None:
        models[f"frozen-{TIMES}"] = plain.extended(extension=config.far_extension)
    clock = Clock(device)
    models["tuned"], rows = tuned(config, start, device=device)
    metrics: lm.Metrics = {"tune_cpu_s": clock.cpu_s}
    if models["tuned"] is not None:
        scores = {row["learning_rate"]: row.get("val_bits_per_byte", inf) for row in rows}
        metrics["tuning_rate"] = min(scores, key=scores.get)
        metrics["val_bits_per_byte"] = min(scores.values())
    for stage, asked in config.stages.items():
        if models[stage] is not None:
            rows += read(config, models[stage], asked=asked, device=device)
    length, windows = config.beyond.length, config.passages().tokens
    how = {"device": device, "precision": config.training.precision}
    metrics["bits_per_byte"] = evaluate(plain, windows[:, : length + 1], **how).bits_per_byte
    return metrics | metrics_of(rows, length), rows


class ContextExtension(TextExperiment):
    """What does a trained RoPE model pay at one to sixteen times its trained length under each context
    extension, frozen and tuned for a twentieth of the steps, beside plain RoPE tuned equally and a sliding
    window?"""

    name = "context_extension"
    title = "RoPE at longer contexts"
    order = 8
    sweeps = (LR_SCREEN,)
    methods = METHODS
    smoke = ("yarn", "rope")
    costs: ClassVar = {"smoke": 3.0, "laptop": 90.0}

    def config(self, profile: str, cell: str, seed: int) -> ContextExtensionRun:
        one_of("method", cell, METHODS)
        beyond, rate = BEYOND[profile], LR_SCREEN.rate(profile, "rope")
        run = run_of(self.name, profile, "rope", seed, rate)
        tuning = replace(
            run.training,
            steps=max(1, run.training.steps // SHARE),
            length=FACTOR * beyond.length,
            batch_size=run.training.batch_size // FACTOR,
        )
        tunings = tuple(replace(tuning, learning_rate=share * rate) for share in RATES)
        parts = vars(run) | {"method": cell, "tunings": tunings}
        return ContextExtensionRun(**parts, beyond=beyond, blocks=blocks_of(seed))

    def grid(self, profile: str, seeds: Sequence[int] | None = None) -> list[ContextExtensionRun]:
        """Seeds inside methods: runs that start together then train models of different seeds, and those
        after them find these trained."""
        return sorted(super().grid(profile, seeds), key=lambda c: self.cells(profile).index(c.method))

    def sweep_of(self, config: ContextExtensionRun) -> tuple[Sweep, str]:
        return LR_SCREEN, "rope"

    def run(
        self, config: ContextExtensionRun, *, device: str = "cpu", progress: Progress | None = None
    ) -> Record:
        self.refuse(config)
        clock, base = Clock(device), config.base
        fingerprint = self.fingerprint(config, device=device)
        metrics: lm.Metrics = {"learning_rate": base.training.learning_rate}
        rows: lm.Rows = []
        try:
            start = trained(config, device=device, progress=progress)
        except Diverged as error:  # a result like any other: kept, and without a score
            metrics["diverged_at_step"] = error.step
        else:
            metrics["train_cpu_s"] = start.cpu_s
            more, rows = _read(config, start, device)
            metrics |= more
        # The training counts also where an earlier run left its checkpoint.
        seen = sum(one.targets for one in (base.training, *config.tunings))
        data = {config.text.name: lm.splits_of(config.text.name).sha256}
        return recorded(config, clock, metrics, rows, fingerprint, data=data, bytes_seen=seen)

    def fingerprint(self, config: ContextExtensionRun, *, device: str = "cpu") -> dict[str, list[float]]:
        """Those of the plain model; and of the model after these first steps, its score under the extension
        at the length of the tuning, and the first losses of the first tuning."""
        base = config.base
        model = lm.build(base).to(device)
        initial = lm.initial_score(base, model, device)
        adamw = optimiser(model, base.training)
        how = {"device": device, "stop_after": lm.FIRST_STEPS.get()}
        losses = train(model, lm.batches(base), base.training, adamw=adamw, **how)
        start = checkpoints.take(model, adamw, losses, {})
        extended = model.extended(extension=config.far_extension or config.extension)
        score = _validated(config, extended, device, at_most=2)
        _, tuning = tune(config, start, config.tunings[0], **how)
        return {
            "initial_bits_per_byte": initial,
            "first_losses": losses,
            "extended_bits_per_byte": [score],
            "tuning_losses": tuning,
        }
