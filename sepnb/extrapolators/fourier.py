"""Equation (3) of the slides: the table as a sum of K of its Fourier components, read beyond its end.

What is printed: p_i = (2/L) sum_(k=1..K) Re[phat_k exp(2 pi 1j k i / L)], "phat the K dominant coefficients".
The formula takes the K lowest, the text the K dominant. It drops the mean of the table (k = 0), and its 2/L
counts the last component of an even L twice. "Dominant" in the full transform meets k and L-k, which are one
wave, and doubles everything kept. No repair changes what it is: every component repeats after L, so that the
more of them are kept, the more it is `wrap`.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..validation import WIDEST, one_of, whole
from .base import Extrapolator, Rule

PICKS = ("dominant", "lowest")
DEFAULT_COMPONENTS = 8


@dataclass(frozen=True)
class Fourier(Extrapolator):
    """Equation (3). Both forms are computed in float64, over one period, and read with period L.

    Corrected: the real transform, k = 0..floor(L/2), each component with its own weight (1 for k = 0 and,
    if L is even, for L/2; else 2), over L. Literal: K terms of the full transform, each times 2/L.

    Args:
        n_components: K, the mean counted as one where it can be kept; by default 8, or all if fewer.
        pick: "dominant" keeps those of largest energy, summed over the columns, "lowest" those of lowest
            frequency (in the literal form k = 1..K). By default what each form says: "dominant" if corrected,
            "lowest" if literal.
    """

    name = "fourier"

    n_components: int | None = None
    pick: str | None = None

    def __post_init__(self) -> None:
        if self.n_components is not None:
            whole("n_components", self.n_components, 1, WIDEST)
        if self.pick is not None:
            one_of("pick", self.pick, PICKS)

    def corrected(self, table: Tensor) -> Rule:
        period = self.reconstruction(table).to(table.dtype)
        rows, length = torch.cat([table, period]), len(table)

        def rule(positions: Tensor) -> Tensor:
            beyond = positions % length + length
            return rows.index_select(0, torch.where(positions < length, positions, beyond))

        return rule

    def literal(self, table: Tensor) -> Rule:
        length = len(table)
        spectrum = torch.fft.fft(table.to(torch.float64), dim=0)
        if self.pick == "dominant":
            kept = self._dominant(spectrum.abs().square())
        else:
            kept = torch.zeros_like(spectrum.real)
            kept[1 : 1 + self._count(length - 1)] = 1
        period = (2 * torch.fft.ifft(spectrum * kept, dim=0).real).to(table.dtype)
        return lambda positions: period.index_select(0, positions % length)

    def reconstruction(self, table: Float[Tensor, "L d_pos"]) -> Float[Tensor, "L d_pos"]:
        """The corrected formula on [0, L), in float64: what the kept components make of the table itself."""
        spectrum = torch.fft.rfft(table.to(torch.float64), dim=0)
        if self.pick == "lowest":
            kept = torch.zeros_like(spectrum.real)
            kept[: self._count(len(spectrum))] = 1
        else:
            kept = self._dominant(component_energy(table))
        return torch.fft.irfft(spectrum * kept, n=len(table), dim=0)

    def _dominant(self, energy: Tensor) -> Tensor:
        """1 at the K largest, 0 elsewhere; of equal ones the lower frequency comes first."""
        energy = energy.sum(1, keepdim=True)
        order = energy.argsort(dim=0, descending=True, stable=True)
        return torch.zeros_like(energy).scatter_(0, order[: self._count(len(energy))], 1.0)

    def _count(self, there_are: int) -> int:
        if self.n_components is None:
            return min(DEFAULT_COMPONENTS, there_are)
        if self.n_components > there_are:
            raise ValueError(
                f"n_components is {self.n_components}; this table and form have {there_are} at most"
            )
        return self.n_components


def component_energy(table: Float[Tensor, "L d_pos"]) -> Float[Tensor, "frequencies d_pos"]:
    """The energy of each real Fourier component in each column, float64 `[floor(L/2)+1, d_pos]`.

    They add up to the sum of squares of the column (Parseval).
    """
    energy = torch.fft.rfft(table.to(torch.float64), dim=0).abs().square() / len(table)
    energy[1 : (len(table) + 1) // 2] *= 2  # these stand for k and L-k
    return energy
