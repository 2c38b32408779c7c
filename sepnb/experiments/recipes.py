"""Chapter 12: which change of training or score makes a model survive, use and match, and at what price?

Four questions are asked of every recipe, each with a number of its own:

- *survives*: is it worse past its trained length than through its own sliding window at stride 1?
- *uses*: does it lose when the text further back than a trained length is that of another novel?
- *quality*: what does it pay beside RoPE, as it is and with a window?
- *price*: what does it pay inside the trained length more than the method at its root, as wide as it is?
  Where a recipe adds parameters, this is more than the price of the training.

Past the trained length a seed reads the bytes that the methods with six seeds read in `extrapolation`, so
that columns of one name compare. Inside it a laptop scores less text, so that `bits_per_byte` does not.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ..data import text
from ..evaluation.context import with_foreign_past
from ..evaluation.long_windows import Beyond, blocks_of, long_windows
from ..evaluation.losses import Losses
from ..evaluation.protocols import SINKS, Reading, oracles
from ..models import LanguageModel
from ..records.store import Record
from . import language_modelling as lm
from .base import Progress
from .extrapolation import BEYOND, ExtrapolationRun, metrics_of, read
from .recipe_methods import MATCHED, RECIPES, run_of

TEST_BYTES = {"laptop": 20_480}
"""Test text scored inside the trained length, in bytes of each novel: on a laptop less than in `in_window`,
at the other profiles as much. It is the same for every recipe and for its base."""

ELSEWHERE = 1_000_000
"""Where a text starts that no training reached: the largest offsets, those of the torus, end at 100,000."""

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
"""What is read on the test text. Survivors, and one recipe of each kind that does not survive, were chosen on
the validation text by `recipe_screen`; what they are compared with, as of gaps the same model without them
and of a recipe for the separated model its dense twin, was added with or without it. ALiBi is in
`extrapolation`."""


@dataclass(frozen=True)
class RecipeRun(ExtrapolationRun):
    """A run of a recipe and what it reads afterwards: the validation text, unless `reads_test`."""

    reads_test: bool = False

    @classmethod
    def of(cls, run: lm.LanguageModelRun, beyond: Beyond, *, reads_test: bool = True) -> "RecipeRun":
        """What a run of a text reads besides, at the block of its seed; without the test text at block 0."""
        scored = replace(run.text, test_bytes=TEST_BYTES.get(run.profile, run.text.test_bytes))
        blocks = blocks_of(run.seed) if reads_test else (0,)
        return cls(**vars(run) | {"text": scored}, beyond=beyond, blocks=blocks, reads_test=reads_test)

    @property
    def readings(self) -> tuple[Reading, ...]:
        """What the trained model is asked to read."""
        length, longest = self.beyond.length, self.beyond.longest
        tight, *coarse = oracles(length)
        window = {"window": length}
        return (
            tight,
            replace(coarse[0], scope="part"),
            Reading("native"),
            Reading("native-log", log_scale=True),
            Reading("native-window", **window),
            Reading("native-window-sinks", window=length - SINKS, sinks=SINKS),
            Reading(f"native-at-{longest // length - 1}x", start=longest - length),
            Reading("native-at-1m", start=ELSEWHERE),
        )

    @property
    def foreign(self) -> dict[str, int]:
        """How much of its own past a byte keeps before a foreign one, as in `with_foreign_past`."""
        return {"recent": self.beyond.length, "stride": self.beyond.length // 2}

    def resolved(self) -> dict[str, Any]:
        """Every setting in plain JSON types; with the split that is read and what a foreign past leaves."""
        return super().resolved() | {"reads_test": self.reads_test, "foreign": self.foreign}

    @property
    def held_out(self) -> text.Text:
        splits = lm.splits_of(self.text.name)
        return splits.test if self.reads_test else splits.validation


def gains(config: RecipeRun, model: LanguageModel, *, device: str = "cpu") -> lm.Rows:
    """What a foreign past costs, per bin: rows of the kind "gain", in bits per byte.

    Read natively, on the windows of the scope "part". Every byte keeps its own last L bytes at least and 3L/2
    less one at most; a positive gain says that the model used what lies further back. In the bin from L to 2L
    half of the bytes have nothing that lies further back.
    """
    beyond = config.beyond
    held = long_windows(config.held_out, beyond, config.blocks)
    at = held.scopes["part"]
    how = {
        "device": device,
        "precision": config.training.precision,
        "batch_size": max(1, beyond.batch_bytes // beyond.longest),
    }
    native = Reading("native").losses(model, held.tokens[at], held.documents[at], **how)
    foreign = with_foreign_past(model, held.tokens[at], held.documents[at], **config.foreign, **how)
    difference = Losses(foreign.bits - native.bits, native.documents)
    return [{"kind": "gain", **row} for row in difference.by_position(beyond.edges[1:])]


class Recipes(lm.TextExperiment):
    """What makes extrapolation work?"""

    name: ClassVar[str] = "recipes"
    title: ClassVar[str] = "Recipes for longer texts"
    question: ClassVar[str] = (
        "Which change of training or of the score makes a model survive, use and match beyond its trained "
        "length, and at what price?"
    )
    order: ClassVar[int] = 5
    methods: ClassVar = PUBLISHED
    smoke: ClassVar = ("separated-sinusoidal", "separated-phase-offsets")
    costs: ClassVar = {"smoke": 4.0, "laptop": 160.0, "gpu": 90.0}

    def beyond(self, profile: str) -> Beyond:
        """How much text past the trained length a run reads."""
        return BEYOND[profile]

    def config(self, profile: str, cell: str, seed: int) -> RecipeRun:
        run = run_of(self.name, profile, cell, seed)
        return RecipeRun.of(run, self.beyond(profile), reads_test=self.reads_test)

    def run(self, config: RecipeRun, *, device: str = "cpu", progress: Progress | None = None) -> Record:
        steps, asked = config.training.steps, len(config.readings) + 1

        def report(offset: int) -> Progress | None:
            return None if progress is None else lambda done, _: progress(offset + done, steps + asked)

        def after(model: LanguageModel) -> tuple[lm.Metrics, lm.Rows]:
            rows = read(config, model, device=device, progress=report(steps))
            gained = gains(config, model, device=device)
            if progress is not None:
                progress(steps + asked, steps + asked)
            length = config.beyond.length
            named = {f"gain/{row['stop'] // length}x": row["bits_per_byte"] for row in gained}
            return metrics_of(rows, length) | named, rows + gained

        return lm.run(config, device=device, progress=report(0), test=config.reads_test, after=after)


class RecipeScreen(Recipes):
    """Every recipe with one seed on the validation text: which are worth reading the test text with?"""

    name: ClassVar[str] = "recipe_screen"
    title: ClassVar[str] = "Screening of the recipes"
    question: ClassVar[str] = (
        "Which recipes survive, use and match past the trained length, on the validation text with one seed?"
    )
    order: ClassVar[int] = 4
    reads_test: ClassVar[bool] = False
    methods: ClassVar = tuple(RECIPES)
    smoke: ClassVar = Recipes.smoke[1:]
    seeds: ClassVar = (0,)
    costs: ClassVar = {"smoke": 4.0, "laptop": 150.0, "gpu": 80.0}

    def beyond(self, profile: str) -> Beyond:
        """Of the validation novels all windows are read by every reading, four at stride 1."""
        few = {"documents": 10, "windows": 4, "part": 4, "tight": 4}
        return super().beyond(profile) if profile == "smoke" else replace(super().beyond(profile), **few)
