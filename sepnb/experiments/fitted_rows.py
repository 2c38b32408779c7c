"""Chapter 12: are the vectors of the new positions all that a model lacks in longer texts?

The slides say that with a stream of its own only p_i has to be extrapolated, and give five formulas. That the
formulas fail can mean two things: they give the wrong vectors, or there are no right ones. So rows are
fitted. A model is trained as in `extrapolation`; then all its weights are frozen, and the rows from L on are
trained on longer windows (`FIT_TIMES`), with all keys visible (`fitted`) and, anew, with a window of one
trained length, which takes the unseen length away (`fitted-masked`). No formula can know as much. What is
left of the gap to the sliding window is not the fault of any extrapolation of p.

A control says whether such a fit works: the rows of the second half of the trained length are taken away and
fitted again, by as many steps on windows of the trained length (`recovered`).

Beside them stand the five formulas on the same model, in texts of eight trained lengths; on one that was
trained without a norm on its position stream, where magnitudes count; and on the smoothest table there is,
the first L rows of a sinusoid, which formula (2) continues exactly.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log
from typing import Any

import numpy as np

from ..data import text
from ..evaluation.long_windows import Beyond, blocks_of
from ..evaluation.losses import evaluate
from ..evaluation.protocols import Protocol, needed
from ..evaluation.steadiness import moved
from ..extrapolators import CONTROLS, SOURCE_METHODS
from ..models import LanguageModel
from ..records.provenance import Clock
from ..training.config import TrainingConfig
from ..training.rows import fit_rows, lengthened
from . import language_modelling as lm
from .extrapolation import TIMES
from .in_window import SWEEPS
from .long_windows import LongTexts, read
from .matched_loss import TWINS
from .methods import Method, listed, run_of
from .run import HERE, At, Found, Measure, Metrics, Rows, Run
from .sweep import Sweep
from .texts import TextExperiment
from .variants import SIZES

BEYOND = {
    "smoke": Beyond(64, TIMES, documents=2, windows=1, part=1, tight=2, batch_bytes=2048),
    "laptop": Beyond(128, TIMES, documents=20, windows=2, part=2, tight=20, batch_bytes=4096),
    "gpu": Beyond(256, TIMES, documents=20, windows=2, part=2, tight=20, batch_bytes=131_072),
}
"""All readings, the sliding-window baseline too, are of the scope "part": 40 windows a seed. The first window
of each novel serves the divergence of predictions."""

STRIDES = 16
"""A pass of the sliding-window baseline scores one part in this many of the trained length: a byte is given
the last 15/16 L + 1 to L bytes. At stride 1 as many windows would cost more than the training."""

FIT_TIMES = {"smoke": 2, "laptop": 2, "gpu": 8}
"""Rows are fitted up to so many trained lengths. A step of a fit reads twice the bytes of a training step,
and there are so many steps that every row is shown half as many bytes as training showed each of its rows."""

FIT_SEED = 1_000_000
"""Added to the seed: a fit draws other windows of the training text than the training did."""

VALIDATION_WINDOWS = 320

PLAIN = listed(
    Method("separated-learned-plain", "no norm on positions", "separated-learned", {"norm": "content"})
)

CONCATENATED = TWINS["concatenated-learned"].name
METHODS = (
    *("learned", "separated-learned", "strict-learned", CONCATENATED),
    *("sinusoidal", "separated-sinusoidal"),
    *PLAIN,
)
"""Learned tables: dense, separated, strict, and concatenated, where a row is as short as a separated one and
the weights mix all columns. A table that is computed: dense and separated. A learned one without a norm."""

FITS = ("fitted", "fitted-masked")

PLAIN_SWEEP = Sweep(
    name="plain_sweep",
    title="Scales of a table without a norm on positions, and of a concatenated one",
    order=2,
    methods=(*PLAIN, CONCATENATED),
    smoke=tuple(PLAIN),
    config_of=run_of,
    scaled=True,
    costs={"smoke": 1.0, "laptop": 110.0},
)


def formulas(beyond: Beyond) -> tuple[Protocol, ...]:
    """What is read with the model as it was trained: the baseline, the five formulas with all keys visible
    and with a window, and the controls."""
    length, every = beyond.length, (*SOURCE_METHODS, *CONTROLS)
    return (
        Protocol("sliding", window=length, stride=length // STRIDES),
        *(Protocol(name, extrapolator=name, options=needed(name, beyond.longest)) for name in every),
        *(Protocol(f"{name}-window", extrapolator=name, window=length) for name in SOURCE_METHODS),
    )


def of_fitted(length: int, longest: int) -> dict[str, tuple[Protocol, ...]]:
    """What is read with the rows of each of `FITS`, which end at `longest`: all bytes, and one trained length
    at the last rows, whose index alone is new. Rows that were fitted with all keys visible are read behind a
    window too."""
    far = {"start": longest - length}
    windows = {"fitted": None, "fitted-masked": length}
    readings = {
        name: (Protocol(name, window=window), Protocol(f"{name}-at-{far['start'] // length}x", **far))
        for name, window in windows.items()
    }
    readings["fitted"] += (Protocol("fitted-window", window=length),)
    return readings


@dataclass(frozen=True)
class Fitted(Measure):
    """What the formulas leave, and what rows leave that are fitted in their place.

    Args:
        texts: all that is read.
        fit: the fit of further rows, the same for all that are fitted in a run.
    """

    texts: LongTexts
    fit: TrainingConfig

    def resolved(self) -> dict[str, Any]:
        return self.texts.resolved() | {"fit": self.fit.resolved()}

    @property
    def looks(self) -> int:
        return self.texts.looks

    def batches(self, config: Run, length: int) -> Iterator[Any]:
        """The windows of a fit."""
        sizes = {"batch_size": self.fit.batch_size, "length": length, "steps": self.fit.steps}
        return text.sample_batches(config.data.splits.train, seed=FIT_SEED + config.seed, **sizes)

    def reader(self, longer: LanguageModel, name: str) -> LanguageModel:
        """A model with the rows of one of `FITS`, as they were fitted."""
        return longer.extended(window=self.texts.beyond.length) if name == "fitted-masked" else longer

    def fitted(
        self, config: Run, model: LanguageModel, name: str, *, device: str = "cpu"
    ) -> tuple[LanguageModel, list[float]]:
        """The trained model with the rows of one of `FITS`, and the losses of the fit, in nats."""
        longer, drawn = lengthened(model, self.fit.length), self.batches(config, self.fit.length)
        length = self.texts.beyond.length
        losses = fit_rows(self.reader(longer, name), length, drawn, self.fit, device=device)
        return longer, losses

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        length, longest = self.texts.beyond.length, self.fit.length
        asked = formulas(self.texts.beyond)
        rows = read(config, self.texts, model, asked=asked, device=at.device, progress=at.progress)
        readers = {name: model.extended(name) for name in (*SOURCE_METHODS, "clamp")}
        begun, metrics = Clock(at.device), {"rows_learning_rate": self.fit.learning_rate}
        # A row that was fitted was shown its index, and no weight was shown the length of the text.
        seen = {"longest": longest, "trained": (longest, length)}
        for name, protocols in of_fitted(length, longest).items():
            longer, losses = self.fitted(config, model, name, device=at.device)
            last = float(np.mean(losses[-max(1, len(losses) // 10) :])) / log(2)
            rows += [{"kind": "fit", "rows": name, "first": losses[0] / log(2), "last": last}]
            what = {"asked": protocols, "longest": longest, "seen": seen}
            rows += read(config, self.texts, longer, **what, device=at.device)
            readers[name] = self.reader(longer, name)
        metrics["fit_cpu_s"] = begun.cpu_s
        rows += self.divergences(config, model, readers, at.device)
        rows += self.recovered(config, model, at.device)
        rows = [row for row in rows if row.get("scope") != "tight"]  # "part" has these windows of each
        at.done(self.looks)
        return metrics | metrics_of(rows, length), rows

    def recovered(self, config: Run, model: LanguageModel, device: str) -> Rows:
        """The second half of the trained length, with the trained rows, those of the first half in their
        place, and rows that were fitted in their place."""
        length = self.texts.beyond.length
        halved, held = lengthened(model, length, known=length // 2), self.texts.passages(config)
        windows = held.tokens[held.scopes["part"], : length + 1]
        how = self.texts.how(config, device, length)

        def level(rows: str, reader: LanguageModel) -> dict[str, Any]:
            bits = evaluate(reader, windows, **how).bits[:, length // 2 :]
            return {"kind": "recovered", "rows": rows, "bits_per_byte": float(bits.mean())}

        rows = [level("trained", model), level("repeated", halved)]
        fit = replace(self.fit, length=length)
        fit_rows(halved, length // 2, self.batches(config, length), fit, device=device)
        return [*rows, level("fitted", halved)]

    def divergences(
        self, config: Run, model: LanguageModel, readers: Mapping[str, LanguageModel], device: str
    ) -> Rows:
        """How far predictions move past the trained length under each reader, see `moved`, bin by bin as far
        as it has rows."""
        beyond, held = self.texts.beyond, self.texts.passages(config)
        tokens = held.tokens[held.scopes["tight"], :-1]
        rows: Rows = []
        for name, reader in readers.items():
            longest = self.fit.length if name in FITS else beyond.longest
            how = self.texts.how(config, device, longest)
            bits = moved(model, reader, tokens[:, :longest], length=beyond.length, **how)
            for start, stop in pairwise(edge for edge in beyond.edges[1:] if edge <= longest):
                mean = float(bits[:, start - beyond.length : stop - beyond.length].mean())
                rows.append(
                    {"kind": "divergence", "reading": name, "start": start, "stop": stop, "bits": mean}
                )
        return rows


@dataclass(frozen=True)
class Validated(Measure):
    """What chooses the rate of the rows: bits per byte past the trained length on the validation text, the
    mean of both fits, each read as it was fitted."""

    fitting: Fitted

    @property
    def fit(self) -> TrainingConfig:
        return self.fitting.fit

    def resolved(self) -> dict[str, Any]:
        return self.fitting.resolved()

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        fitting, length = self.fitting, self.fitting.texts.beyond.length
        longest, held = fitting.fit.length, config.data.splits.validation
        windows = text.windows(held, length=longest, per_document=2 * longest).tokens[:VALIDATION_WINDOWS]
        rows: Rows = []
        for name in FITS:
            longer, _ = fitting.fitted(config, model, name, device=at.device)
            how = fitting.texts.how(config, at.device, longest)
            bits = evaluate(fitting.reader(longer, name), windows, **how).bits[:, length:]
            rows.append({"kind": "validated", "rows": name, "bits_per_byte": float(bits.mean())})
        score = float(np.mean([row["bits_per_byte"] for row in rows]))
        rate = fitting.fit.learning_rate
        return {"rows_learning_rate": rate, "fitted_val_bits_per_byte": score}, rows


def metrics_of(rows: Rows, length: int) -> Metrics:
    """What tables and claims compare, from the rows of a run; k = 1, 2, 4, 8 for the bin that ends at k times
    `length`, of fitted rows as far as there are any, and all on the same windows but for the divergence:

    - `<reading>/<k>x`, bits per byte; `gap/<reading>/<k>x`, the same minus the sliding window.
    - `gap/<reading>` of one that starts far out, minus the model inside its length, on the same bytes.
    - `divergence/<reading>/<k>x`, in bits.
    - `recovered`, fitted minus trained rows on the second half of the trained length.
    """
    levels = {
        (row["reading"], row["stop"] // length): row["bits_per_byte"]
        for row in rows
        if row.get("scope") == "part"
    }
    metrics: Metrics = {f"{name}/{k}x": level for (name, k), level in levels.items()}
    metrics |= {
        f"gap/{name}/{k}x": level - levels["sliding", k]
        for (name, k), level in levels.items()
        if name != "sliding"
    }
    for row in rows:
        if row.get("scope") == "far":
            metrics[f"gap/{row['reading']}"] = row["bits_per_byte"] - levels["sliding", 1]
        elif row["kind"] == "divergence":
            metrics[f"divergence/{row['reading']}/{row['stop'] // length}x"] = row["bits"]
    half = {row["rows"]: row["bits_per_byte"] for row in rows if row["kind"] == "recovered"}
    return metrics | {"recovered": half["fitted"] - half["trained"]}


def fitting(run: Run, rate: float) -> Fitted:
    """What is fitted in a run, at this learning rate of the rows."""
    beyond, times, of = BEYOND[run.profile], FIT_TIMES[run.profile], run.training
    steps, batch, length = of.steps * times // 4, of.batch_size * 2 // times, times * beyond.length
    how = {"precision": of.precision, "compiler": of.compiler}
    fit = TrainingConfig(steps, batch, length, rate, **how)
    own = (one for several in of_fitted(beyond.length, length).values() for one in several)
    return Fitted(LongTexts(beyond, blocks_of(run.seed), (*formulas(beyond), *own)), fit)


TITLED = "{name}, learning rate {rate:g}, rows {last.fit.learning_rate:g}"


def tried(sweep: str, profile: str, method: str, seed: int, rate: float) -> Run:
    """The training of the grid, at the rate of the published sweeps, and one fit."""
    run = replace(EXPERIMENT.training_of(profile, method, seed), experiment=sweep)
    return replace(run, measures=(Validated(fitting(run, rate)),), titled=TITLED)


def needs(run: Run) -> None:
    """The rate of the training, which is the grid's."""
    sweep, method = EXPERIMENT.swept(run.method)
    sweep.require(run.profile, method)


