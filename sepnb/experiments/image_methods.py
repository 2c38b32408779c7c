"""The methods of `images`: one classifier of images whose patches tell their places in different ways.

`separated-` gives an eighth of the width to the row of a patch and one to its column, in streams of their
own; the others are dense. `seqpe` is a term of the score with one map for all layers, with digit strings of
two coordinates of two digits, and the released schedule: both losses and shift steps on coordinates below
100. `seqpe-multiply` has the same schedule and is injected as the released image program does it: queries and
keys are multiplied, by a map of every layer. Three methods take it apart: `seqpe-plain` has neither losses
nor shift steps; `sinusoidal-shifts` and `axial-rope-shifts` are read at the same shift steps, so that what
the steps give is not told of the digits. To axial RoPE they are no idle change: its class token stands at the
origin and hears where a patch is.
"""

from dataclasses import dataclass, replace

from ..encodings import AxialRoPE, Encoding, Learned, SeqPE, Sinusoidal
from ..models import TransformerConfig
from ..seqpe.schedule import grid_losses, grid_shifts
from ..streams import Streams
from ..training import TrainingConfig
from .image_tasks import Direction, Frame

METHODS = (
    "none",
    "learned",
    "sinusoidal",
    "sinusoidal-shifts",
    "axial-rope",
    "axial-rope-shifts",
    "separated-sinusoidal",
    "seqpe-plain",
    "seqpe",
    "seqpe-multiply",
)
"""How a patch tells where it is, in the order of tables."""

SHIFTED = ("sinusoidal-shifts", "axial-rope-shifts", "seqpe", "seqpe-multiply")
"""Trained at shift steps."""

WITH_LOSSES = ("seqpe", "seqpe-multiply")
"""Trained with both losses of SeqPE."""

CODE = SeqPE(digits=2, dims=2)
RANGES = (CODE.base**CODE.digits,) * CODE.dims
"""Coordinates of shift steps and losses lie below this, as released; two digits write no others."""


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
    precision: str = "float32"

    @property
    def trained(self) -> tuple[int, int]:
        """Rows and columns of the trained grid."""
        return self.frame.grid, self.frame.grid


def encoding_of(name: str, size: Size) -> str | Encoding:
    """The encoding of a method.

    Raises:
        ValueError: an unknown method.
    """
    encodings: dict[str, str | Encoding] = {
        "none": "none",
        "learned": Learned(grid=size.trained),
        "sinusoidal": Sinusoidal(dims=2),
        "sinusoidal-shifts": Sinusoidal(dims=2),
        "axial-rope": AxialRoPE(),
        "axial-rope-shifts": AxialRoPE(),
        "separated-sinusoidal": "sinusoidal",
        "seqpe-plain": CODE,
        "seqpe": CODE,
        "seqpe-multiply": replace(CODE, site="multiply", per_layer=True),
    }
    if name not in encodings:
        raise ValueError(f"unknown method {name!r}; use one of {', '.join(METHODS)}")
    return encodings[name]


def model_config(name: str, size: Size) -> TransformerConfig:
    """The model of a method; two methods differ in streams and encoding only.

    Raises:
        ValueError: an unknown method.
    """
    encoding, eighth = encoding_of(name, size), size.width // 8
    streams = Streams.dense(size.width)
    if name.startswith("separated-"):
        streams = Streams(row=eighth, col=eighth, sem=size.width - 2 * eighth)
    return TransformerConfig(
        streams,
        size.n_layers,
        size.n_heads,
        encoding,
        max_length=size.frame.grid**2 + 1,
        causal=False,
        axes=2,
    )


def training_config(name: str, size: Size, rate: float, steps: int) -> TrainingConfig:
    """The training of a method; two methods differ in shift steps and losses only."""
    losses = grid_losses(size.trained, RANGES, columns=CODE.width)
    return TrainingConfig(
        steps,
        size.batch_size,
        1,
        rate,
        precision=size.precision,
        positions=grid_shifts(size.trained, RANGES) if name in SHIFTED else None,
        auxiliary=losses if name in WITH_LOSSES else None,
    )
