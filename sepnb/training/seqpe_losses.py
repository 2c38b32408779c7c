"""What SeqPE minimises beside the loss of the tokens: both losses, weighted, on positions of their own.

The released code minimises L_main + 0.1 L_contrastive + 0.1 L_distillation, all three from the first step on.
Here the divergence of a row is not divided by the m places of a window, and the weight is smaller instead:
the default, 0.1/32, is the released strength where m is 32, as in the released text program.
"""

import json
from dataclasses import asdict, dataclass
from itertools import count, repeat
from math import prod
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from ..data.draws import generator_of
from ..records.settings import without_defaults
from ..seqpe.encoder import SequentialPositionEncoder
from ..seqpe.losses import REDUCTIONS, contrastive_loss, distillation_loss
from ..seqpe.sampling import Candidates, CandidateSampler, Windows, WindowSampler
from ..validation import at_least, number, one_of
from .losses import AuxiliaryLoss, BoundLoss
from .positions import PositionSampler
from .shifts import GridShiftSteps, Shifts, ShiftSteps

RELEASED = {"scale": 1.0, "reduction": "released", "distillation": 0.1}
"""Options of `SeqPELosses` that give the released weights and forms."""

CANDIDATES, CANDIDATES_IN_BOX, PLACES = 64, 5, 64
KINDS = (("uniform", 0.5), ("edited", 0.3), ("window", 0.2))
"""Of `grid_losses`."""


@dataclass(frozen=True)
class SeqPELosses(AuxiliaryLoss):
    """The contrastive and the distillation loss of the encoder in a model, for `TrainingConfig.auxiliary`.

    Args:
        candidates: the anchors of a step and their candidates; None computes no contrastive loss.
        windows: the windows of teacher and student; None computes no distillation loss.
        contrastive, distillation: their weights, in nats; a loss of weight 0 is not computed.
        scale: of the contrastive loss, as there.
        n_heads, reduction, distillation_scale: of the distillation loss, the last as `scale` there.
        shifts: the sampler of the training, if it has shift steps: there the model does not read the trained
            window, and nothing is distilled. A training with others is refused, see `check`.
        every: the losses are computed in one step out of so many, the first included, with so many times
            their weights.

    The teacher is encoded without dropout (the released one with it) and without gradient, in a pass of its
    own: the third of a step, after those of the text and of the other positions.
    """

    name: ClassVar[str] = "seqpe"

    candidates: CandidateSampler | None = None
    windows: WindowSampler | None = None
    contrastive: float = 0.1
    distillation: float = 0.1 / 32
    n_heads: int = 1
    scale: float | None = None
    reduction: str = "row"
    shifts: Shifts | None = None
    every: int = 1
    distillation_scale: float | None = 1.0

    def __post_init__(self) -> None:
        at_least(1, every=self.every)
        for field in ("contrastive", "distillation"):
            number(field, getattr(self, field), 0)
        one_of("reduction", self.reduction, REDUCTIONS)
        if not self._spaces:
            raise ValueError("neither candidates nor windows are given; give one, or no auxiliary loss")
        if len(set(self._spaces)) > 1:
            raise ValueError(f"candidates and windows are of different ranges: {self._spaces}")

    @property
    def _spaces(self) -> list[tuple[int, ...]]:
        return [sampler.ranges for sampler in (self.candidates, self.windows) if sampler is not None]

    def check(self, positions: PositionSampler | GridShiftSteps | None, length: int) -> None:
        """Refuse windows whose teacher the model does not read in every step that is no shift step: a sampler
        of other positions, `shifts` that is not the sampler, or a window that is not inside what is read. A
        training of length 1 reads no text; only shift steps of a grid then say what is read."""
        if self.windows is None or not self.distillation:
            return
        if positions is not None and not isinstance(positions, ShiftSteps | GridShiftSteps):
            raise ValueError(
                f"the training reads positions by {positions!r}, so that no window is the one that every "
                f"step reads, and none can teach; leave out windows, or read shift steps or none"
            )
        if self.shifts != positions:
            raise ValueError(
                f"the training reads positions by {positions!r}, the losses have shifts={self.shifts!r}; "
                f"give both the same, or on shift steps something else than the trained window would teach"
            )
        first, read = 0, (length,) * len(self.windows.trained)
        if isinstance(positions, GridShiftSteps):
            first, read = positions.first, positions.grid
        elif length == 1:
            return
        ends = [self.windows.first + side for side in self.windows.trained]
        inside = len(ends) == len(read) and self.windows.first >= first
        if not inside or any(end > first + side for end, side in zip(ends, read, strict=True)):
            raise ValueError(
                f"the teacher's window of {self.windows.trained} from {self.windows.first} on is not inside "
                f"what the training reads, {read} from {first} on; make WindowSampler(trained=) no larger"
            )

    def trained_indices(self, length: int) -> int:
        """Below this every coordinate has embeddings that are trained; no text is read there."""
        return min(self._spaces[0])

    def resolved(self) -> dict[str, Any]:
        """Every setting in plain JSON types; those that came later where they differ from their default."""
        settings = json.loads(json.dumps({"name": self.name, **asdict(self)}))
        for part, later in (("windows", {"first": 0}), ("shifts", {"starts": None})):
            if settings[part] is not None:
                settings[part] = without_defaults(settings[part], **later)
        return without_defaults(settings, every=1, distillation_scale=1.0)

    def draw(self, generator: np.random.PCG64) -> tuple[Candidates | None, Windows | None]:
        """The positions of a step with losses. All are drawn, whatever is then computed."""
        return (
            None if self.candidates is None else self.candidates.draw(generator),
            None if self.windows is None else self.windows.draw(generator),
        )

    def bind(self, seed: int, start: int = 0) -> BoundLoss:
        """The loss as a function of a model that holds one `SequentialPositionEncoder`, or of this itself.

        If windows teach beside shift steps, `train` refuses a step at shifted positions that these draws take
        for an unshifted one: its batches were drawn by another seed.
        """
        at_least(0, start=start)
        generator = generator_of(seed, "seqpe-losses")
        shifted, expected = (self.shifts.decisions(seed) if self.shifts else repeat(False) for _ in range(2))
        steps = count()

        def drawn() -> tuple[Candidates | None, Windows | None]:
            away = next(shifted)
            if next(steps) % self.every:
                return None, None
            candidates, windows = self.draw(generator)
            taught = self.distillation and not away
            return candidates if self.contrastive else None, windows if taught else None

        def loss(model: nn.Module) -> Tensor:
            encoder = encoder_of(model)
            return self.every * self.of(encoder, *drawn())

        teaching = self.shifts is not None and self.windows is not None and self.distillation

        def refuse(step: int, positions: np.ndarray | None) -> None:
            if not teaching or next(expected) or positions is None or not self.shifts.outside(positions):
                return
            raise ValueError(
                f"step {step} is read outside of the trained window, and the losses take it for one inside, "
                f"which teaches: they draw by seed {seed}; draw the batches by that seed"
            )

        for _ in range(start):
            drawn()
            next(expected)
        return BoundLoss(loss, seed, start, refuse)

    def of(
        self, encoder: SequentialPositionEncoder, candidates: Candidates | None, windows: Windows | None
    ) -> Tensor:
        """The weighted losses of an encoder on given positions; what is None is not computed."""
        asked: list[np.ndarray] = []
        if candidates is not None:
            asked += [candidates.anchors[:, None], candidates.candidates]
        if windows is not None:
            asked.append(windows.student)
        total = next(encoder.parameters()).new_zeros(())
        if not asked:
            return total
        # One pass for all of them: positions that occur twice, and shared prefixes, are computed once.
        embedded = iter(_encoded(encoder, asked))
        if candidates is not None:
            near = (torch.from_numpy(part).to(total.device) for part in candidates)
            anchors, others = next(embedded)[:, 0], next(embedded)
            total = total + self.contrastive * contrastive_loss(anchors, others, *near, scale=self.scale)
        if windows is not None:
            student, (teacher,) = next(embedded), _taught(encoder, windows.teacher)
            one = distillation_loss(
                teacher, student, self.n_heads, reduction=self.reduction, scale=self.distillation_scale
            )
            total = total + self.distillation * one
        return total


