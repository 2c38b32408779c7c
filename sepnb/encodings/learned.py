"""Learned absolute positions: one trained row per position, at the input or where queries and keys are made.

Gehring et al. 2017; Devlin et al. 2019. Of an image the rows of the table are the cells of a grid, and
between them it is interpolated, so that an image of another resolution finds its patches in the same grid
(Dosovitskiy et al. 2021, section 3.2).
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..validation import number, one_of, whole
from .base import Encoding, Heads, InputModule, Site

SITES = ("input", "query_key")


class LearnedInput(InputModule):
    """A table `[max_length, width]`; row i is the embedding of position i. There is no row `max_length`."""

    def __init__(self, width: int, max_length: int, std: float) -> None:
        super().__init__()
        whole("max_length", max_length, needs="a learned table needs at least 1 row")
        self.limit = max_length
        self.table = nn.Parameter(std * torch.randn(max_length, width))

    def forward(self, positions: Tensor) -> Tensor:
        return nn.functional.embedding(positions, self.table)


class LearnedGrid(InputModule):
    """A table of the cells of a grid `[rows, columns, width]`, counted from (1, 1), and a row for the token
    without a place, such as a class token, which stands at (0, 0). Between cells the table is interpolated
    bicubically, as `torch.nn.functional.interpolate` does with the corners of both grids aligned."""

    def __init__(self, width: int, encoding: "Learned") -> None:
        super().__init__()
        self.grid = encoding.grid
        self.limit = tuple(side + 1 for side in self.grid)
        self.table = nn.Parameter(encoding.std * torch.randn(*self.grid, width))
        self.without_place = nn.Parameter(encoding.std * torch.randn(width))

    def refusal(self, position: int | float) -> str:
        return (
            f"a coordinate is {position:g}, and the learned grid ends at {self.grid}; fit the positions to "
            f"it, or use an encoding without a table"
        )

    def forward(self, positions: Tensor) -> Tensor:
        """Points `[..., 2]` to `[..., width]`. One beside the grid and not (0, 0) is a ValueError on the CPU,
        where asking costs no waiting."""
        outside = (positions < 1).any(-1)
        placeless = (positions == 0).all(-1)
        readable = positions.device.type == "cpu" and not torch.compiler.is_compiling()
        if readable and (wrong := outside & ~placeless).any():
            row, column = positions[wrong][0].tolist()
            raise ValueError(
                f"({row:g}, {column:g}) is no cell of the learned grid, which runs from (1, 1) to "
                f"{self.grid}, nor (0, 0), the token without a place; count patches from 1"
            )
        if positions.is_floating_point():
            rows = self._between(positions)
        else:
            row, column = (positions - 1).clamp(min=0).unbind(-1)
            rows = self.table[row, column]
        return torch.where(outside[..., None], self.without_place, rows)

    def _between(self, positions: Tensor) -> Tensor:
        """Interpolated at real points, `[..., width]`; torch samples at (x, y) from -1 to 1.

        In float32 at least: bfloat16 would round the points, and a rounded place is another place.
        """
        dtype = torch.promote_types(self.table.dtype, torch.float32)
        ends = torch.tensor(self.grid, dtype=positions.dtype, device=positions.device) - 1
        at = torch.where(ends > 0, 2 * (positions - 1) / ends.clamp(min=1) - 1, 0).flip(-1)
        sampled = nn.functional.grid_sample(
            self.table.movedim(-1, 0)[None].to(dtype),
            at.reshape(1, 1, -1, 2).to(dtype),
            mode="bicubic",
            padding_mode="border",
            align_corners=True,
        )
        return sampled[0, :, 0].T.reshape(*positions.shape[:-1], -1).to(self.table.dtype)


@dataclass(frozen=True)
class Learned(Encoding):
    """A trained table, rows drawn from N(0, std^2).

    Args:
        per_layer: at the input, every layer has a table of its own, added to what enters it.
        site: "input"; or "query_key": one table, added to the normalised sem stream of every layer where it
            makes queries and keys, W_Q (x_i + P_i) and W_K (x_j + P_j), so that values hold no position.
        grid: rows and columns of the cells that a table of points has, see `LearnedGrid`; None: one row for
            each index below the model's `max_length`.
    """

    name = "learned"
    order = 2
    reads_index = True
    saturates_at = 0  # a table holds no differences
    later = ("per_layer", "site")

    std: float = 0.02
    per_layer: bool = False
    site: str = "input"
    grid: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        number("std", self.std, least=0)
        one_of("site", self.site, SITES)
        if self.grid is not None and not isinstance(self.grid, tuple):
            raise TypeError(f"grid must be a tuple, rows and columns, got {self.grid!r}")
        if self.grid is not None and (len(self.grid) != 2 or min(self.grid) < 1):
            raise ValueError(f"grid is {self.grid}; give rows and columns, each at least 1")
        if self.per_layer and self.site != "input":
            raise ValueError(f"per_layer is for tables at the input, and site is {self.site!r}; give one")

    @property
    def sites(self) -> frozenset[Site]:
        return frozenset({Site.INPUT if self.site == "input" else Site.QUERY_KEY})

    @property
    def axes(self) -> tuple[int, ...]:
        return (1,) if self.grid is None else (2,)

    @property
    def real_positions(self) -> bool:
        return self.grid is not None

    def at_input(self, width: int, max_length: int) -> InputModule | None:
        return self._table(width, max_length) if self.site == "input" else None

    def at_query_key(self, heads: Heads) -> InputModule | None:
        return self._table(heads.content_width, heads.max_length) if self.site == "query_key" else None

    def _table(self, width: int, max_length: int) -> InputModule:
        return LearnedInput(width, max_length, self.std) if self.grid is None else LearnedGrid(width, self)
