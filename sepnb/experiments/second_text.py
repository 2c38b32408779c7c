"""Chapter 12: does what novels say past the trained length hold on a second text, WikiText-2?

Models, schedule, rules, learning rates and scales are those of `extrapolation`. This text was never swept.
Articles are shorter than novels. Of the 60 test articles those are read that hold six blocks, and each of
three seeds reads two blocks, so that no two share a byte: less than a megabyte together, and too few seeds
for a verdict.

Some bytes of the articles are no English: `<unk>` stands for every rare word, and `@-@` and its like join
what the owner's tokeniser took apart. Every reading tells these marks from the rest.
"""

from dataclasses import replace

from ..data import text
from ..evaluation.long_windows import Beyond, blocks_of
from ..evaluation.protocols import SLIDING_WINDOW, Protocol
from . import extrapolation
from . import language_modelling as lm
from .base import SHOWN
from .extrapolation import BEYOND as OF_NOVELS
from .extrapolation import TIMES
from .in_window import SWEEPS
from .long_windows import LongTexts
from .run import Measure, Run
from .texts import TextExperiment

METHODS = ("learned", "separated-learned", "strict-learned", "separated-sinusoidal", "rope", "alibi")

TEXTS = {
    "smoke": lm.SIZES["smoke"].text,
    "laptop": lm.TextConfig("wikitext-2", 1_024, 4_096),
    "gpu": lm.TextConfig("wikitext-2", 65_536, 262_144),
}
"""Inside the trained length a laptop scores little of each of the 60 articles, a GPU all of it."""

BEYOND = {
    "smoke": OF_NOVELS["smoke"],
    "laptop": Beyond(128, TIMES, documents=16, windows=5, part=5, tight=3, batch_bytes=2048),
    "gpu": Beyond(256, TIMES, documents=18, windows=2, part=2, tight=9, batch_bytes=131_072),
}
"""Of all numbers of windows in a block, those with which the articles that are long enough hold most bytes:
163,840 a seed (gpu: 147,456). All but the reading at stride 1 is of whole blocks."""

MARKERS = {
    "sympy": ("    ",),
    "wikitext-2": tuple(marker.decode() for marker in text.MARKERS),
}
"""The marks of each text. Python source has none, so that at smoke an indentation stands for them."""


def readings(run: Run, beyond: Beyond) -> tuple[Protocol, ...]:
    """Two sliding-window baselines, and of `extrapolation` what claims on survival compare: tables under the
    five rules, `clamp` and `wrap`; any other encoding as it is and in a window."""
    return tuple(
        reading if reading.id == SLIDING_WINDOW else replace(reading, scope="part")
        for reading in extrapolation.asked(run, beyond)
        if not reading.start and (reading.scope != "part" or reading.id == "native-window")
    )


def measures(run: Run) -> tuple[Measure, ...]:
    beyond, markers = BEYOND[run.profile], MARKERS[run.data.name]
    texts = LongTexts(beyond, blocks_of(run.seed, 2), readings(run, beyond), markers, describes_tables=True)
    return lm.INSIDE, texts


EXPERIMENT = TextExperiment(
    name="extrapolation_wikitext",
    title="Past the trained length, on a second text",
    question="""On WikiText-2, with the bytes of its marks told apart, what is left of each model at one
        to eight times its trained length?""",
    order=3,
    sizes={profile: replace(size, text=TEXTS[profile]) for profile, size in lm.SIZES.items()},
    sweeps=SWEEPS,
    methods=METHODS,
    smoke=("separated-learned", "rope"),
    seeds=SHOWN,
    costs={"smoke": 3.0, "laptop": 160.0},
    measures=measures,
)
