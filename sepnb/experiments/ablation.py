"""Chapter 11: one factor at a time. What does each part of the separation cost or give?

Each method here is another one with the fields that it declares replaced, at the rate and the scale that suit
it best; its difference from that is what the fields do. The models are smaller than those of `in_window` on
a laptop, so that many methods and several seeds can be paid for: differences compare inside this experiment
only.
"""

from functools import partial
from typing import Any

from . import language_modelling as lm
from . import methods
from .base import SHOWN
from .methods import EQUAL, QUARTER, SPINE, WIDE, Method, listed, part_for_position
from .sweep import Sweep
from .texts import TextExperiment

SIZES = {
    "smoke": lm.Size(64, 80, 2, 4, 64, 8, 40, lm.TextConfig("sympy", 256, 512)),
    "laptop": lm.Size(64, 80, 3, 4, 64, 16, 1200, lm.TextConfig("eltec-eng", 8_192, 20_480)),
    "gpu": lm.SIZES["gpu"],
}
"""On a laptop 410 kB of the test novels are scored, the first 20 kB of each."""

FULL, DENSE, CONCATENATED = "separated-sinusoidal", "sinusoidal", "concatenated-sinusoidal"
STRICT, LEARNED = "strict-sinusoidal", "separated-learned"


def _changed(base: str, what: str, says: str, **fields: Any) -> Method:
    return Method(f"{base}-{what}", says, base, fields)


AGAIN, STILL = "position embedding added again in every layer", "pos stream constant over layers"
SPLIT_ALL = frozenset({"norm", "value_output", "mlp"})

COMPARED = listed(
    SPINE[FULL],
    _changed(FULL, "joint-norm", "one norm over the whole width", norm="joint"),
    _changed(FULL, "joint-value-output", "values and output not split", split=SPLIT_ALL - {"value_output"}),
    _changed(FULL, "joint-mlp", "MLP not split", split=SPLIT_ALL - {"mlp"}),
    _changed(FULL, "both-readout", "output read from both streams", readout="both"),
    SPINE[STRICT],
    _changed(FULL, "content", "queries and keys read content only", query_key="content"),
    _changed(FULL, "constant", STILL, pos_stream="constant"),
    _changed(FULL, "reinjected", AGAIN, pos_stream="reinjected"),
    _changed(FULL, "pos-16th", "d_pos = D/16, less than one head", streams=part_for_position(16)),
    _changed(FULL, "pos-8th", "d_pos = D/8, on a laptop less than one head", streams=part_for_position(8)),
    _changed(FULL, "pos-half", "d_pos = D/2", streams=part_for_position(2)),
    SPINE[f"{FULL}-wide"],
    _changed(STRICT, "wide", EQUAL, streams=WIDE),
    SPINE[DENSE],
    _changed(DENSE, "reinjected", AGAIN, pos_stream="reinjected"),
    *(SPINE[name] for name in ("none", "rope", "alibi")),
    Method(
        CONCATENATED,
        "position embedding beside the content, nothing split",
        DENSE,
        {"streams": QUARTER, "split": frozenset(), "readout": "both"},
    ),
    _changed(CONCATENATED, "split-norm", "norm split", split=frozenset({"norm"})),
    _changed(
        CONCATENATED, "split-value-output", "values and output split", split=frozenset({"value_output"})
    ),
    _changed(CONCATENATED, "split-mlp", "MLP split", split=frozenset({"mlp"})),
    _changed(CONCATENATED, "sem-readout", "output read from the sem columns", readout="sem"),
    SPINE["learned"],
    _changed("learned", "reinjected", AGAIN, pos_stream="reinjected"),
    SPINE[LEARNED],
    _changed(LEARNED, "constant", STILL, pos_stream="constant"),
    _changed(LEARNED, "reinjected", AGAIN, pos_stream="reinjected"),
)
"""In the order of tables; a method without a base begins a family. What becomes of the position embedding is
asked once of a sinusoid and once of a learned table.

The concatenated model is the one that needs three fields: on a single stream `split` and `readout` have no
effect, so that it differs from the dense model in its streams, and from the separated one in `split` and
`readout`. `-wide` is wider: it has about as many block parameters as the dense model (within 5 %; strict on
gpu 6 %).
"""

DESCRIBED = (
    *(f"{FULL}-{what}" for what in ("content", "pos-16th", "pos-8th", "pos-half", "wide")),
    *(STRICT, f"{STRICT}-wide", "none", "rope", "alibi"),
    *(f"{CONCATENATED}-{what}" for what in ("split-value-output", "split-mlp", "sem-readout")),
)
"""What no claim compares: three seeds. All else has six, the least that a verdict needs. Seeds 4 to 6 were
added after the first three were seen, for every claim alike; no claim could have had a verdict without
them."""

run_of = partial(methods.run_of, sizes=SIZES)
"""The run of a method at the sizes of this experiment."""

SWEEP = Sweep(
    name="ablation_sweep",
    title="Learning rates and scales of the ablation",
    order=3,
    methods=tuple(COMPARED),
    smoke=(FULL, "learned"),
    config_of=run_of,
    scaled=True,
    costs={"smoke": 1.0, "laptop": 36.0},
)
"""Over the whole schedule: a shorter one prefers a larger rate. Of the first three rates the largest was the
best for all but one method."""


EXPERIMENT = TextExperiment(
    name="ablation",
    title="One factor at a time",
    question="What does each part of the separation cost or give, one factor at a time?",
    order=4,
    sizes=SIZES,
    sweeps=(SWEEP,),
    methods=tuple(COMPARED),
    smoke=(FULL, f"{FULL}-constant"),
    other_seeds=dict.fromkeys(DESCRIBED, SHOWN),
    costs={"smoke": 1.5, "laptop": 40.0},
)
"""Three seeds show the size of a difference and leave every comparison undecided."""
