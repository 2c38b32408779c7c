"""KERPLE (Chi et al. 2022): scores fall with a conditionally positive definite kernel of the distance.

    logarithmic    -r1 ln(1 + r2 |i - j|)          r1, r2 > 0
    power          -r1 |i - j|^r2                  r1 > 0, 0 < r2 <= 2

with one pair (r1, r2) per head and layer. ALiBi is the power form with r2 = 1 and r1 fixed.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..validation import floats, movable, one_of
from .base import Encoding, Heads, ScoreModule, Site
from .relative import DistanceBias, check_pairs, relative_positions

FORMS = ("logarithmic", "power")


def _kernel(r1: Tensor, r2: Tensor, distance: Tensor, form: str) -> Tensor:
    """r1 and r2 `[H]`, distances of any shape: `[H, *shape]`."""
    dtype = torch.promote_types(r1.dtype, torch.float32)  # bfloat16 is exact for distances up to 256 only
    r1, r2 = (r.to(dtype).reshape(-1, *[1] * distance.dim()) for r in (r1, r2))
    distance = distance.to(dtype)
    if form == "logarithmic":
        return -r1 * torch.log1p(r2 * distance)
    # 0^r2 is 0, but its gradient is 0 ln 0 = NaN: there 1^r2 is computed, and multiplied by 0.
    return -r1 * distance.clamp(min=1) ** r2 * (distance > 0)


def kerple_bias(
    r1: Float[Tensor, " H"],
    r2: Float[Tensor, " H"],
    query_positions: Int[Tensor, "*queries N"],
    key_positions: Int[Tensor, "*keys M"],
    *,
    form: str = "logarithmic",
) -> Float[Tensor, "*pairs H N M"]:
    """The kernel of every pair, in float32 or wider; 0 at distance 0. An unknown form is a ValueError."""
    one_of("form", form, FORMS)
    floats(r1=(r1, "H"), r2=(r2, "H"))
    check_pairs(query_positions, key_positions)
    movable("r1", r1, key_positions.device)
    distance = relative_positions(query_positions, key_positions).abs()
    return _kernel(r1, r2, distance, form).movedim(0, -3)


class KerpleScore(DistanceBias):
    """`kerple_bias` with its parameters.

    Drawn as in the authors' release, r1 from U(0, 2) and r2 from U(0, 1). There a clamp at 0.01 keeps them
    positive; here they are the softplus of what is trained, and r2 of the power form is 2 sigmoid of it.
    """

    def __init__(self, n_heads: int, form: str) -> None:
        super().__init__()
        self.form = form
        r1, r2 = 2 * torch.rand(n_heads), torch.rand(n_heads)
        self.raw_r1 = nn.Parameter(_inverse_softplus(r1))
        self.raw_r2 = nn.Parameter(torch.logit(r2 / 2, 1e-6) if form == "power" else _inverse_softplus(r2))

    @property
    def r1(self) -> Tensor:
        return F.softplus(self.raw_r1)

    @property
    def r2(self) -> Tensor:
        return 2 * torch.sigmoid(self.raw_r2) if self.form == "power" else F.softplus(self.raw_r2)

    def of_distance(self, relative: Tensor) -> Tensor:
        return _kernel(self.r1, self.r2, relative.abs(), self.form)


def _inverse_softplus(x: Tensor) -> Tensor:
    return x.clamp(min=1e-4).expm1().log()


@dataclass(frozen=True)
class Kerple(Encoding):
    """A bias that falls with a learned kernel of the distance.

    Args:
        form: "logarithmic" or "power".
        per_layer: a pair (r1, r2) of its own for every layer, as in the paper; False shares one.
    """

    name = "kerple"
    order = 9
    sites = frozenset({Site.SCORE})

    form: str = "logarithmic"
    per_layer: bool = True

    def __post_init__(self) -> None:
        one_of("form", self.form, FORMS)

    def at_score(self, heads: Heads) -> ScoreModule:
        return KerpleScore(heads.count, self.form)
