"""Chapter 6: a trained RoPE model under each context extension, as it is and tuned at four times its length.

One model per seed is trained as `in_window` trains its RoPE. A run takes it through one extension: read as it
is under the new frequencies (*frozen*), and after a tuning of a twentieth of the steps on texts of 4 L
(*tuned*). Plain RoPE is tuned in the same way, so that what the frequencies do is told from what the tuning
does; and it is read through a window, which changes no frequency at all.

Every tuning starts from the same checkpoint of the seed, optimiser included, reads the same bytes in the same
order, as many a step as the training did, and is repeated at three learning rates, of which the validation
text at 4 L chooses. The checkpoint is kept under `build/`, for the runs of one commit; where it is absent a
run trains the model again.

Every seed reads one of the six blocks of text that `extrapolation` tells apart.
"""

from collections.abc import Sequence
from math import inf, log
from typing import ClassVar

import torch

from .. import paths
from ..data import text
from ..evaluation.losses import evaluate
from ..models import LanguageModel
from ..records.provenance import Clock, code_state
from ..records.store import Record, digest
from ..training import checkpoints
from ..training.checkpoints import Checkpoint
from ..training.config import TrainingConfig
from ..training.loop import Diverged, optimiser, train
from . import language_modelling as lm
from .base import Progress
from .context_extension_runs import EXPERIMENT, METHODS, TIMES, ContextExtensionRun
from .extrapolation import read

TUNING_SEED = 1_000_000
"""Added to the seed: a tuning draws other windows of the training text than the training did."""

VALIDATION_WINDOWS = 40
"""Windows of the validation text, of the length of the tuning, that choose the rate."""


