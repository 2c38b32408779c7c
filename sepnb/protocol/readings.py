"""Every pass that a probe makes, and nothing that it concludes: losses in bits, `[n, …]`, one row a window.

The text is cut into n windows of the longest length. Letters: L the trained length, N the longest length that
is read, V the vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import log
from typing import Any

import numpy as np
import torch

from ..evaluation.context import of_another_document, with_another_past
from ..evaluation.losses import evaluate, sliding
from ..training.losses import target_losses
from .adapters import Reader
from .texts import counted, windows

WINDOWS = 30
"""The fewest windows of the longest length that a verdict is made of."""

LOGITS, TOKENS = 2**25, 2**15
"""In one pass there are at most so many logits, 128 MiB of float32, and tokens; a window at least."""

STRIDES = 16
"""The sliding window moves on by L / 16 tokens, so that each has 15/16 of L to L tokens of context: 16 passes
over a text, where stride 1 would take L."""

NEAR = 8
"""Near context is what lies between L / 8 tokens and the beginning of a window of L."""


@dataclass(frozen=True)
class Plan:
    """What is read, checked before anything is.

    Args:
        tokens: `[n, times[-1] * L + 1]`.
        length: L.
        times: the lengths that are judged, in trained lengths, rising from 1.
        reach: the largest of these that the model can read at all, in tokens.
    """

    tokens: np.ndarray
    length: int
    times: tuple[int, ...]
    reach: int

    @property
    def borders(self) -> list[int]:
        """[0, L, …]: between neighbours lie the stretches that are judged."""
        return [0, *(self.length * k for k in self.times if self.length * k <= self.reach)]

    @property
    def longest(self) -> int:
        return self.times[-1] * self.length

    @property
    def text(self) -> np.ndarray:
        """All tokens that are read, in their order."""
        return np.concatenate([self.tokens[:, :-1].ravel(), self.tokens[-1, -1:]])

    @property
    def start(self) -> int:
        """Where a window begins far out. It is no multiple of L, at which a table that is repeated would be
        as it was trained."""
        return self.longest - self.length - (self.length // 3 if self.times[-1] > 2 else 0)

    @property
    def last(self) -> slice:
        """The places of the farthest stretch."""
        return slice(*self.borders[-2:])

    @property
    def stride(self) -> int:
        return max(1, self.length // STRIDES)

    @property
    def recent(self) -> int:
        """Tokens that all keep where the older ones of a trained window are replaced."""
        return max(1, self.length // NEAR)

    @property
    def half(self) -> int:
        return self.length // 2


@dataclass
class Readings:
    """Losses in bits of the tokens of every window, by reading.

    Attributes:
        native, slid: `[n, reach]`, all keys visible and through the sliding window.
        replaced, intact: `[n, last stretch]`, where all but the last L to 2L - 1 tokens are of another
            passage, and the same passes as they are.
        near: `[n, L/2]`, the gain from context that is not the nearest, inside the trained length.
        axes: by name `[n]`, the cost of an unseen index, length or distance.
        unread, past_table: by name of an axis, why it is not there: positions cannot be given, a table ends.
        reference, reference_slid: `[n, L]` and `[n, last stretch]`, of the reference; None without one.
        follows_length: whether what the model says depends on how long the text will be.
        text: bits that a count of the tokens of the text itself needs for one of them.
    """

    native: np.ndarray
    slid: np.ndarray
    near: np.ndarray
    text: float
    follows_length: bool
    replaced: np.ndarray | None = None
    intact: np.ndarray | None = None
    axes: dict[str, np.ndarray] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    past_table: dict[str, str] = field(default_factory=dict)
    reference: np.ndarray | None = None
    reference_slid: np.ndarray | None = None


def read(
    reader: Reader,
    reference: Reader | None,
    plan: Plan,
    *,
    device: str,
    progress: Callable[[int, int], None] | None = None,
) -> Readings:
    """Make every reading. `progress` is called with the tokens read and the estimate of all.

    Raises:
        ValueError: a token outside of the vocabulary, or a model that looks at later tokens.
    """
    with reader.evaluating():
        first_look(reader, plan, device, plan.reach)
        follows = _follows_length(reader, plan, device)
        total = _tokens(plan, reader, reference, follows)
        read_before = reader.read

        def report(offset: int) -> Callable[[int], None]:
            return lambda so_far: progress(min(so_far - offset, total), total)

        reader.on_read = None if progress is None else report(read_before)
        found = _of_the_model(reader, plan, device, follows)
    if reference is not None:
        done = reader.read - read_before
        with reference.evaluating():
            first_look(reference, plan, device, plan.length)
            reference.on_read = None if progress is None else report(reference.read - done)
            found.reference = _losses(reference, plan.tokens[:, : plan.length + 1], device)
            slid = _slid(reference, plan, device)
            found.reference_slid = slid[:, plan.last]
    if progress is not None:
        progress(total, total)
    return found


def _of_the_model(reader: Reader, plan: Plan, device: str, follows: bool) -> Readings:
    length, tokens = plan.length, plan.tokens[:, : plan.reach + 1]
    native = np.empty((len(tokens), 0))
    for stop in plan.borders[1:] if follows else plan.borders[-1:]:
        own = _losses(reader, tokens[:, : stop + 1], device)
        native = np.concatenate([native, own[:, native.shape[1] :]], axis=1)
    inside = tokens[:, : length + 1]
    near = _replaced(reader, inside, device, recent=plan.recent, stride=plan.recent)
    found = Readings(
        native,
        _slid(reader, plan, device),
        (near - native[:, :length])[:, plan.half :],
        counted(plan.tokens),
        follows,
    )
    if plan.reach > length:
        apart = {"recent": length, "stride": length}
        found.replaced = _replaced(reader, tokens, device, **apart)[:, plan.last]
        found.intact = native[:, plan.last]
        if follows:  # passes that end where those with a replaced past do
            found.intact = _replaced(reader, tokens, device, foreign=False, **apart)[:, plan.last]
    _axes(reader, plan, device, found)
    return found


def _axes(reader: Reader, plan: Plan, device: str, found: Readings) -> None:
    """Each axis by itself, where the model reads at positions that it is given."""
    length, half, quarter = plan.length, plan.half, plan.half // 2
    if not reader.takes_positions:
        found.unread = dict.fromkeys(("index", "length", "distance"), reader.why_not)
        return
    far = plan.start if reader.limit is None else min(plan.start, reader.limit - length)
    if far < length:
        rows = (
            f"its table ends at position {reader.limit - 1}, and no whole window of unseen ones lies before"
        )
        found.past_table = {"index": rows, "distance": rows}
    else:
        pieces = windows(plan.text, length)

        def cost(changed: np.ndarray, same: np.ndarray) -> np.ndarray:
            return (changed - same).reshape(len(plan.tokens), -1).mean(1)

        moved = _losses(reader, pieces, device, far + np.arange(length))
        found.axes["index"] = cost(moved, _losses(reader, pieces, device))
        # The older half of a window is moved far back. The recent half stays where it is, at far indices in
        # both readings, and in the other one the older half is not there.
        gap = np.concatenate([np.arange(half), far + np.arange(half, length)])
        apart = _losses(reader, pieces, device, gap)[:, half + quarter :]
        alone = _losses(reader, pieces[:, half:], device, far + np.arange(half, length))[:, quarter:]
        found.axes["distance"] = cost(apart, alone)
    # More keys than ever at trained positions: the recent ones as they are, all older ones, several at a
    # position, in the first quarter. Every scored token has a quarter of recent ones before it.
    older = np.arange(plan.longest - 3 * quarter) * (length - 3 * quarter) // (plan.longest - 3 * quarter)
    crowded = np.concatenate([older, np.arange(length - 3 * quarter, length)])
    many = _losses(reader, plan.tokens, device, crowded)[:, -2 * quarter :]
    few = _losses(reader, plan.tokens[:, plan.longest - length :], device)[:, -2 * quarter :]
    found.axes["length"] = (many - few).mean(1)


def first_look(reader: Reader, plan: Plan, device: str, reach: int) -> None:
    """Check on one window, up to `reach`, that the model answers and looks at no later token; find out
    whether it hears positions.

    Raises:
        ValueError: a token outside of the vocabulary, or a model that looks at later tokens.
    """
    length, one = plan.length, plan.tokens[:1, : plan.length + 1]
    reader(torch.from_numpy(one[:, :-1].copy()).to(device))  # tells the vocabulary
    known_tokens(reader, plan.tokens)
    for stop in (border for border in plan.borders[1:] if border <= reach):
        _refuse_looking_ahead(reader, plan.tokens, stop, device)
    whole = _losses(reader, one, device)
    part = _losses(reader, one[:, : plan.half + 1], device)
    if abs(part - whole[:, : plan.half]).mean() > reader.alike:
        raise ValueError(
            f"{reader.label} says something else of the first {plan.half} tokens when {length} are read: it "
            f"looks at later tokens, or its rule changes inside the trained length; a causal model is needed"
        )
    if not reader.takes_positions:
        return
    given = _losses(reader, one, device, np.arange(length))
    try:
        spread = _losses(reader, one[:, : plan.half + 1], device, 2 * np.arange(plan.half))
    except ValueError as error:
        reader.takes_positions, reader.why_not = False, f"it refuses positions that are spread: {error}"
        return
    rounding = abs(_losses(reader, one[:, : plan.half + 1], device) - part).max()
    if abs(given - whole).mean() > reader.alike:
        reader.takes_positions, reader.why_not = (
            False,
            "at positions from 0 on its losses are not those without positions",
        )
    elif abs(spread - part).max() <= 4 * rounding:
        reader.takes_positions = False
        reader.why_not = "the positions that it is given change nothing in it"


def _refuse_looking_ahead(reader: Reader, windows: np.ndarray, stop: int, device: str) -> None:
    """Exchange the tokens of a text of length `stop` from some place on: no prediction before it may change.
    Both texts have the same length, so that a rule which follows the length has no effect either."""
    known = np.unique(windows)
    text = windows[0, : stop + 1]
    others = known[(np.searchsorted(known, text) + 1) % len(known)]

    def bits(tokens: np.ndarray) -> torch.Tensor:
        given, asked = (torch.from_numpy(array[None].copy()).to(device) for array in (tokens, text[1:]))
        return target_losses(reader, given, asked)[0] / log(2)

    before = bits(text[:-1])
    for cut in (at + one for at in (stop // 2, stop - stop // 4, stop - 2) for one in (0, 1)):
        after = bits(np.concatenate([text[:cut], others[cut:-1]]))
        if (most := float((after - before)[:cut].abs().max())) > reader.same:
            raise ValueError(
                f"{reader.label} looks at later tokens: of {stop}, what stands after the first {cut} changes "
                f"what it expects before, by up to {most:.2g} bits; give a causal model"
            )


def _follows_length(reader: Reader, plan: Plan, device: str) -> bool:
    """Whether the losses of the first stretch differ in the longest text that can be read; if so, each length
    is read by itself."""
    one = plan.tokens[:1]
    short = _losses(reader, one[:, : plan.length + 1], device)
    long = _losses(reader, one[:, : plan.reach + 1], device)[:, : plan.length]
    return bool(abs(long - short).mean() > reader.alike)


def known_tokens(reader: Reader, tokens: np.ndarray) -> None:
    """Refuse tokens outside the vocabulary of a model, if its size is known."""
    if reader.vocab_size is not None and (highest := int(tokens.max())) >= reader.vocab_size:
        raise ValueError(
            f"the text holds token {highest}, {reader.label} knows those below {reader.vocab_size}; give "
            f"text in the tokens of this model"
        )


def _losses(
    reader: Reader, tokens: np.ndarray, device: str, positions: np.ndarray | None = None
) -> np.ndarray:
    """Bits `[n, N]` of windows `[n, N+1]`, as many a pass as memory allows."""
    size = _at_once(reader, tokens.shape[1] - 1)
    return evaluate(reader, tokens, positions=positions, device=device, batch_size=size).bits


def _slid(reader: Reader, plan: Plan, device: str) -> np.ndarray:
    """Through a window of L that moves on by the stride, [n, reach]; some windows at a time, as the passes of
    all of them would be a large array."""
    how = {"window": plan.length, "stride": plan.stride, "device": device}
    size = _at_once(reader, plan.length)
    pieces = np.array_split(plan.tokens[:, : plan.reach + 1], max(1, len(plan.tokens) // WINDOWS))
    return np.concatenate([sliding(reader, piece, batch_size=size, **how).bits for piece in pieces])


def _replaced(
    reader: Reader, tokens: np.ndarray, device: str, *, recent: int, stride: int, foreign: bool = True
) -> np.ndarray:
    """Bits `[n, N]` where all but the recent past is that of the window half the text away, or its own."""
    halves = np.arange(len(tokens)) * 2 // len(tokens)
    other = of_another_document(tokens, halves) if foreign else tokens
    how: dict[str, Any] = {"device": device, "batch_size": _at_once(reader, tokens.shape[1] - 1)}
    kept = {"recent": recent, "stride": stride}
    return with_another_past(reader, tokens, halves, lambda count: other[:, :count], **kept, **how).bits


def _at_once(reader: Reader, tokens: int) -> int:
    """Windows of so many tokens in one pass."""
    return max(1, min(LOGITS // (tokens * (reader.vocab_size or 1)), TOKENS // tokens))


def _tokens(plan: Plan, reader: Reader, reference: Reader | None, follows: bool) -> int:
    """How many tokens all readings take, for an estimate of the time."""
    length, reach = plan.length, plan.reach
    slid = length + -(-(reach - length) // plan.stride) * length
    past = _passes(length, plan.recent) + (1 + follows) * (_passes(reach, length) if reach > length else 0)
    native = sum(plan.borders) if follows else reach
    axes = (7 * plan.longest) // 2 + length + plan.longest if reader.takes_positions else 0
    own = native + slid + past + axes
    return len(plan.tokens) * (own + (length + slid if reference is not None else 0))


def _passes(length: int, recent: int) -> int:
    """Tokens of one window that is read anew up to the end of each stretch of `recent`."""
    return sum(min(stop, length) for stop in range(recent, length + recent, recent))
