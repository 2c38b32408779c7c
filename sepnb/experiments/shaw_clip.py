"""Chapter 3: is precise position of no use beyond a distance? Shaw's vectors, clipped ever sooner.

A model with clip k has a label for each of the distances 0 to k - 1 and one for all farther keys. That takes
away less than precise position: clipped layers on top of each other reach farther than one, and the causal
mask tells position without any vector. Models are dense, of the size of `ablation`, and differ in the clip
alone, two of them in vectors of the values too.

A clip that costs nothing may mean that precise position is of no use out there, or that the keys out there
are of none. So every trained model also reads the validation text, which chooses nothing here, through
windows: what it pays more when the keys from distance k on are hidden is an upper bound of what they say to
it. It was never trained with a window, and with these keys it loses what its softmax rests on, the first
tokens and the number of keys; so it reads through every window a second time with the first tokens visible.

All runs share the learning rate at which RoPE was best in `ablation_sweep`: with clips swept, compared runs
could differ in a second thing.
"""

from dataclasses import dataclass
from typing import Any

from ..encodings import Shaw
from ..evaluation.protocols import SINKS
from ..models import LanguageModel
from . import ablation
from . import language_modelling as lm
from .base import SHOWN
from .methods import Method, listed
from .run import HERE, At, Found, Measure, Run
from .texts import TextExperiment

CLIPS = (1, 2, 4, 8, 16, 32)
"""Below the trained length of every profile; each is also a window through which every model reads."""

UNCLIPPED = "keys-unclipped"


def _clipped(name: str, clip: int | None, values: bool = False) -> Method:
    says = "a label for every distance" if clip is None else f"one label from distance {clip} on"
    says += ", at values too" if values else ""
    return Method(name, says, "none", {"encoding": lambda size: Shaw(clip or size.length, values=values)})


METHODS = listed(
    *(_clipped(f"keys-{clip}", clip) for clip in CLIPS),
    _clipped(UNCLIPPED, None),
    _clipped("keys-values-8", 8, values=True),
    _clipped("keys-values-unclipped", None, values=True),
)
"""The clip of an unclipped one is the trained length."""

JUDGED = ("keys-1", "keys-4", "keys-8", "keys-16", UNCLIPPED)
"""Of these the claims want six seeds; the others are described, with three."""


@dataclass(frozen=True)
class Windows(Measure):
    """Validation bits per byte with the keys from distance w on hidden: all of them, `val_bits_window_<w>`,
    and all but the first tokens, `val_bits_window_<w>_sinks`.

    Args:
        windows: through which the trained model reads.
        sinks: how many first tokens stay visible when it reads through them again.
    """

    windows: tuple[int, ...] = CLIPS
    sinks: int = SINKS

    def resolved(self) -> dict[str, Any]:
        return {"windows": list(self.windows), "sinks": self.sinks}

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        metrics = {}
        for window in self.windows:
            for suffix, sinks in (("", 0), ("_sinks", self.sinks)):
                reader = model.extended(window=window, sinks=sinks)
                scored = lm.score(config, reader, "validation", at.device)
                metrics[f"val_bits_window_{window}{suffix}"] = scored.bits_per_byte
        return metrics, []


def measures(run: Run) -> tuple[Measure, ...]:
    return lm.INSIDE, Windows()


EXPERIMENT = TextExperiment(
    name="shaw_clip",
    title="Clipped distances",
    question="""From which distance on does it cost nothing to give all keys one label, and what does it
        cost not to see them?""",
    order=4,
    sizes=ablation.SIZES,
    sweeps=(ablation.SWEEP,),
    of=dict.fromkeys(METHODS, "rope"),
    methods=tuple(METHODS),
    smoke=("keys-1", UNCLIPPED),
    other_seeds={name: SHOWN for name in METHODS if name not in JUDGED},
    costs={"smoke": 2.0, "laptop": 60.0},
    measures=measures,
)
