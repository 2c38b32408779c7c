"""Chapter 12: which change of training or score makes a model survive, use and match, and at what price?

Four questions are asked of every variant, each with a number of its own:

- *survives*: is it worse past its trained length than through its own sliding window at stride 1?
- *uses*: does it lose when the text further back than a trained length is that of another novel?
- *quality*: what does it pay beside RoPE, as it is and with a window?
- *price*: what does it pay inside the trained length more than its method of the spine, as wide as it is?
  Where a variant adds parameters, this is more than the price of the training.

Past the trained length a seed reads the bytes that the methods with six seeds read in `extrapolation`, so
that columns of one name compare. Inside it a laptop scores less text, so that `bits_per_byte` does not.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from ..data import text
from ..evaluation.context import with_replaced_context
from ..evaluation.long_windows import Beyond
from ..evaluation.losses import Losses
from ..evaluation.protocols import Protocol, masks, sliding_windows
from ..models import LanguageModel
from . import language_modelling as lm
from .base import Progress
from .extrapolation import Extrapolation, ExtrapolationRun, metrics_of, read
from .in_window import SWEEPS
from .methods import run_of
from .scale_sweep import ScaleSweep
from .variant_methods import MATCHED, VARIANTS

LAPTOP = lm.SIZES["laptop"]
SIZES = lm.SIZES | {"laptop": replace(LAPTOP, text=replace(LAPTOP.text, test_bytes=20_480))}
"""On a laptop less of each test novel is scored inside the trained length than in `in_window`."""

ELSEWHERE = 1_000_000
"""Where a text starts that no training reached: the largest offsets end at 100,000."""

WINNER = "separated-torus-phase-long-gaps-wide"
"""The separated model that the screening puts first at about the parameters of RoPE's (within 1 %)."""

PUBLISHED = (
    "rope",
    WINNER,
    WINNER.removesuffix("-wide"),
    "separated-phase-gaps",
    "dense-phase-gaps",
    "sinusoidal-torus-phase-long-gaps",
    "separated-phase-long",
    "dense-phase-long",
    "separated-phase-gaps-other",
    "dense-phase-gaps-other",
    "rope-gaps",
    "separated-sinusoidal",
    MATCHED,
    "separated-phase",
    "dense-phase",
    "separated-offsets",
    "sinusoidal",
    "sinusoidal-offsets",
    "strict-sinusoidal",
    "strict-offsets",
    "separated-torus",
    "separated-torus-offsets",
    "sinusoidal-torus-offsets",
    "untied",
    "untied-rope",
    "strict-phase",
    "strict-phase-narrow",
    "separated-rope",
    "untied-constant",
    "untied-constant-clamp",
)
"""What is read on the test text. Survivors, and one variant of each kind that does not survive, were chosen
on the validation text by `recipe_screen`; what they are compared with, as of gaps the same model without them
and of a variant of the separated model its dense twin, was added with or without it. ALiBi is in
`extrapolation`."""


SWEEP = ScaleSweep(
    "recipe_sweep",
    title="Learning rates and scales of the survivors",
    order=4,
    methods=(
        *("rope-gaps", "dense-phase-gaps", "separated-phase-gaps"),
        *("separated-torus-phase-long-gaps", "sinusoidal-torus-phase-long-gaps"),
    ),
    smoke=("sinusoidal-torus-phase-long-gaps",),
    config_of=partial(run_of, sizes=SIZES),
    beyond=dict.fromkeys(("rope-gaps", "dense-phase-gaps"), (1e-3,)),
    level={"dense-phase-gaps": ((2e-3,), (4e-3,))},
    further={"sinusoidal-torus-phase-long-gaps": ((4e-3, 4.0), (8e-3, 4.0))},
    costs={"smoke": 1.0, "laptop": 110.0},
)
"""Over the whole schedule. The verdicts on separation among survivors compare these; one that varies another
of them takes its rate, and all others have those of the spine."""


