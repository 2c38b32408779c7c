"""Does the space of embeddings know where positions lie? Some measures read the inner products of a window,
as both losses do; the others read where embeddings lie, as the layers of a model do.

Shape letters: m positions of a window, n coordinates, D columns.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from .digits import as_grid


class Geometry(NamedTuple):
    """What the inner products of a window's embeddings say.

    Attributes:
        order: Spearman's rank correlation between the inner product of two embeddings and minus the distance
            of their positions: 1 if the nearer pair always has the larger product. Products (and distances of
            embeddings) that differ by less than a millionth of the largest count as equal.
        adjacency: share of positions whose largest product with another position is with a nearest neighbour.
        norm: mean length of an embedding.
        distance: rank correlation between the distance of two positions and the Euclidean distance of their
            embeddings; equal to `order` if all embeddings have one length.
    """

    order: float
    adjacency: float
    norm: float
    distance: float


def geometry(embeddings: Float[Tensor, "m D"], positions: Tensor | np.ndarray) -> Geometry:
    """The measures of one window of three positions or more. Distances are Euclidean, in coordinates."""
    from scipy.stats import spearmanr  # takes half a second to import

    at = as_grid(positions).double()
    if len(at) < 3 or len(at) != len(embeddings):
        raise ValueError(f"{len(embeddings)} embeddings of {len(at)} positions; give one each, of 3 or more")
    embeddings = embeddings.detach().double().cpu()
    products, apart = embeddings @ embeddings.T, torch.cdist(at.cpu(), at.cpu())
    pairs = torch.triu_indices(len(at), len(at), offset=1)
    between = torch.cdist(embeddings, embeddings, compute_mode="donot_use_mm_for_euclid_dist")

    def ranked(measured: Tensor) -> float:
        rounded = (measured[*pairs] / measured.abs().max()).round(decimals=6)
        return float(spearmanr(rounded.numpy(), apart[*pairs].numpy()).statistic)

    alone = torch.eye(len(at), dtype=torch.bool)
    chosen = products.masked_fill(alone, -torch.inf).argmax(dim=1)
    nearest = apart.masked_fill(alone, torch.inf).amin(dim=1)
    found = apart.gather(1, chosen[:, None])[:, 0] <= nearest + 1e-9
    norm = float(embeddings.norm(dim=1).mean())
    return Geometry(-ranked(products), float(found.double().mean()), norm, ranked(between))


def likeness(one: Float[Tensor, "m D"], other: Float[Tensor, "m D"]) -> float:
    """Pearson's correlation of the inner products inside two windows: 1 where one is the other's geometry,
    stretched or moved by a constant at most."""
    pairs = torch.triu_indices(len(one), len(one), offset=1)
    grams = [(window.detach().double() @ window.detach().double().T)[*pairs].cpu() for window in (one, other)]
    return float(np.corrcoef(*(gram.numpy() for gram in grams))[0, 1])
