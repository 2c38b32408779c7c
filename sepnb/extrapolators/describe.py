"""What a table looks like: how rough it is, and how few waves or directions would do.

Most extrapolators assume a smooth table. These numbers say whether it is one.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from .base import check_table
from .fourier import component_energy

TOPS = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class Description:
    """A table in numbers, all computed in float64.

    Attributes:
        length: L, its rows.
        width: d_pos, its columns.
        std: population standard deviation of all entries.
        median_step: median over j of `|p_(j+1) - p_j|`.
        mean_row_norm: mean over j of `|p_j|`.
        frequency_energy: K to the share of the sum of squares in the K strongest Fourier components, the mean
            among them: 1 minus the squared relative error of `fourier` with K components.
        component_energy: K to the share of the variance in the first K principal components; NaN if all rows
            are equal.
    """

    length: int
    width: int
    std: float
    median_step: float
    mean_row_norm: float
    frequency_energy: dict[int, float]
    component_energy: dict[int, float]

    def rows(self) -> list[tuple[str, float]]:
        """(quantity, value) line by line, for a data frame."""
        energies = {"frequencies": self.frequency_energy, "principal components": self.component_energy}
        return [
            ("standard deviation", self.std),
            ("median step", self.median_step),
            ("mean row norm", self.mean_row_norm),
            ("median step / mean row norm", self.median_step / self.mean_row_norm),
            *(
                (f"energy of the top {k} {of}", share)
                for of, found in energies.items()
                for k, share in found.items()
            ),
        ]


def describe(table: Float[Tensor, "L d_pos"]) -> Description:
    """The numbers of this table; with fewer components than asked for, all of them are counted. Refuses what
    `extrapolate` does, and a table of zeros."""
    check_table(table)
    rows = table.detach().to(torch.float64)
    if not rows.any():
        raise ValueError("every entry of the table is 0; there is nothing to describe")
    return Description(
        length=rows.shape[0],
        width=rows.shape[1],
        std=float(rows.std(correction=0)),
        median_step=median_step(rows),
        mean_row_norm=float(rows.norm(dim=1).mean()),
        frequency_energy=_cumulative(component_energy(rows).sum(1)),
        component_energy=_cumulative(torch.linalg.svdvals(rows - rows.mean(0)).square()),
    )


def median_step(table: Float[Tensor, "L d_pos"]) -> float:
    """The median distance of neighbouring rows; the mean of the middle two if their number is even."""
    return float(table.detach().to(torch.float64).diff(dim=0).norm(dim=1).quantile(0.5))


def _cumulative(energy: Tensor) -> dict[int, float]:
    shares = energy.sort(descending=True).values.cumsum(0) / energy.sum()
    return {top: float(shares[min(top, len(shares)) - 1]) for top in TOPS}
