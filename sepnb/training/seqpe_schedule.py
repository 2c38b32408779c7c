"""The released schedule of the image program, for a trained grid on any number of axes (Li et al. 2025).

As released: the shares of the kinds; 16 anchors with 64 candidates each; windows whose move is at least the
trained grid on some axis; a tenth of the steps is shifted; the weights, that of the distillation divided by
the places of a window, as the release divides the loss. Released are two axes of 14 cells, with 64 of the 196
cells in a window and boxes of 17 x 17, about five cells for a candidate: here a window has a third of the
cells of the trained grid, at most 64, and a box as many cells as a released one or the trained grid.

The trained grid, windows and shift steps are counted from 1, because the origin is the place of the class
token. The contrastive loss sees every point from the origin on.
"""

from math import prod

from ..seqpe.sampling import CandidateSampler, WindowSampler
from .seqpe_losses import SeqPELosses
from .shifts import GridShiftSteps

CANDIDATES, CANDIDATES_IN_BOX = 64, 5
PLACES = 64
KINDS = (("uniform", 0.5), ("edited", 0.3), ("window", 0.2))


def grid_shifts(grid: tuple[int, ...], ranges: tuple[int, ...]) -> GridShiftSteps:
    """A tenth of the steps is read at a moved grid."""
    return GridShiftSteps(grid, ranges)


def grid_losses(
    grid: tuple[int, ...], ranges: tuple[int, ...], *, columns: int, every: int = 1, base: int = 10
) -> SeqPELosses:
    """Both losses of embeddings of so many columns, for a trained grid, on coordinates below `ranges`; they
    know the shift steps of `grid_shifts`. `every` is that of `SeqPELosses`."""
    box = int((CANDIDATES_IN_BOX * CANDIDATES) ** (1 / len(grid)) + 1e-9)
    candidates = CandidateSampler(
        ranges,
        candidates=CANDIDATES,
        kinds=KINDS,
        window=tuple(max(side, box) for side in grid),
        edited=0.2,
        base=base,
    )
    places = min(PLACES, max(2, prod(grid) // 3))  # of a single place nothing can be distilled
    return SeqPELosses(
        candidates,
        WindowSampler(ranges, grid, places=places, away=grid, first=1),
        distillation=0.1 / places,
        n_heads=max(1, columns // 64),
        shifts=grid_shifts(grid, ranges),
        every=every,
    )