def grid_losses(grid: tuple[int, ...], ranges: tuple[int, ...], *, columns: int) -> SeqPELosses:
    """Both losses of the released image program, for a trained grid on any number of axes with coordinates
    below `ranges`, and embeddings of so many columns.

    As released: the shares of the kinds; 16 anchors with 64 candidates each; windows whose move is at least
    the trained grid on some axis; a tenth of the steps is shifted, `GridShiftSteps(grid, ranges)`; the
    weights, that of the distillation divided by the places of a window. Released are two axes of 14 cells,
    with 64 of the 196 cells in a window and boxes of 17 x 17, about five cells for a candidate: here a window
    has a third of the cells of the trained grid, at most 64, and a box as many cells as a released one or the
    trained grid. The trained grid, windows and shift steps are counted from 1, because the origin is the
    place of the class token; the contrastive loss sees every point from the origin on.
    """
    box = int((CANDIDATES_IN_BOX * CANDIDATES) ** (1 / len(grid)) + 1e-9)
    window = tuple(max(side, box) for side in grid)
    sizes = {"candidates": CANDIDATES, "kinds": KINDS, "window": window, "edited": 0.2}
    places = min(PLACES, max(2, prod(grid) // 3))  # of a single place nothing can be distilled
    return SeqPELosses(
        CandidateSampler(ranges, **sizes),
        WindowSampler(ranges, grid, places=places, away=grid, first=1),
        distillation=0.1 / places,
        n_heads=max(1, columns // 64),
        shifts=GridShiftSteps(grid, ranges),
    )


def encoder_of(model: nn.Module) -> SequentialPositionEncoder:
    """The one sequential encoder of a model; ValueError where there is none, or there are several."""
    found = [module for module in model.modules() if isinstance(module, SequentialPositionEncoder)]
    if len(found) != 1:
        raise ValueError(f"the model has {len(found)} sequential position encoders; the losses shape one")
    return found[0]


def _encoded(encoder: SequentialPositionEncoder, positions: list[np.ndarray]) -> list[Tensor]:
    """Positions `[R, m, n]` each to embeddings `[R, m, D]`, in one pass."""
    flat = np.concatenate([part.reshape(-1, part.shape[-1]) for part in positions])
    sizes = [part.shape[0] * part.shape[1] for part in positions]
    pieces = encoder(flat).split(sizes)
    return [piece.unflatten(0, part.shape[:2]) for piece, part in zip(pieces, positions, strict=True)]


def _taught(encoder: SequentialPositionEncoder, positions: np.ndarray) -> list[Tensor]:
    noisy = encoder.training and encoder.transformer.config.dropout > 0
    if noisy:
        encoder.eval()
    try:
        with torch.no_grad():
            return _encoded(encoder, [positions])
    finally:
        if noisy:
            encoder.train()
