"""DA-Transformer (Wu, Wu and Huang 2021): scores are multiplied by a learned function of the distance.

    f_h(R) = (1 + e^{v_h}) / (1 + e^{v_h - w_h R})            R = |i - j|
    S = ReLU(Q K^T) * f_h(R) / sqrt(d)

with one w and one v per head and layer. f(0) = 1; where w > 0 it rises to 1 + e^v and the head prefers far
keys, where w < 0 it falls to 0. The ReLU keeps a negative product from sinking where the factor is larger;
it also leaves every unwanted key the weight e^0, so that attention thins out as a text grows.

Two options undo one decision of the paper each (our variants). With `gate="added"` the scaled score is
ReLU(Q K^T) / sqrt(d) + f_h(R), and with `relu=False` products keep their sign in either form. An added gate
that falls to 0 takes at most f(0) - 0 = 1 from a far key: a factor of e, and no horizon.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..validation import above_zero, flag, floats, number, one_of, reals, shaped, together, within
from .base import Encoding, Heads, PairModule, Site
from .relative import by_distance, check_pairs, relative_positions

GATES = ("multiplied", "added")
LARGEST = torch.finfo(torch.float64).max


def distance_aware_gate(
    distance: Tensor | float, w: Tensor | float, v: Tensor | float
) -> Float[Tensor, "*gate"]:
    """(1 + e^v) / (1 + e^(v - w distance)), with finite gradients at any finite distance.

    Computed as exp(softplus(v) - softplus(v - w distance)): the quotient as it is written overflows at
    e^89 in float32, and its gradient is then NaN. (Where w > 0 the value itself tends to 1 + e^v.)

    Distances have any shape, which is that of the gate of scalars w and v; for `[H]` it is `[H, *distance]`.
    Negative distances, which are none, give what the formula says of them.
    """
    given = {"distance": distance, "w": w, "v": v}
    for name, value in given.items():
        reals(name, value) if isinstance(value, Tensor) else number(name, value)
    placed = {name: value for name, value in given.items() if isinstance(value, Tensor) and value.dim()}
    if len(placed) > 1:
        together(**placed)
    sizes: dict[str, int] = {}
    for name in ("w", "v"):
        if name in placed:
            shaped(sizes, name, placed[name], "H+")
    if isinstance(distance, Tensor):
        within("distance", distance, -LARGEST, LARGEST, "which are finite")
    return _gate(distance, w, v)


def _gate(distance: Tensor | float, w: Tensor | float, v: Tensor | float) -> Tensor:
    distance, w, v = (torch.as_tensor(x) for x in (distance, w, v))
    dtype = torch.promote_types(torch.promote_types(w.dtype, v.dtype), torch.float32)
    distance, w, v = distance.to(dtype), w.to(dtype), v.to(dtype)
    if w.dim() or v.dim():
        w, v = (x.reshape(-1, *[1] * distance.dim()) for x in torch.broadcast_tensors(w, v))
    zero = torch.zeros((), dtype=dtype, device=distance.device)
    return torch.exp(torch.logaddexp(v, zero) - torch.logaddexp(v - w * distance, zero))


def distance_aware_scores(
    q: Float[Tensor, "B H N d"],
    k: Float[Tensor, "B H M d"],
    w: Float[Tensor, " H"] | float,
    v: Float[Tensor, " H"] | float,
    query_positions: Int[Tensor, "*queries N"],
    key_positions: Int[Tensor, "*keys M"],
    *,
    gate: str = "multiplied",
    relu: bool = True,
) -> Float[Tensor, "B H N M"]:
    """relu(q k^T) * gate * d^-0.5; with `gate="added"` relu(q k^T) * d^-0.5 + gate, and with `relu=False`
    products keep their sign. No mask is applied: it belongs after the ReLU, which would undo it."""
    sizes = floats(q=(q, "B H N d+"), k=(k, "B H M d+"))
    check_pairs(query_positions, key_positions, sizes)
    together(q=q, query_positions=query_positions)
    for name, value in (("w", w), ("v", v)):
        if isinstance(value, Tensor) and value.dim():
            shaped(sizes, name, value, "H")
    one_of("gate", gate, GATES)
    flag("relu", relu)
    distance = relative_positions(query_positions, key_positions).abs()
    f = distance_aware_gate(distance, w, v)  # [H, N, M], or [H, B, N, M]
    f = f if f.dim() == distance.dim() else f.movedim(0, -3)
    return _combined(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, f.to(q.dtype), gate, relu)


def _combined(scaled: Tensor, f: Tensor, gate: str, relu: bool) -> Tensor:
    scaled = torch.relu(scaled) if relu else scaled
    return scaled * f if gate == "multiplied" else scaled + f


@cache
def _combination(gate: str, relu: bool) -> Callable[[Tensor, Tensor], Tensor]:
    """One function for all layers: what is compiled is compiled once."""
    return partial(_combined, gate=gate, relu=relu)


class DistanceAwareScore(PairModule):
    """`distance_aware_scores` of one layer. At the start v = 0 and w is spread evenly over the heads from
    -`spread` to `spread` (our choice)."""

    def __init__(self, heads: Heads, encoding: "DistanceAware") -> None:
        super().__init__()
        self.head_width = heads.width
        self.combine = _combination(encoding.gate, encoding.relu)
        self.w = nn.Parameter(torch.linspace(-encoding.spread, encoding.spread, heads.count))
        self.v = nn.Parameter(torch.zeros(heads.count))

    def prepare(
        self, query_positions: Tensor, key_positions: Tensor, consecutive: bool = False
    ) -> tuple[Tensor, Tensor, bool]:
        return query_positions, key_positions, consecutive

    def of_distance(self, relative: Tensor, heads: slice) -> Tensor:
        return _gate(relative.abs(), self.w[heads], self.v[heads])

    def forward(self, q: Tensor, k: Tensor, prepared: tuple[Tensor, Tensor, bool], heads: slice) -> Tensor:
        f = by_distance(lambda relative: self.of_distance(relative, heads), *prepared)
        scaled = (q * self.head_width**-0.5) @ k.transpose(-1, -2)
        return self.combine(scaled, f.to(q.dtype))


@dataclass(frozen=True)
class DistanceAware(Encoding):
    """Scores through a ReLU, multiplied by a learned sigmoid of the distance.

    Args:
        spread: above 0, of w at the start.
        gate: "multiplied", as in the paper, or "added" to the scaled score.
        relu: whether negative products become 0, as in the paper.
    """

    name = "distance-aware"
    order = 14
    sites = frozenset({Site.SCORE})
    per_layer = True

    spread: float = 0.1
    gate: str = "multiplied"
    relu: bool = True

    def __post_init__(self) -> None:
        one_of("gate", self.gate, GATES)
        above_zero("spread", self.spread)
        flag("relu", self.relu)

    def at_score(self, heads: Heads) -> PairModule:
        return DistanceAwareScore(heads, self)

    def code(self, width: int, length: int) -> tuple[str, Callable[[Tensor], Tensor]]:
        w, v = self.at_score(Heads(count=width)).parameters()
        return "distance: the factor of each head", lambda at: distance_aware_gate(at, w, v).T
