"""FIRE (Li et al. 2024): a bias from the distance relative to the position of the query.

    b_ij = MLP(psi(i - j) / psi(max(L, i))),    psi(x) = ln(|c| x + 1)

with learned c, threshold L and perceptron 1 -> 32 -> H, positions counting from 0. The quotient lies in
[0, 1] at every length. It depends on i as well as on the distance: up to the threshold the bias is a function
of the distance; beyond, it also depends on where a text starts. Causal models only.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ..validation import WIDEST, above_zero, floats, movable, whole
from .base import Encoding, Heads, ScoreModule, Site
from .relative import check_pairs, relative_positions

EPSILON = 1e-6
"""Added to the divisor, which is 0 for the first token where the threshold or c has become 0."""


def fire_ratio(
    c: Float[Tensor, ""],
    threshold: Float[Tensor, ""],
    query_positions: Int[Tensor, "*queries N"],
    key_positions: Int[Tensor, "*keys M"],
) -> Float[Tensor, "*pairs N M"]:
    """psi(i - j) / (psi(max(threshold, i)) + 1e-6), in float32 or wider; 0 for keys after the query."""
    _check(query_positions, key_positions, c=(c, ""), threshold=(threshold, ""))
    return _ratio(c, threshold, query_positions, key_positions)


def _check(query_positions: Tensor, key_positions: Tensor, **given: tuple[Tensor, str]) -> dict[str, int]:
    """The sizes of parameters that fit together, beside positions."""
    sizes = floats(**given)
    check_pairs(query_positions, key_positions)
    for name, (parameter, _) in given.items():
        movable(name, parameter, key_positions.device)
    return sizes


def _ratio(c: Tensor, threshold: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
    dtype = torch.promote_types(c.dtype, torch.float32)
    c, threshold = c.to(dtype).abs(), threshold.to(dtype)
    distance = -relative_positions(query_positions, key_positions).clamp(max=0)
    longest = torch.maximum(threshold, query_positions.to(dtype))[..., None]
    return torch.log1p(c * distance) / (torch.log1p(c * longest) + EPSILON)


def fire_bias(
    c: Float[Tensor, ""],
    threshold: Float[Tensor, ""],
    hidden: Float[Tensor, "2 width"],
    out: Float[Tensor, "H width+1"],
    query_positions: Int[Tensor, "*queries N"],
    key_positions: Int[Tensor, "*keys M"],
) -> Float[Tensor, "*pairs H N M"]:
    """The perceptron of `fire_ratio`; of c the absolute value counts.

    `hidden`: weights and biases of the hidden units, a row each. `out`: weights of the hidden units for every
    head, and in the last column the bias. Positions are `[N]` and `[M]`, or `[B, N]` and `[B, M]`.
    """
    parameters = {"hidden": (hidden, "rows width"), "out": (out, "H columns")}
    sizes = _check(query_positions, key_positions, c=(c, ""), threshold=(threshold, ""), **parameters)
    if sizes["rows"] != 2 or sizes["columns"] != sizes["width"] + 1:
        raise ValueError(
            f"hidden has shape {list(hidden.shape)} and out {list(out.shape)}; give [2, width] and "
            f"[H, width + 1]"
        )
    return _bias(c, threshold, hidden, out, query_positions, key_positions)


def _bias(
    c: Tensor, threshold: Tensor, hidden: Tensor, out: Tensor, query_positions: Tensor, key_positions: Tensor
) -> Tensor:
    ratio = _ratio(c, threshold, query_positions, key_positions)
    weights, biases = hidden.to(ratio.dtype)[..., None]
    units = torch.relu(weights * ratio.flatten() + biases)  # [width, pairs]
    bias = torch.addmm(out[:, -1:].to(ratio.dtype), out[:, :-1].to(ratio.dtype), units)
    return bias.unflatten(-1, ratio.shape).movedim(0, -3)


class FireScore(ScoreModule):
    """`fire_bias` with its parameters, some rows of queries at a time. The hidden units of a pair are made
    anew in the backward pass: kept, they would be N x M x width numbers for every layer.

    At the start c is 0.1, the threshold is `|m L|` with m = 1, and the perceptron is drawn as torch draws
    linear layers: our choices, taken over from public ports.
    """

    at_once: int = 2**19
    """Hidden units of pairs that are held: 2 MiB in float32, which a cache of a processor still holds."""

    def __init__(self, n_heads: int, width: int, length: int | float) -> None:
        super().__init__()
        self.length = length
        self.c, self.multiplier = nn.Parameter(torch.tensor(0.1)), nn.Parameter(torch.tensor(1.0))
        self.hidden = nn.Parameter(torch.empty(2, width).uniform_(-1.0, 1.0))
        self.out = nn.Parameter(torch.empty(n_heads, width + 1).uniform_(-(width**-0.5), width**-0.5))

    def forward(self, query_positions: Tensor, key_positions: Tensor, consecutive: bool = False) -> Tensor:
        threshold = (self.multiplier * self.length).abs()
        rows = max(1, self.at_once // max(1, key_positions.numel() * self.hidden.shape[-1]))
        parameters, how = (self.c, threshold, self.hidden, self.out), {"preserve_rng_state": False}
        pieces = [
            checkpoint(_bias, *parameters, queries, key_positions, use_reentrant=False, **how)
            for queries in query_positions.split(rows, dim=-1)
        ]
        return pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=-2)


@dataclass(frozen=True)
class Fire(Encoding):
    """A learned bias of the distance, measured against the position of the query.

    Args:
        threshold: L at the start, above 0 positions; up to it the bias depends on the distance alone.
        hidden: units of the perceptron.
        per_layer: parameters of its own for every layer; False shares one bias.
    """

    name = "fire"
    order = 11
    sites = frozenset({Site.SCORE})
    causal_only = True
    reads_index = True

    threshold: float = 512.0
    hidden: int = 32
    per_layer: bool = True

    def __post_init__(self) -> None:
        above_zero("threshold", self.threshold)
        whole("hidden", self.hidden, 1, WIDEST, needs="the perceptron needs at least 1 unit")

    def for_length(self, length: int | float) -> "Fire":
        return replace(self, threshold=float(length))

    def at_score(self, heads: Heads) -> ScoreModule:
        return FireScore(heads.count, self.hidden, self.threshold)
