"""Long texts as a measure: a trained model reads windows past its trained length, in every way of a list."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..data import text
from ..evaluation.context import with_replaced_context
from ..evaluation.long_windows import Beyond, LongWindows, long_windows
from ..evaluation.losses import Losses
from ..evaluation.protocols import SCOPES, SLIDING_WINDOW, Protocol, unseen
from ..extrapolators import describe, seam
from ..models import LanguageModel
from .run import HERE, At, Found, Measure, Metrics, Progress, Rows, Run


@dataclass(frozen=True)
class LongTexts(Measure):
    """What a run reads past its trained length.

    Args:
        beyond: how much text.
        blocks: which blocks of it, counted from 0.
        readings: in which ways.
        markers: marks whose bytes are told from the rest, see `Losses.by_position`; None: none are.
        split: the text that is read, "test" or "validation".
        describes_tables: whether the rows hold what `about_the_table` says of a learned one.
        keeps_tight: whether the rows hold secondary readings on the scope "tight" too.
    """

    beyond: Beyond
    blocks: tuple[int, ...]
    readings: tuple[Protocol, ...]
    markers: tuple[str, ...] | None = None
    split: str = "test"
    describes_tables: bool = False
    keeps_tight: bool = False

    def resolved(self) -> dict[str, Any]:
        asked = {reading.id: reading.described for reading in self.readings}
        settings = {"beyond": asdict(self.beyond) | {"blocks": list(self.blocks), "readings": asked}}
        return settings if self.markers is None else settings | {"markers": list(self.markers)}

    @property
    def looks(self) -> int:
        return len(self.readings)

    def held_out(self, config: Run) -> text.Text:
        return getattr(config.data.splits, self.split)

    def passages(self, config: Run) -> LongWindows:
        """What is read of that text: the long windows of the blocks, and which of their bytes belong to a
        mark."""
        held = self.held_out(config)
        read = long_windows(held, self.beyond, self.blocks)
        if self.markers is None:
            return read
        marks = text.marks(held, [marker.encode() for marker in self.markers])
        return read._replace(marked=long_windows(marks, self.beyond, self.blocks).tokens[:, 1:] == 1)

    def part(self, config: Run) -> LongWindows:
        """The windows of the scope "part" alone."""
        held = self.passages(config)
        at = held.scopes["part"]
        return LongWindows(held.tokens[at], held.documents[at], {}, starts=held.starts[at])

    def how(self, config: Run, device: str, once: int) -> dict[str, Any]:
        """How it is read, for `evaluate`: in passes of `batch_bytes`, of windows of `once` bytes each."""
        size = max(1, self.beyond.batch_bytes // once)
        return {"device": device, "precision": config.training.precision, "batch_size": size}

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        rows = read(config, self, model, device=at.device, progress=at.progress)
        # Of a secondary reading on the scope "tight" the gaps say all, unless marked bytes are told apart.
        gaps = {(one.id, "tight") for one in self.readings if one.scope == "part" and not self.keeps_tight}
        stored = [row for row in rows if "marked_share" in row or (row["reading"], row["scope"]) not in gaps]
        if self.describes_tables and config.model.encodings[0].name == "learned":
            stored += about_the_table(self, model)
        return metrics_of(rows, self.beyond.length), stored


def read(
    config: Run,
    texts: LongTexts,
    model: LanguageModel,
    *,
    asked: Sequence[Protocol] | None = None,
    longest: int | None = None,
    seen: Mapping[str, Any] | None = None,
    device: str = "cpu",
    progress: Progress | None = None,
) -> Rows:
    """Read the windows of a run, or their first `longest` bytes, with its model in every way or those of
    `asked`; returns rows of the kind "reading", one a bin and scope.

    The windows of a scope are the same for all readings that cover it. A reading that starts far out has one
    row, of the scope "far": the first L bytes of every long window of its own scope, at the indices from
    `start` on. Where the passages have marked bytes, the rows that start at 0 tell them apart, as
    `Losses.by_position` does. `seen` says what a tuning showed the model besides, see
    `sepnb.evaluation.protocols.unseen`.
    """
    beyond, held = texts.beyond, texts.passages(config)
    asked = texts.readings if asked is None else asked
    longest = beyond.longest if longest is None else longest
    edges = [edge for edge in beyond.edges if edge <= longest]
    known = {"longest": beyond.longest} | (dict(seen) if seen else {})
    rows: Rows = []
    for done, reading in enumerate(asked, 1):
        at = held.scopes[reading.scope]
        tokens = held.tokens[at, : (beyond.length if reading.start else longest) + 1]
        once = tokens.shape[1] - 1 if reading.stride is None else beyond.length
        losses = reading.losses(model, tokens, held.documents[at], **texts.how(config, device, once))
        new = unseen(reading, config.model.encodings, config.training, **known)
        about = {"kind": "reading", "reading": reading.id, "unseen": new}
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


def metrics_of(rows: Rows, length: int) -> Metrics:
    """The numbers of a run that tables and claims compare, in bits per byte, from the rows of its readings.

    With k = 1, 2, 4, 8 for the bin that ends at k times `length`:

    - `<reading>/<k>x`, on the scope "part", which all readings share but the sliding-window baseline at
      stride 1 (`oracle`); that one is read on the scope "tight" only.
    - `gap/<reading>/<k>x`: the reading minus that baseline, both on the scope "tight".
    - `<reading>`, of one that starts far out, on its own scope. Where that is "all", as it is here for every
      `-at-7x`, it is the mean over more windows than `<reading>/1x` and no partner of it.
    """
    tight = {(row["reading"], row["stop"]): row["bits_per_byte"] for row in rows if row["scope"] == "tight"}
    metrics: Metrics = {}
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


def about_the_table(texts: LongTexts, model: LanguageModel) -> Rows:
    """What a learned table looks like (kind "table"), and how each extrapolator leaves it (kind "seam")."""
    (encoding,) = model.transformer.input_encodings
    table = encoding.table.detach().double().cpu()
    rows = [{"kind": "table", "quantity": name, "value": value} for name, value in describe(table).rows()]
    for reading in texts.readings:
        if reading.extrapolator and reading.window is None and not reading.start:
            step = seam(table, reading.extrapolator, form=reading.form, **dict(reading.options))
            rows.append({"kind": "seam", "reading": reading.id, "value": step})
    return rows


def costs(kind: str, changed: Losses, native: Losses, edges: Sequence[int]) -> Rows:
    """What it costs to change a text, in bits per byte and by bin: rows of this kind."""
    cost = Losses(changed.bits - native.bits, native.documents)
    return [{"kind": kind, **row} for row in cost.by_position(edges)]


@dataclass(frozen=True)
class ReplacedContext(Measure):
    """What replaced context costs, per bin: rows of the kind "gain", and `gain/<k>x`, in bits per byte.

    Read natively, on the windows of the scope "part". Every byte keeps its own last L bytes at least and
    3L/2 - 1 at most; a positive gain says that the model used what lies further back. In the bin from L to 2L
    half of the bytes have nothing that lies further back.
    """

    texts: LongTexts

    looks = 1

    @property
    def foreign(self) -> dict[str, int]:
        """How much of its own context a byte keeps where the rest is replaced."""
        return {"recent": self.texts.beyond.length, "stride": self.texts.beyond.length // 2}

    def resolved(self) -> dict[str, Any]:
        return {"foreign": self.foreign, "reads_test": self.texts.split == "test"}

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        beyond, held = self.texts.beyond, self.texts.part(config)
        how = self.texts.how(config, at.device, beyond.longest)
        native = Protocol("native").losses(model, held.tokens, held.documents, **how)
        foreign = with_replaced_context(model, held.tokens, held.documents, **self.foreign, **how)
        rows = costs("gain", foreign, native, beyond.edges[1:])
        at.done(1)
        return {f"gain/{row['stop'] // beyond.length}x": row["bits_per_byte"] for row in rows}, rows
