"""Chapter 18: where do the embeddings lie that text and losses have trained?

Two looks at models of `seqpe_stream`, trained once more to the last bit:

- *Windows*, along the series of the separated model: one of the trained length at each of `starts` is
  compared with the one at 0, place by place.
- *Folds*, of models with both losses: the embeddings of a long text are a curve; where it turns back on
  itself a position has a look-alike before it. What do the bytes there cost?

SeqPE in a term of the score has seeds that `seqpe_stream` has not: curves of the first ones had been seen
before the rules were written, and so the rules on folds are about the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from ..evaluation.long_windows import blocks_of
from ..evaluation.losses import evaluate
from ..evaluation.protocols import Protocol
from ..models import LanguageModel
from ..seqpe import SequentialPositionEncoder
from ..seqpe.geometry import displacement, folded, geometry, likeness, spread
from ..training.seqpe_losses import encoder_of
from . import seqpe_stream
from .extrapolation import BEYOND
from .long_windows import LongTexts, ReplacedContext
from .run import HERE, At, Found, Measure, Metrics, Run
from .seqpe_geometry import finite
from .seqpe_stream import SCORE, SCREEN, starts
from .texts import TextExperiment

SERIES = (
    "separated-seqpe-plain",
    "separated-seqpe-shifts",
    "separated-seqpe-contrastive",
    "separated-seqpe",
)
"""Digit strings alone, then shift steps, then the contrastive loss, then the distillation."""

FRESH = tuple(range(7, 19))
"""Seeds of `SCORE` beside those of all: none of their curves was seen before the rules were written."""

PIECES = SLACK = 16
"""The cost of indices is given in `PIECES` pieces of a trained length; a fold reaches back by at least one
part in `SLACK` of it."""


def taught(run: Run) -> bool:
    """Whether both losses of SeqPE shaped the embeddings: others need not lead away, or are periodic."""
    losses = run.training.auxiliary
    return losses is not None and bool(losses.contrastive and losses.distillation)


def windows_of(encoder: SequentialPositionEncoder, length: int, state: str) -> list[dict[str, Any]]:
    """A row of the kind "window" for the trained window and for each of `starts`.

    All hold `spread` and the measures of `geometry`; those that begin elsewhere `moved`, `narrowed` and
    `likeness` besides: displacement and spread in units of the spread of the trained window, and how like it
    their inner products are.
    """
    encoder.eval()
    within, rows = torch.arange(length), []
    with torch.no_grad():
        own = encoder(within)
        unit = spread(own) or float("nan")
        for name, start in {"trained": 0, **starts(length)}.items():
            window = encoder(start + within)
            measures = {"spread": spread(window), **geometry(window, within)._asdict()}
            if start:
                measures["moved"] = displacement(own, window) / unit
                measures |= {"narrowed": measures["spread"] / unit, "likeness": likeness(own, window)}
            rows.append({"kind": "window", "state": state, "name": name, "start": start} | finite(**measures))
    return rows


def window_metrics(rows: Sequence[dict[str, Any]], state: str) -> Metrics:
    """What the rows say, as `<measure>/<name of the start>`, of the randomly initialised encoder as
    `drawn/<measure>/<name>`; and `resolution`, the spread of the trained window over the mean length of its
    embeddings: what a layer is given of a place, since it reads a state at unit scale."""
    prefix = "" if state == "trained" else f"{state}/"
    metrics = {}
    for row in rows:
        measures = row.keys() - {"kind", "state", "name", "start"}
        metrics |= {f"{prefix}{measure}/{row['name']}": row[measure] for measure in sorted(measures)}
        if row["name"] == "trained" and row["norm"]:
            metrics[f"{prefix}resolution"] = row["spread"] / row["norm"]
    return metrics


def folds_of(config: Run, texts: LongTexts, model: LanguageModel, *, device: str = "cpu") -> Found:
    """Where the curve of the embeddings of a long text is folded, and what its bytes cost.

    A row of the kind "index" for every piece: bits per byte of the long text, and the share of positions that
    are folded. As metrics, in bits per byte and past the trained length:

    - `native/<k>x`, the bin that ends at k trained lengths; `past`, all of them together.
    - `folded`, how many positions are. Where some are, `bits/folded` and `bits/others`: the bytes at these
      and at the others.
    - `mended/past` and `mended/folded`, also `mended` in the rows: all bytes, and those that had stood at
      folded positions, read at the positions that are not folded. There is none where below twice the length
      there are fewer such positions than bytes.
    - `alone/folded`: the first run of folded bytes, where the text is read from there on at their indices;
      `alone/first`: the same bytes read from 0 on.
    """
    beyond, held = texts.beyond, texts.part(config)
    tokens, documents = held.tokens, held.documents
    how = texts.how(config, device, beyond.longest)
    (reading,) = texts.readings
    losses = reading.losses(model, tokens, documents, **how)
    with torch.no_grad():
        embeddings = encoder_of(model).eval()(torch.arange(2 * beyond.longest)).cpu()
    turned = folded(embeddings, max(1, beyond.length // SLACK)).numpy()
    edges = list(range(0, beyond.longest + 1, max(1, beyond.length // PIECES)))
    rows = [
        {"kind": "index", **row, "folded": float(turned[start:stop].mean())}
        for row, (start, stop) in zip(losses.by_position(edges), pairwise(edges), strict=True)
    ]
    bins = losses.by_position(beyond.edges)[1:]
    metrics = {f"native/{row['stop'] // beyond.length}x": row["bits_per_byte"] for row in bins}
    paid, past = losses.bits.mean(axis=0), np.arange(beyond.longest) >= beyond.length
    there, elsewhere = past & turned[: beyond.longest], past & ~turned[: beyond.longest]
    metrics |= {"past": float(paid[past].mean()), "folded": int(there.sum())}
    if there.any() and elsewhere.any():
        metrics |= {"bits/folded": float(paid[there].mean()), "bits/others": float(paid[elsewhere].mean())}
    straight = np.flatnonzero(~turned)[: beyond.longest]
    if len(straight) == beyond.longest:
        mended = evaluate(model, tokens, documents, positions=straight, **how).bits.mean(axis=0)
        metrics["mended/past"] = float(mended[past].mean())
        if there.any():
            metrics["mended/folded"] = float(mended[there].mean())
        for row in rows:
            row["mended"] = float(mended[row["start"] : row["stop"]].mean())
    if there.any():
        first = int(np.flatnonzero(there)[0])
        run = int(np.argmin(np.append(there[first:], False)))
        cut = tokens[:, first : min(first + beyond.length, beyond.longest) + 1]
        for name, start in (("alone/folded", first), ("alone/first", 0)):
            positions = start + np.arange(cut.shape[1] - 1)
            read = evaluate(model, cut, documents, positions=positions, **how)
            metrics[name] = float(read.bits[:, :run].mean())
    return metrics, rows


@dataclass(frozen=True)
class Embeddings(Measure):
    """Folds, of a model with both losses; windows, of one in the `SERIES`, trained and as it was drawn.

    Args:
        texts: the long text, as it is.
        windows, folds: whether these are looked at.
    """

    texts: LongTexts
    windows: bool
    folds: bool

    def resolved(self) -> dict[str, Any]:
        beside = ReplacedContext(self.texts).resolved()
        return self.texts.resolved() | beside | {"pieces": PIECES, "slack": SLACK}

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        metrics, rows = folds_of(config, self.texts, model, device=at.device) if self.folds else ({}, [])
        states = {"drawn": config.build().to(at.device), "trained": model}
        for state, one in states.items() if self.windows else ():
            windows = windows_of(encoder_of(one), config.training.length, state)
            metrics, rows = metrics | window_metrics(windows, state), rows + windows
        return metrics, rows


def measures(run: Run) -> tuple[Measure, ...]:
    texts = LongTexts(BEYOND[run.profile], blocks_of(run.seed), (Protocol("native"),))
    return (Embeddings(texts, run.method in SERIES, taught(run)),)


EXPERIMENT = TextExperiment(
    name="seqpe_stream_geometry",
    title="Where the embeddings of SeqPE lie",
    question="""How far do text, shift steps and losses move a window of a separated model's position
        stream that begins elsewhere, how far apart do they leave its places, and where does the curve of
        embeddings turn back?""",
    order=8,
    sizes=seqpe_stream.EXPERIMENT.sizes,
    sweeps=(SCREEN,),
    of=seqpe_stream.OF,
    methods=(*SERIES, SCORE),
    smoke=("separated-seqpe", SCORE),
    other_seeds={SCORE: (*seqpe_stream.EXPERIMENT.seeds, *FRESH)},
    costs={"smoke": 3.0, "laptop": 140.0},
    measures=measures,
)
