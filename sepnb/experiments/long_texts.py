"""Chapter 12: novels at slowed positions, read by models that were left as they are and by models of which
one part was tuned: `stretched` and `adapted` for texts.

`stretched_text` trains a model as `in_window` does and reads windows of 16 L: of each the first k L at
positions k times as slow, by the reading that the validation text of 8 L prefers. `adapted_text` tunes one
part of the same model on texts of 8 L (the arms of `adapted`) and reads as far. A byte k L into a text is
compared with what the same model, untuned, pays for it through a sliding window of L bytes at stride 1.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf, log
from typing import Any, ClassVar

from ..data import text
from ..evaluation.long_windows import Beyond, blocks_of
from ..evaluation.losses import evaluate
from ..evaluation.protocols import Protocol, sliding_windows
from ..models import LanguageModel
from ..records.provenance import Clock
from ..records.store import Record
from ..training import checkpoints
from ..training.checkpoints import Checkpoint
from ..training.config import TrainingConfig
from ..training.device import optimiser
from ..training.loop import Diverged, train
from . import language_modelling as lm
from .adapted import ARMS, TIMES, TUNING_SEED, Arm, reader, trained_numbers, tuned, tunings_of
from .adapted import READING as TUNED_READING
from .base import Progress, recorded
from .extrapolation import ExtrapolationRun, read
from .in_window import LR_SCREEN
from .methods import run_of
from .readings import CHOSEN_AT, READINGS, read_by
from .stretched import METHODS
from .sweep import STEPS, Sweep
from .texts import TextExperiment
from .trained_once import trained_once

BEYOND = {
    "smoke": Beyond(64, 16, documents=2, windows=1, part=1, tight=1, batch_bytes=2048),
    "laptop": Beyond(128, 16, documents=20, windows=2, part=2, tight=4, batch_bytes=4096),
    "gpu": Beyond(256, 16, documents=20, windows=4, part=4, tight=10, batch_bytes=131_072),
}
FACTORS = (2, 4, 8, 16)
VALIDATION_WINDOWS = {"smoke": 1, "laptop": 20, "gpu": 40}
"""Windows of 8 L of the validation text that choose a reading or a rate."""

SWEEP = Sweep(
    "stretched_text_sweep",
    title="Learning rates of models that are read at slowed positions",
    order=8,
    methods=("concatenated-sinusoidal", "separated-sinusoidal-constant", "separated-phase"),
    smoke=("concatenated-sinusoidal",),
    config_of=run_of,
    steps=STEPS,
    costs={"smoke": 1.0, "laptop": 65.0},
)
"""Of the methods that `lr_screen` did not try, in the same way."""

CELLS = (
    *(f"separated-sinusoidal/{arm}" for arm in ("position", "all")),
    *(f"separated-sinusoidal-constant/{arm}" for arm in ("position", "all")),
    *(f"sinusoidal/{arm}" for arm in ("all", "maps", "low-rank")),
    *(f"rope/{arm}" for arm in ("all", "maps", "low-rank")),
    *("concatenated-sinusoidal/position", "concatenated-sinusoidal/all", "strict-sinusoidal/position"),
    *(f"separated-sinusoidal/{arm}" for arm in ("position-maps", "content", "position-not-slowed")),
    *(f"separated-sinusoidal/{arm}" for arm in ("position-5", "position-1", "position-one-factor")),
    "separated-sinusoidal-constant/position-one-factor",
)


@dataclass(frozen=True)
class StretchedTextRun(ExtrapolationRun):
    """A training on novels, and the readings among which the validation text chooses."""

    slowed: tuple[str, ...] = READINGS

    @property
    def base(self) -> lm.LanguageModelRun:
        """The training alone, which all runs of these experiments share."""
        own = {name: getattr(self, name) for name in lm.LanguageModelRun.__dataclass_fields__}
        return lm.LanguageModelRun(**own | {"experiment": "trained", "method": self.method.split("/")[0]})

    @property
    def untuned(self) -> tuple[Protocol, ...]:
        """What is read with the model as it was trained."""
        tight, _, _ = sliding_windows(self.beyond.length)
        return (tight, Protocol("native"), Protocol("window", window=self.beyond.length))

    @property
    def readings(self) -> tuple[Protocol, ...]:
        return (*self.untuned, *(Protocol(f"slowed-{factor}") for factor in FACTORS))


@dataclass(frozen=True)
class AdaptedTextRun(StretchedTextRun):
    """The same training, and the tunings of one part, which differ in their rate."""

    tunings: tuple[TrainingConfig, ...] = ()

    @property
    def arm(self) -> Arm:
        return ARMS[self.method.split("/")[1]]

    @property
    def reading(self) -> str:
        """How the model is slowed down."""
        return self.slowed[0]

    @property
    def untuned(self) -> tuple[Protocol, ...]:
        tight, *_ = super().untuned
        return (tight,)

    @property
    def readings(self) -> tuple[Protocol, ...]:
        tight, *_ = super().untuned
        own = Protocol("adapted-oracle", "tight", window=tight.window, stride=1)
        slowed = (Protocol(f"slowed-{factor}") for factor in FACTORS)
        return (*self.untuned, own, Protocol("adapted-1"), *slowed)


def trained(config: StretchedTextRun, device: str, progress: Progress | None = None) -> Checkpoint:
    """The trained model of a run. Diverged: a loss is not finite."""
    data = lm.splits_of(config.text.name).sha256
    return trained_once(config.base, lm.build, lm.batches, data=data, device=device, progress=progress)


def restored(config: StretchedTextRun, start: Checkpoint, device: str) -> LanguageModel:
    """The trained model, ready to be read."""
    model = lm.build(config).to(device)
    checkpoints.restore(start, model, config.training)
    return model.eval()


def validated(
    config: StretchedTextRun, model: LanguageModel, device: str, at_most: int | None = None
) -> float:
    """Bits per byte of a reader on windows of 8 L of the validation text."""
    length, at_most = CHOSEN_AT * config.beyond.length, at_most or VALIDATION_WINDOWS[config.profile]
    cut = text.windows(lm.splits_of(config.text.name).validation, length=length, per_document=length)
    return evaluate(model, cut.tokens[:at_most], **config.how(device, length)).bits_per_byte


def slowed_rows(config: StretchedTextRun, slow: Callable[[int], LanguageModel], device: str) -> lm.Rows:
    """The first k L of every window at positions k times as slow, for each of `FACTORS`; of each reading the
    last bin, from k/2 L to k L, is what the others are compared in."""
    rows: lm.Rows = []
    for factor in FACTORS:
        asked, longest = (Protocol(f"slowed-{factor}"),), factor * config.beyond.length
        rows += read(config, slow(factor), asked=asked, longest=longest, device=device)
    return rows


def metrics_of(rows: lm.Rows, length: int) -> lm.Metrics:
    """In bits per byte, with k = 1, 2, 4, 8, 16 for the bin that ends at k L: `<reading>/<k>x` on all windows
    of the run (`slowed/<k>x` of the reading with factor k), and on the few of the sliding window
    `gap/<reading>/<k>x`, the reading minus that window."""
    levels = {
        (row["scope"], row["reading"], row["stop"] // length): row["bits_per_byte"]
        for row in rows
        if row["kind"] == "reading"
    }
    metrics: lm.Metrics = {}
    for (scope, name, k), level in levels.items():
        if name.startswith("slowed-"):
            name, factor = name.split("-")
            if k != int(factor):
                continue
        if scope == "part" or name.endswith("oracle"):
            metrics[f"{name}/{k}x"] = level
        if scope == "tight" and name != "oracle":
            metrics[f"gap/{name}/{k}x"] = level - levels["tight", "oracle", k]
    return metrics


def look_stretched(
    config: StretchedTextRun, model: LanguageModel, start: Checkpoint, device: str
) -> tuple[lm.Metrics, lm.Rows]:
    """The readings of a model that is left as it is."""
    scores = {name: validated(config, read_by(model, name, CHOSEN_AT), device) for name in config.slowed}
    best = min(scores, key=scores.get)
    rows = read(config, model, asked=config.untuned, device=device)
    rows += slowed_rows(config, lambda factor: read_by(model, best, factor), device)
    chosen = [{"kind": "slowed", "reading": name, "bits_per_byte": level} for name, level in scores.items()]
    metrics = metrics_of(rows, config.beyond.length)
    return metrics | {"reading": READINGS.index(best), "bits_per_byte": metrics["native/1x"]}, rows + chosen


def samples_of(config: AdaptedTextRun, tuning: TrainingConfig) -> Iterator[Any]:
    """The batches of a tuning: windows of 8 L of the training text, those of a seed for every method."""
    draw = text.sample_batches if tuning.positions is None else tuning.positions.batches
    sizes = {"batch_size": tuning.batch_size, "length": tuning.length, "steps": tuning.steps}
    return draw(lm.splits_of(config.text.name).train, seed=TUNING_SEED + config.seed, **sizes)


def tuned_text(
    config: AdaptedTextRun, start: Checkpoint, tuning: TrainingConfig, **how: Any
) -> tuple[LanguageModel, list[float]]:
    """The trained model with the part of the arm tuned. Diverged: a loss is not finite."""
    device, batches = how["device"], samples_of(config, tuning)
    return tuned(config, restored(config, start, device), batches, tuning, **how)


def look_adapted(
    config: AdaptedTextRun, model: LanguageModel, start: Checkpoint, device: str
) -> tuple[lm.Metrics, lm.Rows]:
    """The tuning that the validation text prefers, a row of each, and what its model pays."""
    best, told = (inf, model), []
    metrics: lm.Metrics = {"tuned_numbers": trained_numbers(config, model)}
    for tuning in config.tunings:
        row: dict[str, Any] = {"kind": "tuning", "learning_rate": tuning.learning_rate}
        try:
            changed, losses = tuned_text(config, start, tuning, device=device)
        except Diverged as error:
            told.append(row | {"diverged_at_step": error.step})
            continue
        score = validated(config, reader(config, changed, TIMES), device)
        ends = {"first_bits_per_byte": losses[0] / log(2), "last_bits_per_byte": losses[-1] / log(2)}
        told.append(row | ends | {"val_bits_per_byte": score})
        if score < best[0]:
            best = score, changed
            metrics |= {"tuning_rate": tuning.learning_rate, "val_bits_per_byte": score}
    rows = read(config, model, asked=config.untuned, device=device)
    own, once = config.readings[len(config.untuned) :][:2]
    rows += read(config, best[1], asked=(own,), device=device)
    rows += read(config, best[1], asked=(once,), longest=config.beyond.length, device=device)
    rows += slowed_rows(config, lambda factor: reader(config, best[1], factor), device)
    metrics |= metrics_of(rows, config.beyond.length)
    return metrics | {"bits_per_byte": metrics["oracle/1x"]}, rows + told


class StretchedText(TextExperiment):
    """Does a trained model lose less in longer novels once its positions are slowed down, and nothing else is
    changed?"""

    name = "stretched_text"
    title = "Positions slowed down: novels"
    order = 9
    sweeps = (SWEEP, LR_SCREEN)
    methods = tuple(METHODS)
    smoke = ("separated-sinusoidal",)
    costs: ClassVar = {"smoke": 4.0, "laptop": 280.0}
    looks_at: ClassVar[Callable[..., tuple[lm.Metrics, lm.Rows]]] = staticmethod(look_stretched)

    def config(self, profile: str, cell: str, seed: int) -> StretchedTextRun:
        return StretchedTextRun(**self.fields(profile, cell, seed))

    def fields(self, profile: str, method: str, seed: int) -> dict[str, Any]:
        """Of the run of a method."""
        run = self.training_of(profile, method, seed)
        return vars(run) | {"beyond": BEYOND[profile], "blocks": blocks_of(seed)}

    def run(
        self, config: StretchedTextRun, *, device: str = "cpu", progress: Progress | None = None
    ) -> Record:
        self.refuse(config)
        clock, fingerprint = Clock(device), self.fingerprint(config, device=device)
        metrics: lm.Metrics = {"learning_rate": config.training.learning_rate}
        rows: lm.Rows = []
        try:
            start = trained(config, device, progress)
        except Diverged as error:  # a result like any other: kept, and without a score
            metrics["diverged_at_step"] = error.step
        else:
            model = restored(config, start, device)
            counts = model.parameter_counts()
            metrics |= {"train_cpu_s": start.cpu_s, "parameters": counts["total"]}
            metrics["block_parameters"] = counts["blocks"]
            more, rows = self.looks_at(config, model, start, device)
            metrics |= more
        seen = sum(one.targets for one in (config.training, *getattr(config, "tunings", ())))
        data = {config.text.name: lm.splits_of(config.text.name).sha256}
        return recorded(config, clock, metrics, rows, fingerprint, data=data, bytes_seen=seen)

    def fingerprint(self, config: StretchedTextRun, *, device: str = "cpu") -> dict[str, list[float]]:
        """That of the training; of the model after these first steps the score at slowed positions, or the
        first losses of the first tuning."""
        model = lm.build(config).to(device)
        initial = lm.initial_score(config, model, device)
        adamw = optimiser(model, config.training)
        how = {"device": device, "stop_after": lm.FIRST_STEPS.get()}
        losses = train(model, lm.batches(config), config.training, adamw=adamw, **how)
        told = {"initial_bits_per_byte": initial, "first_losses": losses}
        if isinstance(config, AdaptedTextRun):
            start = checkpoints.take(model, adamw, losses, {})
            return told | {"tuning_losses": tuned_text(config, start, config.tunings[0], **how)[1]}
        slowed = read_by(model.eval(), "parts-1-32-log", CHOSEN_AT)
        return told | {"slowed_bits_per_byte": [validated(config, slowed, device, at_most=1)]}


class AdaptedText(StretchedText):
    """Does a model read longer novels once its positions are slowed down and its position part alone is
    tuned, as well as one of which everything is?"""

    name = "adapted_text"
    title = "Positions slowed down and tuned: novels"
    order = 10
    methods = CELLS
    smoke = ("separated-sinusoidal-constant/position", "sinusoidal/low-rank")
    costs: ClassVar = {"smoke": 5.0, "laptop": 260.0}
    looks_at: ClassVar[Callable[..., tuple[lm.Metrics, lm.Rows]]] = staticmethod(look_adapted)

    def config(self, profile: str, cell: str, seed: int) -> AdaptedTextRun:
        method, arm = cell.split("/")
        fields = self.fields(profile, method, seed)
        fields |= {"method": cell, "slowed": (TUNED_READING[method == "rope"],)}
        return AdaptedTextRun(**fields, tunings=tunings_of(ARMS[arm], fields["training"], profile))

    def sweep_of(self, config: AdaptedTextRun) -> tuple[Sweep, str]:
        return self.swept(config.method.split("/")[0])
