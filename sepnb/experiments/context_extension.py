"""Chapter 6: a trained RoPE model under each context extension, as it is and tuned at four times its length.

One model per seed is trained as `in_window` trains its RoPE. A run takes it through one extension: read as it
is under the new frequencies (*frozen*), and after a tuning on texts of 4 L (*tuned*). Plain RoPE is tuned in
the same way, so that what the frequencies do is told from what the tuning does; and it is read through a
window, which changes no frequency at all.

Every tuning starts from the same checkpoint of the seed, optimiser included, reads the same bytes in the same
order, as many a step as the training did, and is repeated at three learning rates, of which the validation
text at 4 L chooses. Every seed reads one of the six blocks of text that `extrapolation` tells apart.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import log
from typing import Any

from ..data import text
from ..encodings import context
from ..encodings.context import Extension
from ..evaluation.long_windows import Beyond, blocks_of
from ..evaluation.losses import evaluate
from ..evaluation.protocols import Protocol, masks, sliding_windows
from ..models import LanguageModel
from ..records.provenance import Clock
from ..training import checkpoints
from ..training.checkpoints import Checkpoint
from ..training.config import TrainingConfig
from ..training.loop import train
from ..validation import one_of
from . import language_modelling as lm
from .base import Experiment
from .in_window import LR_SCREEN
from .long_windows import LongTexts, read
from .methods import run_of
from .run import HERE, At, Fingerprint, Found, Measure, Metrics, Rows, Run
from .tuning import TunedModel, best_of, first_losses

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


def stages_of(extended: "Extended", beyond: Beyond) -> dict[str, tuple[Protocol, ...]]:
    """What is read, by the state of the model: "frozen", "frozen-16" and "tuned". Every tuned model is read
    at stride 1 through L too, so that its gain from further back is told from that of the tuning."""
    length = beyond.length
    tight, coarse, _ = sliding_windows(length)
    tuned = (Protocol("tuned"), replace(tight, id="tuned-oracle"))
    frozen = Protocol("frozen")
    if extended.extension is not None:
        far = {} if extended.far is None else {f"frozen-{TIMES}": (Protocol(f"frozen-{TIMES}"),)}
        return {"frozen": (frozen,), **far, "tuned": tuned}
    masked = [Protocol(f"frozen-{name}", **mask) for name, mask in masks(length).items()]
    return {
        "frozen": (tight, replace(coarse, scope="part"), frozen, *masked),
        "tuned": (*tuned, Protocol("tuned-window", window=FACTOR * length)),
    }


@dataclass(frozen=True)
class Extended(Measure):
    """One extension of a trained RoPE: read as it is, and tuned.

    Args:
        extension: for the texts of the tuning; None leaves RoPE plain.
        far: that of the longest texts, where the method follows a factor.
        tunings: one for each learning rate.
        texts: all that is read.
    """

    extension: Extension | None
    far: Extension | None
    tunings: tuple[TrainingConfig, ...]
    texts: LongTexts | None = None

    def resolved(self) -> dict[str, Any]:
        used = {"frozen": self.extension, f"frozen-{TIMES}": self.far}
        named = {stage: one.resolved() for stage, one in used.items() if one is not None}
        tunings = [tuning.resolved() for tuning in self.tunings]
        return self.texts.resolved() | {"tunings": tunings, "extensions": named}

    def tune(self, config: Run, start: Checkpoint, tuning: TrainingConfig, **how: Any) -> TunedModel:
        """The model of a checkpoint under the extension, trained on by one tuning; how: as of `train`."""
        model = config.build().to(how["device"])
        adamw = checkpoints.restore(start, model, tuning)
        model = model.extended(extension=self.extension)  # shares its parameters with the one restored
        drawn = lm.windows_of(config.data.splits.train, tuning, TUNING_SEED + config.seed)
        return model, train(model, drawn, tuning, adamw=adamw, **how)

    def validated(
        self, config: Run, model: LanguageModel, device: str, at_most: int = VALIDATION_WINDOWS
    ) -> float:
        """Bits per byte at the length of the tuning, on the first two such windows of each validation
        text."""
        length, held = self.tunings[0].length, config.data.splits.validation
        cut = text.windows(held, length=length, per_document=2 * length)
        how = self.texts.how(config, device, length)
        return evaluate(model, cut.tokens[:at_most], **how).bits_per_byte

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        """The readings of every stage; `bits_per_byte` is that of the plain model inside its length."""
        models = {"frozen": model.extended(extension=self.extension)}
        if self.far is not None:
            models[f"frozen-{TIMES}"] = model.extended(extension=self.far)
        clock = Clock(at.device)
        models["tuned"], chosen, rows = best_of(
            lambda _: self.tunings,
            partial(self.tune, config, at.start, device=at.device),
            lambda tuned: {"val_bits_per_byte": self.validated(config, tuned, at.device)},
            unit="bits_per_byte",
            nats=log(2),
        )
        metrics = {"tune_cpu_s": clock.cpu_s} | chosen
        # Frequencies that were changed afterwards leave the sides that training never showed as they are:
        # what is new is the number of the keys, and a difference of positions. A tuned model has seen more.
        length = self.texts.beyond.length
        for stage, asked in stages_of(self, self.texts.beyond).items():
            if models[stage] is not None:
                shown = length * (FACTOR if stage == "tuned" else 1)
                seen = {"trained": (shown, shown)}
                rows += read(config, self.texts, models[stage], asked=asked, seen=seen, device=at.device)
        windows = self.texts.passages(config).tokens
        how = {"device": at.device, "precision": config.training.precision}
        metrics["bits_per_byte"] = evaluate(model, windows[:, : length + 1], **how).bits_per_byte
        return metrics | metrics_of(rows, length), rows

    def begins(self, config: Run, start: Checkpoint, device: str, steps: int) -> Fingerprint:
        """The score of the model under the extension at the length of the tuning, and the first losses of the
        first tuning."""
        plain = config.build().to(device)
        checkpoints.restore(start, plain, config.training)
        extended = plain.extended(extension=self.far or self.extension)
        score = self.validated(config, extended, device, at_most=2)
        tune = partial(self.tune, config, start)
        return {"extended_bits_per_byte": [score]} | first_losses(tune, self.tunings[0], steps, device=device)


def metrics_of(rows: Rows, length: int) -> Metrics:
    """Bits per byte by reading and bin, with k = 1, 2, 4, 8, 16 for the bin that ends at k times `length`:
    `<reading>/<k>x` on all windows of the run but for the sliding-window baselines at stride 1, and
    `tight/<reading>/<k>x` on the few that these read, for every reading."""
    scopes = {"part": "", "tight": "tight/"}
    read = [row for row in rows if row["kind"] == "reading"]
    return {f"{scopes[r['scope']]}{r['reading']}/{r['stop'] // length}x": r["bits_per_byte"] for r in read}


def plan(experiment: str, profile: str, cell: str, seed: int) -> Run:
    """The run of `in_window` that trains RoPE, and what is read before and after a tuning."""
    make = EXTENSIONS[one_of("method", cell, METHODS)]
    beyond, rate = BEYOND[profile], LR_SCREEN.rate(profile, "rope")
    base = run_of(experiment, profile, "rope", seed, rate)
    tuning = replace(
        base.training,
        steps=max(1, base.training.steps // SHARE),
        length=FACTOR * beyond.length,
        batch_size=base.training.batch_size // FACTOR,
    )
    tunings = tuple(replace(tuning, learning_rate=share * rate) for share in RATES)
    near, far = (make(factor, beyond.length) for factor in (FACTOR, TIMES))
    extended = Extended(near, None if far == near else far, tunings)
    asked = tuple(one for stage in stages_of(extended, beyond).values() for one in stage)
    extended = replace(extended, texts=LongTexts(beyond, blocks_of(seed), asked))
    return replace(base, method=cell, measures=(extended,), base=base, titled="{name}")


EXPERIMENT = Experiment(
    name="context_extension",
    title="RoPE at longer contexts",
    question="""What does a trained RoPE model pay at one to sixteen times its trained length under each
        context extension, frozen and tuned for a twentieth of the steps, beside plain RoPE tuned equally
        and a sliding window?""",
    order=8,
    methods=METHODS,
    smoke=("yarn", "rope"),
    costs={"smoke": 3.0, "laptop": 90.0},
    plan=plan,
    waits=LR_SCREEN.before,
    cells_first=True,
)
"""Runs that start together train models of different seeds, and those after them find these trained."""
