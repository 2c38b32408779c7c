"""The book's evaluation protocols and verdicts on any causal language model, in one call.

::

    card = probe(model, text, trained_length=1024)  # a callable, a LanguageModel, or hf(model)
    card.survives.verdict, card.uses.verdict
    print(card.to_markdown())
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import validation
from .adapters import Reader, hf, reader
from .readings import WINDOWS, Plan, known_tokens, read
from .texts import as_tokens, windows

with validation.brought_by("run"):
    from .card import Card, card
    from .verdicts import Verdict

__all__ = ["Card", "Reader", "Verdict", "hf", "probe"]

SHORTEST = 16
"""The shortest trained length: its parts, an eighth and a quarter, must hold some tokens."""

FARTHEST_TIMES = 2**16


def probe(
    model: Any,
    text: Any,
    *,
    trained_length: int,
    times: Sequence[int] = (1, 2, 4, 8),
    reference: Any = None,
    device: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Card:
    """Does a causal language model read texts longer than those of its training, does it use what lies far
    back, how well, and at what price?

    The text is cut into windows of the longest length, as many as it holds: more text narrows the intervals
    and takes longer. Nothing is trained and no weight is changed; the model comes back in the mode it was in.

    Args:
        model: a callable (tokens `[B, N]`, positions=None) -> logits `[B, N, V]`, a `LanguageModel`, or
            `hf(model)`. Positions are int64 `[N]`; without them the axes are *not judged*.
        text: the tokens of the model, integers `[N]`, enough for 30 windows of the longest length, in their
            order and best of one kind; of text that the model was not trained on.
        trained_length: tokens of its training texts, at least 16.
        times: lengths that are judged, in trained lengths, rising; 1 is always among them.
        reference: another model that reads the same tokens, for quality and price, such as the same one
            without what is to make it read on. It needs to read the trained length only.
        device: where to compute; by default where the model is. Models are moved there, and stay.
        progress: called with the tokens read so far and the estimate of all.

    Returns:
        A `Card`. Its intervals and tests are over windows: they describe the noise of evaluating this one
        checkpoint, and say nothing of another training.

    Raises:
        TypeError, ValueError: an argument of another form, a text that is too short or holds tokens that a
            model does not know, before anything is read; and a model that returns something else than finite
            logits, or looks at later tokens.
    """
    if isinstance(trained_length, np.integer):
        trained_length = int(trained_length)
    length = validation.whole("trained_length", trained_length, SHORTEST, validation.FARTHEST)
    grown = rising(times)
    longest = grown[-1] * length
    readers = [reader(model), *([] if reference is None else [reader(reference)])]
    tokens = as_tokens(text)
    if (held := max(0, len(tokens) - 1) // longest) < WINDOWS:
        raise ValueError(
            f"the text has {len(tokens)} tokens, which is {held} windows of {longest}; {WINDOWS} windows "
            f"need {WINDOWS * longest + 1}: give more text, or lower times or trained_length"
        )
    for one in readers:
        if one.limit is not None and one.limit < length:
            raise ValueError(
                f"{one.label} has a table of {one.limit} positions, fewer than trained_length, which is "
                f"{length}; give the length of its training texts"
            )
        known_tokens(one, tokens)
    first = readers[0]
    where = first.device if device is None else validation.device("device", device)
    for one in readers:
        if one.module is not None and one.device != where:
            one.module.to(where)
    readable = [k for k in grown if first.limit is None or k * length <= first.limit]
    plan = Plan(windows(tokens, longest), length, grown, readable[-1] * length)
    found = read(first, readers[1] if len(readers) > 1 else None, plan, device=where, progress=progress)
    return card(plan, found, readers, where)


def rising(times: Sequence[int]) -> tuple[int, ...]:
    """The times, 1 before them where it is missing."""
    if isinstance(times, str | bytes) or not isinstance(times, Sequence):
        raise TypeError(
            f"times must be a sequence of ints, such as (1, 2, 4, 8); got {validation.shown(times)}"
        )
    for one in times:
        validation.whole("times", one, 1, FARTHEST_TIMES)
    if list(times) != sorted(set(times)) or not times or times[-1] == 1:
        raise ValueError(
            f"times is {validation.shown(times)}; give rising ints, of which the last is above 1"
        )
    return tuple(times) if times[0] == 1 else (1, *times)
