"""The methods of `images`: one classifier of images whose patches tell their places in different ways.

`separated-` gives an eighth of the width to the row of a patch and one to its column, in streams of their
own; the others are dense. Such a model has fewer parameters than a dense one of its width; the one called
`-wide`, which is a quarter wider, has about as many. `seqpe` is a term of the score with one map for all
layers, with digit strings of two coordinates of two digits, a class token with a vector of its own, and the
released schedule: both losses and shift steps. `seqpe-multiply` has the same schedule and is injected as the
released image program does it: queries and keys are multiplied, by a map of every layer. Three methods take
it apart: `seqpe-plain` has neither losses nor shift steps; `sinusoidal-shifts` and `axial-rope-shifts` are
read at the same shift steps, so that what the steps give is not told of the digits. To axial RoPE they are no
idle change: its class token stands at the origin and hears where a patch is.

Losses and shift steps have coordinates below `Size.reach`, about twice the largest grid that is read:
released are 100 and a grid of 42. Below 100, and with as few steps as here, three shift steps of a run, or
none, would put a patch where larger grids have theirs.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..encodings import AxialRoPE, Learned, Sinusoidal
from ..models import TransformerConfig
from ..seqpe import SeqPE
from ..streams import Streams
from ..training.config import TrainingConfig
from ..training.seqpe_schedule import grid_losses, grid_shifts
from .image_tasks import Direction, Frame
from .methods import EQUAL, Method, changed, listed


@dataclass(frozen=True)
class Size:
    """What a profile fixes for every method: the model, the schedule, the pictures."""

    width: int
    n_layers: int
    n_heads: int
    frame: Frame
    batch_size: int
    steps: int
    grids: tuple[int, ...]
    """Patches along a side of the larger pictures."""
    held_out: int
    """Pictures of each held-out split that are read."""
    data_set: str
    direction: Direction
    reach: int
    """Coordinates of shift steps and losses lie below this."""
    precision: str = "float32"

    @property
    def trained(self) -> tuple[int, int]:
        """Rows and columns of the trained grid."""
        return self.frame.grid, self.frame.grid

    @property
    def ranges(self) -> tuple[int, int]:
        """Below this are the rows and columns of shift steps and losses."""
        return self.reach, self.reach


CODE = SeqPE(digits=2, dims=2, class_token=True)


def _streams(wide: bool) -> Callable[[Size], Streams]:
    def streams(size: Size) -> Streams:
        width = size.width + (size.width // 4 if wide else 0)
        return Streams(row=width // 8, col=width // 8, sem=width - 2 * (width // 8))

    return streams


SHIFTED = {"positions": lambda size: grid_shifts(size.trained, size.ranges)}
SHIFTED_AND_TAUGHT = SHIFTED | {
    "auxiliary": lambda size: grid_losses(size.trained, size.ranges, columns=CODE.width)
}

METHODS = listed(
    Method("none", "no places"),
    Method("learned", "a table of the trained grid", "none", {"encoding": lambda s: Learned(grid=s.trained)}),
    Method("sinusoidal", "sinusoids of row and column added", "none", {"encoding": Sinusoidal(dims=2)}),
    Method("sinusoidal-shifts", "shift steps", "sinusoidal", training=SHIFTED),
    Method("axial-rope", "rotated by row and column", "none", {"encoding": AxialRoPE()}),
    Method("axial-rope-shifts", "shift steps", "axial-rope", training=SHIFTED),
    Method(
        "separated-sinusoidal",
        "streams of row and column",
        "none",
        {"streams": _streams(False), "encoding": "sinusoidal"},
    ),
    Method("separated-sinusoidal-wide", EQUAL, "separated-sinusoidal", {"streams": _streams(True)}),
    Method("seqpe-plain", "digit strings in a term of the score", "none", {"encoding": CODE}),
    Method("seqpe", "shift steps and both losses", "seqpe-plain", training=SHIFTED_AND_TAUGHT),
    Method(
        "seqpe-multiply",
        "queries and keys multiplied, as released",
        "seqpe",
        {"encoding": replace(CODE, site="multiply", per_layer=True)},
    ),
    axes=2,
)
"""How a patch tells where it is, in the order of tables."""


def model_config(name: str, size: Size) -> TransformerConfig:
    """The model of a method; two methods differ in streams and encoding only.

    Raises:
        ValueError: an unknown method.
    """
    bare = TransformerConfig(
        Streams.dense(size.width),
        size.n_layers,
        size.n_heads,
        "none",
        max_length=size.frame.grid**2 + 1,
        causal=False,
        axes=2,
    )
    return changed(bare, "model", name, size, axes=2)


def training_config(name: str, size: Size, rate: float, steps: int) -> TrainingConfig:
    """The training of a method; two methods differ in shift steps and losses only."""
    bare = TrainingConfig(steps, size.batch_size, 1, rate, precision=size.precision)
    return changed(bare, "training", name, size, axes=2)
