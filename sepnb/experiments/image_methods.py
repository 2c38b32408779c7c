"""The methods of `images`: one classifier of images whose patches tell their places in different ways.

`separated-` gives an eighth of the width to the row of a patch and one to its column, in streams of their
own; the others are dense. It has fewer parameters than a dense model of its width; `-wide`, a quarter wider,
has about as many.

`seqpe` is a term of the score with one map for all layers, digit strings of two coordinates, a class token
with a vector of its own, and the released schedule: both losses and shift steps. `seqpe-multiply` has the
same schedule and multiplies queries and keys by a map of every layer, as the released image program does.
`sinusoidal-shifts` and `axial-rope-shifts` have the same shift steps without digits; they change even axial
RoPE, whose class token stays at the origin.

Losses and shift steps have coordinates below `Size.reach`, about twice the largest grid that is read. The
release has 100 for grids of up to 42; with as few steps as here, that would hardly ever put a patch where
larger grids have theirs.
"""

from dataclasses import dataclass, replace

from ..encodings import AxialRoPE, Learned, Sinusoidal
from ..seqpe import SeqPE
from ..streams import Streams
from ..training.seqpe_schedule import grid_losses, grid_shifts
from . import classification
from .image_tasks import Direction, Frame
from .methods import EQUAL, Method, listed


@dataclass(frozen=True, kw_only=True)
class Size(classification.Size):
    """What a profile fixes for every method: the model, the schedule, the pictures."""

    data_set: str
    frame: Frame
    grids: tuple[int, ...]
    """Patches along a side of the larger pictures."""
    direction: Direction
    reach: int
    """Coordinates of shift steps and losses lie below this."""

    @property
    def tokens(self) -> int:
        return self.frame.grid**2 + 1

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of the trained grid."""
        return self.frame.grid, self.frame.grid


EMBEDDING = SeqPE(digits=2, dims=2, class_token=True)


def _streams(width: int) -> Streams:
    part = width // 8
    return Streams(row=part, col=part, sem=width - 2 * part)


SHIFTED = {"positions": lambda s: grid_shifts(s.grid, 2 * (s.reach,))}
TAUGHT = {"auxiliary": lambda s: grid_losses(s.grid, 2 * (s.reach,), columns=EMBEDDING.width)}

METHODS = listed(
    Method("none", "no places"),
    Method("learned", "a table of the trained grid", "none", {"encoding": lambda s: Learned(grid=s.grid)}),
    Method("sinusoidal", "sinusoids of row and column added", "none", {"encoding": Sinusoidal(dims=2)}),
    Method("sinusoidal-shifts", "shift steps", "sinusoidal", training=SHIFTED),
    Method("axial-rope", "rotated by row and column", "none", {"encoding": AxialRoPE()}),
    Method("axial-rope-shifts", "shift steps", "axial-rope", training=SHIFTED),
    Method(
        "separated-sinusoidal",
        "streams of row and column",
        "none",
        {"streams": lambda s: _streams(s.width), "encoding": "sinusoidal"},
    ),
    Method(
        "separated-sinusoidal-wide",
        EQUAL,
        "separated-sinusoidal",
        {"streams": lambda s: _streams(s.width + s.width // 4)},
    ),
    Method("seqpe-plain", "digit strings in a term of the score", "none", {"encoding": EMBEDDING}),
    Method("seqpe", "shift steps and both losses", "seqpe-plain", training=SHIFTED | TAUGHT),
    Method(
        "seqpe-multiply",
        "queries and keys multiplied, as released",
        "seqpe",
        {"encoding": replace(EMBEDDING, site="multiply", per_layer=True)},
    ),
    axes=2,
)
"""How a patch tells where it is, in the order of tables."""
