"""Evaluation protocols: how one trained model reads a text longer than its trained length.

What is unseen in a protocol has up to three sides:

- *index*: a position that was never trained is encoded. RoPE and ALiBi see differences only and never have
  this side; neither have `clamp`, `wrap` and `reflect`, which give every position a trained row.
- *length*: a query sees more keys than in training. A window takes this side away.
- *distance*: a difference of positions is encoded that was never trained. A learned table holds no
  differences, so it does not have this side; nor has a sinusoid whose rows are clamped or wrapped.

A text of the trained length that begins far out has the index alone. It begins at a multiple of the trained
length: there `wrap` is the model inside its window bit for bit, and `fourier`, which repeats after the
trained length too, nearly so. How well they read it is no evidence that they continue a table.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..encodings import Encoding
from ..models import LanguageModel
from ..training.config import TrainingConfig
from ..training.positions import PositionSampler
from .losses import AtDrawnPositions, Losses, evaluate, sliding

SCOPES = ("all", "part", "tight")
"""Which of a run's long windows a protocol scores; each scope lies within the one before it. `tight` is what
the sliding-window baseline at stride 1 can afford."""

SINKS = 4
"""First tokens that stay visible to every query, as many as Xiao et al. (2024) found to suffice."""

SLIDING_WINDOW = "oracle"
"""The sliding-window baseline at stride 1, to which `gap` refers, as records call it."""

TRAINED_ROWS = ("clamp", "wrap", "reflect")
"""Controls that give every position the embedding of a trained one."""


@dataclass(frozen=True)
class Protocol:
    """One rule under which a trained model reads.

    Args:
        id: short name, unique among the protocols of a method.
        scope: one of `SCOPES`.
        extrapolator, form, options, log_scale: as in `LanguageModel.extended`.
        window, sinks: each query sees the last `window` keys and the first `sinks`, indices kept. Of a
            sliding window: the most bytes ever read at once, and how many of them are the first of the text.
        start: index of the first byte. A protocol that does not start at 0 reads one trained length.
        stride: given for a sliding window only, the bytes that each of its passes scores.
        drawn, draws: what draws the positions of every window or pass (None: from `start` on), and how often
            each is read at drawn positions; its losses are the mean.
    """

    id: str
    scope: str = "part"
    extrapolator: str | None = None
    form: str = "corrected"
    options: tuple[tuple[str, Any], ...] = ()
    window: int | None = None
    sinks: int = 0
    start: int = 0
    stride: int | None = None
    log_scale: bool = False
    drawn: PositionSampler | None = None
    draws: int = 1

    def __post_init__(self) -> None:
        if self.drawn is not None and self.start:
            raise ValueError(
                f"start is {self.start}, and drawn positions have no start; leave out one of them"
            )

    @property
    def described(self) -> str:
        """Every setting in one line, for a record."""
        parts = [f"{self.extrapolator} {self.form}" if self.extrapolator else "native", f"on {self.scope}"]
        parts += [f"{name}={value}" for name, value in self.options]
        for rule in fields(self)[5:]:  # what follows the options
            if (value := getattr(self, rule.name)) != rule.default:
                parts.append(f"{rule.name}={value}")
        return ", ".join(parts)

    def losses(self, model: LanguageModel, windows: np.ndarray, documents: np.ndarray, **how: Any) -> Losses:
        """Score windows `[n, N+1]` under this rule; one that does not start at 0 is given windows `[n, L+1]`.
        `how` is device, precision and batch_size, as in `evaluate`."""
        changed = self.extrapolator is not None or self.window is not None or self.log_scale
        if changed and self.stride is None:
            model = model.extended(
                self.extrapolator,
                self.form,
                window=self.window,
                sinks=self.sinks,
                log_scale=self.log_scale,
                **dict(self.options),
            )
        readers = [model]
        if self.drawn is not None:
            readers = [AtDrawnPositions(model, self.drawn, draw) for draw in range(self.draws)]
        if self.stride is not None:
            how |= {"window": self.window, "stride": self.stride, "sinks": self.sinks}
        elif self.start:
            how["positions"] = self.start + np.arange(windows.shape[1] - 1)
        score = evaluate if self.stride is None else sliding
        found = [score(reader, windows, documents, **how) for reader in readers]
        return Losses(np.mean([losses.bits for losses in found], axis=0), found[0].documents)


def trained_sides(training: TrainingConfig) -> tuple[int, int]:
    """Positions below the first can occur in a training, in its texts or in its auxiliary loss; differences
    of positions below the second in its texts."""
    length, drawn = training.length, training.positions
    parts = [part for part in (drawn, training.auxiliary) if part is not None]
    indices = max([length, *(part.trained_indices(length) for part in parts)])
    return indices, length if drawn is None else max(length, drawn.trained_distances(length))


def unseen_sides(
    encodings: Iterable[Encoding], *, index: bool, length: bool, distance: bool, reach: int | float
) -> str:
    """The sides of a text or a grid that training never showed, such as "index+length", or "none".

    An encoding that does not read a side never meets a new one.

    Args:
        encodings: of the model.
        index: whether there are positions that training did not have.
        length: whether a query sees more keys than in training.
        distance: whether there are differences of positions that training did not have.
        reach: the least of these; an encoding that saturates at a smaller one has met them.
    """
    encodings = tuple(encodings)
    sides = {
        "index": index and any(encoding.reads_index for encoding in encodings),
        "length": length,
        "distance": distance and any(encoding.saturates_at >= reach for encoding in encodings),
    }
    return "+".join(name for name, there in sides.items() if there) or "none"


def unseen(
    reading: Protocol,
    encodings: Iterable[Encoding],
    training: TrainingConfig,
    *,
    longest: int,
    trained: tuple[int, int] | None = None,
) -> str:
    """The sides of a protocol that training never showed; a window that slides shows none.

    Args:
        encodings, training: of the model.
        longest: of the texts that are read.
        trained: positions and differences below these can occur in training; by default `trained_sides`.
    """
    if reading.stride is not None:
        return "none"
    indices, distances = trained_sides(training) if trained is None else trained
    read = training.length if reading.start else longest
    elsewhere = reading.extrapolator not in TRAINED_ROWS  # else every position has a row that was trained
    return unseen_sides(
        encodings,
        index=elsewhere and reading.start + read > indices,
        length=read > training.length and reading.window is None,
        distance=elsewhere and read > distances and (reading.window is None or reading.sinks > 0),
        reach=distances,
    )


def sliding_windows(length: int) -> tuple[Protocol, ...]:
    """The same model through a sliding window of the trained length, the baseline of every other protocol: at
    stride 1 on few windows, and at half the trained length, which gives a byte L/2 + 1 to L bytes of context.
    """
    return (
        Protocol(SLIDING_WINDOW, "tight", window=length, stride=1),
        Protocol("oracle-coarse", "all", window=length, stride=length // 2),
        Protocol("oracle-coarse-sinks", "part", window=length, stride=length // 2, sinks=SINKS),
    )


def masks(length: int) -> dict[str, dict[str, int]]:
    """The two masks over keys by their names, as settings of a `Protocol`. With either a query sees `length`
    keys in all, sinks among them."""
    return {
        "window": {"window": length},
        "window-sinks": {"window": length - SINKS, "sinks": SINKS},
    }


def needed(extrapolator: str, longest: int) -> tuple[tuple[str, Any], ...]:
    """The options without which an extrapolator cannot work."""
    return (("length", longest),) if extrapolator == "interpolate" else ()
