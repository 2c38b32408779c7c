"""The two losses that shape the space of SeqPE's embeddings (Li et al. 2025, as released).

*Contrastive*: among some candidates, the position nearest to the anchor must have the largest inner product
with it. Only which candidate is nearest counts, not its distance. *Distillation*: embeddings of a window far
away must have the geometry of the same places in the trained window.

Shape letters: P anchors, K candidates of each, n coordinates, R windows, m positions in each, D columns.
"""

from math import isqrt

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from ..validation import WIDEST, above_zero, floats, integers, number, one_of, shaped, together, whole, within
from .digits import LARGEST

REDUCTIONS = ("row", "released")


def contrastive_loss(
    anchors: Float[Tensor, "P D"],
    candidates: Float[Tensor, "P K D"],
    anchor_positions: Int[Tensor, " P *n"],
    candidate_positions: Int[Tensor, "P K *n"],
    *,
    scale: float | None = None,
) -> Float[Tensor, ""]:
    """Cross-entropy of choosing the nearest candidate by scaled inner products, mean over anchors::

        y = argmin_j |p - c_j|^2,  loss = -log softmax_j(scale <e_p, e_j>)_y

    Both sides get a gradient. Of candidates equally near the first counts. `scale` None takes 1/sqrt(D), so
    that the loss of an untrained encoder does not grow with its width; 1.0 is the released form. ValueError:
    no candidates, a scale that is not above 0, or positions whose squared distances int64 does not hold.
    """
    sizes = floats(anchors=(anchors, "P D+"), candidates=(candidates, "P K D+"))
    if not sizes["P"] or not sizes["K"]:
        raise ValueError(f"candidates of shape {list(candidates.shape)}; give at least one for an anchor")
    _check_positions(sizes, anchor_positions, candidate_positions)
    together(anchors=anchors, anchor_positions=anchor_positions)
    if scale is not None:
        above_zero("scale", scale)
    scale = anchors.shape[-1] ** -0.5 if scale is None else scale
    scores = torch.einsum("pd,pkd->pk", anchors, candidates) * scale
    return F.cross_entropy(scores, _nearest(anchor_positions, candidate_positions))


def _nearest(anchors: Tensor, candidates: Tensor) -> Tensor:
    """The first of the candidates nearest to each anchor, by Euclidean distance of coordinates, int `[P]`."""
    away = candidates.long() - anchors.long().unsqueeze(1)
    far = away.abs() if away.dim() == 2 else away.square().sum(dim=-1)
    # argmin promises no order among equals: the places of the minima do.
    places = torch.arange(far.shape[1], device=far.device)
    least = far == far.min(dim=1, keepdim=True).values
    return torch.where(least, places, far.shape[1]).min(dim=1).values


def _check_positions(sizes: dict[str, int], anchors: Tensor, candidates: Tensor) -> None:
    """Distances are exact: of one coordinate up to 2^63 - 1, of several as long as int64 holds the sum of
    their squares, up to 2^31 or somewhat less. Positions that are negative or farther apart are refused where
    they can be read without waiting for a GPU."""
    shaped(sizes, "anchor_positions", integers("anchor_positions", anchors), "P", "P n+")
    of_candidates = "P K+" if anchors.dim() == 1 else "P K+ n+"
    shaped(sizes, "candidate_positions", integers("candidate_positions", candidates), of_candidates)
    together(anchor_positions=anchors, candidate_positions=candidates)
    largest = LARGEST if anchors.dim() == 1 else isqrt(LARGEST // anchors.shape[1])
    for name, positions in (("anchor_positions", anchors), ("candidate_positions", candidates)):
        within(name, positions, 0, largest, "whose squared distances int64 holds", wait=False)


def distillation_loss(
    teacher: Float[Tensor, "R m D"],
    student: Float[Tensor, "R m D"],
    n_heads: int,
    *,
    reduction: str = "row",
    beta: float = 1.0,
    scale: float | None = 1.0,
) -> Float[Tensor, ""]:
    """How far the geometry of the student windows is from that of the teacher's, per head::

        S_T = scale T_h T_h^T,  S_S = scale S_h S_h^T            inner products, diagonal included
        P_T, P_S = softmax over rows
        loss = beta k(sg(P_T), P_S) + (1 - beta) k(P_T, sg(P_S)),  k(P, Q) = KL(P||Q) + KL(Q||P)

    sg stops the gradient: at beta = 1 the teacher gets none.

    Args:
        n_heads: H; must divide D, or it is a ValueError.
        reduction: "row", the mean over windows, heads and rows of a row's divergence, or "released", the mean
            over all m^2 entries, which is m times smaller.
        beta: share of the term in which the student learns, from 0 to 1.
        scale: factor of the products of both. With raw products (1.0, as released) the softmax temperature
            depends on the lengths of the embeddings, which training changes. None takes sqrt(D/H) over the
            mean squared length of the teacher's vectors in a head, without gradient: stretching all
            embeddings then leaves the loss unchanged. Chapter 16 trains both.
    """
    width = floats(teacher=(teacher, "R+ m+ D+"), student=(student, "R+ m+ D+"))["D"]
    if width % whole("n_heads", n_heads, 1, WIDEST):
        raise ValueError(f"n_heads={n_heads} does not divide {width} columns; give one that does")
    one_of("reduction", reduction, REDUCTIONS)
    number("beta", beta, 0, 1)
    if scale is not None:
        above_zero("scale", scale)
    heads = [embeddings.unflatten(-1, (n_heads, -1)).transpose(1, 2) for embeddings in (teacher, student)]
    factor = _free_scale(heads[0]) if scale is None else scale
    of_teacher, of_student = (_geometry(one, factor) for one in heads)
    entries = beta * _both_ways(of_teacher.detach(), of_student)
    if beta < 1:
        entries = entries + (1 - beta) * _both_ways(of_teacher, of_student.detach())
    return entries.sum(dim=-1).mean() if reduction == "row" else entries.mean()


def _free_scale(teacher: Tensor) -> Tensor:
    """sqrt(d) over the mean squared length of vectors `[R, H, m, d]`, for each head: `[H, 1, 1]`."""
    squared = teacher.detach().square().sum(dim=-1).mean(dim=(0, 2))
    return (teacher.shape[-1] ** 0.5 / squared.clamp_min(torch.finfo(squared.dtype).tiny))[:, None, None]


def _geometry(heads: Tensor, scale: float | Tensor) -> Tensor:
    """log softmax over rows of the scaled inner products of heads `[R, H, m, d]`, `[R, H, m, m]`."""
    products = heads @ heads.transpose(-1, -2)
    # Without a scale nothing is multiplied: the released form is the raw product to the last bit.
    return (products if isinstance(scale, float) and scale == 1 else scale * products).log_softmax(dim=-1)


def _both_ways(p: Tensor, q: Tensor) -> Tensor:
    """The entries whose sum over a row is KL(p||q) + KL(q||p), from logarithms."""
    return (p.exp() - q.exp()) * (p - q)
