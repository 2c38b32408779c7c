"""Texts whose every token is known to be easy or hard, and models that are written and not trained."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

L, TIMES = 16, (1, 2, 4)
N = L * TIMES[-1]
EVERY = 8
"""Tokens below EVERY are drawn; each is followed by its partner, EVERY higher."""

SURE = 12.0
"""The logit of a token that a model is sure of, and of any other 0."""


def repeating(period: int, windows: int = 30, seed: int = 0) -> np.ndarray:
    """Tokens of which every second is drawn and the others follow from it; what is drawn comes again after
    `period` tokens, mostly."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, EVERY, windows * N // 2 + 1)
    again = rng.random(len(drawn)) < 0.9
    for at in range(period // 2, len(drawn)):
        if again[at]:
            drawn[at] = drawn[at - period // 2]
    return np.stack([drawn, drawn + EVERY], axis=1).ravel()[: windows * N + 1]


def looking_back(period: int | None) -> Callable[[Tensor], Tensor]:
    """A model that knows partners, and names of a drawn token the one that stood `period` before it, if it
    sees that; of nothing it knows that one is drawn."""

    def model(tokens: Tensor) -> Tensor:
        rows, length = tokens.shape
        logits = torch.zeros(rows, length, 2 * EVERY)
        drawn = tokens < EVERY
        logits[..., EVERY:] -= SURE * (~drawn)[..., None]  # next comes a drawn one
        logits.scatter_add_(2, (tokens + EVERY).clamp(max=2 * EVERY - 1)[..., None], SURE * drawn[..., None])
        if period is not None and length >= period:
            before = tokens[:, : length - period + 1]  # the next token's place, a period earlier
            at = logits[:, period - 1 :]
            at.scatter_add_(2, before[..., None], 0.4 * SURE * (~drawn[:, period - 1 :])[..., None])
        return logits

    return model


def failing(where: Callable[[Tensor], Tensor], period: int = 4) -> Callable[..., Tensor]:
    """A model that looks back, and is sure of wrong tokens at the places where `where` of its positions `[N]`
    says so."""
    right = looking_back(period)

    def model(tokens: Tensor, positions: Tensor | None = None) -> Tensor:
        positions = torch.arange(tokens.shape[1]) if positions is None else positions
        heard = 1 - 1e-4 * (positions - positions[0])  # a little: else they would change nothing
        return right(tokens) * (torch.where(where(positions), -0.2, 1.0) * heard)[None, :, None]

    return model
