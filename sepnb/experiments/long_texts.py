"""Chapter 13: novels at slowed positions, read by models that were left as they are and by models of which
one part was tuned: `stretched` and `adapted` for texts.

`stretched_text` trains a model as `in_window` does and reads windows of 16 L: of each the first k L at
positions k times as slow, by the reading that the validation text of 8 L prefers. `adapted_text` tunes one
part of the same model on texts of 8 L (the arms of `tuning`) and reads as far. A byte k L into a text is
compared with what the same model, untuned, pays for it through a sliding window of L bytes at stride 1.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import log
from typing import Any

from ..data import text
from ..evaluation.long_windows import Beyond, blocks_of
from ..evaluation.losses import evaluate
from ..evaluation.protocols import SLIDING_WINDOW, Protocol, sliding_windows
from ..models import LanguageModel
from ..training.checkpoints import Checkpoint
from ..training.config import TrainingConfig
from . import language_modelling as lm
from .in_window import LR_SCREEN
from .long_windows import LongTexts, read
from .methods import run_of
from .readings import CHOSEN_AT, READINGS, SLOW, read_by
from .run import HERE, At, Fingerprint, Found, Measure, Metrics, Rows, Run, counts_of, restored
from .stretched import ALL_IN_FEW, BASES, FEW_OR_SMALL, METHODS, QUARTER, SHARES, SLOWER, SPREAD, STRONG, WEAK
from .sweep import STEPS, Sweep
from .texts import TextExperiment
from .tuning import TUNING_SEED, OfTuning, Tuning, cells, tuning_of

BEYOND = {
    "smoke": Beyond(64, 16, documents=2, windows=1, part=1, tight=1, batch_bytes=2048),
    "laptop": Beyond(128, 16, documents=20, windows=2, part=2, tight=4, batch_bytes=4096),
    "gpu": Beyond(256, 16, documents=20, windows=4, part=4, tight=10, batch_bytes=131_072),
}
FACTORS = {f"slowed-{factor}": factor for factor in (2, 4, 8, 16)}
"""By the reading that has it."""
VALIDATION_WINDOWS = {"smoke": 1, "laptop": 20, "gpu": 40}
"""Windows of 8 L of the validation text that choose a reading or a rate."""

SWEEP = Sweep(
    name="stretched_text_sweep",
    title="Learning rates of models that are read at slowed positions",
    order=8,
    methods=(
        *("concatenated-sinusoidal", "separated-sinusoidal-constant", "separated-phase"),
        *(QUARTER, SPREAD, WEAK, STRONG, SLOWER, *BASES),
    ),
    smoke=("concatenated-sinusoidal",),
    config_of=run_of,
    steps=STEPS,
    costs={"smoke": 1.0, "laptop": 65.0},
)
"""Of the methods that `lr_screen` did not try, in the same way."""

TRAINING = 4
"""Times the training of the other experiments, for `stretched_text_longer`."""
LONGER = {profile: replace(size, steps=size.steps * TRAINING) for profile, size in lm.SIZES.items()}
KEY_MODELS = ("sinusoidal", QUARTER, SLOWER, "concatenated-sinusoidal", "separated-sinusoidal", "rope")

LONGER_SWEEP = Sweep(
    name="stretched_text_longer_sweep",
    title=f"Learning rates of {TRAINING} times the training",
    order=8,
    methods=KEY_MODELS,
    smoke=("concatenated-sinusoidal",),
    config_of=partial(run_of, sizes=LONGER),
    steps={profile: steps * TRAINING for profile, steps in STEPS.items()},
    costs={"smoke": 3.0, "laptop": 120.0},
)

CELLS = {
    **cells("separated-sinusoidal", "position", "all"),
    **cells("separated-sinusoidal-constant", "position", "all"),
    **cells("sinusoidal", "all", "maps", "low-rank"),
    **cells("rope", "maps"),
    **cells("concatenated-sinusoidal", "position", "all", "position-one-factor", "position-not-slowed"),
    **cells("strict-sinusoidal", "position"),
    **cells("separated-sinusoidal", "position-maps", "content", "position-not-slowed"),
    **cells("separated-sinusoidal", "position-5", "position-1", "position-one-factor"),
    **cells("separated-sinusoidal-constant", "position-one-factor"),
    **cells("rope", "maps-one-factor", "maps-not-slowed"),
    **cells("sinusoidal", "low-rank-one-factor", "low-rank-one-factor-evenly"),
    **cells("sinusoidal", "all-one-factor", "all-one-factor-evenly"),
    **cells(QUARTER, "low-rank-one-factor", "low-rank-one-factor-yarn"),
    **cells(QUARTER, "low-rank-not-slowed", "maps-not-slowed"),
    **cells("sinusoidal", "low-rank-one-factor-yarn"),
    **cells(SLOWER, "low-rank-one-factor-yarn"),
    **cells("concatenated-sinusoidal", "position-one-factor-yarn", "low-rank-not-slowed"),
    **cells("separated-sinusoidal", "position-one-factor-yarn"),
}
SLOWED = tuple(Protocol(name) for name in FACTORS)


def validated(
    config: Run, texts: LongTexts, model: LanguageModel, device: str, at_most: int | None = None
) -> float:
    """Bits per byte of a reader on windows of 8 L of the validation text."""
    length, at_most = CHOSEN_AT * texts.beyond.length, at_most or VALIDATION_WINDOWS[config.profile]
    cut = text.windows(config.data.splits.validation, length=length, per_document=length)
    return evaluate(model, cut.tokens[:at_most], **texts.how(config, device, length)).bits_per_byte


def slowed_rows(config: Run, texts: LongTexts, slow: Callable[[int], LanguageModel], device: str) -> Rows:
    """The first k L of every window at positions k times as slow, for each of `FACTORS` among the readings;
    of each the last bin, from k/2 L to k L, is what the others are compared in."""
    rows: Rows = []
    for asked in (one for one in texts.readings if one.id in FACTORS):
        factor = FACTORS[asked.id]
        longest = factor * texts.beyond.length
        rows += read(config, texts, slow(factor), asked=(asked,), longest=longest, device=device)
    return rows


def metrics_of(rows: Rows, length: int) -> Metrics:
    """In bits per byte, with k = 1, 2, 4, 8, 16 for the bin that ends at k L: `<reading>/<k>x` on all windows
    of the run (`slowed/<k>x` of the reading with factor k), and on the few of the sliding window
    `gap/<reading>/<k>x`, the reading minus that window."""
    levels = {(row["scope"], row["reading"], row["stop"] // length): row["bits_per_byte"] for row in rows}
    metrics: Metrics = {}
    for (scope, reading, k), level in levels.items():
        if FACTORS.get(reading, k) != k:
            continue
        name = "slowed" if reading in FACTORS else reading
        if scope == "part" or reading in (SLIDING_WINDOW, OWN):
            metrics[f"{name}/{k}x"] = level
        if scope == "tight" and reading != SLIDING_WINDOW:
            metrics[f"gap/{name}/{k}x"] = level - levels["tight", SLIDING_WINDOW, k]
    return metrics


@dataclass(frozen=True)
class Slowed(Measure):
    """The readings of a model that is left as it is.

    Args:
        texts: all that is read.
        readings: the slowed ones, among which the validation text chooses; none of a model without position.
    """

    texts: LongTexts
    readings: tuple[str, ...] = READINGS

    def resolved(self) -> dict[str, Any]:
        return self.texts.resolved() | {"slowed": list(self.readings)}

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        texts = self.texts
        scores = {
            name: validated(config, texts, read_by(model, name, CHOSEN_AT), at.device)
            for name in self.readings
        }
        best = min(scores, key=scores.get, default="")
        rows = read(config, texts, model, asked=untuned(texts.beyond.length), device=at.device)
        rows += slowed_rows(config, texts, lambda factor: read_by(model, best, factor), at.device)
        chosen = [
            {"kind": "slowed", "reading": name, "bits_per_byte": level} for name, level in scores.items()
        ]
        metrics = counts_of(model) | metrics_of(rows, texts.beyond.length)
        choice = {"reading": READINGS.index(best)} if best else {}
        return metrics | choice | {"bits_per_byte": metrics["native/1x"]}, rows + chosen

    def begins(self, config: Run, start: Checkpoint, device: str, steps: int) -> Fingerprint:
        """The score of the model at slowed positions."""
        slowed = read_by(restored(config, start, device), SLOW, CHOSEN_AT)
        return {"slowed_bits_per_byte": [validated(config, self.texts, slowed, device, at_most=1)]}


@dataclass(frozen=True)
class Tuned(OfTuning):
    """The readings of a model of which one part was tuned, by the tuning that the validation text prefers."""

    texts: LongTexts
    tuning: Tuning

    def resolved(self) -> dict[str, Any]:
        each = [tuning.resolved() for tuning in self.tunings]
        return self.texts.resolved() | {"slowed": [self.tuning.reading], "tunings": each}

    def samples(self, config: Run, tuning: TrainingConfig) -> Iterator[Any]:
        """The batches of a tuning: windows of 8 L of the training text, those of a seed for every method."""
        return lm.windows_of(config.data.splits.train, tuning, TUNING_SEED + config.seed)

    def validated(self, config: Run, tuned: LanguageModel, device: str) -> float:
        """What chooses among the tunings: bits per byte of the validation text, in windows of 8 L read at
        slowed positions."""
        return validated(config, self.texts, self.tuning.reader(tuned, CHOSEN_AT), device)

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        texts, length = self.texts, self.texts.beyond.length

        def scored(tuned: LanguageModel) -> dict[str, float]:
            return {"val_bits_per_byte": self.validated(config, tuned, at.device)}

        best, metrics, tunings = self.best(config, model, at, scored, unit="bits_per_byte", nats=log(2))
        (tight,), (own, once) = of_tuned(length)
        rows = read(config, texts, model, asked=(tight,), device=at.device)
        rows += read(config, texts, best, asked=(own,), device=at.device)
        rows += read(config, texts, best, asked=(once,), longest=length, device=at.device)
        rows += slowed_rows(config, texts, lambda factor: self.tuning.reader(best, factor), at.device)
        metrics |= counts_of(model) | {"tuned_numbers": self.tuning.numbers(model)}
        metrics |= metrics_of(rows, length)
        return metrics | {"bits_per_byte": metrics["oracle/1x"]}, rows + tunings


OWN = "adapted-oracle"
"""The sliding-window baseline of a tuned model itself."""


def untuned(length: int) -> tuple[Protocol, ...]:
    """What is read with a model as it was trained."""
    tight, _, _ = sliding_windows(length)
    return tight, Protocol("native"), Protocol("window", window=length)


def of_tuned(length: int) -> tuple[tuple[Protocol, ...], tuple[Protocol, ...]]:
    """What is read without the tuning, and with it."""
    tight, *_ = untuned(length)
    own = Protocol(OWN, "tight", window=tight.window, stride=1)
    return (tight,), (own, Protocol("adapted-1"))


def measures_left_alone(run: Run) -> tuple[Measure, ...]:
    beyond = BEYOND[run.profile]
    return (Slowed(LongTexts(beyond, blocks_of(run.seed), (*untuned(beyond.length), *SLOWED))),)


def read_when_tuned(run: Run) -> LongTexts:
    """All that is read with a model of which a part was tuned."""
    beyond = BEYOND[run.profile]
    without, tuned = of_tuned(beyond.length)
    return LongTexts(beyond, blocks_of(run.seed), (*without, *tuned, *SLOWED))


def measures_tuned(run: Run, arm: str) -> tuple[Measure, ...]:
    return (Tuned(read_when_tuned(run), tuning_of(run, arm)),)


STRETCHED = TextExperiment(
    name="stretched_text",
    title="Positions slowed down: novels",
    question="""Does a trained model lose less in longer novels once its positions are slowed down, and
        nothing else is changed?""",
    order=9,
    sweeps=(SWEEP, LR_SCREEN),
    methods=(*METHODS, QUARTER, *FEW_OR_SMALL, *SHARES, *ALL_IN_FEW, *BASES),
    smoke=("separated-sinusoidal",),
    costs={"smoke": 4.0, "laptop": 280.0},
    measures=measures_left_alone,
    shared=True,
)
STRETCHED_LONGER = TextExperiment(
    name="stretched_text_longer",
    title=f"Positions slowed down after {TRAINING} times the training: novels",
    question="""Do models that were trained longer lose as much in longer novels once their positions are
        slowed down, and does one lose less than another as before?""",
    order=9,
    sizes=LONGER,
    sweeps=(LONGER_SWEEP,),
    methods=KEY_MODELS,
    smoke=("concatenated-sinusoidal",),
    costs={"smoke": 6.0, "laptop": 400.0},
    measures=measures_left_alone,
    shared=True,
)
ADAPTED = TextExperiment(
    name="adapted_text",
    title="Positions slowed down and tuned: novels",
    question="""Does a model read longer novels once its positions are slowed down and its position part
        alone is tuned, as well as one of which everything is?""",
    order=10,
    sweeps=STRETCHED.sweeps,
    methods=tuple(CELLS),
    smoke=("separated-sinusoidal-constant/position", "sinusoidal/low-rank"),
    costs={"smoke": 5.0, "laptop": 260.0},
    parts=CELLS,
    measures=measures_tuned,
    shared=True,
)
