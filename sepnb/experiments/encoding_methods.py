"""The dense causal methods that differ in how they tell positions: those of the spine, and all others.

The model, the schedule and the text of a run are those of `language_modelling`; a method sets the encoding,
and with it what belongs to it: a randomised one the positions at which it trains and reads, SeqPE its shift
steps and its two losses. Options are those of the sources unless a line here says otherwise.

RoPE trained behind a sliding window is not among them: a window is a mask and no way to tell positions. Any
of these models can be trained with one, `TransformerConfig(window=...)`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..encodings import DistanceAware, Encoding, Fire, Kerple, Learned, RoPE, Shaw
from ..seqpe import SeqPE
from ..seqpe.sampling import CandidateSampler, WindowSampler
from ..training.losses import AuxiliaryLoss
from ..training.positions import PositionSampler, RandomPositions
from ..training.seqpe_losses import SeqPELosses
from ..training.shifts import ShiftSteps
from . import in_window
from . import language_modelling as lm
from .screening import screened_rate

SPINE = ("none", "sinusoidal", "learned", "rope", "alibi")
"""The dense methods of `language_modelling`; their rates are those of `in_window`."""

RANDOM_POSITIONS = 32
"""Random positions lie below this many trained lengths: four times the longest text that is read, so that a
draw for that text still has gaps. So do those of SeqPE's shift steps and losses; the released program trains
at 512 and draws below 20,000, 39 times of it."""


@dataclass(frozen=True)
class EncodingMethod:
    """One way to tell positions.

    Args:
        says: what it is, in a few words.
        encoding: as `TransformerConfig` takes it or, where it depends on the size, a function of it.
        positions: what draws the positions, by the size; None: they begin at 0.
        auxiliary: what is minimised beside the loss of the tokens, by the size; None: nothing.
    """

    says: str
    encoding: str | Encoding | Callable[[lm.Size], Encoding]
    positions: Callable[[lm.Size], PositionSampler] | None = None
    auxiliary: Callable[[lm.Size], AuxiliaryLoss] | None = None


def _drawn(size: lm.Size) -> RandomPositions:
    return RandomPositions(RANDOM_POSITIONS * size.length)


def _fire(size: lm.Size) -> Fire:
    """With the threshold of the release, above the trained length, training would never show a bias that is
    measured against the position of its query: it starts at a quarter of that length (our choice)."""
    return Fire().for_length(size.length / 4)


def shift_steps(size: lm.Size) -> ShiftSteps:
    """A tenth of the steps is read at a random offset, one for the whole batch."""
    return ShiftSteps(RANDOM_POSITIONS * size.length)


def seqpe_losses(size: lm.Size, columns: int = SeqPE.width) -> SeqPELosses:
    """Both losses of embeddings of so many columns, on the positions that shift steps have too. The numbers
    of anchors, candidates and windows, the boxes, heads of 64 columns and starts from a quarter of the
    trained length on are those of the released text program."""
    largest = (RANDOM_POSITIONS * size.length,)
    return SeqPELosses(
        CandidateSampler(largest),
        WindowSampler(largest, (size.length,), away=(size.length // 4,)),
        n_heads=max(1, columns // 64),
        shifts=shift_steps(size),
    )


METHODS: dict[str, EncodingMethod] = {
    "none": EncodingMethod("no encoding", "none"),
    "sinusoidal": EncodingMethod("sinusoid added at the input", "sinusoidal"),
    "learned": EncodingMethod("table added at the input", "learned"),
    "rope": EncodingMethod("queries and keys rotated", "rope"),
    "alibi": EncodingMethod("fixed linear bias", "alibi"),
    "learned-per-layer": EncodingMethod("table added in every layer", Learned(per_layer=True)),
    "learned-query-key": EncodingMethod("table heard by queries and keys only", Learned(site="query_key")),
    "rope-partial": EncodingMethod("a quarter of the columns rotated", RoPE(partial=0.25)),
    "p-rope": EncodingMethod("the fastest three quarters of the pairs rotated", RoPE(p=0.75)),
    "xpos": EncodingMethod("rotated, and decaying with the distance", "xpos"),
    "t5": EncodingMethod("learned bias of buckets of distances", "t5"),
    "kerple-log": EncodingMethod("learned logarithmic bias", Kerple(form="logarithmic")),
    "kerple-power": EncodingMethod("learned power bias", Kerple(form="power")),
    "fire": EncodingMethod("learned bias, relative to the position of the query", _fire),
    "sandwich": EncodingMethod("fixed bias, a sum of waves", "sandwich"),
    "shaw": EncodingMethod("vectors of clipped distances at keys and values", "shaw"),
    "shaw-keys": EncodingMethod("vectors of clipped distances at keys only", Shaw(values=False)),
    "transformer-xl": EncodingMethod("content meets projected waves of the distance", "transformer-xl"),
    "distance-aware": EncodingMethod("scores multiplied by a gate of the distance", "distance-aware"),
    "distance-aware-added": EncodingMethod("the gate added to the score", DistanceAware(gate="added")),
    "distance-aware-signed": EncodingMethod("the gate, without ReLU", DistanceAware(relu=False)),
    "distance-aware-added-signed": EncodingMethod(
        "the gate added, without ReLU", DistanceAware(gate="added", relu=False)
    ),
    "cope": EncodingMethod("positions counted by gates on the text", "cope"),
    "seqpe": EncodingMethod("digit strings, a term of the score", "seqpe", shift_steps, seqpe_losses),
    "seqpe-input": EncodingMethod(
        "digit strings added at the input",
        SeqPE(site="input"),
        shift_steps,
        lambda size: seqpe_losses(size, size.width),
    ),
    "sinusoidal-randomised": EncodingMethod("sinusoid at random positions", "sinusoidal", _drawn),
    "rope-randomised": EncodingMethod("RoPE at random positions", "rope", _drawn),
}
"""In the order of tables: the spine, then by the site at which positions act. An encoding that none of them
has says why, `Encoding.left_out`."""

DEFAULT_RATE = 4e-3
LEARNING_RATES: dict[str, dict[str, float]] = {
    "laptop": {
        "learned-per-layer": 2e-3,
        "learned-query-key": 8e-3,
        "rope-partial": 4e-3,
        "p-rope": 2e-3,
        "xpos": 4e-3,
        "t5": 8e-3,
        "kerple-log": 4e-3,
        "kerple-power": 4e-3,
        "fire": 4e-3,
        "sandwich": 4e-3,
        "shaw": 4e-3,
        "shaw-keys": 4e-3,
        "transformer-xl": 4e-3,
        "distance-aware": 4e-3,
        "distance-aware-added": 4e-3,
        "distance-aware-signed": 4e-3,
        "distance-aware-added-signed": 4e-3,
        "cope": 2e-3,
        "seqpe": 2e-3,
        "seqpe-input": 2e-3,
        "sinusoidal-randomised": 4e-3,
        "rope-randomised": 4e-3,
    }
}
"""The rate of each method outside the spine: the best of `encoding_screen` on the validation text of the
profile, as `screening.best_rates` gives it. A profile without an entry takes the laptop's, and without
that the middle one; a test asks for an entry as soon as the profile's screening is published."""


def learning_rate(profile: str, method: str) -> float:
    """The rate of a method in the runs of a profile."""
    if method in SPINE:
        return in_window.learning_rate(profile, method)
    return screened_rate(LEARNING_RATES, profile, method, DEFAULT_RATE)


def run_of(
    experiment: str, profile: str, name: str, seed: int, rate: float, steps: int | None = None
) -> lm.LanguageModelRun:
    """The run of a method: that of the dense model without an encoding, with what the method sets replaced.

    Raises:
        ValueError: an unknown method.
    """
    if name not in METHODS:
        raise ValueError(f"unknown method {name!r}; use one of {', '.join(METHODS)}")
    method, size = METHODS[name], lm.SIZES[profile]
    run = lm.LanguageModelRun.of(experiment, profile, "none", seed, rate, steps)
    encoding = method.encoding(size) if callable(method.encoding) else method.encoding
    positions = None if method.positions is None else method.positions(size)
    auxiliary = None if method.auxiliary is None else method.auxiliary(size)
    return replace(
        run,
        method=name,
        model=replace(run.model, encoding=encoding),
        training=replace(run.training, positions=positions, auxiliary=auxiliary),
    )
