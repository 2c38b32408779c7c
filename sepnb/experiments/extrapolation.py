"""Chapters 10, 12 and 13: what is left of each model past its trained length, under each evaluation protocol.

The runs are those of `in_window`, trained in the same way on the same batches. Then each model reads windows
of eight times the trained length, in every way of `readings`. Nothing is chosen by what it gives.

Every seed reads other bytes: the beginning of each test novel is cut into six blocks, and block k belongs to
seed k. Methods with three seeds read two blocks each.
"""

from ..evaluation.long_windows import Beyond, blocks_of
from ..evaluation.protocols import Protocol, masks, needed, sliding_windows
from ..extrapolators import METHODS as EXTRAPOLATORS
from ..extrapolators import SOURCE_METHODS
from . import language_modelling as lm
from .base import SHOWN
from .in_window import SWEEPS
from .long_windows import LongTexts
from .methods import Method, listed
from .run import Measure, Run
from .texts import TextExperiment

TIMES = 8
"""The long windows, in trained lengths."""

BEYOND = {
    "smoke": Beyond(64, TIMES, documents=2, windows=1, part=1, tight=1, batch_bytes=2048),
    "laptop": Beyond(128, TIMES, documents=20, windows=9, part=2, tight=6, batch_bytes=2048),
    "gpu": Beyond(256, TIMES, documents=20, windows=9, part=3, tight=20, batch_bytes=131_072),
}
METHODS = (
    *("learned", "separated-learned", "strict-learned"),
    *("sinusoidal", "separated-sinusoidal", "strict-sinusoidal", "rope", "alibi"),
)
"""Compared in claims, hence six seeds."""


def trained_long(base: str) -> Method:
    def length(size: lm.ModelSize) -> int:
        return TIMES * size.length

    training = {"length": length, "batch_size": lambda size: size.batch_size // TIMES}
    return Method(f"{base}-long", "trained on the long windows", base, {"max_length": length}, training)


LONG = listed(trained_long("rope"), trained_long("separated-sinusoidal"))
"""Trained on as many bytes a step and at the rate of the short one: what such a model gains over its own
sliding window, no wider than that of the short one, is what far text gives to a model of this training."""

CONTROLS = ("none", *LONG)
"""Shown beside them with three seeds."""


def readings(encoding: str, length: int, longest: int) -> tuple[Protocol, ...]:
    """What is read with a model of this encoding, trained at `length`, on texts of `longest` bytes."""
    windows, far, at = masks(length), longest - length, f"at-{longest // length - 1}x"
    if encoding != "learned":
        own = [Protocol("native", "all"), Protocol(f"native-{at}", "all", start=far)]
        own += [Protocol(f"native-{name}", **mask) for name, mask in windows.items()]
        for name in ("clamp", "wrap") if encoding == "sinusoidal" else ():
            own += [Protocol(name, extrapolator=name), Protocol(f"{name}-{at}", "all", name, start=far)]
        return (*sliding_windows(length), *own)
    compared = (*SOURCE_METHODS, "clamp", "wrap")
    controls = [name for name in EXTRAPOLATORS if name not in compared]
    variants = {
        "sinusoidal-aligned": ("sinusoidal", ("align", "procrustes")),
        "fourier-full": ("fourier", ("n_components", length // 2 + 1)),
        "learned-masked-fit": ("learned", ("protocol", "masked")),
        "alibi-slow": ("alibi", ("tau", float(length))),
        "zero-everywhere": ("zero", ("everywhere", True)),
    }
    return (
        *sliding_windows(length),
        *(Protocol(name, "all", name) for name in compared),
        *(Protocol(name, extrapolator=name, options=needed(name, longest)) for name in controls),
        *(Protocol(f"{name}-literal", extrapolator=name, form="literal") for name in SOURCE_METHODS),
        *(Protocol(id, extrapolator=name, options=(option,)) for id, (name, option) in variants.items()),
        *(Protocol(f"{name}-window", extrapolator=name, **windows["window"]) for name in compared),
        Protocol("clamp-window-sinks", extrapolator="clamp", **windows["window-sinks"]),
        *(Protocol(f"{name}-{at}", "all", name, start=far) for name in compared),
    )


def asked(run: Run, beyond: Beyond) -> tuple[Protocol, ...]:
    """What is read with the model of a run; of one that was trained on the long windows, no rule for more."""
    if run.training.length >= beyond.longest:
        return (*sliding_windows(beyond.length), Protocol("native", "all"))
    return readings(run.model.encodings[0].name, beyond.length, beyond.longest)


def measures(run: Run) -> tuple[Measure, ...]:
    """There are six blocks of text: seeds that are six apart read the same bytes, and of a method that is
    only shown, with two blocks a seed, those that are three apart."""
    beyond, blocks = BEYOND[run.profile], blocks_of(run.seed, 2 if run.method in CONTROLS else 1)
    return lm.INSIDE, LongTexts(beyond, blocks, asked(run, beyond), describes_tables=True)


EXPERIMENT = TextExperiment(
    name="extrapolation",
    title="Past the trained length",
    question="""What is left of each model at one to eight times its trained length, under each
        extrapolator, control and window?""",
    order=2,
    sweeps=SWEEPS,
    methods=(*METHODS, *CONTROLS),
    smoke=("learned", "separated-learned", "rope"),
    other_seeds=dict.fromkeys(CONTROLS, SHOWN),
    costs={"smoke": 3.0, "laptop": 200.0},
    measures=measures,
)
