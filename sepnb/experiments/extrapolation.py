"""Chapters 9, 11 and 12: what is left of each model past its trained length, under each evaluation protocol.

The runs are those of `in_window`, trained in the same way on the same batches. Then each model reads windows
of eight times the trained length, in every way of `readings`. Nothing is chosen by what it gives.

Every seed reads other bytes: the beginning of each test novel is cut into six blocks, and block k belongs to
seed k. Methods with three seeds read two blocks each.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from ..data import text
from ..evaluation.long_windows import Beyond, LongWindows, blocks_of, long_windows
from ..evaluation.losses import Losses
from ..evaluation.protocols import SCOPES, SLIDING_WINDOW, Protocol, masks, needed, sliding_windows, unseen
from ..extrapolators import METHODS as EXTRAPOLATORS
from ..extrapolators import SOURCE_METHODS, describe, seam
from ..models import LanguageModel
from ..records.store import Store
from ..validation import one_of
from . import language_modelling as lm
from .base import Progress
from .in_window import SWEEPS
from .methods import Method, listed
from .texts import TextExperiment

TIMES = 8
"""The long windows, in trained lengths."""

BEYOND = {
    "smoke": Beyond(64, TIMES, documents=3, windows=1, part=1, tight=1, batch_bytes=2048),
    "laptop": Beyond(128, TIMES, documents=20, windows=9, part=2, tight=6, batch_bytes=2048),
    "gpu": Beyond(256, TIMES, documents=20, windows=9, part=3, tight=20, batch_bytes=131_072),
}
METHODS = (
    "learned",
    "separated-learned",
    "strict-learned",
    "sinusoidal",
    "separated-sinusoidal",
    "strict-sinusoidal",
    "rope",
    "alibi",
)
"""Compared in claims, hence six seeds."""


def trained_long(base: str) -> Method:
    def length(size: lm.ModelSize) -> int:
        return TIMES * size.length

    training = {"length": length, "batch_size": lambda size: size.batch_size // TIMES}
    return Method(f"{base}-long", "trained on the long windows", base, {"max_length": length}, training)


LONG = listed(trained_long("rope"), trained_long("separated-sinusoidal"))
"""Trained on as many bytes a step and at the rate of the short one: what such a model gains over its own
sliding window, no wider than that of the short one, is what far text gives to a model of this training."""

CONTROLS = ("none", *LONG)
"""Shown beside them with three seeds."""


def readings(encoding: str, length: int, longest: int) -> tuple[Protocol, ...]:
    """What is read with a model of this encoding, trained at `length`, on texts of `longest` bytes."""
    windows, far, at = masks(length), longest - length, f"at-{longest // length - 1}x"
    if encoding != "learned":
        own = [Protocol("native", "all"), Protocol(f"native-{at}", "all", start=far)]
        own += [Protocol(f"native-{name}", **mask) for name, mask in windows.items()]
        for name in ("clamp", "wrap") if encoding == "sinusoidal" else ():
            own += [Protocol(name, extrapolator=name), Protocol(f"{name}-{at}", "all", name, start=far)]
        return (*sliding_windows(length), *own)
    compared = (*SOURCE_METHODS, "clamp", "wrap")
    controls = [name for name in EXTRAPOLATORS if name not in compared]
    variants = {
        "sinusoidal-aligned": ("sinusoidal", ("align", "procrustes")),
        "fourier-full": ("fourier", ("n_components", length // 2 + 1)),
        "learned-masked-fit": ("learned", ("protocol", "masked")),
        "alibi-slow": ("alibi", ("tau", float(length))),
        "zero-everywhere": ("zero", ("everywhere", True)),
    }
    return (
        *sliding_windows(length),
        *(Protocol(name, "all", name) for name in compared),
        *(Protocol(name, extrapolator=name, options=needed(name, longest)) for name in controls),
        *(Protocol(f"{name}-literal", extrapolator=name, form="literal") for name in SOURCE_METHODS),
        *(Protocol(id, extrapolator=name, options=(option,)) for id, (name, option) in variants.items()),
        *(Protocol(f"{name}-window", extrapolator=name, **windows["window"]) for name in compared),
        Protocol("clamp-window-sinks", extrapolator="clamp", **windows["window-sinks"]),
        *(Protocol(f"{name}-{at}", "all", name, start=far) for name in compared),
    )


@dataclass(frozen=True)
class ExtrapolationRun(lm.LanguageModelRun):
    """A language-model run and what it reads afterwards; `blocks` are counted from 0."""

    beyond: Beyond
    blocks: tuple[int, ...]

    @property
    def scored_length(self) -> int:
        """The trained length of the short models, for all: their scores inside it then compare."""
        return self.beyond.length

    @property
    def readings(self) -> tuple[Protocol, ...]:
        if self.training.length >= self.beyond.longest:
            return (*sliding_windows(self.beyond.length), Protocol("native", "all"))
        return readings(self.encoding, self.beyond.length, self.beyond.longest)

    @property
    def encoding(self) -> str:
        (encoding,) = self.model.encodings
        return encoding.name

    @property
    def held_out(self) -> text.Text:
        return lm.splits_of(self.text.name).test

    def passages(self) -> LongWindows:
        """What is read of that text: the long windows of the run's blocks."""
        return long_windows(self.held_out, self.beyond, self.blocks)

    def how(self, device: str, once: int) -> dict[str, Any]:
        """How it is read, for `evaluate`: in passes of `batch_bytes`, of windows of `once` bytes each."""
        size = max(1, self.beyond.batch_bytes // once)
        return {"device": device, "precision": self.training.precision, "batch_size": size}

    def unseen(self, reading: Protocol) -> str:
        """The sides of a reading that training never showed, see `sepnb.evaluation.protocols`."""
        return unseen(reading, self.model.encodings, self.training, longest=self.beyond.longest)

    def resolved(self) -> dict[str, Any]:
        settings = super().resolved()
        asked = {reading.id: reading.described for reading in self.readings}
        settings["beyond"] |= {"blocks": settings.pop("blocks"), "readings": asked}
        return settings


def read(
    config: ExtrapolationRun,
    model: LanguageModel,
    *,
    asked: Sequence[Protocol] | None = None,
    longest: int | None = None,
    device: str = "cpu",
    progress: Progress | None = None,
) -> lm.Rows:
    """Every reading of a run, or those `asked` for, by its trained model, or of the first `longest` bytes of
    every window: rows of the kind "reading", one a bin and scope.

    The windows of a scope are the same for all readings that cover it. A reading that starts far out has one
    row, of the scope "far": the first L bytes of every long window of its own scope, at the indices from
    `start` on. Where the passages have marked bytes, the rows that start at 0 tell them apart, as
    `Losses.by_position` does.
    """
    beyond, held = config.beyond, config.passages()
    asked = config.readings if asked is None else asked
    longest = beyond.longest if longest is None else longest
    edges = [edge for edge in beyond.edges if edge <= longest]
    rows: lm.Rows = []
    for done, reading in enumerate(asked, 1):
        at = held.scopes[reading.scope]
        tokens = held.tokens[at, : (beyond.length if reading.start else longest) + 1]
        once = tokens.shape[1] - 1 if reading.stride is None else beyond.length
        losses = reading.losses(model, tokens, held.documents[at], **config.how(device, once))
        about = {"kind": "reading", "reading": reading.id, "unseen": config.unseen(reading)}
        if reading.start:
            place = {"start": reading.start, "stop": reading.start + beyond.length}
            rows.append(about | {"scope": "far", **place, "bits_per_byte": losses.bits_per_byte})
        else:
            for scope in SCOPES[SCOPES.index(reading.scope) :]:
                inside = held.scopes[scope][at]
                shared = Losses(losses.bits[inside], losses.documents[inside])
                marked = None if held.marked is None else held.marked[at][inside]
                rows += [about | {"scope": scope, **row} for row in shared.by_position(edges, marked)]
        if progress is not None:
            progress(done, len(asked))
    return rows


def metrics_of(rows: lm.Rows, length: int) -> lm.Metrics:
    """The numbers of a run that tables and claims compare, in bits per byte, from the rows of its readings.

    With k = 1, 2, 4, 8 for the bin that ends at k times `length`:

    - `<reading>/<k>x`, on the scope "part", which all readings share but the sliding-window baseline at
      stride 1 (`oracle`); that one is read on the scope "tight" only.
    - `gap/<reading>/<k>x`: the reading minus that baseline, both on the scope "tight".
    - `<reading>`, of one that starts far out, on its own scope. Where that is "all", as it is here for every
      `-at-7x`, it is the mean over more windows than `<reading>/1x` and no partner of it.
    """
    tight = {(row["reading"], row["stop"]): row["bits_per_byte"] for row in rows if row["scope"] == "tight"}
    metrics: lm.Metrics = {}
    for row in rows:
        name, stop, scope, level = row["reading"], row["stop"], row["scope"], row["bits_per_byte"]
        place = f"{name}/{stop // length}x"
        if scope == "far":
            metrics[name] = level
        elif scope == "part" or (scope == "tight" and name == SLIDING_WINDOW):
            metrics[place] = level
        elif scope == "tight":
            metrics[f"gap/{place}"] = level - tight[SLIDING_WINDOW, stop]
    return metrics


def about_the_table(config: ExtrapolationRun, model: LanguageModel) -> lm.Rows:
    """What a learned table looks like (kind "table"), and how each extrapolator leaves it (kind "seam")."""
    (encoding,) = model.transformer.input_encodings
    table = encoding.table.detach().double().cpu()
    rows = [{"kind": "table", "quantity": name, "value": value} for name, value in describe(table).rows()]
    for reading in config.readings:
        if reading.extrapolator and reading.window is None and not reading.start:
            step = seam(table, reading.extrapolator, form=reading.form, **dict(reading.options))
            rows.append({"kind": "seam", "reading": reading.id, "value": step})
    return rows


class Extrapolation(TextExperiment):
    """What is left of each model at one to eight times its trained length, under each extrapolator, control
    and window?"""

    name = "extrapolation"
    title = "Past the trained length"
    order = 2
    sweeps = SWEEPS
    methods = (*METHODS, *CONTROLS)
    smoke = ("learned", "separated-learned", "rope")
    shown = CONTROLS
    costs: ClassVar = {"smoke": 3.0, "laptop": 200.0}
    runs: ClassVar[type[ExtrapolationRun]] = ExtrapolationRun
    describes_tables: ClassVar[bool] = True
    """Whether records of a learned table hold what `about_the_table` says."""

    def beyond(self, profile: str) -> Beyond:
        """How much text past the trained length a run reads."""
        return BEYOND[profile]

    def config(self, profile: str, cell: str, seed: int) -> ExtrapolationRun:
        """There are six blocks of text: seeds that are six apart read the same bytes, and of a method that
        is only shown, with two blocks a seed, those that are three apart."""
        blocks = blocks_of(seed, 2 if cell in self.shown else 1)
        run = self.training_of(profile, cell, seed)
        return self.runs(**vars(run), beyond=self.beyond(profile), blocks=blocks)

    def looks(self, config: ExtrapolationRun) -> int:
        return len(config.readings)

    def look(
        self, config: ExtrapolationRun, model: LanguageModel, *, device: str, progress: Progress | None
    ) -> tuple[lm.Metrics, lm.Rows]:
        rows = read(config, model, device=device, progress=progress)
        # Of a secondary reading on the scope "tight" the gaps say all, unless marked bytes are told apart.
        gaps = {(reading.id, "tight") for reading in config.readings if reading.scope == "part"}
        stored = [row for row in rows if "marked_share" in row or (row["reading"], row["scope"]) not in gaps]
        if self.describes_tables and config.encoding == "learned":
            stored += about_the_table(config, model)
        return metrics_of(rows, config.beyond.length), stored

    def by_bin(self, profile: str, scope: str = "part", store: Store | None = None) -> pd.DataFrame:
        """Bits per byte of every reading in every bin of one scope: the rows of `read` with their method,
        label and seed.

        Within a scope all methods of a seed with the same blocks read the same bytes. "part" holds all
        readings but the sliding-window baseline at stride 1; "all" the most bytes; "tight" that baseline and,
        on the same bytes, the readings of "all"; "far" the readings that start far out.

        Raises:
            ValueError: no such scope.
        """
        one_of("scope", scope, (*SCOPES, "far"))
        rows = self.rows(profile, "reading", store)
        return rows if rows.empty else rows[rows["scope"] == scope].reset_index(drop=True)