def trained(
    config: ContextExtensionRun, *, device: str = "cpu", progress: Progress | None = None
) -> Checkpoint:
    """The plain model of the seed, trained: from `build/checkpoints`, or trained now and put there.

    A tree with uncommitted changes keeps no checkpoints and takes none: its code has no name.

    Raises:
        Diverged: a loss is not finite.
    """
    base = config.base
    commit, dirty = code_state()
    facts = {"commit": commit, "device": device, "torch": str(torch.__version__)}
    about = facts | {"data": lm.splits_of(base.text.name).sha256, "config": base.resolved()}
    path = paths.build() / "checkpoints" / f"{digest(about)[:24]}.pt"
    if dirty is False and (found := checkpoints.load(path, about)):
        return found
    clock = Clock(device)
    model = lm.build(base).to(device)
    adamw = optimiser(model, base.training)
    on_step = None if progress is None else lambda step: progress(step + 1, base.training.steps)
    how = {"device": device, "adamw": adamw, "on_step": on_step}
    losses = train(model, lm.batches(base), base.training, **how)
    checkpoint = checkpoints.take(model, adamw, losses, about, cpu_s=clock.cpu_s)
    if dirty is False:
        checkpoints.save(path, checkpoint)
    return checkpoint


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
    size = max(1, config.beyond.batch_bytes // length)
    how = {"device": device, "precision": config.training.precision, "batch_size": size}
    return evaluate(model, cut.tokens[:at_most], **how).bits_per_byte


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
        trained_at = {"first_bits_per_byte": losses[0] / log(2), "last_bits_per_byte": losses[-1] / log(2)}
        rows.append(row | trained_at | {"val_bits_per_byte": score})
        if score < best[0]:
            best = score, model
    return best[1], rows


def metrics_of(rows: lm.Rows, length: int) -> lm.Metrics:
    """Bits per byte by reading and bin, with k = 1, 2, 4, 8, 16 for the bin that ends at k times `length`:
    `<reading>/<k>x` on all windows of the run but for the oracles at stride 1, and `tight/<reading>/<k>x` on
    the few that these oracles read, for every reading."""
    names = {"part": "", "tight": "tight/"}
    return {
        f"{names[row['scope']]}{row['reading']}/{row['stop'] // length}x": row["bits_per_byte"]
        for row in rows
        if row["kind"] == "reading"
    }


class ContextExtension(lm.TextExperiment):
    """Which extension carries a trained RoPE model to longer texts, as it is and after a little tuning?"""

    name: ClassVar[str] = EXPERIMENT
    title: ClassVar[str] = "RoPE at longer contexts"
    question: ClassVar[str] = (
        "What does a trained RoPE model pay at one to sixteen times its trained length under each context "
        "extension, frozen and tuned for a twentieth of the steps, beside plain RoPE tuned equally and a "
        "sliding window?"
    )
    order: ClassVar[int] = 8

    methods: ClassVar = METHODS
    smoke: ClassVar = ("yarn", "rope")
    costs: ClassVar = {"smoke": 3.0, "laptop": 90.0, "gpu": 60.0}

    def config(self, profile: str, cell: str, seed: int) -> ContextExtensionRun:
        return ContextExtensionRun.of_method(profile, cell, seed)

    def grid(self, profile: str, seeds: Sequence[int] | None = None) -> list[ContextExtensionRun]:
        """Seeds inside methods: runs that start together then train models of different seeds, and those
        after them find these trained."""
        return sorted(super().grid(profile, seeds), key=lambda c: self.cells(profile).index(c.method))

    def run(
        self, config: ContextExtensionRun, *, device: str = "cpu", progress: Progress | None = None
    ) -> Record:
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
            more, rows = self._read(config, start, device)
            metrics |= more
        # `bytes_seen` is what stands behind the record: the training, also where it was taken from the
        # checkpoint of an earlier run, and all tunings. The sum over records counts it once a method.
        seen = sum(one.targets for one in (base.training, *config.tunings))
        return Record.of(
            config,
            metrics=metrics,
            rows=rows,
            fingerprint=fingerprint,
            provenance=clock.facts(
                seed=config.seed,
                data={config.text.name: lm.splits_of(config.text.name).sha256},
                bytes_seen=seen,
            ),
        )

    def _read(
        self, config: ContextExtensionRun, start: Checkpoint, device: str
    ) -> tuple[lm.Metrics, lm.Rows]:
        """The readings of every stage; `bits_per_byte` is that of the plain model inside its length."""
        plain = LanguageModel(config.model).to(device)
        checkpoints.restore(start, plain, config.training)
        models = {"frozen": plain.extended(extension=config.extension)}
        if config.far_extension is not None:
            models[f"frozen-{TIMES}"] = plain.extended(extension=config.far_extension)
        clock = Clock(device)
        models["tuned"], rows = tuned(config, start, device=device)
        metrics: lm.Metrics = {"tune_cpu_s": clock.cpu_s}
        scores = {row["learning_rate"]: row.get("val_bits_per_byte", inf) for row in rows}
        if models["tuned"] is not None:
            metrics["tuning_rate"] = min(scores, key=scores.get)
            metrics["val_bits_per_byte"] = min(scores.values())
        for stage, asked in config.stages.items():
            if models[stage] is not None:
                rows += read(config, models[stage], asked=asked, device=device)
        length, held = config.beyond.length, config.passages()
        how = {"device": device, "precision": config.training.precision}
        inside = evaluate(plain, held.tokens[:, : length + 1], held.documents, **how)
        metrics["bits_per_byte"] = inside.bits_per_byte
        return metrics | metrics_of(rows, length), rows

    def fingerprint(self, config: ContextExtensionRun, *, device: str = "cpu") -> dict[str, list[float]]:
        """Those of the plain model; and of the model after these first steps, its score under the extension
        at the length of the tuning, and the first losses of the first tuning."""
        base, few = config.base, lm.FINGERPRINT_STEPS
        model = lm.build(base).to(device)
        initial = lm.initial_score(base, model, device)
        adamw = optimiser(model, base.training)
        how = {"device": device, "stop_after": few}
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
