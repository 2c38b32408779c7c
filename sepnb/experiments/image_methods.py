"""How a patch of an image tells where it is: the methods of `images`, and the sizes of their models.

`separated-` gives an eighth of the width to the row of a patch and one to its column. It has fewer parameters
than a dense model of its width; `-wide`, a quarter wider, has about as many. `seqpe` has the released
schedule and, unlike the released image program, one map for all layers; `seqpe-multiply` multiplies queries
and keys by a map of every layer, as that program does. Shift steps without digits change even axial RoPE,
whose class token stays at the origin.

Losses and shift steps have coordinates below `Size.reach`, about twice the largest grid that is read. The
release has 100 for grids of up to 42; with as few steps as here, that would hardly ever put a patch where
larger grids have theirs.
"""

from dataclasses import dataclass, replace

from ..encodings import AxialRoPE, Learned, Sinusoidal
from ..seqpe import SeqPE
from ..streams import Streams
from ..training.seqpe_losses import grid_losses
from ..training.shifts import GridShiftSteps
from .image_tasks import Direction, Frame
from .methods import EQUAL, Method, listed


@dataclass(frozen=True)
class Size:
    """What a profile fixes for every method: the model, the schedule, the pictures."""

    width: int
    n_layers: int
    n_heads: int
    batch_size: int
    steps: int
    held_out: int
    """Pictures of each held-out split that are read."""
    data_set: str
    frame: Frame
    direction: Direction
    grids: tuple[int, ...]
    """Patches along a side of the larger pictures."""
    reach: int
    precision: str = "float32"

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of the trained grid."""
        return self.frame.grid, self.frame.grid


DIGITS = "digits", Frame(2, 4), Direction((0, 1), 2)
CLOTHES = "fashion-mnist", Frame(4, 7), Direction((1, 8), 3)
SIZES = {
    "smoke": Size(32, 2, 2, 16, 40, 100, *DIGITS, grids=(6,), reach=30),
    "laptop": Size(64, 4, 4, 64, 800, 2_000, *CLOTHES, grids=(10, 14), reach=30),
    "gpu": Size(192, 6, 6, 256, 4_000, 5_000, *CLOTHES, grids=(10, 14, 21), reach=45, precision="bfloat16"),
}
EMBEDDING = SeqPE(digits=2, dims=2, class_token=True)


def _streams(width: int) -> Streams:
    part = width // 8
    return Streams(row=part, col=part, sem=width - 2 * part)


SHIFTED = {"positions": lambda s: GridShiftSteps(s.grid, 2 * (s.reach,))}
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
"""In the order of tables."""
