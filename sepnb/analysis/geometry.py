"""How much of a state is position, and what shape the positional part has.

Shape letters: B texts, N positions, w width.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from ..extrapolators.fourier import component_energy


class VarianceShares(NamedTuple):
    """The two parts of the variance of a state, which sum to 1: what the mean over texts at each position
    explains, and what differs between texts at the same position."""

    position: float
    text: float


def variance_shares(states: Float[Tensor, "B N w"]) -> VarianceShares:
    """The law of total variance, with the position as the group, summed over columns.

    Of a state without any position about 1/B is still counted to it: a mean over B texts is never quite flat.

    Raises:
        ValueError: fewer than two texts, or a state that is the same everywhere.
    """
    if len(states) < 2:
        raise ValueError(f"{len(states)} text: give two or more, or nothing can differ between them")
    x = states.double()
    total = (x - x.mean((0, 1))).square().sum()
    if total == 0:
        raise ValueError("the state is the same for every text and position: it has no variance to share out")
    text = (x - x.mean(0)).square().sum() / total
    return VarianceShares(float(1 - text), float(text))


def position_mean(states: Float[Tensor, "B N w"]) -> Float[Tensor, "N w"]:
    """The mean over texts at each position, in float64: what depends on the index alone."""
    return states.double().mean(0)


def frequency_shares(table: Float[Tensor, "L w"]) -> Float[Tensor, " frequencies"]:
    """The share of the squared deviations from the mean row at k = 1 to floor(L/2) turns per table."""
    energy = component_energy(table).sum(1)[1:]
    return energy / energy.sum()


def principal_trajectory(
    table: Float[Tensor, "L w"], components: int = 3
) -> tuple[Float[Tensor, "L components"], Float[Tensor, " components"]]:
    """The rows in the plane of their first principal components, and the share of the variance along each.

    A component has no sign of its own: here its entry of largest size is positive. ValueError for more
    components than the table can have.
    """
    most = min(table.shape)
    if not 1 <= components <= most:
        raise ValueError(f"components is {components}; a table of {list(table.shape)} has 1 to {most}")
    centred = table.double() - table.double().mean(0)
    u, s, _ = torch.linalg.svd(centred, full_matrices=False)
    paths = (u * s)[:, :components]
    largest = paths.gather(0, paths.abs().argmax(0, keepdim=True))
    return paths * largest.sign(), (s.square() / s.square().sum())[:components]