@dataclass(frozen=True)
class VariantRun(ExtrapolationRun):
    """A run of a variant and what it reads afterwards: the test text, or else the validation text."""

    reads_test: bool = True

    @property
    def readings(self) -> tuple[Protocol, ...]:
        length, longest = self.beyond.length, self.beyond.longest
        tight, coarse, _ = sliding_windows(length)
        return (
            tight,
            replace(coarse, scope="part"),
            Protocol("native"),
            Protocol("native-log", log_scale=True),
            *(Protocol(f"native-{name}", **mask) for name, mask in masks(length).items()),
            Protocol(f"native-at-{longest // length - 1}x", start=longest - length),
            Protocol("native-at-1m", start=ELSEWHERE),
        )

    @property
    def foreign(self) -> dict[str, int]:
        """How much of its own context a byte keeps where the rest is replaced."""
        return {"recent": self.beyond.length, "stride": self.beyond.length // 2}

    @property
    def held_out(self) -> text.Text:
        splits = lm.splits_of(self.text.name)
        return splits.test if self.reads_test else splits.validation

    def resolved(self) -> dict[str, Any]:
        return super().resolved() | {"foreign": self.foreign}


def gains(config: VariantRun, model: LanguageModel, *, device: str = "cpu") -> lm.Rows:
    """What replaced context costs, per bin: rows of the kind "gain", in bits per byte.

    Read natively, on the windows of the scope "part". Every byte keeps its own last L bytes at least and
    3L/2 - 1 at most; a positive gain says that the model used what lies further back. In the bin from L to 2L
    half of the bytes have nothing that lies further back.
    """
    beyond = config.beyond
    held = config.passages()
    at = held.scopes["part"]
    how = config.how(device, beyond.longest)
    native = Protocol("native").losses(model, held.tokens[at], held.documents[at], **how)
    foreign = with_replaced_context(model, held.tokens[at], held.documents[at], **config.foreign, **how)
    difference = Losses(foreign.bits - native.bits, native.documents)
    return [{"kind": "gain", **row} for row in difference.by_position(beyond.edges[1:])]


class Variants(Extrapolation):
    """Which change of training or of the score makes a model survive, use and match beyond its trained
    length, and at what price?"""

    name = "recipes"
    title = "Variants for longer texts"
    order = 5
    sizes, sweeps = SIZES, (SWEEP, *SWEEPS)
    methods = PUBLISHED
    smoke = ("separated-sinusoidal", "separated-phase-offsets")
    shown = ()
    costs: ClassVar = {"smoke": 4.0, "laptop": 160.0}
    runs = VariantRun

    def looks(self, config: VariantRun) -> int:
        return len(config.readings) + 1

    def look(
        self, config: VariantRun, model: LanguageModel, *, device: str, progress: Progress | None
    ) -> tuple[lm.Metrics, lm.Rows]:
        rows = read(config, model, device=device, progress=progress)
        gained = gains(config, model, device=device)
        if progress is not None:
            progress(self.looks(config), self.looks(config))
        length = config.beyond.length
        named = {f"gain/{row['stop'] // length}x": row["bits_per_byte"] for row in gained}
        return metrics_of(rows, length) | named, rows + gained


class VariantScreen(Variants):
    """Which variants survive, use and match past the trained length, on the validation text with one seed?"""

    name = "recipe_screen"
    title = "Choice of the variants"
    order = 4
    sweeps = SWEEPS
    reads_test = False
    methods = tuple(VARIANTS)
    smoke = Variants.smoke[1:]
    seeds = (0,)
    costs: ClassVar = {"smoke": 4.0, "laptop": 150.0}

    def beyond(self, profile: str) -> Beyond:
        """Of the validation novels all windows are read in every way, four at stride 1."""
        few = {"documents": 10, "windows": 4, "part": 4, "tight": 4}
        return super().beyond(profile) if profile == "smoke" else replace(super().beyond(profile), **few)

    def config(self, profile: str, cell: str, seed: int) -> VariantRun:
        return replace(super().config(profile, cell, seed), blocks=(0,), reads_test=False)
