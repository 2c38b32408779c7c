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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..encodings import Heads, RoPE
from ..encodings.base import Extendable
from ..encodings.context import Extension
from ..evaluation.context import with_shuffled_context
from ..evaluation.long_windows import Beyond, blocks_of
from ..evaluation.losses import evaluate
from ..models import LanguageModel, TransformerConfig
from . import language_modelling as lm
from .ablation import FULL
from .encoding_methods import METHODS as ENCODED
from .long_texts import SLOWED, Slowed, untuned
from .long_windows import LongTexts, costs
from .methods import EQUAL, SPINE, Method, listed, model_config, part_for_position, run_of
from .readings import READINGS, WAYS, read_by
from .run import HERE, At, Found, Measure, Rows, Run
from .sweep import Sweep
from .texts import TextExperiment

TIMES = 8
"""The long windows, in trained lengths."""

NEAR = 16
"""Bytes before a byte that keep their order inside the trained length: about three words."""


def _turned(what: str, says: str, **options: Any) -> Method:
    return Method(f"rope-{what}", says, "rope", {"encoding": RoPE(**options)})


def _wide(what: str, parts: int, sixteenths: int) -> Method:
    """A separated model with one part in `parts` for position, so much wider than the dense one."""
    streams = part_for_position(parts, lambda size: size.width * sixteenths // 16)
    return Method(f"{FULL}-{what}-wide", EQUAL, f"{FULL}-{what}", {"streams": streams})


METHODS: dict[str, Method] = listed(
    SPINE["none"],
    _turned("16th", "a sixteenth of the columns rotated", partial=1 / 16),
    _turned("8th", "an eighth of the columns rotated", partial=1 / 8),
    ENCODED["rope-partial"],
    _turned("half", "half of the columns rotated", partial=1 / 2),
    SPINE["rope"],
    Method("p-rope-quarter", "the fastest quarter of the pairs rotated", "rope", {"encoding": RoPE(p=1 / 4)}),
    Method(
        "rope-shared-key",
        "the rotated columns have one key for all heads",
        "rope-partial",
        {"encoding": RoPE(partial=1 / 4, shared=True)},
    ),
    Method("rope-nope-2", "every second layer without position", "rope", {"nope_every": 2}),
    Method("rope-nope-4", "every fourth layer without position", "rope", {"nope_every": 4}),
    Method("forgetting", "forget gates, no position", "none", {"encoding": "forgetting"}),
    _wide("pos-16th", 16, 17),
    _wide("pos-8th", 8, 18),
    SPINE[f"{FULL}-wide"],
    _wide("pos-half", 2, 22),
)
"""In the order of tables. `-wide` has about as many block parameters as the dense model (within 5 %, but for
smoke); the model whose heads share a key has fewer, by what they share."""


def waves_of(config: TransformerConfig) -> list[Extendable]:
    """The rotations of a model, and the sinusoid of its position stream; ValueError for a share of a head
    that is no whole pairs."""
    made = [e.at_query_key(Heads(width=config.head_width)) for e in config.encodings if isinstance(e, RoPE)]
    streams = [config.streams.widths[name] for name in config.position_streams]
    return made + [e.at_input(width, config.max_length) for e in config.input_encodings for width in streams]


@cache
def fits(method: str, profile: str) -> bool:
    """Whether there is such a model at the size of a profile: its share of a head is whole pairs, and it has
    the layers that it leaves without position."""
    try:
        waves_of(model_config(method, lm.SIZES[profile]))
    except ValueError:
        return False
    return True


def fitting(profile: str, methods: Sequence[str]) -> list[str]:
    """The methods that there are at the size of a profile."""
    return [name for name in methods if fits(name, profile)]


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
    """What it costs where all but the recent words stand in another order, in bins: rows of that kind."""
    mixed = with_shuffled_context(model, windows, documents, recent=recent, stride=stride, **how)
    return costs("shuffled", mixed, evaluate(model, windows, documents, **how), edges)


@cache
def readings_of(config: TransformerConfig) -> tuple[str, ...]:
    """The ways in which the waves of a model can be slowed down: none without waves, and of a single pair all
    but those that leave the first one as it is."""
    waves = waves_of(config)

    def follow(make: Callable[[int, int], Extension]) -> bool:
        try:
            for module in waves:
                module.extend(make(TIMES, config.max_length))
        except ValueError:
            return False
        return bool(waves)

    return tuple(name for name, (make, _) in WAYS.items() if follow(make))


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
