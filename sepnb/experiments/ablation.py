"""Chapter 10: one factor at a time. What does each part of the separation cost or give?

Each method here is another one with the fields that it declares replaced, and nothing else; its difference
from that is what the fields do. The models are smaller than those of `in_window` on a laptop, so that many
methods and several seeds can be paid for: differences compare inside this experiment only.
"""

from functools import partial
from typing import ClassVar

from . import language_modelling as lm
from . import methods
from .methods import POS_SHARE, SPINE, WIDE, Method, listed, part_for_position
from .sweep import Sweep

SIZES = {
    "smoke": lm.Size(64, 80, 2, 4, 64, 8, 60, lm.TextConfig("sympy", 1024, 2048)),
    "laptop": lm.Size(64, 80, 3, 4, 64, 16, 1200, lm.TextConfig("eltec-eng", 8_192, 20_480)),
    "gpu": lm.SIZES["gpu"],
}
"""On a laptop 410 kB of the test novels are scored, the first 20 kB of each."""

FULL, DENSE, CONCATENATED = "separated-sinusoidal", "sinusoidal", "concatenated-sinusoidal"

OWN = listed(
    Method(f"{FULL}-joint-norm", "one norm over the whole width", FULL, {"norm": "joint"}),
    Method(
        f"{FULL}-joint-value-output",
        "values and output not split",
        FULL,
        {"split": frozenset({"norm", "mlp"})},
    ),
    Method(f"{FULL}-joint-mlp", "MLP not split", FULL, {"split": frozenset({"norm", "value_output"})}),
    Method(f"{FULL}-both-readout", "output read from both streams", FULL, {"readout": "both"}),
    Method(f"{FULL}-content", "queries and keys read content only", FULL, {"query_key": "content"}),
    Method(f"{FULL}-constant", "pos stream constant over layers", FULL, {"pos_stream": "constant"}),
    Method(f"{FULL}-reinjected", "code added again in every layer", FULL, {"pos_stream": "reinjected"}),
    Method(f"{FULL}-pos-16th", "d_pos = D/16, less than one head", FULL, {"streams": part_for_position(16)}),
    Method(
        f"{FULL}-pos-8th",
        "d_pos = D/8, on a laptop less than one head",
        FULL,
        {"streams": part_for_position(8)},
    ),
    Method(f"{FULL}-pos-half", "d_pos = D/2", FULL, {"streams": part_for_position(2)}),
    Method("strict-sinusoidal-wide", methods.EQUAL, "strict-sinusoidal", {"streams": WIDE}),
    Method(f"{DENSE}-reinjected", "code added in every layer", DENSE, {"pos_stream": "reinjected"}),
    Method(
        CONCATENATED,
        "code beside the embedding, nothing split",
        DENSE,
        {"streams": part_for_position(POS_SHARE), "split": frozenset(), "readout": "both"},
    ),
    Method(f"{CONCATENATED}-split-norm", "norm split", CONCATENATED, {"split": frozenset({"norm"})}),
    Method(
        f"{CONCATENATED}-split-value-output",
        "values and output split",
        CONCATENATED,
        {"split": frozenset({"value_output"})},
    ),
    Method(f"{CONCATENATED}-split-mlp", "MLP split", CONCATENATED, {"split": frozenset({"mlp"})}),
    Method(
        f"{CONCATENATED}-sem-readout", "output read from the sem columns", CONCATENATED, {"readout": "sem"}
    ),
    Method("learned-reinjected", "table added in every layer", "learned", {"pos_stream": "reinjected"}),
    Method(
        "separated-learned-constant",
        "pos stream constant over layers",
        "separated-learned",
        {"pos_stream": "constant"},
    ),
    Method(
        "separated-learned-reinjected",
        "table added again in every layer",
        "separated-learned",
        {"pos_stream": "reinjected"},
    ),
)
"""The fate of the code once with a sinusoid and once with a learned table.

The concatenated model is the one that needs three fields: on a single stream `split` and `readout` have no
effect, so that it differs from the dense model in its streams, and from the separated one in `split` and
`readout`. `-wide` is wider: it has about as many block parameters as the dense model (within 5 %; strict on
gpu 6 %).
"""

COMPARED: dict[str, Method] = {
    name: (OWN | SPINE)[name]
    for name in (
        FULL,
        f"{FULL}-joint-norm",
        f"{FULL}-joint-value-output",
        f"{FULL}-joint-mlp",
        f"{FULL}-both-readout",
        "strict-sinusoidal",
        f"{FULL}-content",
        f"{FULL}-constant",
        f"{FULL}-reinjected",
        f"{FULL}-pos-16th",
        f"{FULL}-pos-8th",
        f"{FULL}-pos-half",
        f"{FULL}-wide",
        "strict-sinusoidal-wide",
        DENSE,
        f"{DENSE}-reinjected",
        "none",
        "rope",
        "alibi",
        CONCATENATED,
        f"{CONCATENATED}-split-norm",
        f"{CONCATENATED}-split-value-output",
        f"{CONCATENATED}-split-mlp",
        f"{CONCATENATED}-sem-readout",
        "learned",
        "learned-reinjected",
        "separated-learned",
        "separated-learned-constant",
        "separated-learned-reinjected",
    )
}
"""In the order of tables. A method without a base begins a family."""

JUDGED = (
    FULL,
    f"{FULL}-joint-norm",
    f"{FULL}-joint-value-output",
    f"{FULL}-joint-mlp",
    f"{FULL}-both-readout",
    f"{FULL}-constant",
    f"{FULL}-reinjected",
    DENSE,
    f"{DENSE}-reinjected",
    CONCATENATED,
    f"{CONCATENATED}-split-norm",
    "learned",
    "learned-reinjected",
    "separated-learned",
    "separated-learned-constant",
    "separated-learned-reinjected",
)
"""What the claims compare: six seeds on a laptop too, the least that a verdict needs. Seeds 4 to 6 were added
after the first three were seen, for every claim alike; no claim could have had a verdict without them."""

run_of = partial(methods.run_of, sizes=SIZES)
"""The run of a method at the sizes of this experiment."""

SCREEN = Sweep(
    "ablation_screen",
    title="Learning rates of the ablation",
    whose="each method of the ablation",
    order=3,
    methods=tuple(COMPARED),
    smoke=(FULL,),
    config_of=run_of,
    steps={"smoke": 20, "laptop": 500, "gpu": 1000},
    whole=("none", "learned", "learned-reinjected", f"{FULL}-content"),
    costs={"smoke": 1.0, "laptop": 16.0, "gpu": 40.0},
)
"""For all but one method the largest of the three rates is the best."""


class Ablation(lm.TextExperiment):
    """What does each part of the separation cost or give, one factor at a time?"""

    name: ClassVar[str] = "ablation"
    title: ClassVar[str] = "One factor at a time"
    question: ClassVar[str] = "What does each part of the separation cost or give, one factor at a time?"
    order: ClassVar[int] = 4
    methods: ClassVar = tuple(COMPARED)
    smoke: ClassVar = (FULL, f"{FULL}-constant")
    costs: ClassVar = {"smoke": 1.5, "laptop": 40.0, "gpu": 60.0}

    def seeds_of(self, profile: str, cell: str) -> tuple[int, ...]:
        """Three show the size of a difference and leave every comparison undecided."""
        every = super().seeds_of(profile, cell)
        return every[:3] if profile == "laptop" and cell not in JUDGED else every

    def config(self, profile: str, cell: str, seed: int) -> lm.LanguageModelRun:
        return run_of(self.name, profile, cell, seed, SCREEN.rate(profile, cell))
