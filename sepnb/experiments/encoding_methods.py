"""The dense causal methods that differ in how they tell positions: those of the spine, and all others.

The model, the schedule and the text of a run are those of `language_modelling`; a method sets the encoding,
and with it what belongs to it: a randomised one the positions at which it trains and reads, SeqPE its shift
steps and its two losses. Options are those of the sources unless a line here says otherwise.

RoPE trained behind a sliding window is not among them: a window is a mask and no way to tell positions. Any
of these models can be trained with one, `TransformerConfig(window=...)`.

The experiment `encodings` puts all of them into one table: inside the trained length, and by position to
eight times of it. Three seeds show the size of a difference and leave comparisons undecided. Each reads two
of the six blocks of `extrapolation`: together they read what six seeds read there.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..encodings import DistanceAware, Fire, Kerple, Learned, RoPE, Shaw
from ..evaluation.long_windows import Beyond, blocks_of
from ..evaluation.protocols import SLIDING_WINDOW, Protocol, masks, needed, sliding_windows
from ..extrapolators import CONTROLS
from ..seqpe import SeqPE
from ..seqpe.sampling import CandidateSampler, WindowSampler
from ..training.positions import RandomPositions
from ..training.seqpe_losses import SeqPELosses
from ..training.shifts import ShiftSteps
from . import language_modelling as lm
from . import methods
from .base import SHOWN
from .extrapolation import BEYOND
from .in_window import SWEEPS
from .long_windows import LongTexts
from .methods import Method, listed, run_of
from .run import Measure, Run
from .sweep import STEPS, Sweep
from .texts import TextExperiment

SPINE = ("none", "sinusoidal", "learned", "rope", "alibi")
"""The dense methods of `language_modelling`; their rates are those of `lr_screen`."""

RANDOM_POSITIONS = 32
"""Random positions lie below this many trained lengths: four times the longest text that is read, so that a
draw for that text still has gaps. So do those of SeqPE's shift steps and losses; the released program trains
at 512 and draws below 20,000, 39 times of it."""


def _fire(size: lm.ModelSize) -> Fire:
    """With the threshold of the release, above the trained length, training would never show a bias that is
    measured against the position of its query: it starts at a quarter of that length (our choice)."""
    return Fire().for_length(size.length / 4)


def shift_steps(size: lm.ModelSize) -> ShiftSteps:
    """A tenth of the steps is read at a random offset, one for the whole batch."""
    return ShiftSteps(RANDOM_POSITIONS * size.length)


def seqpe_losses(size: lm.ModelSize, columns: int = SeqPE.width) -> SeqPELosses:
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


DRAWN = {"positions": lambda size: RandomPositions(RANDOM_POSITIONS * size.length)}
SHIFTED = {"positions": shift_steps}


def _of(name: str, says: str, encoding: Any, training: Mapping[str, Any] | None = None) -> Method:
    """The dense model with another encoding, and with the training that belongs to it."""
    return Method(name, says, "none", {"encoding": encoding}, training or {})


METHODS: dict[str, Method] = listed(
    *(methods.SPINE[name] for name in SPINE),
    _of("learned-per-layer", "table added in every layer", Learned(per_layer=True)),
    _of("learned-query-key", "table at queries and keys only", Learned(site="query_key")),
    _of("rope-partial", "a quarter of the columns rotated", RoPE(partial=0.25)),
    _of("p-rope", "the fastest three quarters of the pairs rotated", RoPE(p=0.75)),
    _of("xpos", "rotated, and decaying with the distance", "xpos"),
    _of("t5", "learned bias of buckets of distances", "t5"),
    _of("kerple-log", "learned logarithmic bias", Kerple(form="logarithmic")),
    _of("kerple-power", "learned power bias", Kerple(form="power")),
    _of("fire", "learned bias, relative to the position of the query", _fire),
    _of("sandwich", "fixed bias, a sum of waves", "sandwich"),
    _of("shaw", "vectors of clipped distances at keys and values", "shaw"),
    _of("shaw-keys", "vectors of clipped distances at keys only", Shaw(values=False)),
    _of("transformer-xl", "content meets projected waves of the distance", "transformer-xl"),
    _of("distance-aware", "scores multiplied by a gate of the distance", "distance-aware"),
    _of("distance-aware-added", "the gate added to the score", DistanceAware(gate="added")),
    _of("distance-aware-signed", "the gate, without ReLU", DistanceAware(relu=False)),
    _of("distance-aware-added-signed", "added, without ReLU", DistanceAware(gate="added", relu=False)),
    _of("cope", "positions counted by gates on the text", "cope"),
    _of("seqpe", "digit strings, a term of the score", "seqpe", SHIFTED | {"auxiliary": seqpe_losses}),
    _of(
        "seqpe-input",
        "digit strings added at the input",
        SeqPE(site="input"),
        SHIFTED | {"auxiliary": lambda size: seqpe_losses(size, size.width)},
    ),
    _of("sinusoidal-randomised", "sinusoid at random positions", "sinusoidal", DRAWN),
    _of("rope-randomised", "RoPE at random positions", "rope", DRAWN),
)
"""In the order of tables: the spine, then by the site at which positions act. An encoding that none of them
has says why, `Encoding.left_out`."""

SCREEN = Sweep(
    name="encoding_screen",
    title="Learning rates of the encodings",
    order=6,
    methods=tuple(
        name for name in METHODS if name not in SPINE and "learned" not in methods.facets(name).encoding
    ),
    smoke=("t5", "rope-randomised"),
    config_of=run_of,
    steps=STEPS,
    whole=(
        *("cope", "seqpe", "seqpe-input"),
        *("sinusoidal-randomised", "rope-randomised"),
    ),
    costs={"smoke": 1.5, "laptop": 80.0},
)
"""Those over the whole schedule begin without knowing the order of the bytes, their tables being zero or the
embeddings of neighbours alike, or meet new positions in every step. Named before any was run. What has a
learned table is in `table_sweep`."""

DRAWS = 4
"""How often a window is read at drawn positions; the mean counts."""


def readings(run: Run, beyond: Beyond) -> tuple[Protocol, ...]:
    """`native` is the encoding's own rule; a table has none, and `clamp`, its last row repeated, takes
    its place, with the four other controls beside it. `-log` multiplies logits by the logarithm of the
    number of keys, `-window` and `-window-sinks` hide keys and keep the indices. The sliding-window
    baselines begin at index 0 in every pass. A randomised model reads at drawn positions, drawn anew for
    each pass of its baselines, and, in `contiguous`, at those from 0 on; it is not asked to begin far
    out. All are read on the same windows: what begins far out has its partner in the first bin of the
    rule.
    """
    length, longest = beyond.length, beyond.longest
    slid = tuple(
        one if one.id == SLIDING_WINDOW else replace(one, scope="part") for one in sliding_windows(length)
    )
    sampler = run.training.positions
    rule = "clamp" if run.model.encodings[0].name == "learned" else "native"
    how = {"extrapolator": rule if rule != "native" else None}
    own = (
        Protocol(rule, **how),
        Protocol(f"{rule}-log", log_scale=True, **how),
        *(Protocol(f"{rule}-{name}", **mask, **how) for name, mask in masks(length).items()),
    )
    if sampler is not None and sampler.at_evaluation:
        own = tuple(replace(reading, drawn=sampler, draws=DRAWS) for reading in own)
        at_drawn = tuple(replace(oracle, drawn=sampler) for oracle in slid)
        return (*at_drawn, *own, Protocol("contiguous"))
    if rule == "clamp":
        own += tuple(
            Protocol(name, extrapolator=name, options=needed(name, longest))
            for name in CONTROLS
            if name != rule
        )
    far = Protocol(f"{rule}-at-{longest // length - 1}x", start=longest - length, **how)
    return (*slid, *own, far)


def measures(run: Run) -> tuple[Measure, ...]:
    """As in `extrapolation`, but at stride 1 half as many novels are read in each of the two blocks."""
    beyond = BEYOND[run.profile]
    beyond = replace(beyond, tight=-(-beyond.tight // 2))
    return lm.INSIDE, LongTexts(beyond, blocks_of(run.seed, 2), readings(run, beyond))


EXPERIMENT = TextExperiment(
    name="encodings",
    title="Every encoding in one table",
    question="""What does each position encoding pay inside the trained length, and what is left of it at
        one to eight times that length?""",
    order=7,
    sweeps=(*SWEEPS, SCREEN),
    methods=tuple(METHODS),
    smoke=("t5", "rope-randomised"),
    seeds=SHOWN,
    costs={"smoke": 3.0, "laptop": 250.0},
    measures=measures,
)
