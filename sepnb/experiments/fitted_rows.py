"""Chapter 11: are the vectors of the new positions all that a model lacks in longer texts?

The slides say that with a stream of its own only p_i has to be extrapolated, and give five formulas. That the
formulas fail can mean two things: they give the wrong vectors, or there are no right ones. So rows are
fitted. A model is trained as in `extrapolation`; then all its weights are frozen, and the rows from L on are
trained on longer windows (`FIT_TIMES`), with all keys visible (`fitted`) and, anew, behind a window of one
trained length, which takes the unseen length away (`fitted-masked`). No formula can know as much. What is
left of the gap to the sliding window is not the fault of any extrapolation of p.

A control says whether such a fit works: the rows of the second half of the trained length are taken away and
fitted again, by as many steps on windows of the trained length (`recovered`).

Beside them stand the five formulas on the same model, in texts of eight trained lengths; on one that was
trained without a norm on its position stream, where magnitudes count; and on the smoothest table there is,
the first L rows of a sinusoid, which formula (2) continues exactly.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import log
from typing import Any, ClassVar

import numpy as np

from ..data import text
from ..evaluation.long_windows import Beyond, blocks_of
from ..evaluation.losses import evaluate
from ..evaluation.protocols import Protocol, needed, unseen
from ..evaluation.steadiness import moved
from ..extrapolators import CONTROLS, SOURCE_METHODS
from ..models import LanguageModel
from ..records.provenance import Clock
from ..records.store import Record
from ..training.config import TrainingConfig
from ..training.rows import fit_rows, lengthened
from . import language_modelling as lm
from .base import Progress
from .extrapolation import TIMES, Extrapolation, ExtrapolationRun, read
from .matched_loss import TWINS
from .methods import Method, listed, run_of
from .scale_sweep import ScaleSweep
from .sweep import Sweep
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

PLAIN_SWEEP = ScaleSweep(
    "plain_sweep",
    title="Scales of a table without a norm on positions, and of a concatenated one",
    order=2,
    methods=(*PLAIN, CONCATENATED),
    smoke=tuple(PLAIN),
    config_of=run_of,
    costs={"smoke": 1.0, "laptop": 110.0},
    beyond={**dict.fromkeys(PLAIN, (5e-4, 1e-3)), CONCATENATED: (1.6e-2,)},
    further=dict.fromkeys(PLAIN, ((2e-3, 0.005), (4e-3, 0.005), (2e-3, 0.00125), (4e-3, 0.00125))),
)


@dataclass(frozen=True)
class FittedRun(ExtrapolationRun):
    """A language-model run and the fit of further rows, the same for all that are fitted in it."""

    fit: TrainingConfig

    @property
    def label(self) -> str:
        return f"{super().label}, rows {self.fit.learning_rate:g}"

    @property
    def formulas(self) -> tuple[Protocol, ...]:
        """What is read with the model as it was trained: the baseline, the five formulas with all keys
        visible and behind a window, and the controls."""
        length, every = self.beyond.length, (*SOURCE_METHODS, *CONTROLS)
        return (
            Protocol("sliding", window=length, stride=length // STRIDES),
            *(Protocol(name, extrapolator=name, options=needed(name, self.beyond.longest)) for name in every),
            *(Protocol(f"{name}-window", extrapolator=name, window=length) for name in SOURCE_METHODS),
        )

    @property
    def fitted(self) -> dict[str, tuple[Protocol, ...]]:
        """What is read with the rows of each of `FITS`: all bytes, and one trained length at the last rows,
        whose index alone is new. Rows that were fitted with all keys visible are read behind a window too."""
        length = self.beyond.length
        far = {"start": self.fit.length - length}
        windows = {"fitted": None, "fitted-masked": length}
        readings = {
            name: (Protocol(name, window=window), Protocol(f"{name}-at-{far['start'] // length}x", **far))
            for name, window in windows.items()
        }
        readings["fitted"] += (Protocol("fitted-window", window=length),)
        return readings

    @property
    def readings(self) -> tuple[Protocol, ...]:
        return (*self.formulas, *(reading for name in FITS for reading in self.fitted[name]))

    def unseen(self, reading: Protocol) -> str:
        """A row that was fitted was shown its index, and no weight was shown the length of the text."""
        fitted, length = self.fit.length, self.beyond.length
        known = {"longest": fitted, "trained": (fitted, length)} if reading.id.startswith("fitted") else {}
        return unseen(
            reading, self.model.encodings, self.training, **{"longest": self.beyond.longest} | known
        )

    def batches(self, length: int) -> Any:
        """The windows of a fit."""
        train = lm.splits_of(self.text.name).train
        sizes = {"batch_size": self.fit.batch_size, "length": length, "steps": self.fit.steps}
        return text.sample_batches(train, seed=FIT_SEED + self.seed, **sizes)


def fitted(
    config: FittedRun, model: LanguageModel, name: str, *, device: str = "cpu"
) -> tuple[LanguageModel, list[float]]:
    """The trained model with the rows of one of `FITS`, and the losses of the fit, in nats."""
    length, longest = config.beyond.length, config.fit.length
    longer = lengthened(model, longest)
    reader = longer.extended(window=length) if name == "fitted-masked" else longer
    losses = fit_rows(reader, length, config.batches(longest), config.fit, device=device)
    return longer, losses


def recovered(config: FittedRun, model: LanguageModel, *, device: str = "cpu") -> lm.Rows:
    """Bits per byte of the second half of the trained length: with the trained rows, with those of the first
    half again in their place, and with rows that were fitted in their place. Rows of the kind "recovered"."""
    length = config.beyond.length
    halved = lengthened(model, length, known=length // 2)
    held = config.passages()
    windows = held.tokens[held.scopes["part"], : length + 1]
    how = config.how(device, length)

    def level(rows: str, reader: LanguageModel) -> dict[str, Any]:
        bits = evaluate(reader, windows, **how).bits[:, length // 2 :]
        return {"kind": "recovered", "rows": rows, "bits_per_byte": float(bits.mean())}

    told = [level("trained", model), level("repeated", halved)]
    fit_rows(halved, length // 2, config.batches(length), replace(config.fit, length=length), device=device)
    return [*told, level("fitted", halved)]


def divergences(
    config: FittedRun, model: LanguageModel, readers: Mapping[str, LanguageModel], *, device: str = "cpu"
) -> lm.Rows:
    """How far predictions move past the trained length under each reader, in bits, bin by bin as far as it
    has rows, on the scope "tight": rows of the kind "divergence", see `moved`."""
    beyond, held = config.beyond, config.passages()
    tokens = held.tokens[held.scopes["tight"], :-1]
    rows: lm.Rows = []
    for name, reader in readers.items():
        longest = config.fit.length if name in FITS else beyond.longest
        how = config.how(device, longest)
        bits = moved(model, reader, tokens[:, :longest], length=beyond.length, **how)
        for start, stop in pairwise(edge for edge in beyond.edges[1:] if edge <= longest):
            mean = float(bits[:, start - beyond.length : stop - beyond.length].mean())
            rows.append({"kind": "divergence", "reading": name, "start": start, "stop": stop, "bits": mean})
    return rows


def metrics_of(rows: lm.Rows, length: int) -> lm.Metrics:
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
    metrics: lm.Metrics = {f"{name}/{k}x": level for (name, k), level in levels.items()}
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


class FittedRows(Extrapolation):
    """Are the vectors of the new positions all that a model lacks past its trained length?"""

    name = "fitted_rows"
    title = "Fitted rows"
    order = 3
    sizes = SIZES
    sweeps = (PLAIN_SWEEP, *Extrapolation.sweeps)
    methods = METHODS
    smoke = ("separated-learned", "separated-sinusoidal")
    shown = ()
    costs: ClassVar = {"smoke": 4.0, "laptop": 450.0}

    def fitting(self, profile: str, method: str, seed: int, rate: float) -> FittedRun:
        """The run of a method and seed with this learning rate of the rows."""
        run, beyond, times = self.training_of(profile, method, seed), BEYOND[profile], FIT_TIMES[profile]
        fit = TrainingConfig(
            run.training.steps * times // 4,
            run.training.batch_size * 2 // times,
            times * beyond.length,
            rate,
            precision=run.training.precision,
            compiler=run.training.compiler,
        )
        return FittedRun(**vars(run), beyond=beyond, blocks=blocks_of(seed), fit=fit)

    def config(self, profile: str, cell: str, seed: int) -> FittedRun:
        return self.fitting(profile, cell, seed, FIT_SWEEP.rate(profile, cell))

    def looks(self, config: FittedRun) -> int:
        return len(config.readings)

    def look(
        self, config: FittedRun, model: LanguageModel, *, device: str, progress: Progress | None
    ) -> tuple[lm.Metrics, lm.Rows]:
        rows = read(config, model, asked=config.formulas, device=device, progress=progress)
        readers = {name: model.extended(name) for name in (*SOURCE_METHODS, "clamp")}
        begun, metrics = Clock(device), {"rows_learning_rate": config.fit.learning_rate}
        for name in FITS:
            longer, losses = fitted(config, model, name, device=device)
            last = float(np.mean(losses[-max(1, len(losses) // 10) :])) / log(2)
            rows += [{"kind": "fit", "rows": name, "first": losses[0] / log(2), "last": last}]
            rows += read(config, longer, asked=config.fitted[name], longest=config.fit.length, device=device)
            readers[name] = (
                longer.extended(window=config.beyond.length) if name == "fitted-masked" else longer
            )
        metrics["fit_cpu_s"] = begun.cpu_s
        rows += divergences(config, model, readers, device=device)
        rows += recovered(config, model, device=device)
        rows = [
            row for row in rows if row.get("scope") != "tight"
        ]  # every reading has these windows in "part"
        if progress is not None:
            progress(self.looks(config), self.looks(config))
        return metrics | metrics_of(rows, config.beyond.length), rows

    def refuse(self, config: Any) -> None:
        super().refuse(config)
        FIT_SWEEP.require(config.profile, config.method)


EXPERIMENT = FittedRows()


def validated(config: FittedRun, model: LanguageModel, *, device: str = "cpu") -> tuple[lm.Metrics, lm.Rows]:
    """What chooses the rate of the rows: bits per byte past the trained length on the validation text, the
    mean of both fits, each read as it was fitted."""
    length, longest = config.beyond.length, config.fit.length
    cut = text.windows(lm.splits_of(config.text.name).validation, length=longest, per_document=2 * longest)
    windows = cut.tokens[:VALIDATION_WINDOWS]
    rows: lm.Rows = []
    for name in FITS:
        longer, _ = fitted(config, model, name, device=device)
        reader = longer.extended(window=length) if name == "fitted-masked" else longer
        bits = evaluate(reader, windows, **config.how(device, longest)).bits[:, length:]
        rows.append({"kind": "validated", "rows": name, "bits_per_byte": float(bits.mean())})
    score = float(np.mean([row["bits_per_byte"] for row in rows]))
    return {"rows_learning_rate": config.fit.learning_rate, "fitted_val_bits_per_byte": score}, rows


def _tried(sweep: str, profile: str, method: str, seed: int, rate: float) -> FittedRun:
    return replace(EXPERIMENT.fitting(profile, method, seed, rate), experiment=sweep)


def _needs(config: FittedRun) -> None:
    """The rate of the training, which is the grid's."""
    sweep, method = EXPERIMENT.sweep_of(config)
    sweep.require(config.profile, method)


def _run(config: FittedRun, *, device: str, progress: Progress | None, test: bool) -> Record:
    """Train as the grid does, at the rate of the published sweeps, and fit."""
    after = partial(validated, config, device=device)
    return lm.run(config, device=device, progress=progress, test=test, after=after)


FIT_SWEEP = Sweep(
    "fitted_rows_sweep",
    title="Learning rates of fitted rows",
    order=2,
    methods=METHODS,
    smoke=("separated-learned",),
    config_of=_tried,
    rates=(3e-3, 1e-2, 3e-2),
    beyond=dict.fromkeys(("learned", "strict-learned", "sinusoidal", *PLAIN), (1e-1,))
    | {"separated-sinusoidal": (1e-1, 3e-1)},
    score="fitted_val_bits_per_byte",
    part="fit",
    default=1e-2,
    computes=_run,
    needs=_needs,
    costs={"smoke": 3.0, "laptop": 300.0},
)
"""Every rate is tried on the same trained model of seed 0, by the whole fit."""
