"""How many dimensions does position need? From none to all, in novels.

Current models give position a part of what a head compares: RoPE turns some of its columns, or the fastest
pairs, or columns whose key all heads share; some layers have no position at all; forget gates count in one
dimension. Here each is one change of a model, between one without position and one in which every column
turns. Beside them stand separated models whose position stream is from a sixteenth to a half of the width,
with about as many parameters.

Every model is read inside its trained length, at 2, 4 and 8 of them as it was trained, and, where it has
waves, at positions slowed down, by the reading that validation texts of 8 L prefer. And its words are put in
another order: what that costs is what it hears of the order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..evaluation.context import with_shuffled_context
from ..evaluation.long_windows import Beyond, blocks_of
from ..evaluation.losses import evaluate
from ..models import LanguageModel
from . import language_modelling as lm
from .ladder_methods import METHODS, fitting, readings_of
from .long_texts import SLOWED, Slowed, measures_tuned, untuned
from .long_windows import LongTexts, costs
from .methods import run_of
from .readings import READINGS, read_by
from .run import HERE, At, Found, Measure, Rows, Run
from .sweep import Sweep
from .texts import TextExperiment
from .tuning import cells

TIMES = 8
"""The long windows, in trained lengths."""

NEAR = 16
"""Bytes before a byte that keep their order inside the trained length: about three words."""

BEYOND = {
    "smoke": Beyond(64, TIMES, documents=2, windows=1, part=1, tight=1, batch_bytes=2048),
    "laptop": Beyond(128, TIMES, documents=20, windows=2, part=2, tight=6, batch_bytes=4096),
    "gpu": Beyond(256, TIMES, documents=20, windows=4, part=4, tight=20, batch_bytes=131_072),
}


@dataclass(frozen=True)
class Ladder(Slowed):
    """The readings of a model, and what it costs to put the words of its context into another order, in bits
    per byte: `shuffled/<k>x`, in the bin that ends at k L, of words further back than L to 3L/2, at positions
    as slow as it reads 8 L best; and `shuffled/1x`, inside the trained length, of words further back than
    `NEAR` to twice as many bytes."""

    def resolved(self) -> dict[str, Any]:
        return super().resolved() | {"shuffled": {"near": NEAR}}

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        metrics, rows = super().__call__(config, model, at)
        held, length = self.texts.part(config), self.texts.beyond.length
        best = read_by(model, READINGS[metrics["reading"]], TIMES) if self.readings else model
        each = [held.tokens[:, k * length : (k + 1) * length + 1] for k in range(TIMES)]
        short, documents = np.concatenate(each), np.tile(held.documents, TIMES)
        how = self.texts.how(config, at.device, self.texts.beyond.longest)
        far = {"recent": length, "stride": length // 2, **how}
        near = {"recent": NEAR, "stride": NEAR, **how}
        mixed = shuffled(best, held.tokens, held.documents, self.texts.beyond.edges[1:], **far)
        mixed += shuffled(model, short, documents, [2 * NEAR, length], **near)
        metrics |= {f"shuffled/{row['stop'] // length}x": row["bits_per_byte"] for row in mixed}
        return metrics, rows + mixed


def shuffled(
    model: LanguageModel,
    windows: np.ndarray,
    documents: np.ndarray,
    edges: Sequence[int],
    *,
    recent: int,
    stride: int,
    **how: Any,
) -> Rows:
    """Rows of the kind "shuffled": the cost, by bin, of reordering all but the recent words."""
    mixed = with_shuffled_context(model, windows, documents, recent=recent, stride=stride, **how)
    return costs("shuffled", mixed, evaluate(model, windows, documents, **how), edges)


def measures(run: Run) -> tuple[Measure, ...]:
    """Inside the trained length more text is scored than of long windows, so that it comes last."""
    beyond, readings = BEYOND[run.profile], readings_of(run.model)
    asked = (*untuned(beyond.length), *(SLOWED[:3] if readings else ()))
    return Ladder(LongTexts(beyond, blocks_of(run.seed), asked), readings), lm.INSIDE


SWEEP = Sweep(
    name="ladder_text_sweep",
    title="Learning rates from no position to all columns",
    order=8,
    methods=tuple(METHODS),
    smoke=("rope-8th",),
    crossed=fitting,
    config_of=run_of,
    rates=(2e-3, 4e-3, 8e-3, 1.6e-2),
    costs={"smoke": 1.5, "laptop": 120.0},
)
"""All over the whole schedule at the same four rates, those too that other sweeps have tried otherwise."""

EXPERIMENT = TextExperiment(
    name="ladder_text",
    title="From no position to all columns: novels",
    question="""How many dimensions does position need: what does a model lose, inside its trained length
        and past it, when position has few of them?""",
    order=9,
    sweeps=(SWEEP,),
    methods=tuple(METHODS),
    smoke=("rope-8th", "forgetting"),
    crossed=fitting,
    costs={"smoke": 5.0, "laptop": 280.0},
    measures=measures,
)

CELLS = {
    **cells("rope", "maps-one-factor"),
    **cells("rope-8th", "maps-one-factor"),
    **cells("rope-partial", "maps-one-factor"),
    **cells("rope-nope-4", "maps-one-factor"),
}

ADAPTED = TextExperiment(
    name="ladder_adapted_text",
    title="From no position to all columns, tuned: novels",
    question="""Does a model in which few columns rotate, or not every layer has position, read longer novels
        as well as one in which all do, once W_Q and W_K are tuned at slower positions?""",
    order=10,
    sweeps=(SWEEP,),
    methods=tuple(CELLS),
    smoke=("rope-8th/maps-one-factor",),
    costs={"smoke": 5.0, "laptop": 260.0},
    parts=CELLS,
    measures=measures_tuned,
    shared=True,
)