def rate_of(config: Mapping[str, Any]) -> float:
    return config["fit"]["learning_rate"]


FIT_SWEEP = Sweep(
    name="fitted_rows_sweep",
    title="Learning rates of fitted rows",
    order=2,
    methods=METHODS,
    smoke=("separated-learned",),
    config_of=tried,
    rates=(3e-3, 1e-2, 3e-2),
    ladder=(1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0),
    score="fitted_val_bits_per_byte",
    rate_of=rate_of,
    default=1e-2,
    waits=needs,
    costs={"smoke": 3.0, "laptop": 300.0},
)
"""Every rate is tried on the same trained model of seed 0, by the whole fit."""


def measures(run: Run) -> tuple[Measure, ...]:
    return lm.INSIDE, fitting(run, FIT_SWEEP.rate(run.profile, run.method))


EXPERIMENT = TextExperiment(
    name="fitted_rows",
    title="Fitted rows",
    question="Are the vectors of the new positions all that a model lacks past its trained length?",
    order=3,
    sizes=SIZES,
    sweeps=(PLAIN_SWEEP, *SWEEPS),
    methods=METHODS,
    smoke=("separated-learned", "separated-sinusoidal"),
    costs={"smoke": 4.0, "laptop": 450.0},
    measures=measures,
    titled=TITLED,
    waits=FIT_SWEEP.before,
)
