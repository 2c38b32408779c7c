"""Toeplitz-clamp distillation: far indices shall be scored as the distances of the trained window are.

In an untied model (no cross terms) the score of a sem head is a term of content plus a term of positions,
S_pos. The second is a function of indices alone, so it can be asked for at indices that no text ever had, at
the cost of one pass of the position streams and of no tokens:

- teacher, per layer and head: the best description of S_pos inside the trained length L by the distance
  alone, `f(i - j)`, without gradient;
- student: S_pos at a few indices far out, which shall be `f(min(i - j, L - 1))`: the same at every index,
  and constant past the last trained distance.

A softmax does not see a constant added to a row, so neither does anything here.

Shape letters: H heads, N sampled indices, L trained length.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from .models import Transformer
from .training import AuxiliaryLoss

_STREAM = 2  # beside the seed: separates these draws from those of the bytes and of the positions


def position_logits(transformer: Transformer, positions: Tensor) -> list[Tensor]:
    """S_pos of every layer, `[H, N, N]` each, scaled, of the heads that read content and positions, for int
    positions `[N]`; entries above the diagonal have no meaning.

    Where the pos stream evolves, its heads see the given positions only, and not those between them.

    Raises:
        ValueError: the model is not untied, or its position streams hear the text.
    """
    if transformer.config.reading != "untied":
        raise ValueError(
            f"position logits of their own need query_key='untied', got {transformer.config.reading!r}"
        )
    dtype = next(transformer.parameters()).dtype
    context = transformer.attention_context(positions, positions, dtype)
    made = transformer.position_pass(transformer.codes(positions, dtype), context)
    return [
        block.attention.position_logits(table, context)
        for table, block in zip(made.tables, transformer.blocks, strict=True)
    ]


@lru_cache(maxsize=4)
def _solver(length: int) -> Tensor:
    """Pseudo-inverse of the normal equations of `toeplitz_fit`, the row constants eliminated: `[L, L]`."""
    rows = torch.arange(length, dtype=torch.float64)
    tail = (1 / (rows + 1)).flip(0).cumsum(0).flip(0)  # sum over the rows i >= t of 1/(i + 1)
    latest = torch.maximum(rows[:, None], rows[None, :]).long()
    return torch.linalg.pinv(torch.diag(length - rows) - tail[latest], hermitian=True)


def toeplitz_fit(logits: Float[Tensor, "H L L"]) -> Float[Tensor, "H L"]:
    """The f that minimises the sum over i >= j of (S_ij - r_i - f(i - j))^2, r_i being free.

    Averaging the row-centred logits along each diagonal would be biased: short rows are centred over short
    distances only. This is that average with the bias solved for; logits that are Toeplitz up to constants of
    rows give their f back. It is known up to a constant; the smallest f is returned.
    """
    length = logits.shape[-1]
    rows = torch.arange(length, device=logits.device)
    distance = rows[:, None] - rows
    visible = distance.T <= 0  # of row i, the distances t <= i
    by_distance = logits.gather(-1, distance.clamp(min=0).expand_as(logits)).double() * visible
    centred = (by_distance - by_distance.sum(-1, keepdim=True) / (rows[:, None] + 1)) * visible
    return (centred.sum(-2) @ _solver(length).to(logits.device)).to(logits.dtype)


def clamp_loss(
    logits: Float[Tensor, "H N N"], positions: Tensor, teacher: Float[Tensor, "H L"]
) -> Float[Tensor, ""]:
    """Mean over i >= j of (S_ij - f(min(i - j, L - 1)))^2, each row's mean difference taken out.

    Args:
        logits: S_pos at `positions`.
        positions: int `[N]`, not falling.
        teacher: f, of `toeplitz_fit`.
    """
    n = len(positions)
    distance = (positions[:, None] - positions).clamp(0, teacher.shape[-1] - 1)
    visible = torch.ones(n, n, dtype=torch.bool, device=logits.device).tril()
    difference = (logits - teacher[:, distance]) * visible
    counts = torch.arange(1, n + 1, device=logits.device, dtype=logits.dtype)
    centred = (difference - difference.sum(-1, keepdim=True) / counts[:, None]) * visible
    return centred.square().sum() / (visible.sum() * len(logits))


@dataclass(frozen=True)
class ToeplitzClamp(AuxiliaryLoss):
    """The loss of a step: `clamp_loss` at freshly drawn indices, its mean over the layers, times `weight`.

    Args:
        weight: of this loss beside that of the tokens, in nats.
        reach: the indices lie within this many positions; the distances to the last of them are log-uniform.
        farthest: they begin at a log-uniform index in [1, `farthest`).
        samples: how many indices.

    Raises:
        ValueError: a weight that is not above 0, or a count that leaves nothing to draw.
    """

    name: ClassVar[str] = "toeplitz-clamp"

    weight: float
    reach: int
    farthest: int = 100_000
    samples: int = 64

    def __post_init__(self) -> None:
        if not self.weight > 0:
            raise ValueError(f"weight is {self.weight}; it must be above 0")
        for field in ("reach", "farthest", "samples"):
            if getattr(self, field) < 2:
                raise ValueError(f"{field} is {getattr(self, field)}; it must be at least 2")

    def indices(self, generator: np.random.PCG64) -> np.ndarray:
        """One draw, int64 `[samples]`, rising or level."""
        uniform = (generator.random_raw(self.samples) >> np.uint64(11)) * 2.0**-53
        start = int(self.farthest ** uniform[0])
        back = ((self.reach + 1.0) ** uniform[1:]).astype(np.int64) - 1
        return start + self.reach - 1 - np.sort(np.append(back, 0))[::-1]

    def bind(self, seed: int) -> Callable[[nn.Module], Tensor]:
        """The loss as a function of a language model with an untied transformer."""
        generator = np.random.PCG64([seed, _STREAM])

        def loss(model: nn.Module) -> Tensor:
            transformer = model.transformer
            device = next(transformer.parameters()).device
            inside = torch.arange(transformer.config.max_length, device=device)
            with torch.no_grad():
                teachers = [toeplitz_fit(logits) for logits in position_logits(transformer, inside)]
            far = torch.from_numpy(self.indices(generator).copy()).to(device)
            students = position_logits(transformer, far)
            losses = [clamp_loss(s, far, t) for s, t in zip(students, teachers, strict=True)]
            return self.weight * torch.stack(losses).mean()

        return loss
