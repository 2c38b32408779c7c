"""Toeplitz-clamp distillation: far indices shall be scored as the distances of the trained window are.

In an untied model (no cross terms) the score of a sem head is a term of content plus a term of positions,
S_pos, which can be asked for at indices that no text ever had, by one pass of the position streams:

- teacher, per layer and head: the best description of S_pos inside the trained length L by the distance
  alone, `f(i - j)`, without gradient;
- student: S_pos at a few indices far out, which shall be `f(min(i - j, L - 1))`: the same at every index,
  and constant past the last trained distance.

A softmax does not see a constant added to a row, so neither does anything here. Everything is computed in the
dtype of the parameters, and no narrower than float32 from the scores on, also under autocast: rounded to
bfloat16, scores of a wide range would hide the differences that the loss is made of.

Shape letters: H heads, N sampled indices, L trained length.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..data.draws import generator_of, uniform
from ..models import Transformer, door
from ..models.position_tables import position_branch
from ..validation import above_zero, at_least
from .losses import AuxiliaryLoss, BoundLoss


def position_logits(transformer: Transformer, positions: Tensor) -> list[Tensor]:
    """S_pos of every layer, `[H, N, N]` each, scaled, of the heads that read content and positions, for int
    positions `[N]`; entries above the diagonal have no meaning.

    Where the pos stream evolves, its heads see the given positions only, not those between them. Refuses
    positions that the model refuses, and a model that is not untied, not isolated, or in training with
    dropout in its position streams.
    """
    config = transformer.config
    if config.reading != "untied":
        raise ValueError(f"position logits of their own need query_key='untied', got {config.reading!r}")
    dropout = max([config.dropout, *(getattr(one, "dropout", 0.0) for one in config.encodings)])
    if transformer.training and dropout:
        raise ValueError(
            f"dropout is {dropout}: two passes in training would differ by what each drops; train with "
            f"dropout=0, or call model.eval() first"
        )
    door.check_positions(positions, transformer)
    parameter = next(transformer.parameters())
    positions, dtype = positions.to(parameter.device), parameter.dtype
    with _exact(parameter):
        context = transformer.attention_context(positions, positions, dtype)
        made = position_branch(transformer, transformer.embeddings(positions, dtype), context)
        return [
            block.attention.position_logits(table, context)
            for table, block in zip(made.tables, transformer.blocks, strict=True)
        ]


def _exact(tensor: Tensor) -> torch.autocast:
    return torch.autocast(tensor.device.type, enabled=False)


def _wide(tensor: Tensor) -> Tensor:
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


@lru_cache(maxsize=4)
def _solver(length: int) -> Tensor:
    """Pseudo-inverse of the normal equations of `toeplitz_fit`, the row constants eliminated: `[L, L]`."""
    rows = torch.arange(length, dtype=torch.float64)
    tail = (1 / (rows + 1)).flip(0).cumsum(0).flip(0)  # sum over the rows i >= t of 1/(i + 1)
    latest = torch.maximum(rows[:, None], rows[None, :]).long()
    return torch.linalg.pinv(torch.diag(length - rows) - tail[latest], hermitian=True)


def toeplitz_fit(logits: Float[Tensor, "H L L"]) -> Float[Tensor, "H L"]:
    """The f that minimises the sum over i >= j of (S_ij - r_i - f(i - j))^2, r_i being free.

    This is the average of the row-centred logits along each diagonal, unbiased: short rows are centred over
    short distances only. f is known up to a constant; the smallest is returned, in float32 or wider.
    """
    logits = _wide(logits)
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
    """Mean over i >= j of (S_ij - f(min(i - j, L - 1)))^2, each row's mean difference taken out, of S_pos at
    int positions `[N]` that do not fall, and f of `toeplitz_fit`."""
    n, logits, teacher = len(positions), _wide(logits), _wide(teacher)
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

    The model is trained with dropout=0, and without a learned table, which has no row far out.
    """

    name: ClassVar[str] = "toeplitz-clamp"

    weight: float
    reach: int
    farthest: int = 100_000
    samples: int = 64

    def __post_init__(self) -> None:
        above_zero("weight", self.weight)
        at_least(2, reach=self.reach, farthest=self.farthest, samples=self.samples)

    def trained_indices(self, length: int) -> int:
        """Their position scores alone are trained: no text is read there."""
        return self.farthest + self.reach - 1

    def trained_distances(self, length: int) -> int:
        return self.reach

    def indices(self, generator: np.random.PCG64) -> np.ndarray:
        """One draw, int64 `[samples]`, rising or level."""
        drawn = uniform(generator, self.samples)
        start = int(self.farthest ** drawn[0])
        back = ((self.reach + 1.0) ** drawn[1:]).astype(np.int64) - 1
        return start + self.reach - 1 - np.sort(np.append(back, 0))[::-1]

    def bind(self, seed: int, start: int = 0) -> BoundLoss:
        """The loss as a function of a language model with an untied transformer; ValueError for one that has
        no position logits, or none at the farthest index."""
        at_least(0, start=start)
        generator = generator_of(seed, "toeplitz-clamp")
        for _ in range(start):
            self.indices(generator)

        def loss(model: nn.Module) -> Tensor:
            transformer = model.transformer
            length = transformer.config.max_length
            # The farthest is refused at once, and not in the step that draws an index past a table.
            farthest = torch.tensor([self.trained_indices(length) - 1])
            door.check_positions(farthest, transformer)
            parameter = next(transformer.parameters())
            with _exact(parameter):
                with torch.no_grad():
                    inside = position_logits(transformer, torch.arange(length))
                    teachers = [toeplitz_fit(logits) for logits in inside]
                drawn = torch.from_numpy(self.indices(generator))
                students, far = position_logits(transformer, drawn), drawn.to(parameter.device)
                losses = [clamp_loss(s, far, t) for s, t in zip(students, teachers, strict=True)]
                return self.weight * torch.stack(losses).mean()

        return BoundLoss(loss, seed, start)
